//! A `tools/call` that another process has admitted, and that is a task.

use std::{borrow::Cow, sync::Arc};

use super::{Request, response::Response, tools::CallTool};
use crate::core::{
    context::{Continuation, Retry},
    server::Server,
    tool::ToolEntry,
};

impl Server {
    /// Runs the function of a tool again, for a call that another process has admitted.
    pub(crate) fn resume_tool(
        &self,
        request: Request<'_>,
        entry: Arc<ToolEntry>,
        arguments: String,
        continuation: Arc<dyn Continuation>,
        retry: Option<Arc<Retry>>,
    ) -> Response {
        let (arguments, continuation) = (Cow::Owned(arguments), Some(continuation));
        let call = CallTool { entry, arguments, retry, continuation };
        self.call_item(request, call)
    }
}
