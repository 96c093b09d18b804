//! What stands around every call of a user's function, on every transport: layers see the method, the item, its raw
//! arguments and the caller, and may answer in place of the function, replace its reply, or delay it. Without any, a
//! call costs what it costs without this file. Only tests have layers so far.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use super::{Request, call::ItemCall, response::Reply};
use crate::connection::Caller;

/// The rest of the way to a function, and back.
pub(crate) type ReplyFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// A call as layers see it.
#[derive(Debug, Clone)]
#[cfg_attr(not(test), expect(dead_code, reason = "only tests have layers so far"))]
pub(crate) struct LayeredCall {
    pub(crate) method: Box<str>,
    /// The name of the tool or prompt, or the URI of the resource.
    pub(crate) item: Box<str>,
    /// Raw JSON.
    pub(crate) arguments: Box<str>,
    pub(crate) caller: Option<Arc<Caller>>,
}

impl LayeredCall {
    pub(super) fn new<C: ItemCall>(request: &Request<'_>, call: &C) -> Self {
        Self {
            method: request.method.into(),
            item: call.name().into(),
            arguments: call.arguments().into(),
            caller: request.context.caller.clone(),
        }
    }
}

/// Something around calls.
pub(crate) trait Layer: Send + Sync {
    /// The reply to a call; `next` is the rest of the way to the function, which runs only if this is awaited.
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

    /// Puts the layers around a call.
    pub(super) fn around(&self, call: &LayeredCall, next: ReplyFuture) -> ReplyFuture {
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
    //! Layers that count, refuse, replace and delay, on every way that a call can come.

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
        tool::{RuntimeTool, TaskMode, ToolCall, ToolResult},
    };

    /// Notes what it sees before and after; `name` tells one from another.
    #[derive(Clone)]
    struct Note {
        name: &'static str,
        notes: Arc<Mutex<Vec<String>>>,
    }

    impl Note {
        fn new(name: &'static str) -> Self {
            Self { name, notes: Arc::default() }
        }

        fn write(&self, note: String) {
            self.notes.lock().unwrap().push(note);
        }

        fn take(&self) -> Vec<String> {
            std::mem::take(&mut self.notes.lock().unwrap())
        }
    }

    impl Layer for Note {
        fn call(&self, call: &LayeredCall, next: ReplyFuture) -> ReplyFuture {
            let this = self.clone();
            let caller = call.caller.as_ref().map_or("nobody", |caller| &caller.subject).to_owned();
            this.write(format!("{} {} {} {} {caller}", self.name, call.method, call.item, call.arguments));
            Box::pin(async move {
                let reply = next.await;
                let outcome = match &reply.outcome {
                    Ok(ResultBody::Tool { .. }) => "result",
                    Ok(ResultBody::InputRequired { .. }) => "input required",
                    Ok(ResultBody::TaskCreated(_)) => "task",
                    Ok(_) => "other",
                    Err(_) => "error",
                };
                this.write(format!("{} {outcome}", this.name));
                reply
            })
        }
    }

    /// Does what the name of the tool says.
    struct Meddle;

    impl Layer for Meddle {
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

    fn builder(note: &Note) -> ServerBuilder {
        let mut builder = Server::builder("layers", "1").keys([[7; 32]]);
        for name in ["plain", "replaced", "delayed"] {
            builder =
                builder.add_tool(RuntimeTool::builder(name).handler(|_: ToolCall| async { "as it is" }));
        }
        let never = RuntimeTool::builder("refused").handler(|_: ToolCall| async {
            panic!("a refused call has no function");
            #[allow(unreachable_code)]
            ""
        });
        let task = RuntimeTool::builder("task").task(TaskMode::Capable).handler(|_: ToolCall| async {
            tokio::task::yield_now().await;
            "as it is"
        });
        let asks = RuntimeTool::builder("asks").handler(|call: ToolCall| async move {
            call.context.roots("roots").await.map_or("nothing", |_| "roots")
        });
        builder
            .add_tool(never)
            .add_tool(task)
            .add_tool(asks)
            .layers(Layers::new(vec![Arc::new(note.clone()), Arc::new(Meddle)]))
    }

