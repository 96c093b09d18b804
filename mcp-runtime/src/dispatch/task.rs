//! Calls that go on as tasks, and `tasks/get`, `tasks/update` and `tasks/cancel`.
//!
//! See the [Tasks extension](https://github.com/modelcontextprotocol/ext-tasks).

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{
    Refusal, Request, Status,
    reply::{Frame, framed, framed_as},
    round::Subject,
    run::{Begun, Contained, End, Finished, Going, Running, limited},
};
use crate::{
    context::{Cancel, Context},
    jsonrpc::{Meta, ProtocolError, error_reply, parse, text_of},
    protocol::{MISSING_CLIENT_CAPABILITY, Revision, TASKS_EXTENSION},
    reply::Failure,
    server::{Server, WeakServer},
    subscribe::Shown as _,
    task::{Ended, Found, Place, owner},
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
pub(super) fn lacks_tasks() -> Refusal {
    let text = format!("the client does not declare `{TASKS_EXTENSION}`, which this request needs");
    let data = json!({ "requiredCapabilities": { "extensions": { TASKS_EXTENSION: {} } } });
    Refusal::bad_request(ProtocolError::new(MISSING_CLIENT_CAPABILITY, text).with_data(data))
}

impl<R, F> Going<R, F>
where
    R: Send + 'static,
    F: FnOnce(&Server, Result<R, Failure>, &str, &mut Vec<u8>) -> Status + Send + 'static,
{
    /// Lets the function go on as a task, and answers with that.
    pub(super) async fn become_task(self) -> Finished {
        let Self { server, id, revision, context, limit, future, finish, .. } = self;
        let mut bytes = Vec::with_capacity(256);
        let begun = match context {
            Some(context) => begin(&server, context).await,
            None => Err(ProtocolError::internal("the call cannot go on as a task")),
        };
        match begun {
            Ok((place, context)) => {
                let frame = Frame { id: &id, revision };
                framed_as(r#""task""#, &mut bytes, frame, &server, None, |task| place.live.write_seed(task));
                let function = Function { place, context, revision, limit, future, finish };
                // a server that nobody holds any more ends with its tasks, so they must not hold it
                tokio::spawn(function.run(server.downgrade()));
            }
            Err(error) => error_reply(&mut bytes, Some(&id), &error),
        }
        Finished { bytes, status: Status::Ok }
    }
}

/// Makes room for a task; when this is done, clients can ask for it.
async fn begin(server: &Server, context: Context) -> Result<(Place, Context), ProtocolError> {
    let place = server.tasks().begin(owner(context.caller()))?;
    place.keep().await?;
    context.inner().asks.become_task(place.live.clone());
    Ok((place, context))
}

/// A function that goes on without its call.
struct Function<R, F> {
    place: Place,
    context: Context,
    revision: Revision,
    limit: Option<(Duration, String)>,
    future: Contained<R>,
    finish: F,
}

impl<R, F> Function<R, F>
where
    R: Send + 'static,
    F: FnOnce(&Server, Result<R, Failure>, &str, &mut Vec<u8>) -> Status + Send + 'static,
{
    async fn run(self, server: WeakServer) {
        let Self { place, context, revision, limit, future, finish } = self;
        let (live, cancel) = (&place.live, &context.inner().cancel);
        let function = async {
            let mut future = future;
            let result = {
                let body = async {
                    let _permit = match context.turn() {
                        Some(turn) => turn.acquire_owned().await.ok(),
                        None => None,
                    };
                    limited(&mut future, limit.as_ref(), cancel).await
                };
                let mut body = std::pin::pin!(body);
                let polled = std::future::poll_fn(|cx| {
                    let polled = body.as_mut().poll(cx);
                    live.polled();
                    polled
                });
                tokio::select! {
                    result = polled => Some(result),
                    () = live.given_up() => None,
                }
            };
            let ended = match (result, server.upgrade()) {
                (Some(result), Some(server)) => ended(&server, &context, revision, finish, result),
                _ => {
                    cancel.fire();
                    Ended::Cancelled
                }
            };
            drop(future);
            live.end(ended);
        };
        tokio::join!(function, place.keep_up());
    }
}

/// What the call would have been answered with.
fn ended<R>(
    server: &Server,
    context: &Context,
    revision: Revision,
    finish: impl FnOnce(&Server, Result<R, Failure>, &str, &mut Vec<u8>) -> Status,
    result: Result<R, Failure>,
) -> Ended {
    let mut reply = Vec::with_capacity(256);
    let frame = Frame { id: "0", revision };
    let end = End { server, frame, context: Some(context), subject: &Subject::NONE };
    end.settle(finish, result, &mut reply);
    let message = parse(&reply);
    match message.as_ref().ok().and_then(|message| message.response()) {
        Some(Ok(result)) => Ended::Completed(result.into()),
        Some(Err(error)) => Ended::Failed(error.into()),
        None => Ended::failed(&ProtocolError::internal("the reply could not be written")),
    }
}

/// What to do with the task that a request names.
enum Act {
    Show,
    Answer(Vec<(String, Box<str>)>),
    Cancel,
}

impl Server {
    pub(super) fn get_task(&self, request: Request<'_>) -> Result<Begun, Refusal> {
        self.act(&request, |_| Ok(Act::Show))
    }

    pub(super) fn update_task(&self, request: Request<'_>) -> Result<Begun, Refusal> {
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

    pub(super) fn cancel_task(&self, request: Request<'_>) -> Result<Begun, Refusal> {
        self.act(&request, |_| Ok(Act::Cancel))
    }

    /// Finds the task that a request names and acts on it.
    fn act(
        &self,
        request: &Request<'_>,
        what: impl FnOnce(&Request<'_>) -> Result<Act, ProtocolError>,
    ) -> Result<Begun, Refusal> {
        if !knows_tasks(&request.params.meta) {
            return Err(lacks_tasks());
        }
        let task = request.params.task_id.and_then(text_of);
        let task =
            task.ok_or_else(|| ProtocolError::invalid_params("`taskId` is missing, or not a string"))?;
        let act = what(request)?;
        let (server, id, revision): (_, Box<str>, _) = (self.clone(), request.id.into(), request.revision);
        let (task, owner) = (task.into_owned(), owner(request.peer.caller.as_deref()));
        let reply = async move {
            let mut bytes = Vec::with_capacity(256);
            let frame = Frame { id: &id, revision };
            let found = server.tasks().find(&task, owner.as_deref()).await;
            if let Err(error) = found.and_then(|found| server.acted(act, found, frame, &mut bytes)) {
                bytes.clear();
                error_reply(&mut bytes, Some(&id), &error);
            }
            Finished { bytes, status: Status::Ok }
        };
        Ok(Begun::Running(Running::new(request.id, reply, Cancel::default())))
    }

    fn acted(
        &self,
        act: Act,
        found: Option<Found>,
        frame: Frame<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ProtocolError> {
        let Some(found) = found else {
            return Err(ProtocolError::invalid_params(
                "there is no such task: `taskId` is wrong, or the task has expired",
            ));
        };
        match (act, found) {
            (Act::Show, Found::Here(live)) => {
                live.asked_for();
                framed(out, frame, self, None, |task| live.write(task));
                return Ok(());
            }
            (Act::Show, Found::Kept(record)) => {
                let task: BTreeMap<String, &RawValue> = serde_json::from_str(record.json())
                    .map_err(|_| ProtocolError::internal("the task that is kept cannot be read"))?;
                framed(out, frame, self, None, |object| {
                    for (key, value) in task {
                        object.any_key(&key).extend_from_slice(value.get().as_bytes());
                    }
                });
                return Ok(());
            }
            (Act::Answer(answers), Found::Here(live)) => {
                live.asked_for();
                live.answer(answers);
            }
            (Act::Cancel, Found::Here(live)) => live.stop(Ended::Cancelled),
            (Act::Answer(_) | Act::Cancel, Found::Kept(record)) if record.is_running() => {
                return Err(ProtocolError::internal(
                    "the task runs in another process\nroute requests by `Mcp-Name`, which repeats `taskId`",
                ));
            }
            // it has ended, so there is nothing to answer and nothing to cancel
            (Act::Answer(_) | Act::Cancel, Found::Kept(_)) => {}
        }
        framed(out, frame, self, None, |_| {});
        Ok(())
    }
}
