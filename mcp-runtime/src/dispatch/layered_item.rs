//! A call that passes layers. Seen from its request, the outermost layer is the function: it is polled, contained, turned
//! into a task and dropped like one. The item's own function is what the innermost layer runs, as often as it likes.

use std::{collections::HashSet, sync::Arc};

use super::{
    Request,
    item_call::{ItemCall, RunningCall, admit},
    request::ClientRequestPolicy,
    response::{Reply, Response, ResultBody},
};
use crate::{
    arguments::{BoxFuture, MaybeFuture},
    blocking::CallPermit,
    client_request::CallBinding,
    context::Context,
    error::{Failure, ToolError},
    extensions::Extensions,
    invoke::{self, Ended, Invocation, StartOptions, with_timeout},
    item::ItemLayer,
    layer::{
        CallOutput, ItemKind, LayeredCall, LayeredCallParts, LayeredFunction, Next, Outcome, PendingInput,
    },
    protocol::Revision,
    server::{Server, WeakServer},
    sync::Mutex,
};

/// The call of an item that can have layers.
pub(super) trait LayeredItemCall: ItemCall<Output: Into<CallOutput>> {
    const KIND: ItemKind;

    /// The layers of the item, outermost first.
    fn layers(&self) -> &Arc<[ItemLayer]>;

    /// The item's wire name.
    fn item_name(&self) -> &str;

    /// The URI that is read, of a resource.
    fn uri(&self) -> Option<&str> {
        None
    }

    /// Raw JSON of the arguments.
    fn arguments(&self) -> &str {
        "{}"
    }

    /// The same call with other arguments: raw JSON of an object.
    ///
    /// # Errors
    /// They cannot be read.
    fn with_arguments(&self, json: &str) -> Result<Self::Owned, Failure>;

    /// The result, if it is one of this kind of item.
    fn output(output: CallOutput) -> Option<Self::Output>;
}

impl Server {
    /// Calls an item, through its layers.
    pub(super) fn call_through_layers<C>(&self, request: Request<'_>, call: C) -> Response
    where
        C: LayeredItemCall<Owned: LayeredItemCall<Output = C::Output, Owned = C::Owned> + Clone>,
    {
        if call.layers().is_empty() {
            return self.call_item(request, call);
        }
        let (layers, server) = (call.layers().clone(), self.downgrade());
        let (revision, options) = (request.revision, request.start_options(self));
        let call = call.into_owned();
        let function = Arc::new(FunctionOfItem { call, server, revision, options, keys: Mutex::default() });
        self.call_item(request, LayeredItem { function, layers, request_id: request.id.into() })
    }
}

/// The function of an item that has layers, as its request and its innermost layer see it.
trait InnerFunction: LayeredFunction {
    fn kind(&self) -> ItemKind;
    fn item_name(&self) -> &str;
    fn uri(&self) -> Option<&str>;
    fn arguments(&self) -> &str;
    fn state(&self) -> &Arc<Extensions>;
    fn client_request_policy(&self) -> ClientRequestPolicy;
    fn prepare_context(&self, context: &Context);
    fn binding(&self) -> CallBinding<'_>;
    fn respond(&self, server: &Server, result: Result<CallOutput, Failure>) -> Response;
    /// The function itself, to run it.
    fn as_layered(self: Arc<Self>) -> Arc<dyn LayeredFunction>;
}

/// One call that passes layers.
struct LayeredItem {
    function: Arc<dyn InnerFunction>,
    layers: Arc<[ItemLayer]>,
    /// Raw JSON.
    request_id: Box<str>,
}

impl ItemCall for LayeredItem {
    type Output = CallOutput;
    type Owned = Self;

    fn into_owned(self) -> Self {
        self
    }

    fn state(&self) -> &Arc<Extensions> {
        self.function.state()
    }

    fn client_request_policy(&self) -> ClientRequestPolicy {
        self.function.client_request_policy()
    }

    fn prepare_context(&self, context: &Context) {
        self.function.prepare_context(context);
    }

    fn binding(&self) -> CallBinding<'_> {
        self.function.binding()
    }

