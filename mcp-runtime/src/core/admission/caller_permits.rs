//! Permits that the callers of a server share, for packages and programs that have limits of their own.

use std::{fmt, sync::Arc};

use super::{Turn, Turns};
use crate::core::context::Context;

/// A number of things that callers may use at once, such as requests to a server behind this one. Further calls wait for a
/// [permit](CallerPermit), each caller in turn.
///
/// Over HTTP one caller has half of them at most, but at least one, so that it does not hold up the others. Callers are told
/// apart as by every other [limit](crate::guide::limits): by their principals, or else by their addresses. On stdio there is
/// one caller, who may use all.
///
/// ```
/// use mcp_runtime::{Context, permits::CallerPermits, prelude::*};
///
/// /// What the archive says.
/// #[mcp_tool]
/// async fn look_up(name: String, archive: &CallerPermits, ctx: &Context) -> String {
///     let _permit = archive.acquire(ctx).await;
///     // ... asks the archive, which answers sixteen at once
///     format!("{name}: nothing")
/// }
///
/// # fn main() -> mcp_runtime::Result<()> {
/// let server = mcp_runtime::server!().state(CallerPermits::new(16)).tool::<look_up>().build()?;
/// # Ok(())
/// # }
/// ```
pub struct CallerPermits(Arc<Turns>);

/// A permit, which is given back when it is dropped.
#[must_use = "it is given back when it is dropped"]
pub struct CallerPermit(#[allow(dead_code, reason = "held for its drop")] Turn);

impl CallerPermits {
    /// So many permits; at least one.
    #[must_use]
    pub fn new(permits: usize) -> Self {
        Self(Turns::new(permits.max(1), 100))
    }

    /// Waits for a permit of the caller of this request. A future that is dropped waits no more.
    pub async fn acquire(&self, context: &Context) -> CallerPermit {
        CallerPermit(self.0.wait(&context.inner().request.owner(), "").await)
    }
}

impl fmt::Debug for CallerPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallerPermits")
    }
}

impl fmt::Debug for CallerPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallerPermit")
    }
}
