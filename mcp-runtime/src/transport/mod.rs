//! The transports: byte streams (stdio or any other pair), HTTP, and memory. A transport only moves messages;
//! `dispatch` interprets them, in the same way for every transport.

#[cfg(feature = "http")]
pub(crate) mod http;
mod lines;
#[cfg(any(feature = "cli", feature = "testing", test))]
pub(crate) mod memory;
mod scheduler;
#[cfg(any(feature = "stdio", feature = "http"))]
mod signal;
#[cfg(feature = "stdio")]
mod stdio;
mod stream;
mod stream_connection;
mod writer;

use std::pin::Pin;

pub(crate) use lines::{Line, LineBuffer};

use crate::core::server::Result;

/// A future that serves, boxed by this crate.
///
/// The future of an `async fn` is compiled by the crate that awaits it, so each build of the user's program would compile
/// the transports again. The functions that return this type are neither generic nor inlined, and they take the server and
/// its builder by value, so that the user's crate does not compile how those are dropped, either.
type ServingFuture<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

#[cfg(test)]
mod tests {
    use crate::core::server::{Server, ServerBuilder};

    fn server() -> ServerBuilder {
        Server::builder("boxed", "1")
    }

    /// The size of a future that other threads may poll.
    fn size<F: Future + Send>(_: F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn futures_that_serve_are_boxed_so_that_programs_do_not_compile_the_transports() {
        const BOXED: usize = 2 * size_of::<usize>();
        let built = server().build().unwrap();
        #[cfg(feature = "stdio")]
        assert_eq!((size(built.serve_stdio()), size(server().serve_stdio())), (BOXED, BOXED));
        #[cfg(feature = "http")]
        {
            // the rest is tokio's, which finds and binds an address
            let binding = size(tokio::net::TcpListener::bind("127.0.0.1:0")) + 4 * BOXED;
            assert!(size(built.clone().serve_http("127.0.0.1:0")) <= binding);
            assert!(size(server().serve_http("127.0.0.1:0")) <= 2 * binding);
        }
        // the streams of the user are its own
        assert!(size(built.serve(tokio::io::empty(), tokio::io::sink())) <= 4 * BOXED);
    }

    #[cfg(feature = "http")]
    #[tokio::test]
    async fn serving_over_http_is_boxed_on_any_listener() {
        let listener = || async { tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap() };
        let built = server().build().unwrap();
        let stop = std::future::pending::<()>();
        let sizes = [
            size(built.clone().serve_http_on(listener().await)),
            size(built.serve_http_until(listener().await, stop)),
        ];
        assert_eq!(sizes, [2 * size_of::<usize>(); 2]);
    }
}
