//! Calls that go on as tasks, and `tasks/get`, `tasks/update` and `tasks/cancel`.
//!
//! See the [Tasks extension](https://github.com/modelcontextprotocol/ext-tasks).

use std::{collections::BTreeMap, pin::pin, sync::Arc};

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{
    Request,
    call::ItemCall,
    request_state::lacking,
    response::{Pending, Reply, Response, ResultBody, encode_result},
};
use crate::{
    arguments::BoxFuture,
    blocking::{Holding, Permit},
    connection::owner,
    context::Context,
    invoke::{Invoked, MissingFeatures, Running},
    jsonrpc::{Meta, ProtocolError, text_of},
    protocol::{MISSING_CLIENT_CAPABILITY, Revision, TASKS_EXTENSION},
    server::{Identity, Server, WeakServer},
    task::{Ended, Found, Outcome, Place},
    tool::ToolResult,
};

/// Whether the client of a request declares the extension, on this very request.
pub(super) fn knows_tasks(meta: &Meta<'_>) -> bool {
    #[derive(Deserialize)]
    struct Capabilities<'a> {
        #[serde(borrow, default)]
        extensions: BTreeMap<String, &'a RawValue>,
    }
    let capabilities =
        meta.capabilities.and_then(|raw| serde_json::from_str::<Capabilities<'_>>(raw.get()).ok());
    let settings = capabilities.and_then(|declared| declared.extensions.get(TASKS_EXTENSION).copied());
    settings.is_some_and(|settings| settings.get().starts_with('{'))
}

/// `-32021`: the client would have to declare the extension.
pub(super) fn lacks_tasks() -> Reply {
    let text = format!("the client does not declare `{TASKS_EXTENSION}`, which this request needs");
    let data = json!({ "requiredCapabilities": { "extensions": { TASKS_EXTENSION: {} } } });
    Reply::bad_request(ProtocolError::new(MISSING_CLIENT_CAPABILITY, text).with_data(data))
}

/// What a task ended with: the reply that its call would have had.
struct TaskOutcome {
    reply: Reply,
    revision: Revision,
    identity: Arc<Identity>,
}

impl Outcome for TaskOutcome {
    fn error(&self) -> Option<&ProtocolError> {
        self.reply.outcome.as_ref().err()
    }

    fn write_result(&self, out: &mut Vec<u8>) {
        if let Ok(body) = &self.reply.outcome {
            encode_result(out, body, self.revision, &self.identity);
        }
    }
}

impl Server {
    /// Lets a tool's function go on as a task; the reply says so.
    pub(super) fn become_task<C>(&self, call: C, revision: Revision, running: Running<ToolResult>) -> Pending
    where
        C: ItemCall<Output = ToolResult> + 'static,
    {
        let (server, context) = (self.clone(), running.context().clone());
        let cancel = context.clone();
        let threads = running.threads();
        let reply: BoxFuture<Reply> = Box::pin(async move {
            match server.begin_task(&context).await {
                Ok(place) => {
                    let created = ResultBody::TaskCreated(place.live.clone());
                    // a server that is dropped ends with its tasks, so they must not hold it
                    tokio::spawn(run(server.downgrade(), place, call, revision, running));
                    created.into()
                }
                Err(error) => error.into(),
            }
        });
        Pending::new(&cancel, Holding::with_threads(reply, threads))
    }

    /// Makes room for a task; when this is done, clients can ask for it.
    async fn begin_task(&self, context: &Context) -> Result<Arc<Place>, ProtocolError> {
        let place = self.tasks().begin(owner(context.caller()))?;
        place.keep().await?;
        context.inner().asks.become_task(place.live.clone());
        Ok(Arc::new(place))
    }
}