    fn start(&self, _: StartOptions, context: &dyn Fn() -> Context) -> Invocation<CallOutput> {
        let context = context();
        let function = &self.function;
        let call = LayeredCall::new(LayeredCallParts {
            kind: function.kind(),
            name: function.item_name().into(),
            uri: function.uri().map(Into::into),
            arguments: function.arguments().into(),
            request_id: self.request_id.clone(),
            context: context.clone(),
        });
        let outermost = Next::new(self.layers.clone(), function.clone().as_layered());
        let outcome = Box::pin(async move { outermost.run(&call).await.map_err(Failure::from) });
        invoke::start_with(|| Ok(MaybeFuture::Pending(outcome)), &context, None)
    }

    fn respond(&self, server: &Server, _: Revision, result: Result<CallOutput, Failure>) -> Response {
        self.function.respond(server, result)
    }
}

/// An item's function, and what a run of it needs.
struct FunctionOfItem<C> {
    /// With the arguments that the client sent.
    call: C,
    /// Weak: a task that runs it does not keep the server alive.
    server: WeakServer,
    revision: Revision,
    options: StartOptions,
    /// The keys of client requests that were in use when the function first ran.
    keys: Mutex<Option<HashSet<Box<str>>>>,
}

impl<C: LayeredItemCall<Owned = C> + Clone + 'static> LayeredFunction for FunctionOfItem<C> {
    fn run(self: Arc<Self>, call: LayeredCall) -> BoxFuture<Outcome> {
        Box::pin(async move { self.run_once(&call).await.map_err(ToolError) })
    }
}

impl<C: LayeredItemCall<Owned = C> + Clone + 'static> FunctionOfItem<C> {
    async fn run_once(&self, layered: &LayeredCall) -> Result<CallOutput, Failure> {
        match layered.replaced_arguments() {
            None => self.run_call(layered.context(), &self.call).await,
            Some(json) => self.run_call(layered.context(), &self.call.with_arguments(json)?).await,
        }
    }

    async fn run_call(&self, context: &Context, call: &C) -> Result<CallOutput, Failure> {
        let context = context.for_run();
        self.release_keys(&context);
        let mut permits = admit(call, || context.inner().request.owner())?;
        if let Some(semaphore) = call.semaphore() {
            let acquired = with_timeout(call.time_limit(), semaphore.clone().acquire_owned()).await?;
            // the semaphore is never closed
            permits.extend(acquired.ok().map(CallPermit::Concurrency));
        }
        let ended = match call.start(self.options, &|| context.clone()) {
            Invocation::Ended(ended) => ended,
            Invocation::Running(mut running) => {
                running.hold_permits(permits);
                running.finish().await
            }
        };
        let (suspension, running) = match ended {
            Ended::Returned(result) => return result.map(Into::into),
            Ended::Suspended(suspension, running) => (suspension, running),
        };
        let Some(server) = self.server.upgrade() else {
            return Err(Failure::private("the server has been dropped"));
        };
        // a retry repeats the arguments that the client has sent
        let call = RunningCall::new(&server, self.revision, self.call.clone(), running);
        match suspension.respond(Box::new(call)).reply().await.outcome {
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

impl<C: LayeredItemCall<Owned = C> + Clone + 'static> InnerFunction for FunctionOfItem<C> {
    fn kind(&self) -> ItemKind {
        C::KIND
    }

    fn item_name(&self) -> &str {
        self.call.item_name()
    }

    fn uri(&self) -> Option<&str> {
        self.call.uri()
    }

    fn arguments(&self) -> &str {
        self.call.arguments()
    }

    fn state(&self) -> &Arc<Extensions> {
        self.call.state()
    }

    fn client_request_policy(&self) -> ClientRequestPolicy {
        self.call.client_request_policy()
    }

    fn prepare_context(&self, context: &Context) {
        self.call.prepare_context(context);
    }

    fn binding(&self) -> CallBinding<'_> {
        self.call.binding()
    }

    fn respond(&self, server: &Server, result: Result<CallOutput, Failure>) -> Response {
        let result = match result {
            Ok(CallOutput::InputRequired(PendingInput { requests, state })) => {
                return Reply::from(ResultBody::InputRequired { requests, state }).into();
            }
            Ok(output) => C::output(output).ok_or_else(|| {
                let text = "a layer has returned the result of another kind of item";
                Failure::private(text)
            }),
            Err(failure) => Err(failure),
        };
        self.call.respond(server, self.revision, result)
    }

    fn as_layered(self: Arc<Self>) -> Arc<dyn LayeredFunction> {
        self
    }
}
