//! Without the feature `redis-tls`, a URL that asks for TLS is refused.

use tokio::net::TcpStream;

use super::target::OpenError;

#[derive(Clone)]
pub(super) enum Tls {}

impl Tls {
    /// # Errors
    /// That the feature is missing.
    pub(super) fn new() -> Result<Self, String> {
        Err("the URL of Redis asks for TLS, and this program was built without it\n\
             enable the feature `redis-tls`"
            .into())
    }

    pub(super) async fn secure(&self, _host: &str, _stream: TcpStream) -> Result<TcpStream, OpenError> {
        match *self {}
    }
}
