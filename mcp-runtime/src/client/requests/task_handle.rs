//! Calls that the server goes on with as tasks: polled as often as it asks for, its requests answered, and their result
//! that of the call.

use std::{collections::HashSet, fmt, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use tokio::{sync::Notify, time::sleep};

use super::result_types::parse;
use crate::client::{
    CallResult, Error,
    connect::shared_client::{CallOptions, SharedClient, params},
    exchange::RequestParams,
    large_text::parse_text,
    link::parse_error,
    operation::{Operation, OperationKind},
    receive::inbox::ProgressRegistration,
};

const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(1);
const SHORTEST_POLL_INTERVAL: Duration = Duration::from_millis(10);
const LONGEST_POLL_INTERVAL: Duration = Duration::from_secs(60);
/// The longest id of a task, which headers repeat.
const MAX_TASK_ID: usize = 4096;

/// How a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskProgress {
    /// `working`, `input_required`, `completed`, `failed` or `cancelled`.
    pub status: String,
    /// `statusMessage` on the wire.
    pub message: Option<String>,
}

/// A call that runs on the server as a task. Dropping it cancels the task, unless it has ended.
pub struct RunningToolTask {
    shared: Arc<SharedClient>,
    tool: String,
    id: String,
    poll: Duration,
    /// A task of 2025-11-25, whose result is fetched by a separate method.
    is_legacy: bool,
    cancels: bool,
    /// The options of the call that drives it.
    options: CallOptions,
    /// Receives the progress of the call, which is the task's as well.
    progress: Option<Arc<ProgressRegistration>>,
}

impl fmt::Debug for RunningToolTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningToolTask").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A task in any result; members differ between revisions.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireTask<'a> {
    task_id: Option<String>,
    status: Option<String>,
    status_message: Option<String>,
    poll_interval_ms: Option<f64>,
    /// 2025-11-25
    poll_interval: Option<f64>,
    input_requests: Option<Map<String, Value>>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl WireTask<'_> {
    fn poll(&self) -> Option<Duration> {
        let millis = self.poll_interval_ms.or(self.poll_interval)?;
        let poll = Duration::from_millis(millis.clamp(0.0, 1e9) as u64);
        Some(poll.clamp(SHORTEST_POLL_INTERVAL, LONGEST_POLL_INTERVAL))
    }
}

/// The task in the result of `tools/call`, if it is one; `is_task` if the result says so.
///
/// # Errors
/// It is a task without an id.
pub(in crate::client) fn created_task(
    shared: &Arc<SharedClient>,
    tool: &str,
    json: &str,
    is_task: bool,
    options: &CallOptions,
) -> Result<Option<RunningToolTask>, Error> {
    #[derive(Deserialize)]
    struct Created<'a> {
        #[serde(borrow)]
        task: Option<&'a RawValue>,
    }
    let of_legacy = serde_json::from_str::<Created<'_>>(json).ok().and_then(|created| created.task);
    let task = serde_json::from_str::<WireTask<'_>>(of_legacy.map_or(json, RawValue::get)).ok();
    let progress = options.progress.clone();
    if let (Some(progress), Some(message)) =
        (&progress, task.as_ref().and_then(|t| t.status_message.as_deref()))
    {
        progress.report(message);
    }
    let task = task.and_then(|task| Some((task.poll(), task.task_id?)));
    match task {
        Some((_, id)) if id.len() > MAX_TASK_ID => {
            Err(Error::invalid(format!("the id of a task has more than {MAX_TASK_ID} bytes")))
        }
        Some((poll, id)) => Ok(Some(RunningToolTask {
            shared: shared.clone(),
            tool: tool.to_owned(),
            poll: poll.unwrap_or(DEFAULT_POLL_INTERVAL),
            id,
            is_legacy: of_legacy.is_some(),
            cancels: true,
            options: options.of_same_call(),
            progress,
        })),
        None if is_task || of_legacy.is_some() => {
            Err(Error::invalid("the result of `tools/call` is a task without an id"))
        }
        None => Ok(None),
    }
}

impl RunningToolTask {
    /// `taskId` on the wire: another client of the same server can go on with it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The same task in the hands of the program, whose further requests are not a part of the call that began it.
    pub(super) fn outlives_call(mut self) -> Self {
        self.options.operation = None;
        self
    }

