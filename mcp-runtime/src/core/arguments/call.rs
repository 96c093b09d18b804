//! One call of a user's function, as its handler sees it: the context, the service instance, the arguments, which are
//! found in the text without copying and then typed, and what the handler returns. A handler that refuses arguments is
//! called again once they are repaired.

use std::{
    any::{Any, TypeId},
    borrow::Cow,
    cell::OnceCell,
    fmt,
    future::Future,
    sync::Arc,
    task::{Context as TaskContext, Poll, Waker},
};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use super::{
    BoxFuture,
    arg::{AnyArg, has_flatten},
    explain::{Problem, decode_errors},
    report::{self, Report},
    rule_fn::BoundRule,
    text::{from_list, from_text, missing},
    tool_input::ToolInput,
};
use crate::{
    core::{
        blocking::{CallPermits, Polling, run_blocking},
        context::Context,
        error::{Failure, ToolError},
        item_output::ItemOutput,
        jsonrpc::decode_string,
        maybe_ready::MaybeReady,
    },
    schema::{ValidationError, Validator, duplicate_keys, has_duplicate_keys},
};

/// The parts of a [`Call`].
#[allow(missing_debug_implementations)] // borrows trait objects
pub(crate) struct CallParts<'a> {
    pub(crate) input: Input<'a>,
    pub(crate) args: &'a [&'static dyn AnyArg],
    /// Rules over several arguments. The handler of an item that has some runs nothing before its future is polled.
    pub(crate) rules: &'a [BoundRule],
    pub(crate) strict: bool,
    /// Input schema and name of a tool, for repairs and reports.
    pub(crate) tool: Option<&'a ToolInput>,
    /// Checks the keywords that decoding does not enforce.
    pub(crate) validator: Option<&'a Validator>,
    pub(crate) this: Option<&'a Arc<dyn Any + Send + Sync>>,
    pub(crate) context: &'a dyn Fn() -> Context,
}

/// One call, as a handler sees it.
#[allow(missing_debug_implementations)] // borrows trait objects
pub struct Call<'a> {
    pub(super) parts: &'a CallParts<'a>,
    pub(super) context: &'a OnceCell<Context>,
    pub(super) arguments: RawArguments<'a>,
}

impl Call<'_> {
    /// The request's context, made on first use.
    #[must_use]
    pub fn context(&self) -> Context {
        self.context.get_or_init(self.parts.context).clone()
    }

    /// The instance that a method is called on.
    ///
    /// # Errors
    /// The item was registered without its instance.
    pub fn this<T: 'static>(&self) -> Result<Arc<T>, Failure> {
        let this = self.parts.this.and_then(|this| this.downcast_ref::<Arc<T>>());
        this.cloned().ok_or_else(|| Failure::private("the service instance is missing"))
    }
}

/// Up to this many arguments need no allocation.
const INLINE: usize = 12;

