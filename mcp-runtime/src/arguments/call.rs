//! A call on its way into a user's function: dispatch makes a [`Call`], generated code takes it apart with one `const
//! ArgDef<T>` for each argument: how it is read, what its schema says, and the rules on its value. Behind `&dyn AnyArg` the
//! rest of the runtime knows no types.

use std::{any::Any, borrow::Cow, fmt, future::Future, pin::Pin, sync::Arc};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserializer as _, Serialize,
    de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use crate::arguments::{
    CompleteFn, Rules,
    report::{self, without_position},
    text::{from_list, from_text, missing},
};
use crate::{blocking::run_blocking, context::Context, error::Failure, schema::Validator};

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What a handler gives back: a failure, a result, or a future of one.
pub type Outcome<R> = Result<Flow<R>, Failure>;

/// A result that is there, or will be.
#[allow(missing_debug_implementations)] // holds a future
pub enum Flow<R> {
    /// The function has returned.
    Ready(R),
    /// The function is async, or runs elsewhere.
    Pending(BoxFuture<Result<R, Failure>>),
}

/// A plain function has returned.
///
/// # Errors
/// As `result`.
pub fn done<R>(result: Result<R, Failure>) -> Outcome<R> {
    result.map(Flow::Ready)
}

/// An async function is to be polled.
///
/// # Errors
/// None; the type is that of handlers.
pub fn pending<R>(future: impl Future<Output = Result<R, Failure>> + Send + 'static) -> Outcome<R> {
    Ok(Flow::Pending(Box::pin(future)))
}

/// A plain function runs on the blocking pool.
///
/// # Errors
/// None; the type is that of handlers.
pub fn blocking<R: Send + 'static>(body: impl FnOnce() -> Result<R, Failure> + Send + 'static) -> Outcome<R> {
    pending(run_blocking(|_| body()))
}

/// The same, as a task if the call may go on as one.
///
/// # Errors
/// None; the type is that of handlers.
pub fn blocking_task<R: Send + 'static>(
    context: Context,
    body: impl FnOnce() -> Result<R, Failure> + Send + 'static,
) -> Outcome<R> {
    pending(async move {
        context.start_task().await;
        run_blocking(|_| body()).await
    })
}

/// The values that a client sent, before they are typed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Input<'a> {
    /// JSON text of a tool's `arguments`.
    Json(&'a str),
    /// Strings by name.
    Text(&'a [(String, Variable)]),
}

/// A prompt's argument, or a variable of a URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Variable {
    One(String),
    Many(Vec<String>),
}

/// What dispatch knows of a call.
#[allow(missing_debug_implementations)] // borrows trait objects
pub(crate) struct CallParts<'a> {
    pub(crate) input: Input<'a>,
    pub(crate) args: &'a [&'static dyn AnyArg],
    pub(crate) strict: bool,
    /// Input schema and name of a tool, for repair and report.
    pub(crate) tool: Option<&'a report::ToolInput>,
    /// For keywords that decoding does not enforce.
    pub(crate) validator: Option<&'a Validator>,
    pub(crate) this: Option<&'a Arc<dyn Any + Send + Sync>>,
    pub(crate) context: &'a dyn Fn() -> Context,
}

/// One call, as generated code sees it.
#[allow(missing_debug_implementations)] // borrows trait objects
pub struct Call<'a> {
    parts: CallParts<'a>,
    context: Option<Context>,
}

/// Up to this many arguments need no allocation.
const INLINE: usize = 12;

impl<'a> Call<'a> {
    pub(crate) fn new(parts: CallParts<'a>) -> Self {
        Self { parts, context: None }
    }

    /// The request's context; made when first asked for.
    pub fn context(&mut self) -> Context {
        self.context.get_or_insert_with(self.parts.context).clone()
    }

    /// The context, if the function has asked for it.
    pub(crate) fn made_context(&self) -> Option<Context> {
        self.context.clone()
    }

    /// The instance that a method is called on.
    ///
    /// # Errors
    /// The item was registered without its instance.
    pub fn this<T: Any + Send + Sync>(&self) -> Result<Arc<T>, Failure> {
        let this = self.parts.this.cloned().and_then(|this| this.downcast::<T>().ok());
        this.ok_or_else(|| Failure::Body("the service instance is missing".into()))
    }

