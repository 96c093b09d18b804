//! Answers GET: opens a standalone stream of a session, for messages that do not belong to a request, or resumes a stream
//! whose connection broke.
//!
//! See [listening for messages](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#listening-for-messages-from-the-server).

use std::sync::Arc;

use http::Response;

use super::{
    event_id::{EventId, StreamKind},
    event_sender::EventSender,
    resumable::{OpenStream, ResumableStream},
    session_id::Session,
    session_table::SessionData,
    sessions::Sessions,
    standalone::StandaloneStreams,
};
use crate::transport::http::{
    endpoint::Endpoint,
    headers::{HeaderField, ProtocolHeaders},
    http_error::HttpError,
    request_connection::RequestConnection,
    response_body::{ResponseBody, event_stream_response},
};

impl Sessions {
    /// Opens a standalone stream, or resumes the stream of `Last-Event-ID`.
    pub(super) fn get(
        &self,
        endpoint: &Arc<Endpoint>,
        connection: &RequestConnection,
        headers: &ProtocolHeaders<'_>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        if !connection.accepts().stream {
            return Err(HttpError::event_stream_not_acceptable());
        }
        let caller = connection.caller();
        let session = self.find(headers, caller.map(|caller| &**caller))?;
        let owner = connection.owner();
        let permit =
            endpoint.budgets.streams.try_acquire(&owner, 1).ok_or_else(HttpError::too_many_streams)?;
        let data = self.table.open_stream(session.uid, &owner).ok_or_else(HttpError::too_many_streams)?;
        // the session may have ended after it was found
        if self.records.has_ended(&session.uid) {
            self.table.end(&session.uid);
            return Err(HttpError::unknown_session());
        }
        let received = match headers.last_event {
            HeaderField::One(id) => {
                let id = id.to_str().ok().and_then(EventId::parse).ok_or_else(HttpError::unknown_event_id)?;
                // another process has the stream, or has had it: its client starts another session
                if !self.event_logs.as_ref().is_some_and(|logs| logs.has_sent(&id)) {
                    return Err(HttpError::unknown_session());
                }
                Some(id)
            }
            HeaderField::Repeated(_) => return Err(headers.repeated_error("Last-Event-ID")),
            HeaderField::Absent => None,
        };
        let mut end = endpoint.stream_end(caller, endpoint.options.max_stream_age);
        if self.event_logs.is_some() {
            end = end.of_resumable(session.revision);
        }
        let (sender, body) = EventSender::new(&endpoint.budgets.outbound, owner, Some(permit), Some(end));
        match received {
            Some(id) if id.kind == StreamKind::Call => {
                let stream = self.find_stream(&data, &id).ok_or_else(HttpError::unknown_event_id)?;
                stream.attach(sender, Some(id.number))?;
            }
            received => self.attach_standalone(endpoint, connection, (&session, data), sender, received)?,
        }
        Ok(event_stream_response(body))
    }

    /// Attaches a response to the standalone stream that it resumes, or to a new one.
    fn attach_standalone(
        &self,
        endpoint: &Arc<Endpoint>,
        connection: &RequestConnection,
        (session, data): (&Session, Arc<SessionData>),
        sender: EventSender,
        received: Option<EventId>,
    ) -> Result<(), HttpError> {
        let (caller, owner) = (connection.caller().cloned(), connection.owner());
        let mut standalone = data.standalone.lock();
        if standalone.is_none() {
            endpoint.server.join_replicas();
            let (filter, rules) = (data.filter().clone(), endpoint.access_rules.clone());
            let subscriber = endpoint.server.hub().subscribe(filter, caller.clone(), rules, &owner);
            let subscriber = subscriber.ok_or_else(HttpError::too_many_streams)?;
            let serving = (endpoint.clone(), owner);
            *standalone = Some(StandaloneStreams::start(data.clone(), subscriber, serving, session.expires));
        }
        let Some(streams) = &mut *standalone else { return Ok(()) };
        if let Some(id) = received {
            if let Some(open) = streams.find(&id) {
                return streams.attach(open, (sender, Some(id.number)), caller);
            }
            if let Some(ended) = self.find_stream(&data, &id) {
                ended.attach(sender.clone(), Some(id.number))?;
            }
        }
        let logs = self.event_logs.as_ref();
        let open = OpenStream::new(StreamKind::Standalone, Some(data.clone()), logs, session.revision);
        streams.attach(open.of_session(), (sender, None), caller)
    }

    /// The stream of an event of a session, if it is open or has events.
    fn find_stream(&self, session: &SessionData, id: &EventId) -> Option<Arc<ResumableStream>> {
        self.event_logs.as_ref()?.find(&session.owner, &session.uid, id)
    }
}
