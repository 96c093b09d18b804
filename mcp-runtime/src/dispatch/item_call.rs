//! One call of a user's function, from the item that was looked up to the reply. The order is the same for every kind
//! of item: the permit of `max_concurrency`, then the function. What has layers is a call of the outermost one.

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
    blocking::{CallPermit, WithPermits},
    context::Context,
    error::Failure,
    extensions::Extensions,
    invoke::{
        self, ClientError, Interruption, Invocation, InvokeOutcome, Running, StartOptions, with_timeout,
    },
    item::Function,
    jsonrpc::ProtocolError,
    protocol::Revision,
    server::Server,
};

/// A call that has been admitted and whose item has been found: how to start the function, and how to answer when it
/// ends.
pub(super) trait ItemCall: Send + Sync + Sized {
    /// What the function returns.
    type Output: Send + 'static;
    /// Why the function may have to leave its request.
    type Interruption: Interruption;
    /// The same call without borrows from the request's text.
    type Owned: ItemCall<Output = Self::Output, Interruption = Self::Interruption> + 'static;

    fn into_owned(self) -> Self::Owned;

    /// The state of the item's builder.
    fn state(&self) -> &Arc<Extensions>;

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

    /// Starts the function, which may leave its request for the reason `I`.
    fn start<I: Interruption>(
        &self,
        options: StartOptions,
        context: &dyn Fn() -> Context,
    ) -> Invocation<Self::Output, I>;

    /// The response for what the function has returned; one that has to be stored first is pending.
    fn respond(&self, server: &Server, revision: Revision, result: Result<Self::Output, Failure>)
    -> Response;

    /// Answers the request of a function that is interrupted.
    fn interrupt(
        self,
        server: &Server,
        revision: Revision,
        interruption: Self::Interruption,
        running: Running<Self::Output>,
    ) -> Response;
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
        let (revision, options) = (request.revision, request.start_options(self));
        match call.start::<C::Interruption>(options, &|| make_context(self, request, &call)) {
            Invocation::Done(InvokeOutcome::Returned(result)) => call.respond(self, revision, result),
            Invocation::Done(InvokeOutcome::Interrupted(interruption, mut running)) => {
                running.hold_permits(permits);
                call.interrupt(self, revision, interruption, running)
            }
            Invocation::Running(mut running) => {
                running.hold_permits(permits);
                let context = running.context().clone();
                let (server, call) = (self.clone(), call.into_owned());
                // if the function runs on a blocking thread, that has been started by now
                let threads = running.threads();
                let reply: BoxFuture<Reply> =
                    Box::pin(async move { finish_call(&server, revision, call, running).await });
                Response::Pending(PendingReply::new(&context, WithPermits::with_threads(reply, threads)))
            }
        }
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
        let (server, call) = (self.clone(), call.into_owned());
        let call_context = context.clone();
        let reply = async move {
            if let Some(semaphore) = call.semaphore() {
                match with_timeout(call.time_limit(), semaphore.clone().acquire_owned()).await {
                    // the semaphore is never closed
                    Ok(permit) => permits.extend(permit.ok().map(CallPermit::Concurrency)),
                    Err(failure) => return call.respond(&server, revision, Err(failure)).reply().await,
                }
            }
            match call.start::<C::Interruption>(options, &|| call_context.clone()) {
                Invocation::Done(InvokeOutcome::Returned(result)) => {
                    call.respond(&server, revision, result).reply().await
                }
                Invocation::Done(InvokeOutcome::Interrupted(interruption, mut running)) => {
                    running.hold_permits(permits);
                    call.interrupt(&server, revision, interruption, running).reply().await
                }
                Invocation::Running(mut running) => {
                    running.hold_permits(permits);
                    finish_call(&server, revision, call, running).await
                }
            }
        };
        let reply: BoxFuture<Reply> = Box::pin(reply);
        Response::Pending(PendingReply::new(&context, WithPermits::new(reply, Vec::new())))
    }
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

/// Runs a pending function to its end; returns the reply.
async fn finish_call<C: ItemCall>(
    server: &Server,
    revision: Revision,
    call: C,
    running: Running<C::Output>,
) -> Reply {
    match running.finish::<C::Interruption>().await {
        InvokeOutcome::Returned(result) => call.respond(server, revision, result).reply().await,
        InvokeOutcome::Interrupted(interruption, running) => {
            call.interrupt(server, revision, interruption, running).reply().await
        }
    }
}

/// Starts a function whose arguments are strings: that of a prompt or a resource.
pub(super) fn start_with_strings<R, I: Interruption>(
    name: &str,
    function: &Function<R>,
    values: &[(String, TextArgument)],
    limit: Option<Duration>,
    options: StartOptions,
    context: &dyn Fn() -> Context,
) -> Invocation<R, I> {
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