    /// The typed arguments: `read` takes each from its slot, at most twice (again after a repair).
    ///
    /// # Errors
    /// Everything that does not fit, in one report.
    pub fn decode<R>(&self, read: impl Fn(&Slots<'_>) -> Result<R, Rejected>) -> Result<R, Failure> {
        let mut result = None;
        self.with_slots(&mut |slots| {
            let decoded = read(slots);
            let fits = decoded.is_ok();
            result = decoded.ok();
            fits
        })?;
        result.ok_or_else(|| Failure::Arguments("the arguments do not fit".into()))
    }

    /// The part of [`decode`](Self::decode) that is the same for all functions.
    fn with_slots(&self, read: &mut dyn FnMut(&Slots<'_>) -> bool) -> Result<(), Failure> {
        let parts = &self.parts;
        let mut inline: [Option<Slot<'_>>; INLINE] = [None; INLINE];
        let mut spilled = Vec::new();
        let places: &mut [Option<Slot<'_>>] = if parts.args.len() <= INLINE {
            &mut inline[..parts.args.len()]
        } else {
            spilled.resize(parts.args.len(), None);
            &mut spilled
        };
        match parts.input {
            Input::Json(text) => {
                let flatten = parts.args.first().is_some_and(|arg| arg.is_flatten());
                let unknown = match scan(text, if flatten { &[] } else { parts.args }, places) {
                    Ok(unknown) => unknown && !flatten,
                    // a key that is no text
                    Err(_) => return self.second_look(text, read),
                };
                let good = !(unknown && parts.strict)
                    && read(&Slots { list: places, whole: text, strict: parts.strict })
                    && self.nested_hold(text);
                if good { Ok(()) } else { self.second_look(text, read) }
            }
            Input::Text(values) => {
                for (arg, place) in parts.args.iter().zip(places.iter_mut()) {
                    *place =
                        values.iter().find(|(name, _)| name == arg.name()).map(|(_, value)| match value {
                            Variable::One(text) => Slot::Text(text),
                            Variable::Many(list) => Slot::List(list),
                        });
                }
                let slots = Slots { list: places, whole: "{}", strict: parts.strict };
                if read(&slots) { Ok(()) } else { Err(Failure::Arguments(report::text(parts.args, &slots))) }
            }
        }
    }

    fn nested_hold(&self, text: &str) -> bool {
        self.parts.validator.is_none_or(|validator| validator.validate_str(text).is_ok())
    }

    /// Repairs harmless slips and reads again, or reports everything that is wrong.
    #[cold]
    fn second_look(&self, text: &str, read: &mut dyn FnMut(&Slots<'_>) -> bool) -> Result<(), Failure> {
        let parts = &self.parts;
        let Some(tool) = parts.tool else {
            return Err(Failure::Arguments("the arguments do not fit".into()));
        };
        let (repaired, errors, unread) = match report::repair(tool, text, parts.strict) {
            Ok((repaired, errors)) => (repaired, errors, None),
            Err(error) => (text.to_owned(), Vec::new(), Some(error)),
        };
        let mut places = vec![None; parts.args.len()];
        let flatten = parts.args.first().is_some_and(|arg| arg.is_flatten());
        let scanned = scan(&repaired, if flatten { &[] } else { parts.args }, &mut places).is_ok();
        let slots = Slots { list: &places, whole: &repaired, strict: parts.strict };
        let unknown: Vec<_> = if flatten {
            Vec::new()
        } else {
            let known = |key: &str| parts.args.iter().any(|arg| arg.name() == key);
            keys(text).into_iter().filter(|key| !known(key)).map(|key| key.into_owned()).collect()
        };
        let refused = parts.strict && !unknown.is_empty();
        if scanned && unread.is_none() && errors.is_empty() && !refused && read(&slots) {
            return Ok(());
        }
        let unsaid = if scanned { report::unsaid(parts.args, &slots, &errors) } else { Vec::new() };
        let mut said: Vec<String> = errors.iter().map(ToString::to_string).chain(unsaid).collect();
        if let Some(error) = unread.filter(|_| said.is_empty()) {
            said.push(report::unreadable(&error));
        }
        Err(Failure::Arguments(report::tool(tool, parts.args, &said, &unknown)))
    }
}

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
fn scan<'a>(
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
fn keys(text: &str) -> Vec<Cow<'_, str>> {
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

/// Types that can be an argument.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument",
    label = "not an argument type",
    note = "put `#[mcp_type]` on `{Self}`, or derive `serde::Deserialize` and `schemars::JsonSchema` (1.x)",
    note = "if this should come from the server, write `&{Self}`"
)]
pub trait Arg: DeserializeOwned + JsonSchema + Send + 'static {}
#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> Arg for T {}

/// Types whose values can be published as `default` and `examples`.
#[diagnostic::on_unimplemented(
    message = "`default` and `example` need a type that can be published, and `{Self}` cannot",
    label = "not serializable",
    note = "put `#[mcp_type]` on `{Self}`, or derive `serde::Serialize`"
)]
pub trait DefaultArg: Serialize {}
#[diagnostic::do_not_recommend]
impl<T: Serialize> DefaultArg for T {}

