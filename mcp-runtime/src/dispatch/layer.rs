//! Layers wrap every call of a user's function, on every transport: they see the method, the item, its raw arguments and
//! the caller, and may answer instead of the function, replace its reply, or delay it. Without layers a call costs
//! nothing extra. Only tests have layers so far.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use super::response::Reply;
use crate::connection::Principal;

/// The reply to a call: the inner layers and the function, which run when it is polled.
pub(crate) type ReplyFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// What a layer sees of a call.
#[derive(Debug, Clone)]
#[cfg_attr(not(test), expect(dead_code, reason = "only tests have layers so far"))]
pub(crate) struct LayeredCall {
    pub(crate) method: Box<str>,
    /// The name of the tool or prompt, or the URI of the resource.
    pub(crate) item: Box<str>,
    /// Raw JSON.
    pub(crate) arguments: Box<str>,
    pub(crate) caller: Option<Arc<Principal>>,
}

/// Wraps calls.
pub(crate) trait Layer: Send + Sync {
    /// The reply to a call; the function runs only if `next` is awaited.
    fn call(&self, call: &LayeredCall, next: ReplyFuture) -> ReplyFuture;
}

/// The layers of a server, outermost first.
#[derive(Clone)]
pub(crate) struct Layers(Vec<Arc<dyn Layer>>);

impl Layers {
    #[cfg(test)]
    pub(crate) fn new(layers: Vec<Arc<dyn Layer>>) -> Self {
        Self(layers)
    }

