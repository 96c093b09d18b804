//! The connections of callers, each of which has the credential of one caller, and no other. There is nothing to fall back
//! to: a caller without a credential is refused.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::HeaderValue;
use mcp_runtime::{Context, ToolError};
use tokio::time::Instant;

use crate::{target::bearer, upstream::Slot};

/// The most connections of callers at once.
const MAX_CALLERS: usize = 256;
/// How long a connection of a caller stays without a request, unless the program says otherwise.
const IDLE: Duration = Duration::from_secs(300);

/// The credential of the caller of a request.
pub(crate) type CredentialFn =
    Arc<dyn Fn(Context) -> Pin<Box<dyn Future<Output = Result<String, ToolError>> + Send>> + Send + Sync>;

/// Who calls, and with what.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    issuer: Option<String>,
    subject: Option<String>,
    credential: HeaderValue,
}

struct Kept {
    slot: Arc<Slot>,
    used: Instant,
}

/// The connections of the callers of one server.
pub(crate) struct Callers {
    credential: CredentialFn,
    idle: Duration,
    slots: Mutex<HashMap<Key, Kept>>,
}

impl Callers {
    pub(crate) fn new(credential: CredentialFn, idle: Option<Duration>) -> Self {
        Self { credential, idle: idle.unwrap_or(IDLE), slots: Mutex::default() }
    }

    /// The place of the connection of this caller.
    ///
    /// # Errors
    /// It has no credential, or too many others have connections in use.
    pub(crate) async fn slot(&self, name: &str, context: &Context) -> Result<Arc<Slot>, ToolError> {
        let credential = (self.credential)(context.clone()).await?;
        let credential = Some(credential).filter(|credential| !credential.trim().is_empty());
        let credential = credential.and_then(|credential| bearer(&credential));
        let credential = credential.ok_or_else(|| {
            ToolError::new(format!("`{name}` needs a credential of the caller, who has none"))
        })?;
        let caller = context.caller();
        let key = Key {
            issuer: caller.map(|caller| caller.issuer().to_owned()),
            subject: caller.map(|caller| caller.subject().to_owned()),
            credential,
        };
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = slots.get_mut(&key) {
            kept.used = Instant::now();
            return Ok(kept.slot.clone());
        }
        if slots.len() >= MAX_CALLERS {
            let unused = slots.iter().filter(|(_, kept)| !kept.is_in_use()).min_by_key(|(_, kept)| kept.used);
            let Some(oldest) = unused.map(|(key, _)| key.clone()) else {
                return Err(ToolError::new(format!("`{name}` is busy; try again later")));
            };
            slots.remove(&oldest);
        }
        let slot = Arc::new(Slot::of_caller(key.credential.clone()));
        slots.insert(key, Kept { slot: slot.clone(), used: Instant::now() });
        Ok(slot)
    }

    /// Ends the connections that have not been used for some time.
    pub(crate) fn end_idle(&self) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|_, kept| {
            if kept.is_in_use() {
                kept.used = Instant::now();
            }
            kept.used.elapsed() < self.idle
        });
    }
}

impl Kept {
    /// Whether a request has it.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.slot) > 1
    }
}