/// Calls a handler. If the arguments are refused, it is called again with what a repair has made of them.
///
/// # Errors
/// One report of every argument that is invalid, or how the function failed.
pub(crate) fn call_handler<R: 'static>(
    handler: fn(&Call<'_>) -> HandlerResult<R>,
    parts: &CallParts<'_>,
    context: &OnceCell<Context>,
) -> Result<MaybeFuture<R>, Failure> {
    let mut inline: [Option<RawArgument<'_>>; INLINE] = [None; INLINE];
    let mut spilled = Vec::new();
    let values: &mut [Option<RawArgument<'_>>] = if parts.args.len() <= INLINE {
        &mut inline[..parts.args.len()]
    } else {
        spilled.resize(parts.args.len(), None);
        &mut spilled
    };
    let (object, checked) = parts.read(values);
    let arguments = RawArguments { values, object, strict: parts.strict };
    let call = Call { parts, context, arguments };
    if checked.is_ok()
        && let Some(outcome) = try_handler(handler, &call)
    {
        return if parts.rules.is_empty() { outcome } else { check_rules(outcome, &call) };
    }
    repair_and_call(handler, parts, context, arguments, checked.err())
}

/// The result of a handler; `None` if it refuses an argument.
#[inline]
fn try_handler<R>(
    handler: fn(&Call<'_>) -> HandlerResult<R>,
    call: &Call<'_>,
) -> Option<Result<MaybeFuture<R>, Failure>> {
    match handler(call) {
        Ok(outcome) => Some(Ok(outcome)),
        Err(HandlerError::Failure(failure)) => Some(Err(failure)),
        Err(HandlerError::InvalidArgument) => None,
    }
}

/// Calls a handler whose arguments were refused, by it or by a check before, after harmless mistakes in them are repaired.
#[cold]
fn repair_and_call<R: 'static>(
    handler: fn(&Call<'_>) -> HandlerResult<R>,
    parts: &CallParts<'_>,
    context: &OnceCell<Context>,
    refused: RawArguments<'_>,
    check_error: Option<CheckError>,
) -> Result<MaybeFuture<R>, Failure> {
    if let Input::Text(_) = parts.input {
        let errors = report::text_errors(parts.args, &refused);
        return report_with_rules(&Call { parts, context, arguments: refused }, &errors, &[], None);
    }
    let was_tried = check_error.is_none();
    let was_filled = check_error.as_ref().is_none_or(|error| !error.is_unreadable);
    let repair = parts.repair(check_error)?;
    let mut values = Vec::new();
    let (is_filled, arguments) = match &repair.text {
        Cow::Borrowed(_) => (was_filled, refused),
        Cow::Owned(text) => {
            values.resize(parts.args.len(), None);
            let is_filled = parts.fill(text, &mut values).is_ok();
            (is_filled, RawArguments { values: &values, object: text, strict: parts.strict })
        }
    };
    // the handler refuses the same value again
    let is_new = !was_tried || matches!(repair.text, Cow::Owned(_));
    let call = Call { parts, context, arguments };
    if is_filled
        && is_new
        && repair.is_accepted(parts)
        && let Some(outcome) = try_handler(handler, &call)
    {
        return if parts.rules.is_empty() { outcome } else { check_rules(outcome, &call) };
    }
    let errors = repair.errors(parts, is_filled.then_some(arguments));
    let unknown = parts.unknown_keys();
    if is_filled {
        return report_with_rules(&call, &errors, &unknown, None);
    }
    Err(Report::of_tool(repair.tool, parts.args, &errors, &unknown).refuse(&[]))
}

/// Passes on the outcome of a handler for valid arguments, once the rules accept them.
#[inline(never)]
fn check_rules<R: 'static>(
    outcome: Result<MaybeFuture<R>, Failure>,
    call: &Call<'_>,
) -> Result<MaybeFuture<R>, Failure> {
    match outcome {
        Ok(MaybeFuture::Pending(future)) => report_with_rules(call, &[], &[], Some(future)),
        other => other,
    }
}

/// Has rules look at the arguments that are valid: their report, or the `future` of the function if nothing is wrong. `errors`
/// and `unknown` are what is wrong with the arguments.
fn report_with_rules<R: 'static>(
    call: &Call<'_>,
    errors: &[String],
    unknown: &[String],
    future: Option<BoxFuture<Result<R, Failure>>>,
) -> Result<MaybeFuture<R>, Failure> {
    let parts = call.parts;
    let report = || match parts.tool {
        Some(tool) => Report::of_tool(tool, parts.args, errors, unknown),
        None => Report::of_texts(errors),
    };
    match BoundRule::start_all(parts.rules, call) {
        MaybeReady::Ready(Err(failure)) if errors.is_empty() => Err(failure),
        // errors of the arguments are for the model, and the failure of a rule is not
        MaybeReady::Ready(Err(_)) => Err(report().refuse(&[])),
        MaybeReady::Ready(Ok(broken)) => match future.filter(|_| broken.is_empty()) {
            Some(future) => Ok(MaybeFuture::Pending(future)),
            None => Err(report().refuse(&broken)),
        },
        MaybeReady::Pending(running) => {
            // what it is made of does not live until then
            let report = report();
            Ok(MaybeFuture::Pending(Box::pin(async move {
                match (running.await, future) {
                    (Ok(broken), Some(future)) if broken.is_empty() => future.await,
                    (Ok(broken), _) => Err(report.refuse(&broken)),
                    (Err(failure), Some(_)) => Err(failure),
                    (Err(_), None) => Err(report.refuse(&[])),
                }
            })))
        }
    }
}

