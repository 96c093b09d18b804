//! One call of a user's function, from the item that was looked up to the reply. The order is the same for every kind
//! of item: the limits on its caller, the permit of `max_concurrency`, then the function. An item with layers starts with
//! the outermost layer.

use std::{sync::Arc, time::Duration};

use tokio::sync::Semaphore;

use super::{
    Request,
    request::ClientRequestPolicy,
    response::{PendingReply, Reply, Response},
};
use crate::{
    admission::{CallLimits, Owner},
    arguments::{BoxFuture, CallParts, Input, TextArgument},
    blocking::{CallPermit, CallThreads, WithPermits},
    client_request::CallBinding,
    context::Context,
    error::Failure,
    extensions::Extensions,
    invoke::{self, ClientError, Ended, Invocation, Running, StartOptions, with_timeout},
    item::Function,
    jsonrpc::ProtocolError,
    protocol::Revision,
    server::{Server, WeakServer},
};

/// A call that has been admitted and whose item has been found: how to start the function, and how to answer when it
/// ends.
pub(super) trait ItemCall: Send + Sync + Sized {
    /// What the function returns.
    type Output: Send + 'static;
    /// The same call without borrows from the request's text.
    type Owned: ItemCall<Output = Self::Output> + 'static;

    fn into_owned(self) -> Self::Owned;

    /// The state of the item's builder.
    fn state(&self) -> &Arc<Extensions>;

    /// What identifies the call: a client's retry of it is bound to this.
    fn binding(&self) -> CallBinding<'_>;

    /// Whether the function may send requests to its client.
    fn client_request_policy(&self) -> ClientRequestPolicy {
        ClientRequestPolicy::Forbidden
    }

    /// Configures a new context of the call.
    fn prepare_context(&self, _context: &Context) {}

    /// The limits on its caller.
    fn call_limits(&self) -> Option<&Arc<CallLimits>> {
        None
    }

    /// The permits of `max_concurrency`.
    fn semaphore(&self) -> Option<&Arc<Semaphore>> {
        None
    }

    /// How long the call may take, including the wait for its permit.
    fn time_limit(&self) -> Option<Duration> {
        None
    }

    /// Starts the function.
    fn start(&self, options: StartOptions, context: &dyn Fn() -> Context) -> Invocation<Self::Output>;

    /// The response for what the function has returned; one that has to be stored first is pending.
    fn respond(&self, server: &Server, revision: Revision, result: Result<Self::Output, Failure>)
    -> Response;
}

/// A call whose function cannot continue in its request, for the [`Suspension`](crate::context::Suspension) that
/// answers the request.
pub(crate) trait SuspendedCall: Send {
    fn context(&self) -> &Context;

    /// What a client's retry of the call is bound to.
    fn binding(&self) -> CallBinding<'_>;

    /// `None` once the server has been dropped, which a call that has left its request does not prevent.
    fn server(&self) -> Option<Server>;

    /// Lets the server be dropped while the function goes on.
    fn leave_request(&mut self);

    /// The threads that run the function.
    fn threads(&self) -> CallThreads;

    /// Holds a permit as long as the function runs, on a thread or not.
    fn hold_permit(&mut self, permit: CallPermit);

    /// Runs the function to its end; the reply is the one that its request would have got.
    fn finish(self: Box<Self>) -> BoxFuture<Reply>;
}

/// A call whose function has been started and is pending.
pub(super) struct RunningCall<C: ItemCall> {
    call: C,
    server: WeakServer,
    /// The same, as long as the call is in its request.
    kept_alive: Option<Server>,
    revision: Revision,
    running: Running<C::Output>,
}

impl<C: ItemCall + 'static> RunningCall<C> {
    pub(super) fn new(server: &Server, revision: Revision, call: C, running: Running<C::Output>) -> Self {
        Self { call, server: server.downgrade(), kept_alive: Some(server.clone()), revision, running }
    }

    async fn reply(self) -> Reply {
        let Self { call, server, kept_alive, revision, running } = self;
        match running.finish().await {
            Ended::Returned(result) => match server.upgrade() {
                Some(server) => call.respond(&server, revision, result).reply().await,
                None => Reply::server_dropped(),
            },
            Ended::Suspended(suspension, running) => {
                let call = Self { call, server, kept_alive, revision, running };
                suspension.respond(Box::new(call)).reply().await
            }
        }
    }
}

impl<C: ItemCall + 'static> SuspendedCall for RunningCall<C> {
    fn context(&self) -> &Context {
        self.running.context()
    }

    fn binding(&self) -> CallBinding<'_> {
        self.call.binding()
    }

    fn server(&self) -> Option<Server> {
        self.server.upgrade()
    }

    fn leave_request(&mut self) {
        self.kept_alive = None;
    }

    fn threads(&self) -> CallThreads {
        self.running.threads()
    }

    fn hold_permit(&mut self, permit: CallPermit) {
        self.running.hold_permits([permit]);
    }

    fn finish(self: Box<Self>) -> BoxFuture<Reply> {
        Box::pin(self.reply())
    }
}

