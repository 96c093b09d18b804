//! A call that a tool passes on: one call, that of the other tool, which is looked up before its scopes, gates and layers, and
//! before what observers are told. It is passed on once, and all of it by one state of the server's items.

use std::{borrow::Cow, sync::Arc};

use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::{
    Request,
    item_call::ItemCall as _,
    request::ClientRequestPolicy,
    response::{Reply, Response},
    tools::CallTool,
};
use crate::core::{
    connection::RequestContext,
    error::{Failure, ToolError},
    extensions::Extensions,
    invoke::catch_panic,
    jsonrpc::{Params, decode_string},
    server::{Registry, Server},
    tool::{PinnedRegistry, ToolEntry},
};

/// The name and the arguments of the tool that is called instead.
pub(super) struct ForwardedCall {
    name: Box<RawValue>,
    arguments: Box<RawValue>,
}

impl ForwardedCall {
    /// What a forwarder makes of a call.
    ///
    /// # Errors
    /// The arguments are invalid, or the function refuses the call.
    fn new(
        server: &Server,
        registry: &Arc<Registry>,
        request: &Request<'_>,
        forwarder: &ToolEntry,
        arguments: &str,
    ) -> Result<Self, Failure> {
        let forward = forwarder.before.as_ref().and_then(|before| before.forward.as_ref());
        let forward = forward.ok_or_else(|| Failure::private("it does not pass its calls on"))?;
        forwarder.input.check_size(arguments)?;
        let arguments = forwarder.input.read_untyped(arguments, forwarder.spec.strict)?;
        let mut pinned = Extensions::default();
        pinned.insert(PinnedRegistry(registry.clone()));
        let extensions = pinned.merge_over(&request.context.extensions);
        let of_request = RequestContext { extensions, ..request.context.clone() };
        let request = request.with_context(&of_request);
        let context = request.make_context(server, &forwarder.state, ClientRequestPolicy::Forbidden);
        let (name, arguments) = catch_panic(|| forward(&context, arguments).map_err(|error| error.0))?;
        if !arguments.is_object() {
            return Err(Failure::private("the arguments that it passes on are not an object"));
        }
        let raw = |value: &Value| to_raw_value(value).map_err(Failure::private);
        Ok(Self { name: raw(&name.into())?, arguments: raw(&arguments)? })
    }

    /// The parameters of the call, besides what the request has.
    pub(super) fn params<'a>(&'a self, of_request: &Params<'a>) -> Params<'a> {
        of_request.clone().of_call(&self.name, &self.arguments)
    }
}

impl Server {
    /// The call that a request becomes, for those who watch it: `None` if it is passed on to no tool, or refused.
    pub(super) fn forwarded(&self, registry: &Arc<Registry>, request: &Request<'_>) -> Option<ForwardedCall> {
        if request.method != "tools/call" || !registry.has_forwarders {
            return None;
        }
        let name = request.params.name.and_then(decode_string)?;
        let entry = registry.tools.find(&name, request.access()).ok()?;
        let before = entry.before.as_ref().filter(|before| before.forward.is_some())?;
        let arguments =
            before.given.apply(&entry.input, request.arguments().ok()?, entry.spec.strict).ok()?;
        ForwardedCall::new(self, registry, request, entry, &arguments).ok()
    }

    /// Answers a call of a tool that passes it on.
    #[cold]
    pub(super) fn forward_call(
        &self,
        request: Request<'_>,
        registry: &Arc<Registry>,
        forwarder: &Arc<ToolEntry>,
        arguments: &str,
    ) -> Result<Response, Reply> {
        let forwarded = ForwardedCall::new(self, registry, &request, forwarder, arguments);
        let refuse = |failure| {
            let arguments = Cow::Borrowed(arguments);
            let call = CallTool { entry: forwarder.clone(), arguments, retry: None, continuation: None };
            Ok(call.respond(self, request.revision, Err(failure)))
        };
        let forwarded = match forwarded {
            Ok(forwarded) => forwarded,
            Err(failure) => return refuse(failure),
        };
        let params = forwarded.params(request.params);
        let request = request.with_params(&params);
        let name = request.name()?;
        let target = registry.tools.find_for(self, &request, &name)?;
        let text = if target.is_forwarder() {
            format!("`{name}` passes its calls on, so no call is passed on to it")
        } else if target.header_params.is_empty() {
            return self.call_tool(request, registry);
        } else {
            format!(
                "`{name}` repeats arguments in headers, so no call is passed on to it\ncall it by its name"
            )
        };
        refuse(ToolError::new(text).0)
    }
}