/// Types that can be mirrored into a header.
#[diagnostic::on_unimplemented(
    message = "`header` needs a string, a bool, an enum or an integer within ±(2^53-1), not `{Self}`",
    label = "`header` does not apply to this type",
    note = "a 64-bit integer needs `range(..)` with both bounds within ±(2^53-1); an enum needs `#[mcp_type]`"
)]
pub trait HeaderArg {}
/// Integers that can be mirrored into a header because their range is bounded.
#[diagnostic::on_unimplemented(
    message = "`header` needs a string, a bool, an enum or an integer within ±(2^53-1), not `{Self}`",
    label = "`header` does not apply to this type"
)]
pub trait IntHeaderArg {}
macro_rules! headers {
    ($marker:ident: $($t:ty)*) => {$(impl $marker for $t {})*};
}
headers!(HeaderArg: String bool i8 i16 i32 u8 u16 u32);
headers!(IntHeaderArg: i8 i16 i32 i64 isize u8 u16 u32 u64 usize);
impl<T: HeaderArg> HeaderArg for Option<T> {}
impl<T: IntHeaderArg> IntHeaderArg for Option<T> {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Json,
    Text,
    Flatten,
}

/// One argument, as generated code declares it.
#[allow(missing_debug_implementations)] // a table of function pointers
pub struct ArgDef<T: 'static> {
    name: &'static str,
    title: Option<&'static str>,
    description: Option<&'static str>,
    kind: Kind,
    decode: fn(Slot<'_>) -> Result<T, String>,
    missing: fn() -> Option<T>,
    schema: fn(&mut SchemaGenerator) -> Schema,
    default: Option<fn() -> T>,
    publish: Option<fn(T) -> Value>,
    example: Option<fn() -> T>,
    rules: Option<fn(Option<&T>, &mut Rules)>,
    header: Option<&'static str>,
    raw: bool,
    choices: &'static [&'static str],
    complete: Option<CompleteFn>,
}

fn decode_json<T: DeserializeOwned>(slot: Slot<'_>) -> Result<T, String> {
    match slot {
        Slot::Json(json) => serde_json::from_str(json).map_err(|e| without_position(&e)),
        other => decode_text(other),
    }
}

fn decode_text<T: DeserializeOwned>(slot: Slot<'_>) -> Result<T, String> {
    match slot {
        Slot::Json(json) => serde_json::from_str(json).map_err(|e| without_position(&e)),
        Slot::Text(text) => from_text(text).map_err(|e| e.0),
        Slot::List(parts) => from_list(parts).map_err(|e| e.0),
    }
}

fn publish<T: Serialize>(value: T) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

