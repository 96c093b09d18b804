//! One call of a user's function, from the item that was looked up to the reply. The order is the same for every kind
//! of item: its gates, then the function. An item with layers starts with the outermost layer.
//!
//! A call that is not finished at once has one owner at a time, and dropping that cancels it:
//!
//! 1. while it waits at its gates, or its layers run, the future in the [`PendingReply`] of its request;
//! 2. once its function is pending, a [`SuspendedCall`], whose [`Running`] owns the future of the function and its context.
//!    As long as the call is in its request, the [`PendingReply`] owns the `SuspendedCall`. The transport owns the
//!    `PendingReply` (in a `RunningRequest` of `inbound.rs`), and drops it if the client cancels the request;
//! 3. if the function leaves its request, its [`Suspension`](crate::context::Suspension) gets the `SuspendedCall` and
//!    answers the request: a question to the client ends the call, to be made again with the answer, and a task (`capability/tasks`)
//!    owns it from then on. Then the call no longer keeps its server alive.

use std::{borrow::Cow, sync::Arc, time::Duration};

use super::{
    Request,
    layered_item::call_layered,
    request::ClientRequestPolicy,
    response::{PendingReply, Reply, Response, ResultBody},
};
use crate::core::{
    arguments::{BoxFuture, CallParts, Input, MaybeFuture, TextArgument},
    blocking::CallPermit,
    client_error::ClientError,
    client_request::CallBinding,
    context::Context,
    error::Failure,
    extensions::Extensions,
    gates::Stage,
    invoke::{self, Ended, Invocation, Running, with_timeout},
    item::ItemSpec,
    item_function::ItemFunction,
    item_output::{ItemOutput, PendingInput},
    jsonrpc::ProtocolError,
    maybe_ready::MaybeReady,
    protocol::Revision,
    reason::Reason,
    server::{Server, WeakServer},
};

/// A call whose item has been found: how to start the function, and how to answer when it ends.
pub(crate) trait ItemCall: Send + Sync {
    /// The same call without borrows from the request's text.
    fn into_owned(self) -> Arc<dyn ItemCall>
    where
        Self: Sized;

    /// The called item, if the function is that of an item.
    fn item(&self) -> Option<&ItemSpec> {
        None
    }

    /// The state of the item's builder.
    fn state(&self) -> &Arc<Extensions>;

    /// The identity of the call: a client's retry is bound to it.
    fn binding(&self) -> CallBinding<'_>;

    /// Whether the function may send requests to its client.
    fn client_request_policy(&self) -> ClientRequestPolicy {
        ClientRequestPolicy::Forbidden
    }

    /// Configures a new context of the call.
    fn prepare_context(&self, _context: &Context) {}

    /// Whether it has passed the gates before, in another process.
    fn is_admitted(&self) -> bool {
        false
    }

    /// Whether the call leaves its request before its function starts.
    fn starts_outside(&self) -> bool {
        false
    }

    /// How long the call may take; it may wait as long at the gates of its item before.
    fn time_limit(&self) -> Option<Duration> {
        None
    }

    /// The same call with the arguments that a layer has set, raw JSON of an object; `None` if it takes none.
    ///
    /// # Errors
    /// They cannot be read.
    fn with_arguments(&self, _json: &str) -> Result<Option<Arc<dyn ItemCall>>, Failure> {
        Ok(None)
    }

    /// Starts the function.
    fn start(&self, is_current: bool, context: &dyn Fn() -> Context) -> Invocation;

    /// The response for what the function has returned; one that has to be stored first is pending.
    fn respond(&self, server: &Server, revision: Revision, result: Result<ItemOutput, Failure>) -> Response;
}

/// A call whose function is pending, in its request or, for the [`Suspension`](crate::context::Suspension) that answers
/// that, outside of it.
pub(crate) struct SuspendedCall {
    call: Arc<dyn ItemCall>,
    server: WeakServer,
    /// The same, as long as the call is in its request.
    pub(crate) kept_alive: Option<Server>,
    revision: Revision,
    pub(crate) running: Running,
}

impl SuspendedCall {
    pub(super) fn new(
        server: &Server,
        revision: Revision,
        call: Arc<dyn ItemCall>,
        running: Running,
    ) -> Box<Self> {
        let (weak, kept_alive) = (server.downgrade(), Some(server.clone()));
        Box::new(Self { call, server: weak, kept_alive, revision, running })
    }

    pub(crate) fn context(&self) -> &Context {
        self.running.context()
    }

    /// The identity of the call that a client's retry is bound to.
    pub(crate) fn binding(&self) -> CallBinding<'_> {
        self.call.binding()
    }

    /// `None` once the server has been dropped, which a call that has left its request does not prevent.
    pub(crate) fn server(&self) -> Option<Server> {
        self.server.upgrade()
    }

    /// Runs the function to its end; the reply is the one that its request would have got.
    pub(crate) fn finish(self: Box<Self>) -> BoxFuture<Reply> {
        Box::pin(async move {
            let Self { call, server, kept_alive, revision, running } = *self;
            match running.finish().await {
                Ended::Returned(result) => match server.upgrade() {
                    Some(server) => answer(&*call, &server, revision, result).get().await,
                    None => Reply::server_dropped(),
                },
                Ended::Suspended(suspension, running) => {
                    let call = Self { call, server, kept_alive, revision, running };
                    (suspension.respond)(Box::new(call)).get().await
                }
            }
        })
    }
}