    /// Wraps a call in every layer.
    pub(super) fn wrap(&self, call: &LayeredCall, next: ReplyFuture) -> ReplyFuture {
        self.0.iter().rev().fold(next, |next, layer| layer.call(call, next))
    }
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layers({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    //! Layers that record, refuse, replace and delay calls, over every transport.

    use std::{
        sync::Mutex,
        time::{Duration, Instant},
    };

    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    use super::*;
    use crate::{
        dispatch::response::ResultBody,
        jsonrpc::ProtocolError,
        protocol::Revision,
        server::{Server, ServerBuilder},
        testing::TestServer,
        tool::{TaskMode, ToolCall, ToolDef, ToolResult},
    };

    /// Records each call and its outcome, under its own name.
    #[derive(Clone)]
    struct Recorder {
        name: &'static str,
        records: Arc<Mutex<Vec<String>>>,
    }

    impl Recorder {
        fn new(name: &'static str) -> Self {
            Self { name, records: Arc::default() }
        }

        fn record(&self, record: String) {
            self.records.lock().unwrap().push(record);
        }

        fn take(&self) -> Vec<String> {
            std::mem::take(&mut self.records.lock().unwrap())
        }
    }

    impl Layer for Recorder {
        fn call(&self, call: &LayeredCall, next: ReplyFuture) -> ReplyFuture {
            let this = self.clone();
            let caller = call.caller.as_ref().map_or("anonymous", |caller| &caller.subject).to_owned();
            this.record(format!("{} {} {} {} {caller}", self.name, call.method, call.item, call.arguments));
            Box::pin(async move {
                let reply = next.await;
                let outcome = match &reply.outcome {
                    Ok(ResultBody::Tool { .. }) => "result",
                    Ok(ResultBody::InputRequired { .. }) => "input required",
                    Ok(ResultBody::TaskCreated(_)) => "task",
                    Ok(_) => "other",
                    Err(_) => "error",
                };
                this.record(format!("{} {outcome}", this.name));
                reply
            })
        }
    }

    /// Does what the name of the tool says.
    struct Interfere;

    impl Layer for Interfere {
        fn call(&self, call: &LayeredCall, next: ReplyFuture) -> ReplyFuture {
            match &*call.item {
                "refused" => {
                    let error = ProtocolError::new(-32001, "not today");
                    Box::pin(std::future::ready(Reply::from(error)))
                }
                "replaced" => Box::pin(async move {
                    let reply = next.await;
                    assert!(reply.outcome.is_ok(), "the function has run");
                    ResultBody::Tool { result: ToolResult::text("something else"), wrap: false }.into()
                }),
                "delayed" => Box::pin(async move {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    next.await
                }),
                _ => next,
            }
        }
    }

    fn builder(recorder: &Recorder) -> ServerBuilder {
        let mut builder = Server::builder("layers", "1").keys([crate::crypto::test_key(7)]);
        for name in ["plain", "replaced", "delayed"] {
            builder = builder.add(ToolDef::builder(name).handler(|_: ToolCall| async { "unchanged" }));
        }
        let refused = ToolDef::builder("refused").handler(|_: ToolCall| async {
            panic!("the function of a refused call has run");
            #[allow(unreachable_code)]
            ""
        });
        let task = ToolDef::builder("task").task(TaskMode::Capable).handler(|_: ToolCall| async {
            tokio::task::yield_now().await;
            "unchanged"
        });
        let list_roots = ToolDef::builder("list_roots").handler(|call: ToolCall| async move {
            call.context.roots("roots").await.map_or("nothing", |_| "roots")
        });
        builder
            .add(refused)
            .add(task)
            .add(list_roots)
            .layers(Layers::new(vec![Arc::new(recorder.clone()), Arc::new(Interfere)]))
    }

    /// The records of a call with this outcome.
    fn records(tool: &str, arguments: &str, outcome: &str) -> [String; 2] {
        [format!("test tools/call {tool} {arguments} anonymous"), format!("test {outcome}")]
    }

    #[tokio::test]
    async fn layers_record_refuse_replace_and_delay_calls_in_memory() {
        let recorder = Recorder::new("test");
        let client = TestServer::new(builder(&recorder)).unwrap();
        client.call("plain", json!({ "a": 1 })).await.expect_text("unchanged");
        assert_eq!(recorder.take(), records("plain", r#"{"a":1}"#, "result"));
        client.call("refused", json!({})).await.expect_code(-32001);
        assert_eq!(recorder.take(), records("refused", "{}", "error"));
        client.call("replaced", json!({})).await.expect_text("something else");
        let before = Instant::now();
        client.call("delayed", json!({})).await.expect_text("unchanged");
        assert!(before.elapsed() >= Duration::from_millis(50));
        recorder.take();
        // a request whose item is unknown is not a call
        client.call("unknown", json!({})).await.expect_code(-32602);
        assert!(recorder.take().is_empty());
    }

    #[tokio::test]
    async fn the_first_layer_is_outermost() {
        let outer = Recorder::new("outer");
        let inner = Recorder { name: "inner", records: outer.records.clone() };
        let layers = Layers::new(vec![Arc::new(outer.clone()), Arc::new(inner)]);
        let client = TestServer::new(builder(&outer).layers(layers)).unwrap();
        client.call("plain", json!({})).await.expect_ok();
        let records = outer.take();
        let names: Vec<_> = records.iter().filter_map(|record| record.split(' ').next()).collect();
        // calls are wrapped from the inside out, and replies pass in the same order
        assert_eq!(names, ["inner", "outer", "inner", "outer"]);
    }

    #[tokio::test]
    async fn a_layer_sees_each_round_trip_of_a_call() {
        let recorder = Recorder::new("test");
        let client = TestServer::new(builder(&recorder)).unwrap();
        let client = client.answering(json!({ "roots": {} }), |_, _| Ok(json!({ "roots": [] })));
        client.call("list_roots", json!({})).await.expect_text("roots");
        let round_trips =
            [records("list_roots", "{}", "input required"), records("list_roots", "{}", "result")].concat();
        assert_eq!(recorder.take(), round_trips);
        // a legacy client answers during the call
        let client = client.legacy(Revision::LATEST_LEGACY);
        client.call("list_roots", json!({})).await.expect_text("roots");
        assert_eq!(recorder.take(), records("list_roots", "{}", "result"));
    }

    #[tokio::test]
    async fn a_layer_sees_a_call_that_becomes_a_task() {
        let recorder = Recorder::new("test");
        let client = TestServer::new(builder(&recorder)).unwrap();
        client.call_task("task", json!({})).await.expect_text("unchanged");
        assert_eq!(recorder.take(), records("task", "{}", "task"));
    }

    #[tokio::test]
    async fn layers_wrap_calls_over_streams_and_in_batches() {
        let recorder = Recorder::new("test");
        let server = builder(&recorder).build().unwrap();
        let (client, other) = tokio::io::duplex(1 << 16);
        let served = tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(other);
            server.serve(reader, writer).await
        });
        let (reader, mut writer) = tokio::io::split(client);
        let mut lines = BufReader::new(reader).lines();
        let mut send = async |message: &Value| -> Value {
            writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
            serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap()
        };
        send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } }))
        .await;
        let call = |id: u64, tool: &str| {
            let params = json!({ "name": tool, "arguments": {} });
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
        };
        assert_eq!(send(&call(1, "refused")).await["error"]["message"], "not today");
        assert_eq!(recorder.take(), records("refused", "{}", "error"));
        let replies = send(&json!([call(2, "plain"), call(3, "refused"), call(4, "replaced")])).await;
        assert_eq!(replies[0]["result"]["content"][0]["text"], "unchanged");
        assert_eq!(replies[1]["error"]["code"], -32001);
        assert_eq!(replies[2]["result"]["content"][0]["text"], "something else");
        assert_eq!(recorder.take().len(), 6);
        drop((writer, lines));
        served.await.unwrap().unwrap();
    }
}