/// Arguments were refused before a handler was called.
#[derive(Default)]
struct CheckError {
    /// A key is in one object twice.
    has_duplicates: bool,
    /// A key is not valid text, so that not all members were found.
    is_unreadable: bool,
}

/// Refused arguments after harmless mistakes in them were repaired, and what remains wrong.
struct Repair<'a> {
    tool: &'a ToolInput,
    text: Cow<'a, str>,
    duplicates: Vec<ValidationError>,
    violations: Vec<ValidationError>,
    /// Why they are not JSON.
    unreadable: Option<serde_json::Error>,
}

impl Repair<'_> {
    /// Whether they can be decoded.
    fn is_accepted(&self, parts: &CallParts<'_>) -> bool {
        self.unreadable.is_none()
            && self.duplicates.is_empty()
            && self.violations.is_empty()
            && (!parts.strict || parts.unknown_keys().is_empty())
    }

    /// Everything that is invalid; without `arguments` if a key is not valid text.
    fn errors(&self, parts: &CallParts<'_>, arguments: Option<RawArguments<'_>>) -> Vec<String> {
        let Self { tool, duplicates, violations, .. } = self;
        let decode_errors = arguments.map_or_else(Vec::new, |arguments| {
            decode_errors(tool, parts.args, &arguments, arguments.object, violations)
        });
        let mut errors: Vec<String> = duplicates.iter().chain(violations).map(ToString::to_string).collect();
        errors.extend(decode_errors.iter().map(ToString::to_string));
        if let Some(error) = self.unreadable.as_ref().filter(|_| errors.is_empty()) {
            errors.push(report::unreadable_message(error));
        }
        errors
    }
}

impl<'a> CallParts<'a> {
    /// Finds the values of the arguments, and checks what decoding does not. Returns also the text of them all.
    fn read(&self, values: &mut [Option<RawArgument<'a>>]) -> (&'a str, Result<(), CheckError>) {
        match self.input {
            Input::Json(text) => (text, self.read_json(text, values)),
            Input::Text(arguments) => {
                for (arg, value) in self.args.iter().zip(values.iter_mut()) {
                    *value = arguments
                        .iter()
                        .find(|(name, _)| name == arg.name())
                        .map(|(_, value)| RawArgument::from_text_argument(value));
                }
                ("{}", Ok(()))
            }
        }
    }

    fn read_json(&self, text: &'a str, values: &mut [Option<RawArgument<'a>>]) -> Result<(), CheckError> {
        let Ok(found) = self.fill(text, values) else {
            // a key that is not valid text
            let has_duplicates = has_duplicate_keys(text);
            return Err(CheckError { has_duplicates, is_unreadable: true });
        };
        // decoding looks at neither the keys of ignored members nor those of maps
        let has_duplicates = found.duplicate
            || if found.unknown {
                has_duplicate_keys(text)
            } else {
                values.iter().flatten().any(RawArgument::has_duplicate_keys)
            };
        let is_refused = has_duplicates || (found.unknown && self.strict && !has_flatten(self.args));
        if is_refused {
            return Err(CheckError { has_duplicates, ..CheckError::default() });
        }
        // a refusal has to be confirmed, which the repair does
        let is_accepted = self.validator.is_none_or(|validator| validator.accepts(text));
        if is_accepted { Ok(()) } else { Err(CheckError::default()) }
    }

    fn fill<'t>(
        &self,
        text: &'t str,
        values: &mut [Option<RawArgument<'t>>],
    ) -> Result<FoundKeys, serde_json::Error> {
        let args = if has_flatten(self.args) { &[] } else { self.args };
        fill_slots(text, |key| args.iter().position(|arg| arg.name() == key), values)
    }