    /// What is noted of a call that ends with `outcome`.
    fn noted(tool: &str, arguments: &str, outcome: &str) -> [String; 2] {
        [format!("note tools/call {tool} {arguments} nobody"), format!("note {outcome}")]
    }

    #[tokio::test]
    async fn layers_count_refuse_replace_and_delay_in_memory() {
        let note = Note::new("note");
        let client = TestServer::new(builder(&note)).unwrap();
        client.call("plain", json!({ "a": 1 })).await.expect_text("as it is");
        assert_eq!(note.take(), noted("plain", r#"{"a":1}"#, "result"));
        client.call("refused", json!({})).await.expect_code(-32001);
        assert_eq!(note.take(), noted("refused", "{}", "error"));
        client.call("replaced", json!({})).await.expect_text("something else");
        let before = Instant::now();
        client.call("delayed", json!({})).await.expect_text("as it is");
        assert!(before.elapsed() >= Duration::from_millis(50));
        note.take();
        // what dispatch refuses is not a call
        client.call("unknown", json!({})).await.expect_code(-32602);
        assert!(note.take().is_empty());
    }

    #[tokio::test]
    async fn the_first_layer_is_outermost() {
        let (outer, inner) = (Note::new("outer"), Note::new("inner"));
        let inner = Note { notes: outer.notes.clone(), ..inner };
        let layers = Layers::new(vec![Arc::new(outer.clone()), Arc::new(inner)]);
        let client = TestServer::new(builder(&outer).layers(layers)).unwrap();
        client.call("plain", json!({})).await.expect_ok();
        let notes = outer.take();
        let names: Vec<_> = notes.iter().filter_map(|note| note.split(' ').next()).collect();
        // a layer is put around the next one from the inside out; its reply passes the other way
        assert_eq!(names, ["inner", "outer", "inner", "outer"]);
    }

    #[tokio::test]
    async fn a_layer_sees_each_round_of_a_call_that_asks() {
        let note = Note::new("note");
        let client = TestServer::new(builder(&note)).unwrap();
        let client = client.answering(json!({ "roots": {} }), |_, _| Ok(json!({ "roots": [] })));
        client.call("asks", json!({})).await.expect_text("roots");
        let rounds = [noted("asks", "{}", "input required"), noted("asks", "{}", "result")].concat();
        assert_eq!(note.take(), rounds);
        // one call, which waits in place
        let client = client.legacy(Revision::LATEST_LEGACY);
        client.call("asks", json!({})).await.expect_text("roots");
        assert_eq!(note.take(), noted("asks", "{}", "result"));
    }

    #[tokio::test]
    async fn a_layer_sees_the_call_that_becomes_a_task() {
        let note = Note::new("note");
        let client = TestServer::new(builder(&note)).unwrap();
        client.call_task("task", json!({})).await.expect_text("as it is");
        assert_eq!(note.take(), noted("task", "{}", "task"));
    }

    #[tokio::test]
    async fn layers_are_around_calls_of_streams_and_batches() {
        let note = Note::new("note");
        let server = builder(&note).build().unwrap();
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
        assert_eq!(note.take(), noted("refused", "{}", "error"));
        let replies = send(&json!([call(2, "plain"), call(3, "refused"), call(4, "replaced")])).await;
        assert_eq!(replies[0]["result"]["content"][0]["text"], "as it is");
        assert_eq!(replies[1]["error"]["code"], -32001);
        assert_eq!(replies[2]["result"]["content"][0]["text"], "something else");
        assert_eq!(note.take().len(), 6);
        drop((writer, lines));
        served.await.unwrap().unwrap();
    }
}
