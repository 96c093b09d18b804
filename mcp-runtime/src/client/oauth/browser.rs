//! Opens a URL in the system's browser (feature `client-browser`), by the `open` crate, which knows the launchers of each
//! platform. A launcher that fails is logged, and fails nothing else: the program shows the URL as well.

use std::time::Duration;

use url::Url;

use crate::core::{blocking, spawn::spawn};

/// How long each launcher is watched before it counts as one that has the URL: some return at once, others when the browser
/// is closed.
const WATCHED: Duration = Duration::from_secs(2);

/// Opens the URL in the background. Launchers also open files and start programs, so that nothing but the URL of a page gets
/// to them: it is the authorization server's.
pub(super) fn open_in_background(url: Url) {
    if !matches!(url.scheme(), "https" | "http") {
        tracing::warn!("the login URL is not `http:` or `https:`: no browser was opened");
        return;
    }
    // a process that is detached, so that Ctrl-C in a terminal leaves the browser alone
    spawn(async move {
        let opened = blocking::run(move || open::that_detached_with_timeout(url.as_str(), WATCHED)).await;
        if let Err(error) = opened.unwrap_or_else(|error| Err(error.into())) {
            tracing::warn!(%error, "no browser could be opened for the login: visit the URL that the program shows");
        }
    });
}