/// The response for what the function has returned, or what its layers have made of that.
fn answer(
    call: &dyn ItemCall,
    server: &Server,
    revision: Revision,
    result: Result<ItemOutput, Failure>,
) -> Response {
    match result {
        Ok(ItemOutput::InputRequired(PendingInput { requests, state })) => {
            Reply::from(ResultBody::InputRequired { requests, state }).into()
        }
        Ok(ItemOutput::OfLayer(failure)) => match call.respond(server, revision, *failure) {
            Response::Ready(reply) => {
                let reason = reply.reason.filter(|reason| !reason.is_of_function());
                reply.because(reason.unwrap_or(Reason::Layer)).into()
            }
            pending => pending,
        },
        result => call.respond(server, revision, result),
    }
}

impl Server {
    /// Calls an item.
    pub(crate) fn call_item(&self, request: Request<'_>, call: impl ItemCall) -> Response {
        let mut permits = Vec::new();
        if let Some(item) = call.item() {
            if !item.layers.is_empty() {
                return call_layered(self, request, call.into_owned());
            }
            if let Some(gates) = item.gates.as_ref().filter(|_| !call.is_admitted()) {
                match gates.enter(stage(&call), &request.context.owner()) {
                    MaybeReady::Ready(Ok(entered)) => permits = entered,
                    MaybeReady::Ready(Err(failure)) => {
                        return call.respond(self, request.revision, Err(failure));
                    }
                    MaybeReady::Pending(entering) => {
                        return self.call_item_later(request, call.into_owned(), entering);
                    }
                }
            }
        }
        match call.start(request.is_current(self), &|| make_context(self, request, &call)) {
            MaybeReady::Ready(Ended::Returned(result)) => call.respond(self, request.revision, result),
            pending => self.finish_later(request.revision, call.into_owned(), pending, permits),
        }
    }

    /// Calls an item that waits at one of its gates.
    fn call_item_later(
        &self,
        request: Request<'_>,
        call: Arc<dyn ItemCall>,
        entering: BoxFuture<Result<Vec<CallPermit>, Failure>>,
    ) -> Response {
        let (revision, is_current) = (request.revision, request.is_current(self));
        let context = make_context(self, request, &*call);
        let (server, call_context) = (self.clone(), context.clone());
        let reply: BoxFuture<Reply> = Box::pin(async move {
            let permits = match with_timeout(call.time_limit(), entering).await.flatten() {
                Ok(permits) => permits,
                Err(failure) => return call.respond(&server, revision, Err(failure)).get().await,
            };
            let invocation = call.start(is_current, &|| call_context.clone());
            server.finish_later(revision, call, invocation, permits).get().await
        });
        Response::Pending(PendingReply::new(context, reply))
    }

    /// The response of a call whose function has been started, and holds these permits.
    pub(super) fn finish_later(
        &self,
        revision: Revision,
        call: Arc<dyn ItemCall>,
        invocation: Invocation,
        permits: Vec<CallPermit>,
    ) -> Response {
        let (suspension, mut running) = match invocation {
            MaybeReady::Ready(Ended::Returned(result)) => return answer(&*call, self, revision, result),
            MaybeReady::Ready(Ended::Suspended(suspension, running)) => (Some(suspension), running),
            MaybeReady::Pending(running) => (None, running),
        };
        running.hold(permits);
        // if the function runs on a blocking thread, that has been started by now, and holds these
        let of_request = running.take_permits_of_request();
        let call = SuspendedCall::new(self, revision, call, running);
        let mut response = match suspension {
            Some(suspension) => (suspension.respond)(call),
            None => Response::Pending(PendingReply::new(call.context().clone(), call.finish())),
        };
        if let Response::Pending(pending) = &mut response {
            pending.set_permits(of_request);
        }
        response
    }
}

/// Which gates a call enters in its request.
pub(super) fn stage(call: &dyn ItemCall) -> Stage {
    if call.starts_outside() { Stage::Request } else { Stage::Whole }
}

pub(super) fn make_context(server: &Server, request: Request<'_>, call: &dyn ItemCall) -> Context {
    let context = request.make_context(server, call.state(), call.client_request_policy());
    call.prepare_context(&context);
    context
}

/// Starts a function whose arguments are strings: that of a prompt or a resource. One that is made at run time gets what
/// `call` makes.
pub(crate) fn start_with_strings<C>(
    item: &ItemSpec,
    function: &ItemFunction<C>,
    values: &[(Cow<'_, str>, TextArgument<'_>)],
    is_current: bool,
    context: &dyn Fn() -> Context,
    call: impl FnOnce(Context) -> Result<C, Failure>,
) -> Invocation {
    let function = match function {
        ItemFunction::Annotated(function) => function,
        ItemFunction::Runtime(handler) => {
            let context = context();
            let start = || Ok(MaybeFuture::Pending(handler(call(context.clone())?)));
            return invoke::start_with(start, &context, item.timeout);
        }
    };
    let parts = CallParts {
        input: Input::Text(values),
        args: function.args,
        rules: &function.rules,
        strict: false,
        tool: None,
        validator: None,
        this: function.this.as_ref(),
        context,
    };
    if let Err(failure) = function.text_limit.check(function.args, values) {
        return Ended::Returned(Err(failure)).into();
    }
    invoke::start(&item.name, function, &parts, item.timeout, is_current)
}

/// The error of a call whose result cannot report failures.
pub(crate) fn into_protocol_error(error: ClientError) -> ProtocolError {
    match error {
        ClientError::Arguments(report) => ProtocolError::invalid_params(report),
        ClientError::NotFound => ProtocolError::internal("not found"),
        ClientError::Message(text, _) => ProtocolError::internal(text),
        ClientError::Protocol(error) => error,
    }
}
