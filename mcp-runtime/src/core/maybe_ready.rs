//! A value that is there at once, or comes later. A parameter of the type says how it can end, so that callers match only that.

use crate::core::arguments::BoxFuture;

/// A value, or that from which it comes: a future, unless the type says otherwise.
pub(crate) enum MaybeReady<T, P = BoxFuture<T>> {
    Ready(T),
    Pending(P),
}

impl<T, P: Future<Output = T>> MaybeReady<T, P> {
    /// The value, once it is there.
    pub(crate) async fn get(self) -> T {
        match self {
            Self::Ready(value) => value,
            Self::Pending(pending) => pending.await,
        }
    }
}

impl<T, P> From<T> for MaybeReady<T, P> {
    // replies are large: a call would copy them
    #[inline]
    fn from(value: T) -> Self {
        Self::Ready(value)
    }
}