    /// Repairs harmless mistakes in the arguments of a tool.
    ///
    /// # Errors
    /// They may take too long to decode.
    fn repair(&self, check_error: Option<CheckError>) -> Result<Repair<'a>, Failure> {
        let (Input::Json(text), Some(tool)) = (self.input, self.tool) else {
            return Err(Failure::Arguments("invalid arguments".into()));
        };
        // without an error the handler refused them, after the validator accepted them
        let was_accepted = check_error.is_none();
        let has_duplicates = check_error.is_some_and(|error| error.has_duplicates);
        let duplicates = if has_duplicates { duplicate_keys(text) } else { Vec::new() };
        let (text, violations, unreadable) = match tool.repair(text, self.strict) {
            Ok(repaired) => {
                let changed = repaired.changed();
                let is_checked = was_accepted && changed.is_none();
                let (are_all, mut violations) = (repaired.are_all(), repaired.violations);
                let text = changed.map_or(Cow::Borrowed(text), Cow::Owned);
                if !are_all && !is_checked && violations.is_empty() {
                    violations = self.violations(&text, matches!(text, Cow::Owned(_)));
                }
                if let Cow::Owned(changed) = &text {
                    // a former text may be values now
                    tool.check_attempts(changed)?;
                }
                (text, violations, None)
            }
            Err(error) => (Cow::Borrowed(text), Vec::new(), Some(error)),
        };
        Ok(Repair { tool, text, duplicates, violations, unreadable })
    }

    /// The violations of the keywords that decoding does not enforce, in arguments that were refused, or what they were changed
    /// to.
    fn violations(&self, text: &str, is_changed: bool) -> Vec<ValidationError> {
        let Some(validator) = self.validator else { return Vec::new() };
        if is_changed {
            return validator.validate_str(text).err().unwrap_or_default();
        }
        validator.errors_in(text)
    }

    /// The keys that name no parameter of a tool.
    fn unknown_keys(&self) -> Vec<String> {
        let args = self.args;
        let Input::Json(text) = self.input else { return Vec::new() };
        if has_flatten(args) {
            return Vec::new();
        }
        let known = |key: &str| args.iter().any(|arg| arg.name() == key);
        object_keys(text).into_iter().filter(|key| !known(key)).collect()
    }
}

/// The arguments that a client sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Input<'a> {
    /// JSON text of a tool's `arguments`.
    Json(&'a str),
    /// A prompt's arguments, or the variables of a URI, by name.
    Text(&'a [(Cow<'a, str>, TextArgument<'a>)]),
}

/// A prompt's argument, or a variable of a URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TextArgument<'a> {
    One(Cow<'a, str>),
    /// A variable with an escaped comma: its text, and the parts between those that are not escaped.
    Listed(String, Vec<String>),
    /// A variable that explodes.
    Many(Vec<String>),
    /// A variable that a query has more than once.
    Repeated(Vec<String>),
}

impl TextArgument<'_> {
    /// Its text; none of one with several.
    pub(crate) fn into_text(self) -> Option<String> {
        match self {
            Self::One(text) => Some(text.into_owned()),
            Self::Listed(text, _) => Some(text),
            Self::Many(_) | Self::Repeated(_) => None,
        }
    }
}

/// The typed value of an argument that arrives as text; an absent one is `None` for an `Option`.
///
/// # Errors
/// It is absent, or not a `T`; the text says which.
pub(crate) fn parse_text_argument<T: DeserializeOwned>(
    value: Option<&TextArgument<'_>>,
) -> Result<T, String> {
    match value {
        None => missing().map_err(|_| "is missing".to_owned()),
        Some(value) => {
            let raw = RawArgument::from_text_argument(value);
            decode_text(raw).map_err(|error| Problem::of_text(raw, &error).message)
        }
    }
}

