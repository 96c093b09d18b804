//! A call that passes layers. Seen from its request, the outermost layer is the function: it is polled, contained, turned
//! into a task and dropped like one. The item's own function is what the innermost layer runs, as often as it likes.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    Request,
    item_call::{ItemCall, SuspendedCall, make_context, stage},
    response::{Response, ResultBody},
};
use crate::core::{
    arguments::{BoxFuture, MaybeFuture},
    client_request::CallBinding,
    context::Context,
    error::{Failure, ToolError},
    invoke::{self, Ended, with_timeout},
    item_output::{ItemOutput, PendingInput, wrong_kind},
    layer::{CallOutput, ItemKind, LayeredCall, LayeredCallParts, Next, Outcome},
    maybe_ready::MaybeReady,
    protocol::Revision,
    server::{Server, WeakServer},
    sync::Mutex,
};

/// Calls an item that has layers.
pub(crate) fn call_layered(server: &Server, request: Request<'_>, call: Arc<dyn ItemCall>) -> Response {
    let context = make_context(server, request, &*call);
    let (layers, name) =
        call.item().map(|item| (item.layers.clone(), item.name.as_str().into())).unwrap_or_default();
    let CallBinding { method, name: bound, arguments } = call.binding();
    let kind = match method {
        "tools/call" => ItemKind::Tool,
        "prompts/get" => ItemKind::Prompt,
        _ => ItemKind::Resource,
    };
    let layered = LayeredCall::new(LayeredCallParts {
        kind,
        name,
        uri: (kind == ItemKind::Resource).then(|| bound.into()),
        arguments: arguments.into(),
        request_id: request.id.into(),
        context: context.clone(),
    });
    let function = Arc::new(FunctionOfItem {
        call: call.clone(),
        server: server.downgrade(),
        revision: request.revision,
        is_current: request.is_current(server),
        keys: Mutex::default(),
        has_failed: AtomicBool::new(false),
    });
    let outermost = Next::new(layers, function.clone());
    let outcome = Box::pin(async move {
        let outcome = outermost.run(&layered).await;
        let is_failure = outcome.as_ref().map_or(true, CallOutput::is_failure);
        let output = outcome.map(Into::into).map_err(Into::into);
        match is_failure && !function.has_failed.load(Ordering::Relaxed) {
            true => Ok(ItemOutput::OfLayer(Box::new(output))),
            false => output,
        }
    });
    let invocation = invoke::start_with(|| Ok(MaybeFuture::Pending(outcome)), &context, None);
    server.finish_later(request.revision, call, invocation, Vec::new())
}

/// The function of an item that has layers, and what a run of it needs.
pub(crate) struct FunctionOfItem {
    /// With the arguments that the client sent.
    call: Arc<dyn ItemCall>,
    /// Weak: a task that runs it does not keep the server alive.
    server: WeakServer,
    revision: Revision,
    is_current: bool,
    /// The keys of client requests that were in use when the function first ran.
    keys: Mutex<Option<HashSet<String>>>,
    /// Whether the last run of the function has failed; a failure of another call is one of a layer.
    has_failed: AtomicBool,
}

impl FunctionOfItem {
    /// Runs the function once, with its permits and its time limit.
    pub(crate) fn run(self: Arc<Self>, call: LayeredCall) -> BoxFuture<Outcome> {
        Box::pin(async move {
            self.has_failed.store(false, Ordering::Relaxed);
            let outcome = self.run_once(&call).await;
            let has_failed = outcome.as_ref().map_or(true, CallOutput::is_failure);
            self.has_failed.store(has_failed, Ordering::Relaxed);
            outcome.map_err(ToolError)
        })
    }

    async fn run_once(&self, layered: &LayeredCall) -> Result<CallOutput, Failure> {
        let replaced = match layered.replaced_arguments() {
            None => None,
            Some(json) => self.call.with_arguments(json)?,
        };
        let call = replaced.as_ref().unwrap_or(&self.call);
        let context = layered.context().for_run();
        self.release_keys(&context);
        let permits = match call.item().filter(|_| !call.is_admitted()).and_then(|item| item.gates.as_ref()) {
            None => Vec::new(),
            Some(gates) => {
                let entering = gates.enter(stage(&**call), &context.inner().request.owner());
                with_timeout(call.time_limit(), entering.get()).await.flatten()?
            }
        };
        let mut started = call.start(self.is_current, &|| context.clone());
        if let MaybeReady::Pending(running) = &mut started {
            running.hold(permits);
        }
        let (suspension, running) = match started.finish().await {
            Ended::Returned(result) => return CallOutput::try_from(result?),
            Ended::Suspended(suspension, running) => (suspension, running),
        };
        let Some(server) = self.server.upgrade() else {
            return Err(Failure::private("the server has been dropped"));
        };
        // a retry repeats the arguments that the client has sent
        let call = SuspendedCall::new(&server, self.revision, self.call.clone(), running);
        match (suspension.respond)(call).get().await.outcome {
            Ok(ResultBody::InputRequired { requests, state }) => {
                Ok(CallOutput::InputRequired(PendingInput { requests, state }))
            }
            Ok(_) => Err(Failure::private("the client's input cannot be requested")),
            Err(error) => Err(Failure::Protocol(error)),
        }
    }

    /// Lets the function use the keys of client requests again that an earlier run has used.
    fn release_keys(&self, context: &Context) {
        let mut first = self.keys.lock();
        match &*first {
            Some(keys) => context.client_requests().reset_keys(keys),
            None => *first = Some(context.client_requests().lock().keys.clone()),
        }
    }
}

impl From<CallOutput> for ItemOutput {
    fn from(output: CallOutput) -> Self {
        match output {
            CallOutput::Tool(result) => Self::Tool(result),
            CallOutput::Resource(result) => Self::Resource(result),
            CallOutput::Prompt(result) => Self::Prompt(result),
            CallOutput::InputRequired(input) => Self::InputRequired(input),
        }
    }
}

impl TryFrom<ItemOutput> for CallOutput {
    type Error = Failure;

    fn try_from(output: ItemOutput) -> Result<Self, Failure> {
        match output {
            ItemOutput::Tool(result) => Ok(Self::Tool(result)),
            ItemOutput::Resource(result) => Ok(Self::Resource(result)),
            ItemOutput::Prompt(result) => Ok(Self::Prompt(result)),
            // a function that requires input is suspended; completions, lists and events have no layers
            ItemOutput::InputRequired(_)
            | ItemOutput::Values(_)
            | ItemOutput::Entries(..)
            | ItemOutput::Other(_)
            | ItemOutput::OfLayer(_) => Err(wrong_kind()),
        }
    }
}
