//! A span for each request, by OpenTelemetry's conventions for MCP clients. It contains neither arguments nor URIs: a
//! resource is shown by a digest, which is the same throughout the process and means nothing outside of it.
//!
//! See [the conventions](https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/).

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::OnceLock,
};

use http::Uri;
use serde::Deserialize;
use serde_json::Value;
use tracing::{Span, field::Empty};

use crate::{
    client::{
        Error,
        connect::shared_client::{CallOptions, SharedClient},
        exchange::RequestParams,
    },
    core::jsonrpc::null_is_absent,
};

/// The span of a request, until its result is there.
pub(in crate::client) struct RequestSpan(pub(in crate::client) Span);

impl RequestSpan {
    /// That of a request that is not a stream, which may last for days.
    pub(in crate::client) fn new(
        shared: &SharedClient,
        method: &str,
        params: &RequestParams,
        options: &CallOptions,
    ) -> Self {
        if options.stream.is_some() {
            return Self(Span::none());
        }
        let span = tracing::info_span!(
            "mcp.client.request",
            "otel.kind" = "client",
            "otel.name" = Empty,
            "otel.status_code" = Empty,
            "mcp.method.name" = method,
            "mcp.protocol.version" = Empty,
            "mcp.resource.uri.digest" = Empty,
            "gen_ai.operation.name" = Empty,
            "gen_ai.tool.name" = Empty,
            "gen_ai.prompt.name" = Empty,
            "jsonrpc.request.id" = Empty,
            "rpc.response.status_code" = Empty,
            "error.type" = Empty,
            "network.transport" = Empty,
            "network.protocol.name" = Empty,
            "server.address" = Empty,
            "server.port" = Empty,
        );
        if !span.is_disabled() {
            describe(&span, shared, method, params);
        }
        Self(span)
    }

    /// Records how it ended.
    pub(in crate::client) fn finish(&self, method: &str, result: &Result<String, Error>) {
        #[derive(Deserialize)]
        struct ToolHead {
            #[serde(default, deserialize_with = "null_is_absent", rename = "isError")]
            is_error: bool,
        }
        if self.0.is_disabled() {
            return;
        }
        let error = match result {
            Ok(json) if method == "tools/call" => {
                let failed = serde_json::from_str::<ToolHead>(json).is_ok_and(|head| head.is_error);
                failed.then(|| "tool_error".to_owned())
            }
            Ok(_) => None,
            Err(error) => Some(error.kind()),
        };
        if let Some(error) = error {
            self.0.record("error.type", &*error).record("otel.status_code", "ERROR");
        }
        if let Some(code) = result.as_ref().err().and_then(Error::code) {
            self.0.record("rpc.response.status_code", &*code.to_string());
        }
    }
}

/// Records the id that a request was sent with.
pub(in crate::client) fn record_id(id: u64) {
    // a program without a subscriber has no span, and need not look for one
    if tracing::dispatcher::has_been_set() {
        Span::current().record("jsonrpc.request.id", &*id.to_string());
    }
}

/// A digest of a URI under a key of this process: requests for one resource can be told to be that, and short URIs cannot
/// be guessed from it.
pub(in crate::client) fn uri_digest(uri: &str) -> String {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    format!("{:016x}", KEY.get_or_init(RandomState::new).hash_one(uri))
}

fn describe(span: &Span, shared: &SharedClient, method: &str, params: &RequestParams) {
    let text = |key: &str| params.members.get(key).and_then(Value::as_str);
    let mut target = None;
    match method {
        "tools/call" => {
            target = text("name");
            span.record("gen_ai.operation.name", "execute_tool").record("gen_ai.tool.name", target);
        }
        "prompts/get" => {
            target = text("name");
            span.record("gen_ai.prompt.name", target);
        }
        _ => {}
    }
    match target {
        Some(target) => span.record("otel.name", &*format!("{method} {target}")),
        None => span.record("otel.name", method),
    };
    if let Some(uri) = text("uri") {
        span.record("mcp.resource.uri.digest", &*uri_digest(uri));
    }
    if let Ok(connection) = shared.connection() {
        span.record("mcp.protocol.version", connection.revision.as_str());
    }
    let Some(url) = shared.url() else {
        span.record("network.transport", "pipe");
        return;
    };
    span.record("network.transport", "tcp").record("network.protocol.name", "http");
    let Ok(url) = url.parse::<Uri>() else { return };
    let default_port = if url.scheme_str() == Some("https") { 443 } else { 80 };
    span.record("server.address", url.host()).record("server.port", url.port_u16().unwrap_or(default_port));
}
