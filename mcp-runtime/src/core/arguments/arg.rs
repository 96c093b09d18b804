//! The declaration of one argument: its type, schema, default, rules and completion.
//!
//! Generated code makes one `const ArgDescriptor<T>` for each parameter. The rest of the runtime sees `&dyn AnyArg` and does
//! not know `T`.

use std::{any::TypeId, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error as _},
};
use serde_json::Value;

use super::{
    call::{Call, DecodeFn, InvalidArgument, RawArgument, RawArguments, decode_json, decode_text},
    completion::{CompleteFn, choices_in_schema},
    duration::ArgumentForm,
    explain::Problem,
    rules::Rules,
    text::missing,
};
use crate::schema::{
    NULLABLE, SAMPLE_KEY, format_error, generator, hoist_defs, link_patterns, reads_objects,
    sample_with_keys, truncate, without_position,
};

/// Types that can be an argument. A message names `Leaf`, which is the `T` of a `Vec<T>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument",
    label = "not an argument type",
    note = "if `{Leaf}` is your type, put `#[mcp_type]` on it, or derive `serde::Deserialize` and `schemars::JsonSchema` (1.x)",
    note = "if it is another crate's, enable the feature `serde` of that crate and the feature of `schemars` for it, such as `uuid1`; if there is none, take a `String`, or a type of yours that converts it",
    note = "if the server provides it, write `&{Self}`, or put `#[mcp(inject)]` before it if it implements `FromContext`"
)]
pub trait Arg<Leaf: ?Sized = Self>: DeserializeOwned + JsonSchema + Send + 'static {}
#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static, Leaf: ?Sized> Arg<Leaf> for T {}

/// [`Arg`] for types that are named like those that the server provides. The name decides about the message only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument",
    label = "clients do not send it",
    note = "the server provides it: write `{Reference}`"
)]
pub trait ProvidedArg<Reference>: DeserializeOwned + JsonSchema + Send + 'static {}
#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static, Reference> ProvidedArg<Reference> for T {}

/// [`Arg`] for types that are named like one that is made for each call. The name decides about the message only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument",
    label = "clients do not send it",
    note = "it is made for each call: put `#[mcp(inject)]` before the parameter"
)]
pub trait InjectedArg: DeserializeOwned + JsonSchema + Send + 'static {}
#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> InjectedArg for T {}

/// [`Arg`] for types that are named like pointers and wrappers of state. The name decides about the message only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument",
    label = "not an argument type",
    note = "if the server provides it, write `&{Leaf}`, and register the value with `.state(..)`",
    note = "if the client sends it, write the type of the value alone, such as `String` for `Rc<str>`"
)]
pub trait SharedArg<Leaf: ?Sized>: DeserializeOwned + JsonSchema + Send + 'static {}
#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static, Leaf: ?Sized> SharedArg<Leaf> for T {}

/// [`Arg`] for trait objects and functions. The syntax decides about the message only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument",
    label = "not data, which clients could send",
    note = "take data and choose by it, or take `&dyn Trait` from the server's state"
)]
pub trait DynArg: DeserializeOwned + JsonSchema + Send + 'static {}
#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> DynArg for T {}

/// A `default` or an `example`, or why its literal is not a value of its type.
pub type DeclaredResult<T> = serde_json::Result<T>;

/// Reads the string literal of a `default` or an `example` as an argument is read. The inherent functions, of types that no
/// text is a value of, take precedence over that of [`AnyTextValue`].
#[derive(Debug)]
pub struct TextValue<T>(PhantomData<T>);

/// [`TextValue`] for any other type.
pub trait AnyTextValue<T> {
    /// The value.
    ///
    /// # Errors
    /// The type refuses the text.
    fn value(literal: impl AnyLiteral) -> DeclaredResult<T>
    where
        T: DeserializeOwned;
}

impl<T> AnyTextValue<T> for TextValue<T> {
    fn value(literal: impl AnyLiteral) -> DeclaredResult<T>
    where
        T: DeserializeOwned,
    {
        let text = literal.text();
        let error = |error| format!("\"{}\" is not a value of its type: {error}", truncate(text));
        T::deserialize(Value::from(text)).map_err(|reason| serde_json::Error::custom(error(reason)))
    }
}

