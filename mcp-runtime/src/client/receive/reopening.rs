//! When a long-lived stream is opened again, for changes and events alike: after a pause that grows while the server fails
//! or ends its streams at once, until the server refuses it.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::{
    client::{Error, connect::shared_client::SharedClient},
    core::protocol::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND},
};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long a stream must have lasted so that the next one is opened after the first pause, if it broke.
const STABLE: Duration = Duration::from_secs(30);
/// The same, if the server ended it in an orderly way, such as with a token that lives for seconds.
pub(in crate::client) const STABLE_IF_ENDED: Duration = Duration::from_secs(2);
/// Codes of a refusal that another attempt does not change: the protocol's, and those of events in the published texts and
/// the drafts before (not found, forbidden, unsupported).
const FINAL_CODES: [i64; 9] =
    [INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, -32011, -32012, -32014, -32023, -32024, -32026];

/// The pauses between the attempts of one stream.
pub(in crate::client) struct Reopening {
    pause: Duration,
    begun: Instant,
}

impl Reopening {
    pub(in crate::client) fn new() -> Self {
        Self { pause: FIRST_PAUSE, begun: Instant::now() }
    }

    /// A stream begins.
    pub(in crate::client) fn begin(&mut self) {
        self.begun = Instant::now();
    }

    /// The stream was ended by the server, or has failed; it counts as the server's success if it lasted.
    pub(in crate::client) fn end(&mut self, end: &Result<(), Error>) {
        let stable = if end.is_ok() { STABLE_IF_ENDED } else { STABLE };
        if self.begun.elapsed() >= stable {
            self.succeed();
        }
    }

    /// The server works: the next pause is the first one again.
    pub(in crate::client) fn succeed(&mut self) {
        self.pause = FIRST_PAUSE;
    }

    /// Waits until the next attempt is due; one that is not waited for does not make the next pause longer.
    pub(in crate::client) async fn pause(&mut self) {
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

/// Whether an error refuses a stream for good. An authorization that fails does not: the next call of the program may log
/// the user in.
pub(in crate::client) fn is_refused(shared: &SharedClient, error: &Error) -> bool {
    match error {
        Error::Protocol { code, .. } => FINAL_CODES.contains(code),
        Error::Closed { .. } => !shared.can_continue(),
        Error::NotConnected { .. } | Error::Timeout { .. } | Error::Authorization { .. } => false,
        Error::Http { status, .. } => is_final_status(*status),
        _ => true,
    }
}

/// Whether a status of HTTP is neither that of a gateway nor of a server that starts or is busy.
pub(in crate::client) fn is_final_status(status: u16) -> bool {
    !matches!(status, 404 | 408 | 425 | 429 | 500..=599)
}
