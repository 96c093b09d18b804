//! Answers POST of legacy revisions: `initialize`, requests with or without a session, responses, notifications and
//! batches.

use std::sync::{Arc, OnceLock};

use http::{HeaderValue, StatusCode};
use serde_json::value::RawValue;

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
        jsonrpc::{self, JsonRpcMessage, MalformedMessage, ProtocolError},
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
        let headers = post.headers;
        // the id of a response belongs to a request of the server, so errors do not repeat it
        let id = message.id().filter(|_| !message.is_response());
        if let Err(name) = headers.check_repeated() {
            return headers.repeated_error(name).into_response(id).into();
        }
        if message.method() == Some("initialize") && message.id().is_some() {
            return match self.check_named_session(&post) {
                Ok(()) => self.initialize(endpoint, message, &post),
                Err(error) => error.into_response(id).into(),
            };
        }
        let origin = match self.origin(&post) {
            Ok(origin) => origin,
            Err(error) => return error.into_response(id).into(),
        };
        let clients = origin.open_requests();
        if message.is_response() {
            return match clients.is_some_and(|clients| clients.deliver_response(message)) {
                true => empty_response(StatusCode::ACCEPTED).into(),
                false => HttpError::unexpected_response().into(),
            };
        }
        let (client, context) = context(endpoint, &origin, &post);
        let Some(request) = Request::from_message(message, origin.revision, &context) else {
            if let Some(clients) = clients {
                clients.handle_notification(message);
            }
            if is_initialized(message) {
                origin.mark_initialized();
            }
            return empty_response(StatusCode::ACCEPTED).into();
        };
        let PostRequest { connection, permit, .. } = post;
        let accepts = connection.accepts();
        if !accepts.json && !accepts.stream {
            return HttpError::not_acceptable().into_response(id).into();
        }
        let permit = match permit.into_request_permit(&endpoint.budgets, connection) {
            Ok(permit) => Some(permit),
            Err(_) if !is_limited(request.method) => None,
            Err(error) => return error.into_response(id).into(),
        };
        let started = endpoint.server.start_request(request, clients, &mut Vec::new());
        if origin.has_ended_meanwhile() {
            return HttpError::unknown_session().into_response(id).into();
        }
        request_response(endpoint, connection, (request.id, origin.revision), started, permit, Some(client))
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
        post: &PostRequest<'_>,
    ) -> StartedResponse {
        let (connection, id) = (post.connection, message.id().unwrap_or_default());
        let accepts = connection.accepts();
        if !accepts.json && !accepts.stream {
            return HttpError::not_acceptable().into_response(Some(id)).into();
        }
        let (reply, handshake) =
            endpoint.server.initialize(message.params(), self.sessions.is_some(), None, Some(&**connection));
        let mut response = reply_response(&endpoint.server, connection, id, Revision::LATEST_LEGACY, &reply);
        if let (Some(handshake), Some(sessions)) = (handshake, &self.sessions) {
            let session =
                sessions.start(&endpoint.server, &handshake, post.caller.as_deref(), &connection.owner());
            let session = session.and_then(|id| {
                HeaderValue::try_from(id)
                    .map_err(|_| ProtocolError::internal("a session cannot be started now"))
            });
            match session {
                Ok(session) => drop(response.headers_mut().insert(SESSION_ID, session)),
                Err(error) => {
                    return error_response(StatusCode::INTERNAL_SERVER_ERROR, Some(id), &error).into();
                }
            }
        }
        response.into()
    }

    /// Serves a text that is not a single message; in 2025-03-26 it may be a batch.
    pub(in crate::transport::http) fn start_batch_or_error(
        &self,
        endpoint: &Arc<Endpoint>,
        text: &[u8],
        malformed: &MalformedMessage,
        post: PostRequest<'_>,
    ) -> StartedResponse {
        if let Err(name) = post.headers.check_repeated() {
            return post.headers.repeated_error(name).into_response(malformed.id.as_deref()).into();
        }
        if let Err(error) = self.check_named_session(&post) {
            return error.into_response(malformed.id.as_deref()).into();
        }
        if let Some(messages) = jsonrpc::parse_batch(text) {
            match self.origin(&post) {
                Ok(origin) if origin.revision == Revision::V2025_03_26 => {
                    return self.start_batch(endpoint, &messages, &origin, post);
                }
                Ok(_) => {}
                Err(error) => return error.into(),
            }
        }
        // clients of legacy revisions expect the error of a request with status 200
        let is_request = malformed.id.is_some() && malformed.error.code == INVALID_PARAMS;
        let status = if is_request { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        error_response(status, malformed.id.as_deref(), &malformed.error).into()
    }

    /// Serves a batch.
    fn start_batch(
        &self,
        endpoint: &Arc<Endpoint>,
        messages: &[&RawValue],
        origin: &MessageOrigin<'_>,
        post: PostRequest<'_>,
    ) -> StartedResponse {
        let messages = Batch::parse(messages);
        if let Err(error) = messages.check() {
            return error_response(StatusCode::BAD_REQUEST, None, &error).into();
        }
        let accepts = post.connection.accepts();
        if !accepts.json && !accepts.stream && messages.expects_replies() {
            return HttpError::not_acceptable().into();
        }
        let (client, context) = context(endpoint, origin, &post);
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
        let mut unexpected_response = false;
        for message in messages.responses_and_notifications() {
            if message.is_response() {
                unexpected_response |= !open.is_some_and(|open| open.deliver_response(message));
            } else if let Some(open) = open {
                open.handle_notification(message);
            }
        }
        let started = match started {
            Ok(started) => started,
            Err(error) => return error.into(),
        };
        if origin.has_ended_meanwhile() {
            return HttpError::unknown_session().into();
        }
        let mut calls = started.calls;
        if calls.is_empty() {
            return match started.unreadable {
                Some(error) => error_response(StatusCode::BAD_REQUEST, None, &error).into(),
                None if unexpected_response => HttpError::unexpected_response().into(),
                None => empty_response(StatusCode::ACCEPTED).into(),
            };
        }
        if !calls.is_running() {
            return calls_response(server, &mut calls, connection).into();
        }
        StartedResponse::Pending(HttpResponseFuture::new(endpoint, calls, connection, Some(client)))
    }
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
