//! Large texts of servers are parsed on a thread that may block: other tasks of the program go on meanwhile.

use tokio::runtime::Handle;

use super::Error;
use crate::core::blocking;

/// From this size on a text is large. A smaller one is parsed within a millisecond, which is not worth another thread.
pub(in crate::client) const LARGE: usize = 256 << 10;

/// The output of `f` on a thread that may block.
///
/// # Errors
/// It panicked, or the runtime ends.
pub(in crate::client) async fn run_elsewhere<T: Send + 'static>(
    f: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    if Handle::try_current().is_err() {
        // polled outside of a runtime, whose tasks would go on
        return Ok(f());
    }
    blocking::run(f).await.map_err(|_| Error::invalid("a message of the server could not be read"))
}

/// The output of `f`, which reads this many bytes: on a thread that may block if they are many.
///
/// # Errors
/// As [`run_elsewhere`].
pub(in crate::client) async fn run_by_size<T: Send + 'static>(
    bytes: usize,
    f: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    if bytes < LARGE {
        return Ok(f());
    }
    // boxed: every request would have room for it otherwise
    Box::pin(run_elsewhere(f)).await
}

/// Parses a text with `parse`; a large text is parsed on a thread that may block.
///
/// # Errors
/// Returns the errors of `parse`.
pub(in crate::client) async fn parse_text<S, T>(
    text: S,
    parse: impl FnOnce(&str) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error>
where
    S: AsRef<str> + Send + 'static,
    T: Send + 'static,
{
    run_by_size(text.as_ref().len(), move || parse(text.as_ref())).await?
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn only_large_texts_are_parsed_on_another_thread() {
        let here = thread::current().id();
        for (size, is_here) in [(100, true), (LARGE, false)] {
            let parsed = parse_text("x".repeat(size), |text| Ok((text.len(), thread::current().id())));
            let (length, at) = parsed.await.unwrap();
            assert_eq!((length, at == here), (size, is_here));
        }
    }

    #[test]
    fn without_a_runtime_texts_are_parsed_in_place() {
        let (mut cx, here) =
            (std::task::Context::from_waker(std::task::Waker::noop()), thread::current().id());
        let parsed = parse_text("x".repeat(LARGE), |_| Ok(thread::current().id()));
        let parsed = std::pin::pin!(parsed).poll(&mut cx);
        assert!(matches!(parsed, std::task::Poll::Ready(Ok(at)) if at == here));
    }
}
