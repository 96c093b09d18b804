//! Requests that the server answers with further requests: the program's functions answer those, and the
//! request is sent again with the answers, a limited number of times.
//!
//! See [multi round-trip requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    client::{
        Error,
        connect::shared_client::{CallOptions, SharedClient},
        exchange::{InputRounds, RequestParams, RoundOutcome},
        large_text::run_by_size,
        receive::handlers::UrlRequest,
    },
    core::{
        client_request::Answer,
        protocol::{INVALID_PARAMS, Method, URL_ELICITATION_REQUIRED},
    },
};

/// The protocol's methods whose results may be requests for input.
const TAKE_INPUT: [&str; 3] = ["tools/call", "resources/read", "prompts/get"];

/// How often one request may lead the user to URLs.
const MAX_VISITS: u32 = 16;
/// How long a user may take at a URL.
const VISIT_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// The pause before a request is repeated without new answers, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The result of a request that needs no more input.
pub(in crate::client) struct CompleteReply {
    /// The raw JSON.
    pub(in crate::client) json: String,
    /// Whether there was more than one round, so that the result must not be kept.
    pub(super) has_repeated: bool,
    /// Whether it is a task, which goes on.
    pub(super) is_task: bool,
}

impl SharedClient {
    /// Sends a request, and answers what the server asks for until it is complete.
    pub(in crate::client) async fn request(
        &self,
        method: &str,
        params: RequestParams,
        options: &CallOptions,
    ) -> Result<CompleteReply, Error> {
        let mut rounds = InputRounds::new(params);
        let mut visits = 0;
        let mut pause = FIRST_PAUSE;
        loop {
            let json = match self.send_in_span(method, rounds.params(), options).await {
                Err(Error::Protocol { code: URL_ELICITATION_REQUIRED, message, data })
                    if self.inbox.handlers.elicit_url.is_some() && visits < MAX_VISITS =>
                {
                    visits += 1;
                    let required = Error::Protocol { code: URL_ELICITATION_REQUIRED, message, data };
                    Box::pin(self.visit(required, options)).await?;
                    continue;
                }
                reply => reply?,
            };
            let bytes = json.len();
            let (outcome, json) = run_by_size(bytes, move || RoundOutcome::take(json)).await?;
            let invalid = |what: &str| Error::invalid(format!("the result of `{method}`: {what}"));
            match outcome.map_err(|what| invalid(&what))? {
                RoundOutcome::Task if method != "tools/call" => return Err(invalid("it is a `task`")),
                RoundOutcome::Input(_)
                    if Method::of_name(method).is_some() && !TAKE_INPUT.contains(&method) =>
                {
                    return Err(invalid("it is `input_required`"));
                }
                outcome @ (RoundOutcome::Complete | RoundOutcome::Task) => {
                    let is_task = matches!(outcome, RoundOutcome::Task);
                    return Ok(CompleteReply { json, has_repeated: rounds.round > 0, is_task });
                }
                RoundOutcome::Input(required) => {
                    let requests = rounds.next(required).map_err(|what| invalid(&what))?;
                    if requests.is_empty() {
                        sleep(pause).await;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                    } else {
                        rounds.answer(Box::pin(self.answer_all(&requests, options)).await?);
                    }
                }
            }
        }
    }

    /// Answers requests of the server, all at once.
    ///
    /// # Errors
    /// They are too many, or a function of the program failed.
    pub(in crate::client) async fn answer_all(
        &self,
        requests: &Map<String, Value>,
        options: &CallOptions,
    ) -> Result<Map<String, Value>, Error> {
        self.admit_questions(requests.len(), options)?;
        for request in requests.values() {
            self.inbox.admit(request.get("method").and_then(Value::as_str).unwrap_or_default())?;
        }
        let mut pending = JoinSet::new();
        for (key, request) in requests {
            let (inbox, key, request) = (self.inbox.clone(), key.clone(), request.clone());
            let method = request.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
            let params = request.get("params").cloned().unwrap_or_else(|| json!({}));
            pending.spawn(async move {
                let answer = inbox.handlers.answer(&method, &params).await;
                (key, method, answer)
            });
        }
        let mut answers = Map::new();
        while let Some(joined) = pending.join_next().await {
            let (key, method, answer) = joined.map_err(|error| Error::Handler {
                method: "an input request".to_owned(),
                message: error.to_string(),
            })?;
            let answer = match answer {
                Some(Ok(answer)) => answer,
                Some(Err(error)) if method != "elicitation/create" || error.code != INVALID_PARAMS => {
                    return Err(Error::Handler { method, message: error.message });
                }
                // a kind that this client does not know, or did not declare
                Some(Err(_)) | None => json!({ "action": "decline" }),
            };
            answers.insert(key, answer);
        }
        Ok(answers)
    }

    /// Counts questions of one result.
    fn admit_questions(&self, questions: usize, options: &CallOptions) -> Result<(), Error> {
        let limit = self.options.limits.input_requests;
        if questions > limit {
            let what = format!("a result has {questions} requests for input, of which {limit} are answered");
            return Err(Error::TooMany { what, option: "input_requests" });
        }
        options.operation.as_ref().map_or(Ok(()), |operation| operation.charge_questions(questions))
    }

    /// Shows the URLs that a legacy server requires the user to visit, and waits until it reports that they were.
    async fn visit(&self, error: Error, options: &CallOptions) -> Result<(), Error> {
        let (Error::Protocol { data: Some(data), .. }, Some(handler)) =
            (&error, self.inbox.handlers.elicit_url.clone())
        else {
            return Err(error);
        };
        let required = data.get("elicitations").and_then(Value::as_array).cloned().unwrap_or_default();
        if required.is_empty() {
            return Err(error);
        }
        self.admit_questions(required.len(), options)?;
        for elicitation in &required {
            let text = |key: &str| elicitation.get(key).and_then(Value::as_str).map(str::to_owned);
            let id = text("elicitationId");
            let request = UrlRequest {
                message: text("message").unwrap_or_default(),
                url: text("url").unwrap_or_default(),
                id: id.clone(),
            };
            self.inbox.admit("elicitation/create")?;
            if !matches!(handler(request).await, Answer::Accept(_)) {
                return Err(error);
            }
            if let Some(id) = id {
                timeout(VISIT_TIMEOUT, self.inbox.elicitation_completed(&id))
                    .await
                    .map_err(|_| Error::Timeout { after: VISIT_TIMEOUT, option: None })?;
            }
        }
        Ok(())
    }
}