impl<T: 'static> ArgDef<T> {
    const fn new(name: &'static str, kind: Kind, decode: fn(Slot<'_>) -> Result<T, String>) -> Self
    where
        T: Arg,
    {
        Self {
            name,
            title: None,
            description: None,
            kind,
            decode,
            missing: missing::<T>,
            schema: |generator| generator.subschema_for::<T>(),
            default: None,
            publish: None,
            example: None,
            rules: None,
            header: None,
            raw: false,
            choices: &[],
            complete: None,
        }
    }

    /// Sets the `title`.
    #[must_use]
    pub const fn title(mut self, title: &'static str) -> Self {
        self.title = Some(title);
        self
    }

    /// Sets the `description`.
    #[must_use]
    pub const fn description(mut self, text: &'static str) -> Self {
        self.description = Some(text);
        self
    }

    /// Sets the value for an absent argument.
    #[must_use]
    pub const fn default(mut self, value: fn() -> T) -> Self
    where
        T: DefaultArg,
    {
        self.default = Some(value);
        self.publish = Some(publish::<T>);
        self
    }

    /// Sets the published example.
    #[must_use]
    pub const fn example(mut self, value: fn() -> T) -> Self
    where
        T: DefaultArg,
    {
        self.example = Some(value);
        self.publish = Some(publish::<T>);
        self
    }

    /// Sets the rules on its value.
    #[must_use]
    pub const fn rules(mut self, rules: fn(Option<&T>, &mut Rules)) -> Self {
        self.rules = Some(rules);
        self
    }

    /// Mirrors it into the header `Mcp-Param-{name}`.
    #[must_use]
    pub const fn header(mut self, name: &'static str) -> Self
    where
        T: HeaderArg,
    {
        self.header = Some(name);
        self
    }

    /// Mirrors an integer of bounded range into the header `Mcp-Param-{name}`.
    #[must_use]
    pub const fn header_in_range(mut self, name: &'static str) -> Self
    where
        T: IntHeaderArg,
    {
        self.header = Some(name);
        self
    }

    /// Turns the path checks on a URI's variable off.
    #[must_use]
    pub const fn raw(mut self) -> Self {
        self.raw = true;
        self
    }

    /// Sets the values that completion offers.
    #[must_use]
    pub const fn complete_list(mut self, choices: &'static [&'static str]) -> Self {
        self.choices = choices;
        self
    }

    /// Sets the function that completes it.
    #[must_use]
    pub const fn complete(mut self, complete: CompleteFn) -> Self {
        self.complete = Some(complete);
        self
    }

    /// The typed value of the argument in place `index`.
    ///
    /// # Errors
    /// It is missing, has another type, or breaks a rule.
    pub fn take(&self, slots: &Slots<'_>, index: usize) -> Result<T, Rejected> {
        let slot = match self.kind {
            Kind::Flatten => Some(Slot::Json(slots.whole)),
            _ => slots.list.get(index).copied().flatten(),
        };
        let value = match (slot, self.default) {
            (Some(Slot::Json("null")), Some(default)) if !slots.strict => default(),
            (Some(slot), _) => (self.decode)(slot).map_err(|_| Rejected)?,
            (None, Some(default)) => default(),
            (None, None) => return (self.missing)().ok_or(Rejected),
        };
        match self.rules {
            Some(rules) if !Rules::hold(rules, &value) => Err(Rejected),
            _ => Ok(value),
        }
    }
}

/// An argument of a tool.
///
/// These three are functions and not methods so that a type which cannot be an argument is underlined as a whole.
#[must_use]
pub const fn json<T: Arg>(name: &'static str) -> ArgDef<T> {
    ArgDef::new(name, Kind::Json, decode_json::<T>)
}

/// An argument of a prompt or a variable of a resource, which arrive as strings.
#[must_use]
pub const fn text<T: Arg>(name: &'static str) -> ArgDef<T> {
    ArgDef::new(name, Kind::Text, decode_text::<T>)
}

/// A struct that is the whole `arguments` object.
#[must_use]
pub const fn flatten<T: Arg>(name: &'static str) -> ArgDef<T> {
    ArgDef::new(name, Kind::Flatten, decode_json::<T>)
}

