//! One argument of an annotated function: how it is read, what its schema says, and the rules on its value.
//! A `const ArgDef<T>` stands in every expansion; behind `&dyn AnyArg` the rest of the runtime knows no types.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    CompleteFn, Rejected, Rules, Slot, Slots,
    report::without_position,
    text::{from_list, from_text, missing},
};

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
