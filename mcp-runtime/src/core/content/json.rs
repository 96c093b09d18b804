//! Return values that are serialized as JSON.

/// A value sent as JSON: `structuredContent` and text from a tool, `application/json` text from a resource.
///
/// The schema of `T` is published as the tool's `outputSchema`.
///
/// See [structured content](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#structured-content).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Json<T>(pub T);
