//! Spans by OpenTelemetry's conventions, counters, and neither URIs nor arguments in what is logged.

use std::sync::{Arc, Mutex};

use mcp_runtime::client::Client;
use mcp_tests::support::subscribe;
use serde_json::json;
use tracing::{Event, Metadata, Subscriber, span};
use tracing_subscriber::{Layer, layer, prelude::*};

use super::{call, text};
use crate::{
    client::{Transport, builder, connect, pinned, within},
    common::{Fields, IntoFields},
};

/// The fields of a span, with its id, or of an event.
type Entry = (Option<u64>, Fields);

/// What the client logs on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Entry>>>);

fn is_of_the_client(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("mcp_runtime::client")
}

impl<S: Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>> Layer<S> for Log {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, _: layer::Context<'_, S>) {
        if is_of_the_client(attributes.metadata()) {
            let mut fields = Fields::new();
            attributes.record(&mut IntoFields(&mut fields));
            self.0.lock().unwrap().push((Some(id.into_u64()), fields));
        }
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, _: layer::Context<'_, S>) {
        let mut entries = self.0.lock().unwrap();
        // ids of ended spans are used again
        if let Some((_, fields)) = entries.iter_mut().rev().find(|(known, _)| *known == Some(id.into_u64())) {
            values.record(&mut IntoFields(fields));
        }
    }

    fn on_event(&self, event: &Event<'_>, _: layer::Context<'_, S>) {
        if is_of_the_client(event.metadata()) {
            let mut fields = Fields::new();
            event.record(&mut IntoFields(&mut fields));
            self.0.lock().unwrap().push((None, fields));
        }
    }
}

impl Log {
    /// The fields of the last entry for which `key` has this value.
    #[track_caller]
    fn with(&self, key: &str, value: &str) -> Fields {
        let entries = self.0.lock().unwrap();
        let found =
            entries.iter().rev().find(|(_, fields)| fields.get(key).is_some_and(|found| found == value));
        found.unwrap_or_else(|| panic!("no {key}={value} in {entries:#?}")).1.clone()
    }
}

#[track_caller]
fn assert_fields(fields: &Fields, expected: &[(&str, &str)]) {
    for (key, value) in expected {
        assert_eq!(fields.get(*key).map(String::as_str), Some(*value), "{key} in {fields:#?}");
    }
}

#[tokio::test]
async fn requests_have_spans_and_reads_counters_without_uris_and_arguments() {
    let log = Log::default();
    let _subscribed = subscribe(tracing_subscriber::registry().with(log.clone()));
    let server = builder().build().unwrap();
    for way in [Transport::Memory, Transport::Http] {
        let connected = connect(&server, way, pinned(None)).await.unwrap();
        let toolset = connected.client.toolset("shop").allow_resources(|uri| !uri.contains("hidden"));
        text(&toolset, "shop.echo", json!({ "message": "confidential" })).await;
        let echo = log.with("otel.name", "tools/call echo");
        assert_fields(
            &echo,
            &[
                ("otel.kind", "client"),
                ("mcp.method.name", "tools/call"),
                ("mcp.protocol.version", "2026-07-28"),
                ("gen_ai.operation.name", "execute_tool"),
                ("gen_ai.tool.name", "echo"),
            ],
        );
        assert!(echo.contains_key("jsonrpc.request.id") && !echo.contains_key("error.type"), "{echo:?}");
        match way {
            Transport::Http => assert_fields(
                &echo,
                &[
                    ("network.transport", "tcp"),
                    ("network.protocol.name", "http"),
                    ("server.address", "127.0.0.1"),
                ],
            ),
            _ => assert_fields(&echo, &[("network.transport", "pipe")]),
        }
        call(&toolset, "shop.fails", json!({})).await.unwrap();
        let failed = log.with("gen_ai.tool.name", "fails");
        assert_fields(&failed, &[("error.type", "tool_error"), ("otel.status_code", "ERROR")]);

        for _ in 0..3 {
            text(&toolset, "shop.resources_read", json!({ "uri": "note://one" })).await;
        }
        let read = log.with("mcp.method.name", "resources/read");
        assert_eq!(read["otel.name"], "resources/read", "a URI would make a name for each resource");
        assert_eq!(read["mcp.resource.uri.digest"].len(), 16);
        for hidden in ["note://missing", "note://hidden"] {
            call(&toolset, "shop.resources_read", json!({ "uri": hidden })).await.unwrap_err();
        }
        let prompt =
            within(connected.client.prompt("greet", json!({ "name": "confidential" })).into_future());
        prompt.await.unwrap();
        assert_fields(&log.with("mcp.method.name", "prompts/get"), &[("gen_ai.prompt.name", "greet")]);
        let unknown = within(connected.client.send("shop/unknown", json!({})).into_future()).await;
        unknown.unwrap_err();
        let refused = log.with("mcp.method.name", "shop/unknown");
        assert_fields(&refused, &[("error.type", "-32601"), ("rpc.response.status_code", "-32601")]);

        let counters = toolset.counters();
        assert_eq!((counters.calls, counters.failed_calls, counters.denied), (7, 3, 1), "{way:?}");
        assert_eq!((counters.cache_hits, counters.cache_misses), (0, 3), "the server allows no cache");
        log.with("monotonic_counter.mcp.client.cache.misses", "1");
        log.with("monotonic_counter.mcp.client.toolset.denied", "1");
    }
    // a server that is not there
    let gone = mcp_runtime::client::agent::Toolset::connecting("gone", || async {
        Client::connect("http://127.0.0.1:1/mcp?token=confidential").await
    });
    assert_eq!(within(gone.tools()).await.unwrap().len(), 0);
    let all = format!("{:?}", log.0.lock().unwrap());
    for secret in ["confidential", "note:", "missing", "hidden"] {
        assert!(!all.contains(secret), "`{secret}` in {all}");
    }
}