/// String literals.
pub trait AnyLiteral {
    /// The text.
    fn text(self) -> &'static str;
}

impl AnyLiteral for &'static str {
    fn text(self) -> &'static str {
        self
    }
}

/// Literals without quotes: none that [`TextValue`] is given.
#[diagnostic::on_unimplemented(
    message = "a string is not a value of type `{T}`",
    label = "expected a value of type `{T}`",
    note = "write it without quotes: `default = 10`"
)]
pub trait PlainLiteral<T> {
    /// The value.
    fn into_value(self) -> T;
}

macro_rules! plain {
    ($($t:ty)*) => {$(
        impl TextValue<$t> {
            /// Never called.
            ///
            /// # Errors
            /// Never fails; the type is that of other values.
            pub fn value(literal: impl PlainLiteral<$t>) -> DeclaredResult<$t> {
                Ok(literal.into_value())
            }
        }
    )*};
}
plain!(bool i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);

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

/// The options that an attribute sets for an argument, whatever its type.
#[derive(Clone, Copy, Debug)]
pub struct ArgOptions {
    name: &'static str,
    pub(crate) title: Option<&'static str>,
    pub(crate) description: Option<&'static str>,
    /// Whether it is the whole `arguments` object.
    flatten: bool,
    pub(crate) header: Option<&'static str>,
    pub(crate) raw: bool,
    /// Whether its value is left out of traces and the audit log.
    pub(crate) secret: bool,
    choices: &'static [&'static str],
    pub(crate) complete: Option<CompleteFn>,
    /// Whether `null` is a value that differs from absence.
    nullable: bool,
    has_default: bool,
    has_example: bool,
}

impl ArgOptions {
    fn raw_value<'a>(&self, slots: &RawArguments<'a>, index: usize) -> Option<RawArgument<'a>> {
        if self.flatten { Some(RawArgument::Json(slots.object)) } else { slots.get(index) }
    }

    /// Where the value of the argument in slot `index` comes from.
    #[inline]
    fn source<'a>(&self, slots: &RawArguments<'a>, index: usize) -> ValueSource<'a> {
        match self.raw_value(slots, index) {
            Some(raw) if !self.is_absent(raw, slots.strict) => ValueSource::Sent(raw),
            _ => ValueSource::Absent,
        }
    }

    /// Whether a value is a `null` that stands for the default.
    #[inline]
    fn is_absent(&self, raw: RawArgument<'_>, strict: bool) -> bool {
        self.has_default && !self.nullable && !strict && matches!(raw, RawArgument::Json("null"))
    }
}

/// One argument, as generated code declares it.
///
/// Its code is generated for each type of arguments in a program. Code that does not depend on the type is therefore
/// elsewhere: in `ArgOptions`, and in the methods of `dyn AnyArg`.
#[allow(missing_debug_implementations)] // a table of function pointers
pub struct ArgDescriptor<T: 'static> {
    options: ArgOptions,
    decode: DecodeFn<T>,
    schema: fn(&mut SchemaGenerator) -> Schema,
    /// The value if it is absent: the default, or that of types that have one.
    absent: fn() -> DeclaredResult<T>,
    example: fn() -> DeclaredResult<T>,
    publish: Option<fn(&T) -> serde_json::Result<Value>>,
    rules: Option<fn(Option<&T>, &mut Rules)>,
}

/// Where the value of an argument comes from.
#[derive(Clone, Copy, Debug)]
pub enum ValueSource<'a> {
    /// The client.
    Sent(RawArgument<'a>),
    /// The default, or the type if an argument of it may be left out.
    Absent,
    /// The example, which is only published.
    Example,
}

fn publish<T: Serialize>(value: &T) -> serde_json::Result<Value> {
    serde_json::to_value(value)
        .map_err(|error| serde_json::Error::custom(format!("cannot be published: {error}")))
}

