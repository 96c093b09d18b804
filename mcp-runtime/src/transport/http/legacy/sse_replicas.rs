//! Streams of HTTP+SSE at any replica: the name of a stream is sealed for its caller and names the process that has it. A
//! replica that gets a message for one passes it on to that process, which takes it or refuses it at once.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use super::{
    http_sse::{MessageRefused, OpenSseStreams, OtherSseStreams},
    session_id::SessionIds,
};
use crate::{
    core::{
        admission::Owner,
        connection::Principal,
        crypto::Seal,
        server::{PeerHandler, Peers, Server},
        store::StoreFuture,
    },
    transport::http::http_error::HttpError,
};

/// Purpose of the key that seals the names of streams.
const PURPOSE: &str = "mcp-runtime sse stream 1";
/// The prefix of a question; the name, a space and the message follow.
const QUESTION: &[u8] = b"sse ";
/// The answers. That of a process without the stream is empty.
const TAKEN: &[u8] = b"taken";
const FULL: &[u8] = b"full";

/// The streams of one endpoint, and those of other replicas.
struct SseReplicas {
    peers: Arc<dyn Peers>,
    names: Seal,
    server: Box<str>,
    streams: Weak<OpenSseStreams>,
}

impl fmt::Debug for SseReplicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseReplicas").finish_non_exhaustive()
    }
}

/// The other replicas of a server, if they share a store.
pub(super) fn open_sse_replicas(
    server: &Server,
    streams: &Arc<OpenSseStreams>,
) -> Option<Arc<dyn OtherSseStreams>> {
    let replicas = Arc::new(SseReplicas {
        peers: server.peers()?,
        names: Seal::new(server.keys(), PURPOSE),
        server: server.name().into(),
        streams: Arc::downgrade(streams),
    });
    let handler: Weak<SseReplicas> = Arc::downgrade(&replicas);
    replicas.peers.add_handler(handler);
    Some(replicas)
}

impl OtherSseStreams for SseReplicas {
    fn name(&self, caller: Option<&Principal>) -> Option<String> {
        self.names.seal(self.peers.id().as_bytes(), &SessionIds::bound_data(&self.server, caller)).ok()
    }

    fn process_of(&self, name: &str, caller: Option<&Principal>) -> Option<String> {
        let opened = self.names.open(name.as_bytes(), &SessionIds::bound_data(&self.server, caller))?;
        String::from_utf8(opened.plain).ok().filter(|process| process != self.peers.id())
    }

    fn pass_on<'a>(
        &'a self,
        process: &'a str,
        name: &'a str,
        message: &'a [u8],
        owner: &'a Owner,
    ) -> StoreFuture<'a, Result<(), HttpError>> {
        Box::pin(async move {
            let question = [QUESTION, name.as_bytes(), b" ", message].concat();
            match self.peers.ask(process, &question, owner).await {
                Ok(Some(answer)) if answer == TAKEN => Ok(()),
                Ok(Some(answer)) if answer == FULL => Err(HttpError::busy()),
                Ok(Some(_)) => Err(HttpError::unknown_stream()),
                Ok(None) => Err(HttpError::replica_unavailable()),
                Err(error) => {
                    tracing::debug!(%error, "a message of HTTP+SSE cannot be passed on to another replica");
                    Err(HttpError::sessions_unavailable())
                }
            }
        })
    }
}

impl PeerHandler for SseReplicas {
    fn answer(self: Arc<Self>, question: &[u8]) -> Option<Vec<u8>> {
        let rest = question.strip_prefix(QUESTION)?;
        let space = rest.iter().position(|byte| *byte == b' ')?;
        let (name, message) = (std::str::from_utf8(&rest[..space]).ok()?, &rest[space + 1..]);
        // whose stream it is was checked by the replica that got the message: for others the name does not open
        match self.streams.upgrade()?.find(name)?.take(message) {
            Ok(()) => Some(TAKEN.to_vec()),
            Err(MessageRefused::Full) => Some(FULL.to_vec()),
            Err(MessageRefused::Ended) => None,
        }
    }

    fn receive(self: Arc<Self>, _: &[u8]) {}

    fn missed(self: Arc<Self>) {}
}