/// Runs a task's function to its end.
async fn run<C>(
    server: WeakServer,
    place: Arc<Place>,
    call: C,
    revision: Revision,
    mut running: Running<ToolResult>,
) where
    C: ItemCall<Output = ToolResult> + 'static,
{
    let live = place.live.clone();
    let context = running.context().clone();
    // the place belongs to the function's thread, if it has one
    running.hold_all([Permit::Task(place.clone())]);
    let function = async {
        let invoked = {
            let mut body = pin!(async move {
                if let Some(places) = running.context().permit_to_wait_for() {
                    // the semaphore is never closed
                    running.hold_all(places.acquire_owned().await.ok().map(Permit::Concurrency));
                }
                running.finish::<MissingFeatures>().await
            });
            let polled = std::future::poll_fn(|cx| {
                let polled = body.as_mut().poll(cx);
                live.polled();
                polled
            });
            tokio::select! {
                invoked = polled => Some(invoked),
                () = live.given_up() => None,
            }
        };
        let ended = match (invoked, server.upgrade()) {
            (Some(invoked), Some(server)) => {
                let reply = match invoked {
                    Invoked::Returned(result) => call.reply(&server, revision, result),
                    Invoked::Interrupted(MissingFeatures(features), _) => lacking(&features).into(),
                };
                let identity = server.identity().clone();
                Ended::Replied(Arc::new(TaskOutcome { reply, revision, identity }))
            }
            _ => {
                context.inner().cancel.fire();
                Ended::Cancelled
            }
        };
        live.end(ended);
    };
    tokio::join!(function, place.keep_up());
}

/// What to do with the task that a request names.
enum Act {
    Show,
    Answer(Vec<(String, Box<str>)>),
    Cancel,
}

impl Server {
    pub(super) fn get_task(&self, request: Request<'_>) -> Result<Response, Reply> {
        self.act(&request, |_| Ok(Act::Show))
    }

    pub(super) fn update_task(&self, request: Request<'_>) -> Result<Response, Reply> {
        self.act(&request, |request| {
            let responses =
                request.params.input_responses.map(RawValue::get).filter(|json| json.starts_with('{'));
            let responses: Option<BTreeMap<String, &RawValue>> =
                responses.and_then(|json| serde_json::from_str(json).ok());
            let responses = responses.ok_or_else(|| {
                ProtocolError::invalid_params("`inputResponses` is missing, or not an object")
            })?;
            Ok(Act::Answer(responses.into_iter().map(|(key, value)| (key, value.get().into())).collect()))
        })
    }

    pub(super) fn cancel_task(&self, request: Request<'_>) -> Result<Response, Reply> {
        self.act(&request, |_| Ok(Act::Cancel))
    }

    /// Finds the task that a request names and acts on it.
    fn act(
        &self,
        request: &Request<'_>,
        what: impl FnOnce(&Request<'_>) -> Result<Act, ProtocolError>,
    ) -> Result<Response, Reply> {
        if !knows_tasks(&request.params.meta) {
            return Err(lacks_tasks());
        }
        let task = request.params.task_id.and_then(text_of);
        let task =
            task.ok_or_else(|| ProtocolError::invalid_params("`taskId` is missing, or not a string"))?;
        let act = what(request)?;
        let server = self.clone();
        let (task, owner) = (task.into_owned(), owner(request.context.caller.as_deref()));
        Ok(Response::Pending(Pending::of_server(async move {
            let found = server.tasks().find(&task, owner.as_deref()).await;
            found.and_then(|found| act.reply(found)).unwrap_or_else(Into::into)
        })))
    }
}

impl Act {
    fn reply(self, found: Option<Found>) -> Result<Reply, ProtocolError> {
        let Some(found) = found else {
            return Err(ProtocolError::invalid_params(
                "there is no such task: `taskId` is wrong, or the task has expired",
            ));
        };
        match (self, found) {
            (Self::Show, Found::Here(live)) => {
                live.extend();
                return Ok(ResultBody::Task(live).into());
            }
            (Self::Show, Found::Stored(record)) => return Ok(ResultBody::StoredTask(record).into()),
            (Self::Answer(answers), Found::Here(live)) => {
                live.extend();
                live.answer(answers);
            }
            (Self::Cancel, Found::Here(live)) => live.stop(Ended::Cancelled),
            (Self::Answer(_) | Self::Cancel, Found::Stored(record)) if record.is_running() => {
                return Err(ProtocolError::internal(
                    "the task runs in another process\nroute requests by `Mcp-Name`, which repeats `taskId`",
                ));
            }
            // it has ended, so there is nothing to answer and nothing to cancel
            (Self::Answer(_) | Self::Cancel, Found::Stored(_)) => {}
        }
        Ok(ResultBody::Empty.into())
    }
}
