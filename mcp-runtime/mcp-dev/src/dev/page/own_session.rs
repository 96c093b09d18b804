//! The page as a client: a session of its own beside those of clients, with a process of its own, made when the page first
//! needs it. What the server asks in it is answered on the page.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use mcp_runtime::{
    client::{Client, ClientBuilder, ElicitAnswer, SampleAnswer},
    testing::Contract,
};
use serde_json::{Value, json};
use tokio::{
    io::{BufReader, DuplexStream},
    sync::{Mutex as AsyncMutex, Semaphore, mpsc, oneshot},
    time::timeout,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::{
    author::OwnRequest,
    child::{QUEUE, read_lines, write_lines},
    known_tools::KnownTools,
    launch::Launcher,
    session::{LIST_WAIT, Pipe, Session},
    trace::Trace,
};
use crate::{call::fetch_schema_and_missing, examine::examine, server::StrayLines};

/// The name of its session in the log.
const NAME: &str = "page";
/// Bytes of the pipe between the page and its session, in each direction.
const PIPE: usize = 64 << 10;
/// Requests of the page at the same time.
const MAX_REQUESTS: usize = 16;
/// Questions that wait for their answers.
const MAX_QUESTIONS: usize = 16;
const ANSWER: Duration = Duration::from_secs(600);
const REQUEST: Duration = Duration::from_secs(600);
/// How long the process of a client may take to answer a request about a task.
const OTHERS: Duration = Duration::from_secs(30);
/// How long a request waits for the first build.
const BUILD: Duration = Duration::from_secs(5);

pub(super) struct OwnSession {
    launcher: Launcher,
    trace: Trace,
    tools: KnownTools,
    /// Takes requests for the session of the client.
    others: mpsc::Sender<OwnRequest>,
    questions: Questions,
    permits: Semaphore,
    connected: AsyncMutex<Option<Connected>>,
    /// The contract that was seen last.
    seen: Mutex<Option<Contract>>,
}

struct Connected {
    client: Client,
    /// Stray lines of the process of this session.
    lines: StrayLines,
    /// The generation of the program at its handshake.
    generation: u64,
    _end: DropGuard,
}

impl OwnSession {
    pub(super) fn new(
        launcher: Launcher,
        trace: Trace,
        tools: KnownTools,
        others: mpsc::Sender<OwnRequest>,
    ) -> Self {
        let questions = Questions { trace: trace.clone(), waiting: Arc::default() };
        let (permits, connected) = (Semaphore::new(MAX_REQUESTS), AsyncMutex::new(None));
        Self { launcher, trace, tools, others, questions, permits, connected, seen: Mutex::new(None) }
    }

    /// # Errors
    /// No server runs, or it does not answer.
    async fn client(&self) -> Result<Client, String> {
        Ok(self.client_and_lines().await?.0)
    }

    /// The same, with the lines of the server's output that are not messages.
    ///
    /// # Errors
    /// No server runs, or it does not answer.
    async fn client_and_lines(&self) -> Result<(Client, StrayLines), String> {
        let mut connected = self.connected.lock().await;
        let is_current = |known: &&Connected| known.generation == self.launcher.generation();
        if let Some(known) = connected.as_ref().filter(is_current) {
            return Ok((known.client.clone(), known.lines.clone()));
        }
        self.wait_for_program().await?;
        let generation = self.launcher.generation();
        // one of a program that was replaced knows what that one could do
        if let Some(old) = connected.take() {
            old.client.close().await;
        }
        let token = CancellationToken::new();
        let end = token.clone().drop_guard();
        let lines = StrayLines::default();
        let stray = lines.clone();
        let builder = self.builder().__on_stray_line(move |line| stray.add(&line));
        let client = builder.connect(self.start_session(token)).await.map_err(|error| error.to_string())?;
        *connected = Some(Connected { client: client.clone(), lines: lines.clone(), generation, _end: end });
        Ok((client, lines))
    }

    /// Starts a session of the loop; returns its pipe.
    fn start_session(&self, token: CancellationToken) -> (DuplexStream, DuplexStream) {
        let (own, other) = (tokio::io::duplex(PIPE), tokio::io::duplex(PIPE));
        let (lines, from) = mpsc::channel(QUEUE);
        let (to, answers) = mpsc::channel(QUEUE);
        tokio::spawn(read_lines(BufReader::new(own.1), lines, "the page", token.clone().cancelled_owned()));
        tokio::spawn(write_lines(other.0, answers));
        let pipe = Pipe { from, to };
        let session = Session::new(
            NAME.to_owned(),
            self.launcher.clone(),
            self.trace.clone(),
            self.tools.clone(),
            false,
            LIST_WAIT,
            pipe,
        );
        tokio::spawn(session.run(token));
        (other.1, own.0)
    }

    /// A client that asks on the page what the server asks.
    fn builder(&self) -> ClientBuilder {
        let (form, url, sample) = (self.questions.clone(), self.questions.clone(), self.questions.clone());
        Client::builder()
            .info("mcp-dev", env!("CARGO_PKG_VERSION"))
            .request_timeout(REQUEST)
            .on_elicit(move |request| {
                let form = form.clone();
                async move {
                    form.elicit(
                        json!({ "kind": "form", "message": request.message, "schema": request.schema }),
                    )
                    .await
                }
            })
            .on_elicit_url(move |request| {
                let url = url.clone();
                async move {
                    url.elicit(json!({ "kind": "url", "message": request.message, "url": request.url })).await
                }
            })
            .on_sample(move |request| {
                let sample = sample.clone();
                async move { sample.sample(request.params).await }
            })
    }

    /// # Errors
    /// The build fails, or goes on: the page is told when it ends.
    async fn wait_for_program(&self) -> Result<(), String> {
        let mut launcher = self.launcher.clone();
        let built = async {
            while !launcher.is_ready() {
                if let Some(failure) = launcher.failure() {
                    return Err(failure);
                }
                launcher.changed().await;
            }
            Ok(())
        };
        timeout(BUILD, built).await.unwrap_or_else(|_| Err("the server is not built yet".to_owned()))
    }

    /// Every list of the server, and what the doctor says about it. Differences from the last time are an event.
    ///
    /// # Errors
    /// No server runs, or it does not answer.
    pub(super) async fn describe(&self) -> Result<Value, String> {
        let (client, lines) = self.client_and_lines().await?;
        let (schema, missing) = fetch_schema_and_missing(&client).await.map_err(|error| error.to_string())?;
        let newer = Contract::of_lists(&schema);
        let older = self.seen.lock().unwrap_or_else(PoisonError::into_inner).replace(newer.clone());
        if let Some(changes) =
            older.map(|older| older.compare(&newer)).filter(|changes| changes.class().is_some())
        {
            self.trace.event("changes", json!({ "text": changes.to_string() }));
        }
        let revision = client.revision();
        let mut examination = examine(&schema, revision, None);
        examination.add_conduct(&missing, lines.seen());
        let revision = revision.map(|revision| revision.to_string());
        Ok(json!({ "server": schema, "doctor": examination.to_json(), "revision": revision }))
    }

    /// Sends what the page asks for. A request that the server refuses is an answer, too.
    ///
    /// # Errors
    /// No server runs, or the request is none.
    pub(super) async fn send(&self, request: &Value) -> Result<Value, String> {
        let _permit =
            self.permits.try_acquire().map_err(|_| "too many requests: wait for their answers".to_owned())?;
        let (method, params) = (request["method"].as_str().unwrap_or_default(), &request["params"]);
        let is_of_task = matches!(method, "tasks/get" | "tasks/update" | "tasks/cancel");
        if is_of_task && request["session"] != NAME {
            return send_to(&self.others, method, params).await;
        }
        let client = self.client().await?;
        let since = Instant::now();
        let result = match method {
            "tools/call" => {
                let trace = self.trace.clone();
                let id = request["id"].clone();
                let name = params["name"].as_str().unwrap_or_default();
                let call = client.call(name, params["arguments"].clone()).progress_extends_timeout();
                let call = call.on_progress(move |update| {
                    let (progress, total, message) = (update.progress, update.total, update.message);
                    trace.event(
                        "progress",
                        json!({ "request": id, "progress": progress, "total": total, "message": message }),
                    );
                });
                call.await.map(crate::call::to_value)
            }
            "resources/read" | "prompts/get" | "completion/complete" => {
                client.send(method, params.clone()).await
            }
            _ if is_of_task => client.send(method, params.clone()).await,
            _ => return Err("the page does not send such a request".to_owned()),
        };
        let ms = since.elapsed().as_secs_f64() * 1000.0;
        Ok(match result {
            Ok(result) => json!({ "result": result, "ms": ms }),
            Err(error) => {
                json!({ "error": { "code": error.code(), "message": error.to_string() }, "ms": ms })
            }
        })
    }

    /// Answers a question; `false` if it is not waiting.
    pub(super) fn answer(&self, question: u64, answer: Value) -> bool {
        let mut waiting = self.questions.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = waiting.open.remove(&question);
        drop(waiting);
        sender.is_some_and(|sender| sender.send(answer).is_ok())
    }

    /// Ends the session and its process; the next use makes another.
    pub(super) async fn close(&self) {
        let connected = self.connected.lock().await.take();
        if let Some(connected) = connected {
            connected.client.close().await;
        }
    }
}

/// Sends a request in the session of the client, where its tasks are.
///
/// # Errors
/// No process answers.
async fn send_to(client: &mpsc::Sender<OwnRequest>, method: &str, params: &Value) -> Result<Value, String> {
    let since = Instant::now();
    let (response, answer) = oneshot::channel();
    let request = OwnRequest { method: method.to_owned(), params: params.clone(), response };
    let sent = async { client.send(request).await.ok() };
    let answered = async {
        sent.await?;
        answer.await.ok()
    };
    let message = timeout(OTHERS, answered).await.ok().flatten();
    let mut message = message.ok_or("the server of this client does not run, or does not answer")?;
    let mut own = json!({ "ms": since.elapsed().as_secs_f64() * 1000.0 });
    for member in ["result", "error"] {
        if let Some(value) = message.get_mut(member) {
            own[member] = value.take();
        }
    }
    Ok(own)
}

/// What the server asks the page.
#[derive(Clone)]
struct Questions {
    trace: Trace,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    count: u64,
    open: BTreeMap<u64, oneshot::Sender<Value>>,
}

impl Questions {
    async fn elicit(&self, question: Value) -> ElicitAnswer {
        let answer = self.ask(question).await.unwrap_or_default();
        match answer["action"].as_str() {
            Some("accept") => ElicitAnswer::Accept(answer["content"].clone()),
            Some("decline") => ElicitAnswer::Decline,
            _ => ElicitAnswer::Cancel,
        }
    }

    async fn sample(&self, params: Value) -> Result<SampleAnswer, String> {
        let answer = self.ask(json!({ "kind": "sample", "params": params })).await.unwrap_or_default();
        match answer["content"].as_str() {
            Some(text) => Ok(SampleAnswer::text("author", text)),
            None => Err("the author has declined".to_owned()),
        }
    }

    /// Shows a question, and waits for the answer; `None` if there is none.
    async fn ask(&self, mut question: Value) -> Option<Value> {
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.open.len() >= MAX_QUESTIONS {
                return None;
            }
            waiting.count += 1;
            let id = waiting.count;
            waiting.open.insert(id, sender);
            id
        };
        let _end = Question { questions: self, id };
        question["question"] = id.into();
        self.trace.event("question", question);
        timeout(ANSWER, receiver).await.ok()?.ok()
    }
}

/// A question that is shown, until this is dropped.
struct Question<'q> {
    questions: &'q Questions,
    id: u64,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.questions.waiting.lock().unwrap_or_else(PoisonError::into_inner).open.remove(&self.id);
        self.questions.trace.event("answered", json!({ "question": self.id }));
    }
}