    /// Sets how long [`result`](Self::result) may take; the [client's limit](crate::client::ClientBuilder::timeout) by
    /// default. Then the task is cancelled.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.options.timeout = Some(limit);
        self
    }

    /// How the task stands.
    ///
    /// # Errors
    /// The server does not say, or does not know the task any more.
    pub async fn status(&self) -> Result<TaskProgress, Error> {
        let json = self.send("tasks/get", Map::new()).await?;
        let task: WireTask<'_> = parse(&json, "tasks/get")?;
        Ok(TaskProgress { status: task.status.unwrap_or_default(), message: task.status_message })
    }

    /// Waits for the end of the task, and answers the server's requests meanwhile.
    ///
    /// # Errors
    /// The task failed or was cancelled, or the server cannot be asked.
    pub async fn result(mut self) -> Result<CallResult, Error> {
        if self.options.operation.is_none() {
            let operation = Operation::new(OperationKind::Call, self.options.timeout, &self.shared.options);
            self.options.operation = Some(operation.clone());
            return operation.run(self.parsed()).await;
        }
        self.parsed().await
    }

    async fn parsed(self) -> Result<CallResult, Error> {
        let output_schema = self.shared.tools.output_schema(&self.tool).await;
        parse_text(self.result_json().await?, move |json| CallResult::parse(json, output_schema)).await
    }

    /// Drives the task, as a part of the call that began it, to the JSON of its result.
    pub(super) async fn result_json(mut self) -> Result<String, Error> {
        let result = self.drive().await;
        // a task that has ended cannot be cancelled; one that cannot be asked for may still run
        self.cancels = result.is_err() && !matches!(result, Err(Error::Protocol { .. } | Error::Cancelled));
        result
    }

    /// Lets the task run on without this client; its id.
    #[must_use]
    pub fn detach(mut self) -> String {
        self.cancels = false;
        self.id.clone()
    }

    /// Asks the server to cancel the task.
    ///
    /// # Errors
    /// The server does not accept it.
    pub async fn cancel(mut self) -> Result<(), Error> {
        self.cancels = false;
        self.send("tasks/cancel", Map::new()).await.map(drop)
    }

    async fn send(&self, method: &str, mut members: Map<String, Value>) -> Result<String, Error> {
        members.insert("taskId".to_owned(), self.id.clone().into());
        let options = self.options.of_same_call();
        Ok(self.shared.request(method, RequestParams::from(members), &options).await?.json)
    }

    async fn drive(&self) -> Result<String, Error> {
        let changed = Arc::new(Notify::new());
        let _registered = self.shared.inbox.expect_task(&self.id, changed.clone());
        let mut poll = self.poll;
        // servers list a question until its answer has reached the task
        let mut answered = HashSet::new();
        loop {
            let json = self.send("tasks/get", Map::new()).await?;
            let task: WireTask<'_> = parse(&json, "tasks/get")?;
            poll = task.poll().unwrap_or(poll);
            if let (Some(progress), Some(message), Some("working" | "input_required")) =
                (&self.progress, &task.status_message, task.status.as_deref())
            {
                progress.report(message);
            }
            match task.status.as_deref() {
                // of 2025-11-25, whose requests for input come with the result
                Some("completed" | "failed" | "input_required") if self.is_legacy => {
                    return self.send("tasks/result", Map::new()).await;
                }
                Some("completed") => {
                    let result =
                        task.result.ok_or_else(|| Error::invalid("a completed task has no result"))?;
                    return Ok(result.get().to_owned());
                }
                Some("failed") => {
                    return Err(match task.error {
                        Some(error) => parse_error(error.get()),
                        None => Error::invalid("a failed task has no error"),
                    });
                }
                Some("cancelled") => return Err(Error::Cancelled),
                Some("input_required") => {
                    let mut asked = task.input_requests.unwrap_or_default();
                    asked.retain(|key, _| !answered.contains(key));
                    answered.extend(asked.keys().cloned());
                    let answers = self.shared.answer_all(&asked, &self.options).await?;
                    if !answers.is_empty() {
                        let members = Map::from_iter([("inputResponses".to_owned(), Value::Object(answers))]);
                        self.send("tasks/update", members).await?;
                    }
                }
                Some("working") => {}
                other => {
                    return Err(Error::invalid(format!("a task has the status `{}`", other.unwrap_or(""))));
                }
            }
            tokio::select! {
                () = sleep(poll) => {}
                // at most as often as the shortest interval, however many notifications there are
                () = async {
                    changed.notified().await;
                    sleep(SHORTEST_POLL_INTERVAL).await;
                } => {}
            }
        }
    }
}

impl Drop for RunningToolTask {
    fn drop(&mut self) {
        if !self.cancels {
            return;
        }
        let (shared, id) = (self.shared.clone(), self.id.clone());
        self.shared.cleanup.clone().spawn(async move {
            // the server may have ended it
            let _ended = shared
                .request("tasks/cancel", params(json!({ "taskId": id })), &CallOptions::in_background())
                .await;
        });
    }
}