impl Server {
    /// Calls an item.
    pub(super) fn call_item<C: ItemCall>(&self, request: Request<'_>, call: C) -> Response {
        let mut permits = match admit(&call, || request.context.owner()) {
            Ok(permits) => permits,
            Err(failure) => return call.respond(self, request.revision, Err(failure)),
        };
        if let Some(semaphore) = call.semaphore() {
            match semaphore.clone().try_acquire_owned() {
                Ok(permit) => permits.push(CallPermit::Concurrency(permit)),
                Err(_) => return self.call_item_later(request, call, permits),
            }
        }
        let options = request.start_options(self);
        self.run_item(request.revision, options, call, permits, &|call| make_context(self, request, call))
    }

    /// Calls an item that must wait for a permit.
    fn call_item_later<C: ItemCall>(
        &self,
        request: Request<'_>,
        call: C,
        mut permits: Vec<CallPermit>,
    ) -> Response {
        let (revision, options) = (request.revision, request.start_options(self));
        let context = make_context(self, request, &call);
        let (server, call, call_context) = (self.clone(), call.into_owned(), context.clone());
        let reply: BoxFuture<Reply> = Box::pin(async move {
            if let Some(semaphore) = call.semaphore() {
                match with_timeout(call.time_limit(), semaphore.clone().acquire_owned()).await {
                    // the semaphore is never closed
                    Ok(permit) => permits.extend(permit.ok().map(CallPermit::Concurrency)),
                    Err(failure) => return call.respond(&server, revision, Err(failure)).reply().await,
                }
            }
            server.run_item(revision, options, call, permits, &|_| call_context.clone()).reply().await
        });
        Response::Pending(PendingReply::new(&context, WithPermits::new(reply, Vec::new())))
    }

    /// Runs the function of an item, which holds these permits.
    fn run_item<C: ItemCall>(
        &self,
        revision: Revision,
        options: StartOptions,
        call: C,
        permits: Vec<CallPermit>,
        make_context: &dyn Fn(&C) -> Context,
    ) -> Response {
        let (suspension, mut running) = match call.start(options, &|| make_context(&call)) {
            Invocation::Ended(Ended::Returned(result)) => return call.respond(self, revision, result),
            Invocation::Ended(Ended::Suspended(suspension, running)) => (Some(suspension), running),
            Invocation::Running(running) => (None, running),
        };
        running.hold_permits(permits);
        let running = Box::new(RunningCall::new(self, revision, call.into_owned(), running));
        match suspension {
            Some(suspension) => suspension.respond(running),
            None => Response::Pending(finish_later(running)),
        }
    }
}

/// The reply of a call whose function is pending.
fn finish_later(call: Box<dyn SuspendedCall>) -> PendingReply {
    let context = call.context().clone();
    // if the function runs on a blocking thread, that has been started by now
    let threads = call.threads();
    PendingReply::new(&context, WithPermits::with_threads(call.finish(), threads))
}

/// The permits of a call within the limits on its caller.
///
/// # Errors
/// The caller has reached one of them.
pub(super) fn admit<C: ItemCall>(
    call: &C,
    owner: impl FnOnce() -> Owner,
) -> Result<Vec<CallPermit>, Failure> {
    let Some(limits) = call.call_limits() else { return Ok(Vec::new()) };
    let permits = limits.admit(&owner()).map_err(|reached| Failure::Limited(reached.to_string()))?;
    Ok(permits.into_iter().map(CallPermit::Caller).collect())
}

fn make_context<C: ItemCall>(server: &Server, request: Request<'_>, call: &C) -> Context {
    let context = request.make_context(server, call.state(), call.client_request_policy());
    call.prepare_context(&context);
    context
}

/// Starts a function whose arguments are strings: that of a prompt or a resource.
pub(super) fn start_with_strings<R>(
    name: &str,
    function: &Function<R>,
    values: &[(String, TextArgument)],
    limit: Option<Duration>,
    options: StartOptions,
    context: &dyn Fn() -> Context,
) -> Invocation<R> {
    let parts = CallParts {
        input: Input::Text(values),
        args: function.args,
        strict: false,
        tool: None,
        validator: None,
        this: function.this.as_ref(),
        context,
    };
    if let Err(failure) = function.text_limit.check(function.args, values) {
        return invoke::start_with(|| Err(failure), &context(), limit);
    }
    invoke::start(name, function, &parts, limit, options)
}

/// The error of a call whose result cannot report failures.
pub(super) fn into_protocol_error(error: ClientError) -> ProtocolError {
    match error {
        ClientError::Arguments(report) => ProtocolError::invalid_params(report),
        ClientError::NotFound => ProtocolError::internal("not found"),
        ClientError::Message(text, _) => ProtocolError::internal(text),
        ClientError::Protocol(error) => error,
    }
}