/// An [`ArgDef`] without its type.
pub trait AnyArg: Sync {
    /// The wire name.
    fn name(&self) -> &'static str;
    #[doc(hidden)]
    fn property(&self, generator: &mut SchemaGenerator) -> Schema;
    /// Schema keywords that its rules put there and enforce.
    #[doc(hidden)]
    fn own_keywords(&self) -> Vec<String>;
    #[doc(hidden)]
    fn required(&self) -> bool;
    #[doc(hidden)]
    fn is_flatten(&self) -> bool;
    #[doc(hidden)]
    fn title(&self) -> Option<&'static str>;
    #[doc(hidden)]
    fn description(&self) -> Option<&'static str>;
    #[doc(hidden)]
    fn header(&self) -> Option<&'static str>;
    #[doc(hidden)]
    fn is_raw(&self) -> bool;
    #[doc(hidden)]
    fn choices(&self) -> &'static [&'static str];
    #[doc(hidden)]
    fn completer(&self) -> Option<CompleteFn>;
    /// Patterns that are not regular expressions we know, and a default or example that breaks the rules.
    #[doc(hidden)]
    fn problems(&self) -> Vec<String>;
    #[doc(hidden)]
    fn complaints(&self, slots: &Slots<'_>, index: usize) -> Vec<String>;
}

impl<T: 'static> AnyArg for ArgDef<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn property(&self, generator: &mut SchemaGenerator) -> Schema {
        let mut schema = (self.schema)(generator);
        if let Some(rules) = self.rules {
            Rules::publish(rules, &mut schema);
        }
        let mut set = |key: &str, value: Value| {
            schema.insert(key.to_owned(), value);
        };
        if let Some(text) = self.title {
            set("title", text.into());
        }
        if let Some(text) = self.description {
            set("description", text.into());
        }
        if let Some(publish) = self.publish {
            if let Some(default) = self.default {
                set("default", publish(default()));
            }
            if let Some(example) = self.example {
                set("examples", Value::Array(vec![publish(example())]));
            }
        }
        if let Some(header) = self.header {
            set("x-mcp-header", header.into());
        }
        schema
    }

    fn own_keywords(&self) -> Vec<String> {
        let mut schema = Schema::default();
        if let Some(rules) = self.rules {
            Rules::publish(rules, &mut schema);
        }
        schema.as_object().map(|keywords| keywords.keys().cloned().collect()).unwrap_or_default()
    }

    fn required(&self) -> bool {
        self.default.is_none() && (self.missing)().is_none()
    }

    fn is_flatten(&self) -> bool {
        self.kind == Kind::Flatten
    }

    fn title(&self) -> Option<&'static str> {
        self.title
    }

    fn description(&self) -> Option<&'static str> {
        self.description
    }

    fn header(&self) -> Option<&'static str> {
        self.header
    }

    fn is_raw(&self) -> bool {
        self.raw
    }

    fn choices(&self) -> &'static [&'static str] {
        self.choices
    }

    fn completer(&self) -> Option<CompleteFn> {
        self.complete
    }

    fn problems(&self) -> Vec<String> {
        let Some(rules) = self.rules else { return Vec::new() };
        let mut problems = Rules::bad_patterns(rules);
        for (what, value) in [("default", self.default), ("example", self.example)] {
            let broken = value.map(|value| Rules::broken(rules, &value())).unwrap_or_default();
            problems
                .extend(broken.into_iter().map(|broken| format!("its {what} breaks its rules: {broken}")));
        }
        problems
    }

    fn complaints(&self, slots: &Slots<'_>, index: usize) -> Vec<String> {
        let slot = match self.kind {
            Kind::Flatten => Some(Slot::Json(slots.whole)),
            _ => slots.list.get(index).copied().flatten(),
        };
        let Some(slot) = slot else {
            return if self.required() { vec!["is missing".to_owned()] } else { Vec::new() };
        };
        if self.default.is_some() && !slots.strict && matches!(slot, Slot::Json("null")) {
            return Vec::new();
        }
        match ((self.decode)(slot), self.rules) {
            (Err(message), _) => vec![message],
            (Ok(value), Some(rules)) => Rules::broken(rules, &value),
            (Ok(_), None) => Vec::new(),
        }
    }
}