impl<T: 'static> ArgDescriptor<T> {
    /// An argument that arrives as a text, or one of a tool, whose arguments are JSON.
    const fn of(name: &'static str, is_text: bool) -> Self
    where
        T: DeserializeOwned + JsonSchema,
    {
        Self::new(name, if is_text { decode_text::<T> } else { decode_json::<T> })
    }

    const fn new(name: &'static str, decode: DecodeFn<T>) -> Self
    where
        T: DeserializeOwned + JsonSchema,
    {
        Self {
            options: ArgOptions {
                name,
                title: None,
                description: None,
                flatten: false,
                header: None,
                raw: false,
                secret: false,
                choices: &[],
                complete: None,
                nullable: false,
                has_default: false,
                has_example: false,
            },
            decode,
            schema: SchemaGenerator::subschema_for::<T>,
            absent: missing::<T>,
            example: missing::<T>,
            publish: None,
            rules: None,
        }
    }

    /// Sets the `title`.
    #[must_use]
    pub const fn title(mut self, title: &'static str) -> Self {
        self.options.title = Some(title);
        self
    }

    /// Sets the `description`.
    #[must_use]
    pub const fn description(mut self, text: &'static str) -> Self {
        self.options.description = Some(text);
        self
    }

    /// Sets the value for an absent argument.
    #[must_use]
    pub const fn default(mut self, value: fn() -> DeclaredResult<T>) -> Self
    where
        T: DefaultArg,
    {
        self.absent = value;
        self.options.has_default = true;
        self.publish = Some(publish::<T>);
        self
    }

    /// Sets the published example.
    #[must_use]
    pub const fn example(mut self, value: fn() -> DeclaredResult<T>) -> Self
    where
        T: DefaultArg,
    {
        self.example = value;
        self.options.has_example = true;
        self.publish = Some(publish::<T>);
        self
    }

    /// Sets the rules on its value.
    #[must_use]
    pub const fn rules(mut self, rules: fn(Option<&T>, &mut Rules)) -> Self {
        self.rules = Some(rules);
        self
    }

    /// Reads and publishes it in this form, after its other options.
    #[must_use]
    pub const fn form(mut self, form: Option<ArgumentForm<T>>) -> Self {
        if let Some(form) = form {
            self.decode = form.decode;
            self.schema = form.schema;
            if self.publish.is_some() {
                self.publish = Some(form.publish);
            }
        }
        self
    }

    /// Mirrors it into the header `Mcp-Param-{name}`.
    #[must_use]
    pub const fn header(mut self, name: &'static str) -> Self
    where
        T: HeaderArg,
    {
        self.options.header = Some(name);
        self
    }

    /// Mirrors an integer of bounded range into the header `Mcp-Param-{name}`.
    #[must_use]
    pub const fn header_in_range(mut self, name: &'static str) -> Self
    where
        T: IntHeaderArg,
    {
        self.options.header = Some(name);
        self
    }

    /// Leaves its value out of traces and the audit log.
    #[must_use]
    pub const fn secret(mut self) -> Self {
        self.options.secret = true;
        self
    }

    /// Disables the path checks of a URI's variable.
    #[must_use]
    pub const fn raw(mut self) -> Self {
        self.options.raw = true;
        self
    }

    /// Sets the values that completion offers.
    #[must_use]
    pub const fn complete_list(mut self, choices: &'static [&'static str]) -> Self {
        self.options.choices = choices;
        self
    }

    /// Sets the function that completes it.
    #[must_use]
    pub const fn complete(mut self, complete: CompleteFn) -> Self {
        self.options.complete = Some(complete);
        self
    }

    /// The typed value of the argument in slot `index`.
    ///
    /// # Errors
    /// It is missing, has another type, or violates a rule.
    pub fn take(&self, call: &Call<'_>, index: usize) -> Result<T, InvalidArgument> {
        let Ok(value) = self.value(self.options.source(&call.arguments, index)) else {
            return Err(InvalidArgument);
        };
        if let Some(rules) = self.rules {
            let mut checker = Rules::accepting();
            rules(Some(&value), &mut checker);
            if !checker.has_accepted() {
                return Err(InvalidArgument);
            }
        }
        Ok(value)
    }

    fn value(&self, source: ValueSource<'_>) -> serde_json::Result<T> {
        match source {
            ValueSource::Sent(raw) => (self.decode)(raw),
            ValueSource::Absent => (self.absent)(),
            ValueSource::Example => (self.example)(),
        }
    }
}

impl<T: DeserializeOwned + 'static> ArgDescriptor<Option<Option<T>>> {
    /// Reads `null` as `Some(None)`, and absence as `None`.
    #[must_use]
    pub const fn nullable(mut self) -> Self {
        self.options.nullable = true;
        self.decode = |raw| match raw {
            RawArgument::Json("null") => Ok(Some(None)),
            other => decode_json(other),
        };
        self
    }
}

/// Reads a member that is there: `null` as `Some(None)`.
///
/// # Errors
/// It is not a `T`.
pub fn nullable<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// An argument of a tool; or as `is_text` one of a prompt, or a variable of a resource's URI, which arrive as strings. A message
/// names its `Leaf`.
///
/// The constructors are functions and not methods, so that rustc underlines the whole type if it cannot be an argument.
#[must_use]
pub const fn argument<T: Arg<Leaf>, Leaf: ?Sized>(name: &'static str, is_text: bool) -> ArgDescriptor<T> {
    ArgDescriptor::of(name, is_text)
}

/// [`argument`] for a type that is named like one that the server provides by `Reference`, or an `Option` of one.
#[must_use]
pub const fn provided<T: ProvidedArg<Reference>, Reference>(
    name: &'static str,
    is_text: bool,
) -> ArgDescriptor<T> {
    ArgDescriptor::of(name, is_text)
}

/// [`argument`] for a type that is named like one that is made for each call.
#[must_use]
pub const fn injected<T: InjectedArg>(name: &'static str, is_text: bool) -> ArgDescriptor<T> {
    ArgDescriptor::of(name, is_text)
}

/// [`argument`] for a type that is named like a pointer or a wrapper of state.
#[must_use]
pub const fn shared<T: SharedArg<Leaf>, Leaf: ?Sized>(name: &'static str, is_text: bool) -> ArgDescriptor<T> {
    ArgDescriptor::of(name, is_text)
}

/// [`argument`] for a trait object or a function.
#[must_use]
pub const fn object<T: DynArg>(name: &'static str, is_text: bool) -> ArgDescriptor<T> {
    ArgDescriptor::of(name, is_text)
}

/// A struct that is the whole `arguments` object.
#[must_use]
pub const fn flatten<T: Arg<Leaf>, Leaf: ?Sized>(name: &'static str) -> ArgDescriptor<T> {
    let mut descriptor = ArgDescriptor::of(name, false);
    descriptor.options.flatten = true;
    descriptor
}

#[cfg(feature = "config")]
impl<T: DeserializeOwned + JsonSchema + 'static> ArgDescriptor<T> {
    /// A setting: a member of an object, or the rest of it.
    pub(crate) const fn member(name: &'static str, flatten: bool) -> Self {
        let mut descriptor = Self::of(name, false);
        descriptor.options.flatten = flatten;
        descriptor
    }
}

