//! The connection of a client, and the one that replaces it once the process or the session is lost. Requests that find it
//! lost wait for one handshake, and share its failure; a process that ends again and again is started after pauses.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    negotiation::{Agreement, Handshake},
    shared_client::{CallOptions, Connection, SharedClient, params},
};
use crate::{
    client::{Error, link::ServerLink, operation::Operation},
    core::sync::RwLock,
};

/// How long a process must have lived so that the next one is started without a pause.
const STABLE: Duration = Duration::from_secs(30);
const FIRST_RESPAWN_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_RESPAWN_PAUSE: Duration = Duration::from_secs(30);

/// The connection that a client has.
#[derive(Default)]
pub(super) struct Session {
    connection: RwLock<Option<Arc<Connection>>>,
    /// Held during a handshake that replaces the connection.
    reconnecting: tokio::sync::Mutex<RespawnState>,
    /// Counts handshakes that failed, so that those who waited for one do not wait for as many more.
    failed_handshakes: AtomicU64,
    /// Whether a new handshake over HTTP was begun and not finished.
    is_without_session: AtomicBool,
    /// Held while a session that may be lost is looked for.
    renewing: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct RespawnState {
    started: Option<Instant>,
    pause: Duration,
    /// Why the last handshake failed, and which of them it was.
    failure: Option<(u64, Error)>,
}

impl Session {
    /// The first connection is opened from now on.
    pub(super) async fn begin(&self) {
        self.reconnecting.lock().await.started = Some(Instant::now());
    }

    /// Takes the first connection.
    pub(super) fn open(&self, connection: Connection) {
        *self.connection.write() = Some(Arc::new(connection));
    }

    /// Ends the session for good: its connection.
    pub(super) fn end(&self) -> Option<Arc<Connection>> {
        self.connection.write().take()
    }

    /// The connection as it is, also if it is closed.
    pub(super) fn connection(&self) -> Result<Arc<Connection>, Error> {
        self.connection.read().clone().ok_or_else(closed)
    }

    /// Whether the last handshake over HTTP failed, and left no session.
    pub(super) fn is_missing(&self) -> bool {
        self.is_without_session.load(Ordering::Relaxed)
    }

    /// Replaces the session in the background if the server has forgotten it.
    pub(super) fn renew(&self, client: Arc<SharedClient>) {
        // one that asks for it in turn, such as its own request, would make it endless
        let Ok(renewing) = self.renewing.clone().try_lock_owned() else { return };
        tokio::spawn(async move {
            // a request finds it lost, and replaces it; if that fails, the next one does
            let _found = client.request("ping", params(json!({})), &CallOptions::in_background()).await;
            drop(renewing);
        });
    }

    /// A new handshake in place of this connection's, unless another request has made one already, or has just failed.
    pub(super) async fn replace(
        &self,
        client: &SharedClient,
        old: &Arc<Connection>,
        options: &CallOptions,
    ) -> Result<Arc<Connection>, Error> {
        let failed_before = self.failed_handshakes.load(Ordering::SeqCst);
        let mut state = self.reconnecting.lock().await;
        let current = self.connection()?;
        if current.generation != old.generation {
            return Ok(current);
        }
        if let Some((_, error)) = state.failure.as_ref().filter(|(number, _)| *number > failed_before) {
            return Err(error.clone());
        }
        let operation = Operation::handshake(options.operation.as_ref(), &client.options);
        let requests = CallOptions::of(operation.clone());
        let connection = match operation.run(self.shake_hands(client, old, &mut state, &requests)).await {
            Ok(connection) => Arc::new(connection),
            Err(error) => {
                // those who wait may have more time than this request had
                if !matches!(error, Error::Timeout { option: Some("timeout"), .. }) {
                    let number = self.failed_handshakes.fetch_add(1, Ordering::SeqCst) + 1;
                    state.failure = Some((number, error.clone()));
                }
                return Err(error);
            }
        };
        *self.connection.write().as_mut().ok_or_else(closed)? = connection.clone();
        self.is_without_session.store(false, Ordering::Relaxed);
        drop(state);
        client.forget_what_is_kept();
        let restored = async {
            client.restore_session(&connection, &requests).await;
            Ok(())
        };
        if let Err(error) = operation.run(restored).await {
            tracing::warn!(
                error = error.in_one_line(),
                "the server's state of the session could not be restored"
            );
        }
        if !connection.revision.is_modern() {
            client.inbox.restored();
        }
        Ok(connection)
    }

    async fn shake_hands(
        &self,
        client: &SharedClient,
        old: &Arc<Connection>,
        state: &mut RespawnState,
        options: &CallOptions,
    ) -> Result<Connection, Error> {
        let generation = old.generation + 1;
        match &*old.link {
            ServerLink::Http(link) => {
                self.is_without_session.store(true, Ordering::Relaxed);
                link.forget_session();
                let handshake = Handshake::new(client, &old.link, options);
                let agreed = if old.revision.is_modern() {
                    handshake.negotiate(None).await?
                } else {
                    handshake.initialize(old.revision).await?
                };
                let Agreement { revision, server, .. } = agreed;
                Ok(Connection { link: old.link.clone(), revision, server, generation })
            }
            ServerLink::Stream(link) => {
                link.close().await;
                let lived = state.started.map_or(STABLE, |started| started.elapsed());
                state.pause = if lived >= STABLE {
                    Duration::ZERO
                } else {
                    (state.pause * 2).clamp(FIRST_RESPAWN_PAUSE, LONGEST_RESPAWN_PAUSE)
                };
                sleep(state.pause).await;
                state.started = Some(Instant::now());
                client.open(generation, options).await
            }
        }
    }
}

fn closed() -> Error {
    Error::not_connected("the client was closed")
}
