//! The arguments of a call before they are typed: one slot for each parameter, filled without copying a value.

use std::fmt;

use serde::{
    Deserializer as _,
    de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::text::{from_list, from_text};

/// The arguments that a client sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Input<'a> {
    /// JSON text of a tool's `arguments`.
    Json(&'a str),
    /// A prompt's arguments, or the variables of a URI, by name.
    Text(&'a [(String, TextArgument)]),
}

/// A prompt's argument, or a variable of a URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TextArgument {
    One(String),
    /// A variable that explodes, or is repeated in a query.
    Many(Vec<String>),
}

/// The value of one argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RawArgument<'a> {
    /// JSON text, from a tool's `arguments`.
    Json(&'a str),
    /// A prompt's argument, or a variable of a URI.
    Text(&'a str),
    /// A variable of a URI that explodes: `{/path*}`.
    List(&'a [String]),
}

impl<'a> RawArgument<'a> {
    pub(crate) fn decode<T: DeserializeOwned>(self) -> Result<T, String> {
        match self {
            Self::Json(json) => serde_json::from_str(json).map_err(|e| without_position(&e)),
            Self::Text(text) => from_text(text).map_err(|e| e.0),
            Self::List(parts) => from_list(parts).map_err(|e| e.0),
        }
    }

    pub(super) fn from_text_argument(value: &'a TextArgument) -> Self {
        match value {
            TextArgument::One(text) => Self::Text(text),
            TextArgument::Many(list) => Self::List(list),
        }
    }
}

/// The raw values of a call's arguments, one slot for each parameter.
#[derive(Debug)]
pub struct RawArguments<'a> {
    pub(super) values: &'a [Option<RawArgument<'a>>],
    /// The whole `arguments` object, for `flatten`.
    pub(super) object: &'a str,
    pub(super) strict: bool,
}

impl<'a> RawArguments<'a> {
    pub(super) fn get(&self, index: usize) -> Option<RawArgument<'a>> {
        self.values.get(index).copied().flatten()
    }
}

/// An argument is invalid. It carries no message: decoding is the fast path, and the report decodes again.
#[derive(Debug, Clone, Copy)]
pub struct InvalidArgument;

/// Fills `slots` from the JSON object `text`; `Ok(true)` if it has a member for which `index_of` returns `None`.
pub(super) fn fill_slots<'a>(
    text: &'a str,
    index_of: impl Fn(&str) -> Option<usize>,
    slots: &mut [Option<RawArgument<'a>>],
) -> Result<bool, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_str(text);
    let unknown = json.deserialize_map(SlotVisitor { index_of, slots })?;
    json.end()?;
    Ok(unknown)
}

struct SlotVisitor<'s, 'a, F> {
    index_of: F,
    slots: &'s mut [Option<RawArgument<'a>>],
}

impl<'a, F: Fn(&str) -> Option<usize>> Visitor<'a> for SlotVisitor<'_, 'a, F> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut unknown = false;
        while let Some(index) = map.next_key_seed(KeyIndex(&self.index_of))? {
            match index.and_then(|n| self.slots.get_mut(n)) {
                Some(slot) => *slot = Some(RawArgument::Json(map.next_value::<&RawValue>()?.get())),
                None => {
                    unknown = true;
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(unknown)
    }
}

/// The index of the parameter that a key names; compares in place, so that no key is copied.
struct KeyIndex<'f, F>(&'f F);

impl<'a, F: Fn(&str) -> Option<usize>> DeserializeSeed<'a> for KeyIndex<'_, F> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'a>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_str(self)
    }
}

impl<F: Fn(&str) -> Option<usize>> Visitor<'_> for KeyIndex<'_, F> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok((self.0)(key))
    }
}

/// The keys of a JSON object, in order; empty if the text is not an object.
pub(super) fn object_keys(text: &str) -> Vec<String> {
    struct KeysVisitor;
    impl<'a> Visitor<'a> for KeysVisitor {
        type Value = Vec<String>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut keys = Vec::new();
            while let Some((key, IgnoredAny)) = map.next_entry::<String, _>()? {
                keys.push(key);
            }
            Ok(keys)
        }
    }
    serde_json::Deserializer::from_str(text).deserialize_map(KeysVisitor).unwrap_or_default()
}

/// The message of an error without its position, which refers to text that the client does not see.
pub(super) fn without_position(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if error.line() > 0
        && let Some(at) = text.rfind(" at line ")
    {
        text.truncate(at);
    }
    text
}