/// The parts of an [`ArgDescriptor`] that depend on the type, behind a trait object.
pub trait AnyArg: Sync {
    #[doc(hidden)]
    fn options(&self) -> &ArgOptions;
    #[doc(hidden)]
    fn type_of(&self) -> TypeId;
    #[doc(hidden)]
    fn type_schema(&self, generator: &mut SchemaGenerator) -> Schema;
    /// Has its rules published, or checked without a value.
    #[doc(hidden)]
    fn visit_rules(&self, rules: &mut Rules<'_>);
    /// Has its rules look at a value; one that is declared is returned, if the attribute declares any.
    ///
    /// # Errors
    /// It does not have the type, is required, or cannot be published.
    #[doc(hidden)]
    fn inspect(&self, source: ValueSource<'_>, rules: &mut Rules<'_>) -> serde_json::Result<Value>;
}

/// Whether the schema of a type has no patterns, of common types. The compiler knows the answer, so that a program whose
/// arguments are of these types contains no patterns.
#[inline]
fn is_plain(id: TypeId) -> bool {
    fn is<P: 'static>(id: TypeId) -> bool {
        id == TypeId::of::<P>() || id == TypeId::of::<Option<P>>()
    }
    is::<String>(id)
        || is::<bool>(id)
        || is::<u32>(id)
        || is::<u64>(id)
        || is::<usize>(id)
        || is::<i32>(id)
        || is::<i64>(id)
        || is::<f64>(id)
}

