//! One call of a user's function, as generated code sees it: the context, the service instance, the arguments, which
//! are found in the text without copying and then typed, and what the function's handler returns.

use std::{any::Any, fmt, future::Future, sync::Arc};

use serde::{
    Deserializer as _,
    de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    BoxFuture,
    arg::{AnyArg, has_flatten},
    report::{self, ToolInput},
    text::{from_list, from_text},
};
use crate::{
    blocking::run_blocking,
    context::Context,
    error::{Failure, ToolError},
    schema::Validator,
};

/// What a [`Call`] is made of.
#[allow(missing_debug_implementations)] // borrows trait objects
pub(crate) struct CallParts<'a> {
    pub(crate) input: Input<'a>,
    pub(crate) args: &'a [&'static dyn AnyArg],
    pub(crate) strict: bool,
    /// Input schema and name of a tool, for repairs and reports.
    pub(crate) tool: Option<&'a ToolInput>,
    /// Checks the keywords that decoding does not enforce.
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

    /// The request's context, made on first use.
    pub fn context(&mut self) -> Context {
        self.context.get_or_insert_with(self.parts.context).clone()
    }

    /// The context, if the function has used it.
    pub(crate) fn existing_context(&self) -> Option<Context> {
        self.context.clone()
    }

    /// The instance that a method is called on.
    ///
    /// # Errors
    /// The item was registered without its instance.
    pub fn this<T: Any + Send + Sync>(&self) -> Result<Arc<T>, Failure> {
        let this = self.parts.this.cloned().and_then(|this| this.downcast::<T>().ok());
        this.ok_or_else(|| Failure::Body(ToolError::private("the service instance is missing")))
    }

    /// The typed arguments: `read` takes each from its slot, and runs again after a repair.
    ///
    /// # Errors
    /// One report of every argument that is invalid.
    pub fn decode<R>(
        &self,
        read: impl Fn(&RawArguments<'_>) -> Result<R, InvalidArgument>,
    ) -> Result<R, Failure> {
        let mut result = None;
        self.read_slots(&mut |slots| {
            let decoded = read(slots);
            let accepted = decoded.is_ok();
            result = decoded.ok();
            accepted
        })?;
        result.ok_or_else(invalid_arguments)
    }

    /// The part of [`decode`](Self::decode) that is not generic, so that it is compiled once.
    fn read_slots(&self, read: &mut dyn FnMut(&RawArguments<'_>) -> bool) -> Result<(), Failure> {
        let parts = &self.parts;
        let mut inline: [Option<RawArgument<'_>>; INLINE] = [None; INLINE];
        let mut spilled = Vec::new();
        let values: &mut [Option<RawArgument<'_>>] = if parts.args.len() <= INLINE {
            &mut inline[..parts.args.len()]
        } else {
            spilled.resize(parts.args.len(), None);
            &mut spilled
        };
        match parts.input {
            Input::Json(text) => {
                let unknown = match self.fill(text, values) {
                    Ok(unknown) => unknown && !has_flatten(parts.args),
                    // a key that is not valid text
                    Err(_) => return self.repair_and_read(text, read),
                };
                let accepted = !(unknown && parts.strict)
                    && read(&RawArguments { values, object: text, strict: parts.strict })
                    && self.validates(text);
                if accepted { Ok(()) } else { self.repair_and_read(text, read) }
            }
            Input::Text(arguments) => {
                for (arg, value) in parts.args.iter().zip(values.iter_mut()) {
                    *value = arguments
                        .iter()
                        .find(|(name, _)| name == arg.name())
                        .map(|(_, value)| RawArgument::from_text_argument(value));
                }
                let slots = RawArguments { values, object: "{}", strict: parts.strict };
                if read(&slots) {
                    Ok(())
                } else {
                    Err(Failure::Arguments(report::text_report(parts.args, &slots)))
                }
            }
        }
    }

    fn fill<'t>(
        &self,
        text: &'t str,
        values: &mut [Option<RawArgument<'t>>],
    ) -> Result<bool, serde_json::Error> {
        let args = if has_flatten(self.parts.args) { &[] } else { self.parts.args };
        fill_slots(text, |key| args.iter().position(|arg| arg.name() == key), values)
    }

    fn validates(&self, text: &str) -> bool {
        self.parts.validator.is_none_or(|validator| validator.validate_str(text).is_ok())
    }

    /// Repairs harmless mistakes and reads again, or reports everything that is invalid.
    #[cold]
    fn repair_and_read(
        &self,
        text: &str,
        read: &mut dyn FnMut(&RawArguments<'_>) -> bool,
    ) -> Result<(), Failure> {
        let parts = &self.parts;
        let Some(tool) = parts.tool else {
            return Err(invalid_arguments());
        };
        let (repaired, violations, unreadable) = match report::repair(tool, text, parts.strict) {
            Ok((repaired, violations)) => (repaired, violations, None),
            Err(error) => (text.to_owned(), Vec::new(), Some(error)),
        };
        let mut values = vec![None; parts.args.len()];
        let filled = self.fill(&repaired, &mut values).is_ok();
        let slots = RawArguments { values: &values, object: &repaired, strict: parts.strict };
        let unknown: Vec<_> = if has_flatten(parts.args) {
            Vec::new()
        } else {
            let known = |key: &str| parts.args.iter().any(|arg| arg.name() == key);
            object_keys(text).into_iter().filter(|key| !known(key)).collect()
        };
        let has_refused_names = parts.strict && !unknown.is_empty();
        if filled && unreadable.is_none() && violations.is_empty() && !has_refused_names && read(&slots) {
            return Ok(());
        }
        let decode_errors =
            if filled { report::decode_errors(parts.args, &slots, &violations) } else { Vec::new() };
        let mut errors: Vec<String> =
            violations.iter().map(ToString::to_string).chain(decode_errors).collect();
        if let Some(error) = unreadable.filter(|_| errors.is_empty()) {
            errors.push(report::unreadable_message(&error));
        }
        Err(Failure::Arguments(report::tool_report(tool, parts.args, &errors, &unknown)))
    }
}

/// The failure of a call for which no report can be written.
fn invalid_arguments() -> Failure {
    Failure::Arguments("invalid arguments".into())
}

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

    fn from_text_argument(value: &'a TextArgument) -> Self {
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
fn fill_slots<'a>(
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

/// What a handler returns: a failure, a result, or a future of one.
pub type HandlerResult<R> = Result<MaybeFuture<R>, Failure>;

/// A result that is ready, or a future of one.
#[allow(missing_debug_implementations)] // holds a future
pub enum MaybeFuture<R> {
    /// The function has returned.
    Ready(R),
    /// The function is async, or runs on another thread.
    Pending(BoxFuture<Result<R, Failure>>),
}

/// The outcome of a plain function.
///
/// # Errors
/// The failure in `result`.
pub fn ready<R>(result: Result<R, Failure>) -> HandlerResult<R> {
    result.map(MaybeFuture::Ready)
}

/// The outcome of an async function.
///
/// # Errors
/// Never fails; the type is that of handlers.
pub fn pending<R>(future: impl Future<Output = Result<R, Failure>> + Send + 'static) -> HandlerResult<R> {
    Ok(MaybeFuture::Pending(Box::pin(future)))
}

/// Runs a plain function on the blocking pool.
///
/// # Errors
/// Never fails; the type is that of handlers.
pub fn blocking<R: Send + 'static>(
    body: impl FnOnce() -> Result<R, Failure> + Send + 'static,
) -> HandlerResult<R> {
    pending(run_blocking(body))
}

/// Runs a plain function on the blocking pool, as a task if the call may become one.
///
/// # Errors
/// Never fails; the type is that of handlers.
pub fn blocking_task<R: Send + 'static>(
    context: Context,
    body: impl FnOnce() -> Result<R, Failure> + Send + 'static,
) -> HandlerResult<R> {
    pending(async move {
        context.start_task().await;
        run_blocking(body).await
    })
}