/// The value of one argument.
#[derive(Clone, Copy, Debug)]
pub enum RawArgument<'a> {
    /// JSON text, from a tool's `arguments`.
    Json(&'a str),
    /// A prompt's argument, or a variable of a URI.
    Text(&'a str),
    /// A variable of a URI with an escaped comma: its text, and its parts if it is a list.
    Listed(&'a str, &'a [String]),
    /// A variable of a URI that explodes: `{/path*}`.
    List(&'a [String]),
    /// A variable of a URI that its query has more than once: `?tag=a&tag=b`.
    Repeated(&'a [String]),
}

impl<'a> RawArgument<'a> {
    /// Whether an object in it has a key twice; text of prompts and URIs has no objects.
    fn has_duplicate_keys(&self) -> bool {
        matches!(self, Self::Json(json) if json.starts_with(['{', '[']) && has_duplicate_keys(json))
    }

    fn from_text_argument(value: &'a TextArgument<'_>) -> Self {
        match value {
            TextArgument::One(text) => Self::Text(text),
            TextArgument::Listed(text, parts) => Self::Listed(text, parts),
            TextArgument::Many(list) => Self::List(list),
            TextArgument::Repeated(list) => Self::Repeated(list),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for TextArgument<'a> {
    /// A string, and any other value as its JSON. One with an object that has a key twice is refused.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(d)?;
        if let Some(text) = decode_string(raw) {
            return Ok(Self::One(text));
        }
        if has_duplicate_keys(raw.get()) {
            return Err(D::Error::custom("duplicate key"));
        }
        let value: Value = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        Ok(Self::One(value.to_string().into()))
    }
}

/// Decodes the value of an argument; why it cannot is only found out for a report, by [`Problem::of`].
pub(super) type DecodeFn<T> = fn(RawArgument<'_>) -> serde_json::Result<T>;

/// A [`DecodeFn`] for an argument of a tool. Without what texts need, it is half of the code, for each type.
///
/// # Errors
/// It is not a `T`.
pub(super) fn decode_json<T: DeserializeOwned + 'static>(raw: RawArgument<'_>) -> serde_json::Result<T> {
    let RawArgument::Json(json) = raw else { return Err(serde_json::Error::custom("is not JSON")) };
    if has_single_precision(TypeId::of::<T>())
        && let Some(message) = single_precision_error(json)
    {
        return Err(serde_json::Error::custom(message));
    }
    serde_json::from_str(json)
}

/// Whether a type is `f32`, or an `Option` of it. The compiler knows the answer.
#[inline]
pub(super) fn has_single_precision(id: TypeId) -> bool {
    id == TypeId::of::<f32>() || id == TypeId::of::<Option<f32>>()
}

/// Why a number is not an `f32`: serde makes it infinite, or with `float_roundtrip` of `serde_json` refuses it without its bounds.
pub(super) fn single_precision_error(json: &str) -> Option<String> {
    let number = json.trim().parse::<f64>().ok()?;
    if number > f64::from(f32::MAX) {
        Some(format!("{} is greater than the maximum of {:e}", json.trim(), f32::MAX))
    } else if number < f64::from(f32::MIN) {
        Some(format!("{} is less than the minimum of {:e}", json.trim(), f32::MIN))
    } else {
        None
    }
}

/// A [`DecodeFn`] for an argument of a prompt or a variable of a URI.
///
/// # Errors
/// It is not a `T`.
pub(super) fn decode_text<T: DeserializeOwned>(raw: RawArgument<'_>) -> serde_json::Result<T> {
    match raw {
        RawArgument::Json(text) | RawArgument::Text(text) => from_text(text, &[]),
        RawArgument::Listed(text, parts) => from_text(text, parts),
        RawArgument::List(parts) => from_list(parts, false),
        RawArgument::Repeated(values) => from_list(values, true),
    }
}

/// The raw values of a call's arguments, one slot for each parameter.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawArguments<'a> {
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

/// The keys that an `arguments` object had.
#[derive(Debug, Clone, Copy, Default)]
struct FoundKeys {
    /// One names no parameter.
    unknown: bool,
    /// Two name the same parameter.
    duplicate: bool,
}

/// Fills `slots` from the JSON object `text`; a key for which `index_of` returns `None` is unknown.
fn fill_slots<'a>(
    text: &'a str,
    index_of: impl Fn(&str) -> Option<usize>,
    slots: &mut [Option<RawArgument<'a>>],
) -> Result<FoundKeys, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_str(text);
    let found = json.deserialize_map(SlotVisitor { index_of, slots })?;
    json.end()?;
    Ok(found)
}

struct SlotVisitor<'s, 'a, F> {
    index_of: F,
    slots: &'s mut [Option<RawArgument<'a>>],
}

impl<'a, F: Fn(&str) -> Option<usize>> Visitor<'a> for SlotVisitor<'_, 'a, F> {
    type Value = FoundKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<FoundKeys, A::Error> {
        let mut found = FoundKeys::default();
        while let Some(index) = map.next_key_seed(KeyIndex(&self.index_of))? {
            match index.and_then(|n| self.slots.get_mut(n)) {
                Some(slot) => {
                    let value = RawArgument::Json(map.next_value::<&RawValue>()?.get());
                    found.duplicate |= slot.replace(value).is_some();
                }
                None => {
                    found.unknown = true;
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}

/// The index of the parameter that a key names; compares in place, so that no key is copied.
struct KeyIndex<'f, F>(&'f F);

impl<'a, F: Fn(&str) -> Option<usize>> DeserializeSeed<'a> for KeyIndex<'_, F> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'a>>(self, d: D) -> Result<Self::Value, D::Error> {
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
fn object_keys(text: &str) -> Vec<String> {
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

/// The return type of a handler: a result, a future of one, or the reason why there is none.
pub type HandlerResult<R = ItemOutput> = Result<MaybeFuture<R>, HandlerError>;

/// Why a handler returns neither a result nor a future.
#[derive(Debug)]
pub enum HandlerError {
    /// An argument was refused, and the function was not called.
    InvalidArgument,
    /// The function failed, or could not be called.
    Failure(Failure),
}

impl From<InvalidArgument> for HandlerError {
    fn from(_: InvalidArgument) -> Self {
        Self::InvalidArgument
    }
}

impl From<Failure> for HandlerError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// A result that is ready, or a future of one.
#[allow(missing_debug_implementations)] // holds a future
pub enum MaybeFuture<R> {
    /// A plain function has returned.
    Ready(R),
    /// An async function has returned when it was first polled.
    Polled(Result<R, Failure>),
    /// An async function was polled, and waits; with the permits of its run and of its request.
    Waiting(BoxFuture<Result<R, Failure>>, CallPermits),
    /// The function has not been polled yet: it is async, or runs on another thread.
    Pending(BoxFuture<Result<R, Failure>>),
}

/// The outcome of a handler that could not take an argument.
///
/// # Errors
/// Always.
pub fn invalid_argument() -> HandlerResult {
    Err(HandlerError::InvalidArgument)
}

/// The outcome of a plain function.
///
/// # Errors
/// The failure in `result`.
pub fn ready<R>(result: Result<R, Failure>) -> HandlerResult<R> {
    Ok(MaybeFuture::Ready(result?))
}

/// The outcome of an async function that borrows what is injected: `future` holds both.
///
/// # Errors
/// Never fails; the type is that of handlers.
pub fn pending<R>(future: Box<dyn Future<Output = Result<R, Failure>> + Send>) -> HandlerResult<R> {
    Ok(MaybeFuture::Pending(Box::into_pin(future)))
}

/// The outcome of any other async function, whose own `future` is polled here for the first time. Most are ready then; a
/// future that converts what it returns is made only for the others, so that none is generated for each function.
///
/// # Errors
/// Never fails; the type is that of handlers.
pub(crate) fn poll_now<T: 'static, R: 'static, O: From<R> + 'static>(
    future: Box<dyn Future<Output = T> + Send>,
    convert: fn(T) -> Result<R, ToolError>,
) -> HandlerResult<O> {
    let mut future = Box::into_pin(future);
    let polling = Polling::begin(CallPermits::default());
    let polled = future.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
    let convert = move |value| convert(value).map(O::from).map_err(Failure::from);
    Ok(match polled {
        Poll::Ready(value) => {
            drop(polling);
            MaybeFuture::Polled(convert(value))
        }
        Poll::Pending => {
            let permits = polling.end();
            MaybeFuture::Waiting(Box::pin(async move { convert(future.await) }), permits)
        }
    })
}

/// Runs a plain function on the blocking pool.
///
/// # Errors
/// Never fails; the type is that of handlers.
pub fn blocking<R: Send + 'static>(
    body: impl FnOnce() -> Result<R, Failure> + Send + 'static,
) -> HandlerResult<R> {
    pending(Box::new(run_blocking(body)))
}
