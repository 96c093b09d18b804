//! Answers POST of legacy revisions: `initialize`, requests with or without a session, responses, notifications and
//! batches.

use std::sync::{Arc, OnceLock};

use http::StatusCode;

use super::{
    Legacy,
    legacy_connection::{LegacyClient, SessionConnection},
    session_id::Session,
    sessions::Sessions,
};
use crate::{
    core::{
        connection::{ClientData, RequestContext},
        dispatch::{Batch, OpenRequests, Request, is_initialized, is_limited},
        jsonrpc::{self, JsonRpcMessage, MalformedMessage},
        protocol::{INVALID_PARAMS, Revision},
    },
    transport::http::{
        call_response::{
            HttpResponseFuture, StartedResponse, calls_response, reply_response, request_response,
        },
        endpoint::{Endpoint, PostRequest},
        headers::SESSION_ID,
        http_error::HttpError,
        response_body::{empty_response, error_response},
    },
};

/// The session and revision of a message.
struct MessageOrigin<'s> {
    /// Absent in stateless mode.
    session: Option<(&'s Arc<Sessions>, Arc<Session>)>,
    revision: Revision,
}

impl<'s> MessageOrigin<'s> {
    fn open_requests(&self) -> Option<OpenRequests<'s>> {
        self.session.as_ref().map(|(sessions, session)| sessions.open_requests(session.uid))
    }

    /// Records that a client has sent `notifications/initialized`.
    fn mark_initialized(&self) {
        if let Some((sessions, session)) = &self.session {
            sessions.records.mark_initialized(session);
        }
    }

    /// Whether the session has ended while the requests of a message were started.
    fn has_ended_meanwhile(&self) -> bool {
        self.session.as_ref().is_some_and(|(sessions, session)| sessions.has_ended_meanwhile(session))
    }
}

impl Legacy {
    /// Serves one message as far as possible without waiting.
    pub(in crate::transport::http) fn start(
        &self,
        endpoint: &Arc<Endpoint>,
        message: &JsonRpcMessage<'_>,
        post: PostRequest<'_>,
    ) -> StartedResponse {
        // the id of a response belongs to a request of the server, so errors do not repeat it
        let id = message.id().filter(|_| !message.is_response());
        match self.start_message(endpoint, message, post) {
            Ok(started) => started,
            Err(error) => error.into_response(id).into(),
        }
    }

    fn start_message(
        &self,
        endpoint: &Arc<Endpoint>,
        message: &JsonRpcMessage<'_>,
        post: PostRequest<'_>,
    ) -> Result<StartedResponse, HttpError> {
        post.headers.refuse_repeated()?;
        if message.method() == Some("initialize")
            && let Some(id) = message.id()
        {
            self.check_named_session(&post)?;
            return self.initialize(endpoint, message, id, &post);
        }
        let origin = self.origin(&post)?;
        let clients = origin.open_requests();
        if message.is_response() {
            return match clients.is_some_and(|clients| clients.deliver_response(message)) {
                true => Ok(empty_response(StatusCode::ACCEPTED).into()),
                false => Err(HttpError::unexpected_response()),
            };
        }
        let (client, context) = context(endpoint, &origin, &post);
        let Some(request) = Request::from_message(message, origin.revision, &context) else {
            if let Some(clients) = clients {
                let _queued = clients.handle_notification(message);
            }
            if is_initialized(message) {
                origin.mark_initialized();
            }
            return Ok(empty_response(StatusCode::ACCEPTED).into());
        };
        let PostRequest { connection, permit, .. } = post;
        connection.check_acceptable()?;
        let permit = match permit.into_request_permit(&endpoint.budgets, connection) {
            Err(_) if !is_limited(request.method) => None,
            permit => Some(permit?),
        };
        let started = endpoint.server.start_request(request, clients, &mut Vec::new());
        if origin.has_ended_meanwhile() {
            return Err(HttpError::unknown_session());
        }
        let id = (request.id, origin.revision);
        Ok(request_response(endpoint, connection, id, started, permit, Some(client)))
    }