impl<T: 'static> AnyArg for ArgDescriptor<T> {
    fn options(&self) -> &ArgOptions {
        &self.options
    }

    fn type_of(&self) -> TypeId {
        TypeId::of::<T>()
    }

    fn type_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        if !is_plain(TypeId::of::<T>()) {
            link_patterns();
        }
        (self.schema)(generator)
    }

    fn visit_rules(&self, rules: &mut Rules<'_>) {
        if let Some(visit) = self.rules {
            visit(None, rules);
        }
    }

    fn inspect(&self, source: ValueSource<'_>, rules: &mut Rules<'_>) -> serde_json::Result<Value> {
        let value = self.value(source)?;
        if let Some(visit) = self.rules {
            visit(Some(&value), rules);
        }
        match self.publish {
            Some(publish) if !matches!(source, ValueSource::Sent(_)) => publish(&value),
            _ => Ok(Value::Null),
        }
    }
}

impl dyn AnyArg + '_ {
    /// The wire name.
    pub(crate) fn name(&self) -> &'static str {
        self.options().name
    }

    pub(crate) fn required(&self) -> bool {
        !self.options().has_default && self.inspect(ValueSource::Absent, &mut Rules::accepting()).is_err()
    }

    /// The default or the example, or why it is not a value that can be published; and the rules that it breaks.
    fn declared(&self, source: ValueSource<'_>) -> Option<(Result<Value, String>, Vec<String>)> {
        let options = self.options();
        let is_declared = match source {
            ValueSource::Sent(_) => false,
            ValueSource::Absent => options.has_default,
            ValueSource::Example => options.has_example,
        };
        is_declared.then(|| {
            let mut broken = Vec::new();
            let value = self.inspect(source, &mut Rules::collecting(&mut broken));
            (value.map_err(|error| error.to_string()), broken)
        })
    }

    /// The rules that a value breaks.
    ///
    /// # Errors
    /// It does not have the type, and is not a `null` that stands for the default.
    pub(super) fn violations(&self, raw: RawArgument<'_>, strict: bool) -> Result<Vec<String>, Problem> {
        let mut broken = Vec::new();
        if self.options().is_absent(raw, strict) {
            return Ok(broken);
        }
        match self.inspect(ValueSource::Sent(raw), &mut Rules::collecting(&mut broken)) {
            Ok(_) => Ok(broken),
            Err(error) => Err(Problem::of(raw, self.type_of(), &error, &|json| self.decode_error(json))),
        }
    }

    /// Why JSON text does not have its type.
    pub(super) fn decode_error(&self, json: &str) -> Option<serde_json::Error> {
        self.inspect(ValueSource::Sent(RawArgument::Json(json)), &mut Rules::accepting()).err()
    }

    pub(crate) fn property_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let mut schema = self.type_schema(generator);
        self.visit_rules(&mut Rules::publishing(&mut schema));
        let ArgOptions { title, description, header, .. } = *self.options();
        let mut set = |key: &str, value: Value| {
            schema.insert(key.to_owned(), value);
        };
        if let Some(text) = title {
            set("title", text.into());
        }
        if let Some(text) = description {
            set("description", text.into());
        }
        // a value that cannot be published is an error of the declaration
        if let Some((Ok(default), _)) = self.declared(ValueSource::Absent) {
            set("default", default);
        }
        if let Some((Ok(example), _)) = self.declared(ValueSource::Example) {
            set("examples", Value::Array(vec![example]));
        }
        if let Some(header) = header {
            set("x-mcp-header", header.into());
        }
        if self.options().nullable {
            set(NULLABLE, true.into());
        }
        schema
    }

    /// The value that is used if it is absent.
    #[cfg(feature = "config")]
    pub(crate) fn default_value(&self) -> Option<Value> {
        self.declared(ValueSource::Absent)?.0.ok()
    }

    /// Schema keywords that its rules publish and enforce.
    pub(crate) fn rule_keywords(&self) -> Vec<String> {
        let mut schema = Schema::default();
        self.visit_rules(&mut Rules::publishing(&mut schema));
        schema.as_object().map(|keywords| keywords.keys().cloned().collect()).unwrap_or_default()
    }

    pub(crate) fn is_flatten(&self) -> bool {
        self.options().flatten
    }

    /// Patterns that do not compile, and a default or example that violates the rules or cannot be published.
    pub(crate) fn declaration_errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        let mut broken = Vec::new();
        for (what, source) in [("default", ValueSource::Absent), ("example", ValueSource::Example)] {
            let Some((value, violations)) = self.declared(source) else { continue };
            errors.extend(value.err().map(|error| format!("its {what} {error}")));
            broken.extend(violations.iter().map(|text| format!("its {what} breaks its rules: {text}")));
        }
        self.visit_rules(&mut Rules::checking_declaration(&mut errors));
        errors.extend(broken);
        errors
    }

    /// The keys of a map in its type that are not text, which no JSON has: the type says so itself, of a value of its schema
    /// in which every map has a member. `root` is the schema that this one is part of.
    pub(crate) fn key_error(&self, root: &Value, schema: &Value) -> Option<String> {
        let sample = sample_with_keys(root, schema)?;
        let error = without_position(&self.decode_error(&sample.to_string())?);
        let expected = error.strip_prefix(&format!("invalid type: string \"{SAMPLE_KEY}\", expected "))?;
        Some(format!(
            "`{}`: a map has keys that are not text: {expected}\n\
             JSON has only keys that are text: take a `Vec` of structs with key and value, or write a `Deserialize` that parses the key",
            self.name()
        ))
    }

    /// Why a value cannot be the argument, as JSON or as the text of a prompt.
    pub(crate) fn json_error(&self, value: &Value) -> Option<String> {
        self.value_error(RawArgument::Json(&value.to_string()))
    }

    pub(crate) fn text_error(&self, text: &str) -> Option<String> {
        self.value_error(RawArgument::Text(text))
    }

    fn value_error(&self, raw: RawArgument<'_>) -> Option<String> {
        match self.violations(raw, false) {
            Ok(violations) => violations.into_iter().next(),
            Err(error) => Some(error.message),
        }
    }

    /// The value in slot `index`, which is all of the arguments for `flatten`.
    pub(super) fn raw_value<'a>(&self, slots: &RawArguments<'a>, index: usize) -> Option<RawArgument<'a>> {
        self.options().raw_value(slots, index)
    }

    /// Why the value in slot `index` is rejected; empty if it is accepted.
    pub(super) fn value_errors(&self, slots: &RawArguments<'_>, index: usize) -> Vec<Problem> {
        let Some(raw) = self.options().raw_value(slots, index) else {
            return if self.required() { vec!["is missing".to_owned().into()] } else { Vec::new() };
        };
        match (self.violations(raw, slots.strict), raw) {
            (Err(error), RawArgument::Text(text) | RawArgument::Listed(text, _)) => {
                let schema = self.type_schema(&mut generator()).to_value();
                let mut problem = format_error(&schema, text).map_or(error, Problem::from);
                if text.is_empty() && !self.required() {
                    problem.message.push_str("; leave it out to send none");
                }
                vec![problem]
            }
            (Err(error), _) => vec![error],
            (Ok(violations), _) => violations.into_iter().map(Problem::from).collect(),
        }
    }
}

