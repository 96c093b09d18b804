//! One call of a user's function, from the item that was looked up to the reply. The order is the same for every kind
//! of item: layers, then the permit of `max_concurrency`, then the function.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use tokio::sync::Semaphore;

use super::{
    MayAsk, Request,
    layer::{LayeredCall, Layers},
    response::{Pending, Reply, Response},
};
use crate::{
    arguments::BoxFuture,
    blocking::{CallPermit, WithPermits},
    context::Context,
    error::Failure,
    extensions::Extensions,
    invoke::{Interruption, Invocation, InvokeOutcome, Running, with_timeout},
    protocol::Revision,
    server::Server,
};

/// A call that has been admitted and looked up: how its function starts, and what its end is answered with.
pub(super) trait ItemCall: Send + Sync + Sized {
    /// What the function gives.
    type Output: Send + 'static;
    /// Why it may have to leave its request.
    type Interruption: Interruption;
    /// The same call, apart from the request's text.
    type Owned: ItemCall<Output = Self::Output, Interruption = Self::Interruption> + 'static;

    fn into_owned(self) -> Self::Owned;

    /// The item's name or URI.
    fn name(&self) -> &str;

    /// Raw JSON of its arguments.
    fn arguments(&self) -> &str;

    /// The state of the item's builder.
    fn state(&self) -> &Arc<Extensions>;

    /// Whether the function may send requests to its client.
    fn may_ask(&self) -> MayAsk;

    /// Settles what a new context allows.
    fn prepare(&self, _context: &Context) {}

    /// What the call has to wait for.
    fn concurrency(&self) -> Option<&Arc<Semaphore>> {
        None
    }

    /// How long the call may take, the wait for its permit included.
    fn limit(&self) -> Option<Duration> {
        None
    }

    /// Enters the function.
    fn start(
        &self,
        watched: bool,
        context: &dyn Fn() -> Context,
    ) -> Invocation<Self::Output, Self::Interruption>;

    /// The reply to a function that has returned.
    fn reply(&self, server: &Server, revision: Revision, result: Result<Self::Output, Failure>) -> Reply;

    /// How the request is answered that the function leaves.
    fn interrupted(
        self,
        server: &Server,
        revision: Revision,
        interruption: Self::Interruption,
        running: Running<Self::Output>,
    ) -> Response;
}

impl Server {
    /// Calls an item.
    pub(super) fn perform<C: ItemCall>(&self, request: Request<'_>, call: C) -> Response {
        if self.layers_as::<Layers>().is_some() {
            return self.perform_later(request, call);
        }
        let permit = match call.concurrency() {
            None => None,
            Some(places) => match places.clone().try_acquire_owned() {
                Ok(permit) => Some(CallPermit::Concurrency(permit)),
                Err(_) => return self.perform_later(request, call),
            },
        };
        let (revision, watched) = (request.revision, request.is_watched(self));
        let started = call.start(watched, &|| context(self, request, &call));
        match started {
            Invocation::Done(InvokeOutcome::Returned(result)) => call.reply(self, revision, result).into(),
            Invocation::Done(InvokeOutcome::Interrupted(why, mut running)) => {
                running.hold_permits(permit);
                call.interrupted(self, revision, why, running)
            }
            Invocation::Running(mut running) => {
                running.hold_permits(permit);
                let context = running.context().clone();
                let (server, call) = (self.clone(), call.into_owned());
                // a thread that runs the function has been started by now
                let threads = running.threads();
                let reply: BoxFuture<Reply> =
                    Box::pin(async move { finish(&server, revision, call, running).await });
                Response::Pending(Pending::new(&context, WithPermits::with_threads(reply, threads)))
            }
        }
    }

    /// Calls an item that has to wait, or whose call goes through layers.
    fn perform_later<C: ItemCall>(&self, request: Request<'_>, call: C) -> Response {
        let (revision, watched) = (request.revision, request.is_watched(self));
        let context = context(self, request, &call);
        let layers = self.layers_as::<Layers>().map(|layers| (layers, LayeredCall::new(&request, &call)));
        let (server, call) = (self.clone(), call.into_owned());
        let cancel = context.clone();
        let reply = async move {
            let permit = match call.concurrency() {
                None => None,
                Some(places) => match with_timeout(call.limit(), places.clone().acquire_owned()).await {
                    // the semaphore is never closed
                    Ok(permit) => permit.ok().map(CallPermit::Concurrency),
                    Err(failure) => return call.reply(&server, revision, Err(failure)),
                },
            };
            match call.start(watched, &|| context.clone()) {
                Invocation::Done(InvokeOutcome::Returned(result)) => call.reply(&server, revision, result),
                Invocation::Done(InvokeOutcome::Interrupted(why, mut running)) => {
                    running.hold_permits(permit);
                    whole(call.interrupted(&server, revision, why, running)).await
                }
                Invocation::Running(mut running) => {
                    running.hold_permits(permit);
                    finish(&server, revision, call, running).await
                }
            }
        };
        let reply = match layers {
            None => Box::pin(reply),
            Some((layers, call)) => layers.around(&call, Box::pin(reply)),
        };
        Response::Pending(Pending::new(&cancel, WithPermits::new(reply, Vec::new())))
    }
}

/// The context of a call.
fn context<C: ItemCall>(server: &Server, request: Request<'_>, call: &C) -> Context {
    let context = request.make_context(server, call.state(), call.may_ask());
    call.prepare(&context);
    context
}

/// The reply to a call whose function is pending.
async fn finish<C: ItemCall>(
    server: &Server,
    revision: Revision,
    call: C,
    running: Running<C::Output>,
) -> Reply {
    match running.finish::<C::Interruption>().await {
        InvokeOutcome::Returned(result) => call.reply(server, revision, result),
        InvokeOutcome::Interrupted(why, running) => {
            whole(call.interrupted(server, revision, why, running)).await
        }
    }
}

/// The reply, when it is there.
fn whole(response: Response) -> Pin<Box<dyn Future<Output = Reply> + Send>> {
    match response {
        Response::Ready(reply) => Box::pin(std::future::ready(reply)),
        Response::Pending(pending) => Box::pin(pending),
    }
}
