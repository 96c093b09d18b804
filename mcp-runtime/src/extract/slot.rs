//! The raw values of one call's parameters, in parameter order.

use std::{borrow::Cow, fmt};

use serde::{
    Deserializer as _,
    de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::AnyArg;

/// One raw value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot<'a> {
    /// JSON text, from a tool's `arguments`.
    Json(&'a str),
    /// A string: a prompt's argument, or a variable of a URI.
    Text(&'a str),
    /// A variable of a URI that explodes: `{/path*}`.
    List(&'a [String]),
}

/// A parameter did not fit; what is wrong is found out by looking again.
#[derive(Debug, Clone, Copy)]
pub struct Rejected;

/// The raw values of a call, one place for each argument of the function.
#[derive(Debug)]
pub struct Slots<'a> {
    pub(crate) list: &'a [Option<Slot<'a>>],
    /// The whole `arguments` object, for `flatten`.
    pub(crate) whole: &'a str,
    pub(crate) strict: bool,
}

/// Fills `places` from the JSON object `text`; `Ok(true)` if it has a member that no argument names.
pub(crate) fn scan<'a>(
    text: &'a str,
    args: &[&dyn AnyArg],
    places: &mut [Option<Slot<'a>>],
) -> Result<bool, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_str(text);
    let unknown = json.deserialize_map(Fill { args, places })?;
    json.end()?;
    Ok(unknown)
}

struct Fill<'p, 'a> {
    args: &'p [&'p dyn AnyArg],
    places: &'p mut [Option<Slot<'a>>],
}

impl<'a> Visitor<'a> for Fill<'_, 'a> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut unknown = false;
        while let Some(found) = map.next_key_seed(Position(self.args))? {
            match found.and_then(|n| self.places.get_mut(n)) {
                Some(place) => *place = Some(Slot::Json(map.next_value::<&RawValue>()?.get())),
                None => {
                    unknown = true;
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(unknown)
    }
}

/// Which argument a key names; compares in place, so that no key is copied.
struct Position<'p>(&'p [&'p dyn AnyArg]);

impl<'a> DeserializeSeed<'a> for Position<'_> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'a>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_str(self)
    }
}

impl Visitor<'_> for Position<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|arg| arg.name() == key))
    }
}

/// The keys of a JSON object, in order.
pub(crate) fn keys(text: &str) -> Vec<Cow<'_, str>> {
    struct Keys;
    impl<'a> Visitor<'a> for Keys {
        type Value = Vec<Cow<'a, str>>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut keys = Vec::new();
            while let Some((key, IgnoredAny)) = map.next_entry::<String, _>()? {
                keys.push(Cow::Owned(key));
            }
            Ok(keys)
        }
    }
    serde_json::Deserializer::from_str(text).deserialize_map(Keys).unwrap_or_default()
}
