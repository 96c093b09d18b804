//! A request about one subscription as the call of an item: what `events/poll` and `events/subscribe` have in common.
//! Arguments are decoded and checked before the request is answered.

use std::{future::Future, sync::Arc, time::Duration};

use super::{
    entry::{EventEntry, EventSubscriber},
    poll::{integer, refusal},
};
use crate::core::{
    admission::Owner,
    arguments::MaybeFuture,
    client_request::CallBinding,
    context::Context,
    dispatch::{ItemCall, Reply, Request, Response, WriteResult},
    error::Failure,
    extensions::Extensions,
    invoke::{self, Invocation},
    item::ItemSpec,
    item_output::{ItemOutput, wrong_kind},
    jsonrpc::ProtocolError,
    protocol::Revision,
    server::{Entry as _, Server},
};

/// The part that differs between the methods.
pub(super) trait EventRequest: Clone + Send + Sync + 'static {
    const METHOD: &'static str;
    type Result: WriteResult + Send + 'static;

    /// Answers the request; `given` are the arguments with their defaults.
    fn answer(
        call: EventCall<Self>,
        given: Arc<str>,
    ) -> impl Future<Output = Result<Self::Result, ProtocolError>> + Send;
}

/// One request about a subscription.
#[derive(Clone)]
pub(super) struct EventCall<R> {
    pub(super) server: Server,
    pub(super) entry: Arc<EventEntry>,
    pub(super) subscriber: EventSubscriber,
    pub(super) owner: Owner,
    /// As the client has sent them.
    pub(super) arguments: Arc<str>,
    pub(super) cursor: Option<String>,
    pub(super) max_age: Option<Duration>,
    /// The params that only this method has.
    pub(super) own: R,
}

impl<R: EventRequest> EventCall<R> {
    /// Begins a request, whose parameters of its own are `own`.
    pub(super) fn start(
        server: &Server,
        request: Request<'_>,
        entry: &Arc<EventEntry>,
        arguments: &str,
        own: R,
    ) -> Result<Response, Reply> {
        let call = Self {
            server: server.clone(),
            entry: entry.clone(),
            subscriber: EventSubscriber::of(request.context),
            owner: request.context.owner(),
            arguments: arguments.into(),
            cursor: request.cursor()?.map(Into::into),
            max_age: integer(request.params.get("maxAgeMs"), "maxAgeMs")?.map(Duration::from_millis),
            own,
        };
        Ok(server.call_item(request, call))
    }

    async fn run(self) -> Result<Result<R::Result, ProtocolError>, Failure> {
        let given: Arc<str> = self.entry.given(&self.arguments)?.into();
        self.entry.check_arguments(&self.server, &self.subscriber, &given).await?;
        self.entry.ring.follow(&self.server).await;
        Ok(R::answer(self, given).await)
    }
}

impl<R: EventRequest> ItemCall for EventCall<R> {
    fn into_owned(self) -> Arc<dyn ItemCall> {
        Arc::new(self)
    }

    fn item(&self) -> Option<&ItemSpec> {
        Some(self.entry.item())
    }

    fn state(&self) -> &Arc<Extensions> {
        &self.entry.function.state
    }

    fn binding(&self) -> CallBinding<'_> {
        CallBinding::new(R::METHOD, self.entry.name(), &self.arguments)
    }

    fn start(&self, _: bool, context: &dyn Fn() -> Context) -> Invocation {
        let call = self.clone();
        let run = async move { call.run().await.map(|outcome| ItemOutput::Other(Box::new(outcome))) };
        invoke::start_with(|| Ok(MaybeFuture::Pending(Box::pin(run))), &context(), None)
    }

    fn respond(&self, server: &Server, revision: Revision, result: Result<ItemOutput, Failure>) -> Response {
        let failure = match result {
            Ok(ItemOutput::Other(outcome)) => {
                match outcome.downcast::<Result<R::Result, ProtocolError>>().map(|outcome| *outcome) {
                    Ok(Ok(result)) => return result.into_reply().into(),
                    Ok(Err(error)) => return Reply::from(error).into(),
                    Err(_) => wrong_kind(),
                }
            }
            Ok(_) => wrong_kind(),
            Err(failure) => failure,
        };
        refusal(server, self.entry.name(), failure, revision).into()
    }
}
