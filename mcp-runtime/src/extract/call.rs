//! One call on its way into a user's function. Dispatch makes a [`Call`], generated code takes it apart.

use std::{any::Any, future::Future, pin::Pin, sync::Arc};

use super::{
    AnyArg, Rejected, Slot, Slots, report,
    slot::{keys, scan},
};
use crate::{
    context::{Context, any_forwarder},
    reply::Failure,
    schema::Validator,
};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

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
    pending(in_pool(body))
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
        in_pool(body).await
    })
}

/// Runs what blocks on the blocking pool; it still counts as its call's there.
pub(super) async fn in_pool<R: Send + 'static>(
    body: impl FnOnce() -> Result<R, Failure> + Send + 'static,
) -> Result<R, Failure> {
    let context = any_forwarder().then(Context::current).flatten();
    let body = move || {
        let _entered = context.as_ref().map(Context::enter_beside);
        body()
    };
    match tokio::task::spawn_blocking(body).await {
        Ok(result) => result,
        Err(e) => match e.try_into_panic() {
            // contained where every panic is
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(e) => Err(Failure::Body(e.into())),
        },
    }
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

    /// The context, if anybody asked for it.
    pub(crate) fn into_context(self) -> Option<Context> {
        self.context
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
        let (repaired, violations, unread) = match report::repair(tool, text, parts.strict) {
            Ok((repaired, violations)) => (repaired, violations, None),
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
        if scanned && unread.is_none() && violations.is_empty() && !refused && read(&slots) {
            return Ok(());
        }
        let unsaid = if scanned { report::unsaid(parts.args, &slots, &violations) } else { Vec::new() };
        let mut said: Vec<String> = violations.iter().map(ToString::to_string).chain(unsaid).collect();
        if let Some(error) = unread.filter(|_| said.is_empty()) {
            said.push(report::unreadable(&error));
        }
        Err(Failure::Arguments(report::tool(tool, parts.args, &said, &unknown)))
    }
}