/// The errors in the declarations of these arguments, each with its name.
pub(crate) fn declaration_errors(args: &[&'static dyn AnyArg]) -> Vec<String> {
    let of_one = |arg: &&'static dyn AnyArg| {
        let name = arg.name();
        arg.declaration_errors().into_iter().map(move |text| format!("`{name}`: {text}")).collect::<Vec<_>>()
    };
    args.iter().flat_map(of_one).collect()
}

/// Whether one parameter is the whole `arguments` object; it is the only one then.
pub(crate) fn has_flatten(args: &[&'static dyn AnyArg]) -> bool {
    args.first().is_some_and(|arg| arg.is_flatten())
}

/// The schema of an argument alone, with its definitions.
pub(crate) fn schema_of(arg: &'static dyn AnyArg) -> Value {
    let mut generator = generator();
    let mut schema = arg.property_schema(&mut generator).to_value();
    hoist_defs(&mut schema, generator.take_definitions(true));
    schema
}

/// Whether the type of an argument has only objects: structs, maps, and enums whose variants all have data.
pub(crate) fn is_always_object(arg: &'static dyn AnyArg) -> bool {
    reads_objects(&schema_of(arg), "")
}

/// The completions of an argument without a `complete` function: the choices of its attribute, else those of its type.
pub(crate) fn choices(arg: &'static dyn AnyArg) -> Vec<String> {
    let declared = arg.options().choices;
    if !declared.is_empty() {
        return declared.iter().map(|&choice| choice.to_owned()).collect();
    }
    choices_in_schema(schema_of(arg))
}
