//! Tokens by the digest of the request for them. Concurrent callers wait for the request in progress; if its caller goes
//! away, another one of them begins it again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use mcp_runtime::config::Secret;
use tokio::sync::OnceCell;

use crate::{authorization_server::Issued, refusal::Refusal};

/// How many tokens are kept or being asked for.
const MAX_TOKENS: usize = 1_000;

/// How long before its end a token is not used any more.
const MARGIN: Duration = Duration::from_secs(60);

/// How long a token is kept at most, however long it is valid.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

type Kept = Result<Secret<String>, Refusal>;

/// What came of a request, and until when it is used.
type Outcome = (Kept, Instant);

/// A refusal is for those who waited for it, and so is a token that is not valid for longer than `MARGIN`. `valid` is for
/// how long what it was made from is.
pub(crate) fn outcome(issued: Issued, valid: Option<Duration>) -> Outcome {
    let lifetime = issued.as_ref().map_or(Duration::ZERO, |(_, lifetime)| *lifetime);
    let lifetime = lifetime.min(valid.unwrap_or(MAX_AGE)).min(MAX_AGE);
    (issued.map(|(token, _)| token), Instant::now() + lifetime.saturating_sub(MARGIN))
}

/// The tokens of one authorization server.
#[derive(Default)]
pub(crate) struct Tokens(Mutex<HashMap<[u8; 32], Arc<OnceCell<Outcome>>>>);

impl Tokens {
    /// The token of a request that has ended or is in progress, or else of this one.
    ///
    /// # Errors
    /// The authorization server refuses it, or too many requests are in progress.
    pub(crate) async fn get(&self, key: [u8; 32], request: impl Future<Output = Outcome>) -> Kept {
        let cell = {
            let (mut cells, now) = (self.0.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
            let usable = cells.get(&key).filter(|cell| cell.get().is_none_or(|(_, until)| *until > now));
            let usable = usable.cloned();
            if usable.is_none() && cells.len() >= MAX_TOKENS {
                // those that no call waits for
                cells.retain(|_, cell| Arc::strong_count(cell) > 1);
            }
            if cells.len() >= MAX_TOKENS && usable.is_none() {
                return Err(Refusal::unavailable(format!("{MAX_TOKENS} tokens are being asked for")));
            }
            let cell = usable.unwrap_or_default();
            cells.insert(key, Arc::clone(&cell));
            cell
        };
        cell.get_or_init(|| request).await.0.clone()
    }
}