    /// The session of a message, unless the server is stateless, and its revision.
    fn origin(&self, post: &PostRequest<'_>) -> Result<MessageOrigin<'_>, HttpError> {
        let PostRequest { headers, caller, .. } = post;
        match &self.sessions {
            Some(sessions) => {
                let session = sessions.find(headers, caller.as_deref())?;
                let revision = session.revision;
                Ok(MessageOrigin { session: Some((sessions, session)), revision })
            }
            // the header did not exist before 2025-06-18
            None => {
                let revision = headers.legacy_revision().unwrap_or(Revision::V2025_03_26);
                Ok(MessageOrigin { session: None, revision })
            }
        }
    }

    /// Checks the session of a message that needs none, if it names one: a client that names one which has ended must be
    /// told so, whatever it sends.
    ///
    /// # Errors
    /// The session has ended, or never began.
    fn check_named_session(&self, post: &PostRequest<'_>) -> Result<(), HttpError> {
        match &self.sessions {
            Some(sessions) if post.headers.session.first().is_some() => {
                sessions.peek(post.headers, post.caller.as_deref()).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn initialize(
        &self,
        endpoint: &Endpoint,
        message: &JsonRpcMessage<'_>,
        id: &str,
        PostRequest { connection, caller, .. }: &PostRequest<'_>,
    ) -> Result<StartedResponse, HttpError> {
        connection.check_acceptable()?;
        let (reply, handshake) =
            endpoint.server.initialize(message.params(), self.sessions.is_some(), None, Some(&***connection));
        let mut response = reply_response(&endpoint.server, connection, id, Revision::LATEST_LEGACY, &reply);
        if let (Some(handshake), Some(sessions)) = (handshake, &self.sessions) {
            match sessions.start(&handshake, caller.as_deref(), &connection.owner()) {
                Ok(session) => drop(response.headers_mut().insert(SESSION_ID, session)),
                Err(error) => {
                    response = error_response(StatusCode::INTERNAL_SERVER_ERROR, Some(id), &error);
                }
            }
        }
        Ok(response.into())
    }

    /// Serves a text that is not a single message; in 2025-03-26 it may be a batch.
    pub(in crate::transport::http) fn start_batch_or_error(
        &self,
        endpoint: &Arc<Endpoint>,
        text: &[u8],
        malformed: &MalformedMessage,
        post: PostRequest<'_>,
    ) -> StartedResponse {
        match self.start_if_batch(endpoint, text, post) {
            Ok(Some(started)) => return started,
            Ok(None) => {}
            Err(error) => return error.into_response(malformed.id.as_deref()).into(),
        }
        // clients of legacy revisions expect the error of a request with status 200
        let is_request = malformed.id.is_some() && malformed.error.code == INVALID_PARAMS;
        let status = if is_request { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        error_response(status, malformed.id.as_deref(), &malformed.error).into()
    }

    /// Serves a batch; `None` if the text is none, or one of another revision.
    fn start_if_batch(
        &self,
        endpoint: &Arc<Endpoint>,
        text: &[u8],
        post: PostRequest<'_>,
    ) -> Result<Option<StartedResponse>, HttpError> {
        post.headers.refuse_repeated()?;
        self.check_named_session(&post)?;
        let Some(messages) = jsonrpc::parse_batch(text) else { return Ok(None) };
        let origin = self.origin(&post)?;
        if origin.revision != Revision::V2025_03_26 {
            return Ok(None);
        }
        let messages = Batch::parse(&messages);
        if let Err(error) = messages.check() {
            return Ok(Some(error_response(StatusCode::BAD_REQUEST, None, &error).into()));
        }
        if messages.expects_replies() {
            post.connection.check_acceptable()?;
        }
        let (client, context) = context(endpoint, &origin, &post);
        let PostRequest { connection, permit, .. } = post;
        // the first request takes the permit of the message
        let permits = match messages.limited_requests() {
            0 => Ok(Vec::new()),
            count => permit.into_request_permit(&endpoint.budgets, connection).and_then(|mut first| {
                let owner = connection.owner();
                let mut permits = endpoint.budgets.admit_more(count - 1, &owner)?;
                first.charge(&owner);
                permits.push(first);
                Ok(permits)
            }),
        };
        if messages.contains_initialized() {
            origin.mark_initialized();
        }
        let server = &endpoint.server;
        let open = origin.open_requests();
        let started = permits
            .map(|permits| server.start_batch(&messages, &context, open, &mut Vec::new(), Ok(permits)));
        let are_expected = deliver(&messages, open);
        let started = started?;
        if origin.has_ended_meanwhile() {
            return Err(HttpError::unknown_session());
        }
        let mut calls = started.calls;
        let response = match started.unreadable {
            _ if calls.is_running() => {
                let response = HttpResponseFuture::new(endpoint, calls, connection, Some(client));
                return Ok(Some(StartedResponse::Pending(response)));
            }
            _ if !calls.is_empty() => calls_response(server, &mut calls, connection),
            Some(error) => error_response(StatusCode::BAD_REQUEST, None, &error),
            None if !are_expected => return Err(HttpError::unexpected_response()),
            None => empty_response(StatusCode::ACCEPTED),
        };
        Ok(Some(response.into()))
    }
}

/// Hands on the responses and notifications of a batch; whether every response was expected.
fn deliver(messages: &Batch<'_>, open: Option<OpenRequests<'_>>) -> bool {
    let mut are_expected = true;
    for message in messages.responses_and_notifications() {
        if message.is_response() {
            are_expected &= open.is_some_and(|open| open.deliver_response(message));
        } else if let Some(open) = open {
            let _queued = open.handle_notification(message);
        }
    }
    are_expected
}

/// The client of a message, and the context of its requests.
fn context(
    endpoint: &Endpoint,
    origin: &MessageOrigin<'_>,
    post: &PostRequest<'_>,
) -> (LegacyClient, RequestContext) {
    let request = post.connection;
    let Some((sessions, session)) = &origin.session else {
        let context = endpoint.context(request, request.clone(), post.caller.clone(), ClientData::default());
        return (LegacyClient(None), context);
    };
    let client = Arc::new(SessionConnection {
        request: request.clone(),
        sessions: Arc::clone(sessions),
        session: session.clone(),
        shutdown: endpoint.shutdown.clone(),
        stream: OnceLock::new(),
    });
    let context = endpoint.context(request, client.clone(), post.caller.clone(), session.client.clone());
    (LegacyClient(Some(client)), context)
}
