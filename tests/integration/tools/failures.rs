//! Failures: which errors are public, private or JSON-RPC errors, and that a panic fails only its own call.

use std::{borrow::Cow, error::Error, fmt, io};

use mcp_runtime::FromContext;

use crate::prelude::*;

#[tokio::test]
async fn public_errors_are_sent_to_the_client() {
    #[mcp_tool]
    fn fails() -> Result<String, ToolError> {
        Err(ToolError::new("m"))
    }
    #[mcp_tool]
    fn with_blocks() -> Result<(), ToolError> {
        Err(ToolError::new(format!("{}!", "m")).with("more"))
    }
    #[mcp_tool]
    fn made_public() -> Result<u8, ToolError> {
        "x".parse::<u8>().public()
    }
    let mut server =
        serve(mcp_runtime::server!().tool::<fails>().tool::<with_blocks>().tool::<made_public>());
    let expected = json!({ "content": [{ "type": "text", "text": "m" }], "isError": true });
    assert_eq!(result(&server.call("fails", json!({})).await), expected);
    assert_eq!(
        result(&server.call("with_blocks", json!({})).await),
        json!({ "content": [{ "type": "text", "text": "m!" }, { "type": "text", "text": "more" }], "isError": true })
    );
    assert_eq!(failure(&server.call("made_public", json!({})).await), "invalid digit found in string");
    for revision in LEGACY {
        server = server.legacy(revision);
        assert_eq!(*server.call("fails", json!({})).await.value(), expected, "{revision}");
    }
}

#[tokio::test]
async fn text_that_a_function_writes_is_sent_to_the_client() {
    #[mcp_tool]
    fn literal() -> Result<(), ToolError> {
        Err("m".into())
    }
    #[mcp_tool]
    fn formatted(n: u8) -> Result<(), ToolError> {
        Err(format!("m{n}"))?;
        Ok(())
    }
    #[mcp_tool]
    fn borrowed(text: String) -> Result<(), ToolError> {
        Err(text.as_str())?;
        Ok(())
    }
    #[mcp_tool]
    fn borrowed_or_owned(text: String) -> Result<(), ToolError> {
        Err(Cow::Borrowed(text.as_str()))?;
        Ok(())
    }
    #[mcp_tool]
    async fn returned_string() -> Result<(), String> {
        tokio::task::yield_now().await;
        Err("m".into())
    }
    #[mcp_tool]
    fn returned_literal() -> Result<(), &'static str> {
        Err("m")
    }
    #[mcp_tool]
    fn hidden() -> Result<(), ToolError> {
        Err(ToolError::private("secret"))
    }
    let builder = || {
        mcp_runtime::server!()
            .tool::<literal>()
            .tool::<formatted>()
            .tool::<borrowed>()
            .tool::<borrowed_or_owned>()
            .tool::<returned_string>()
            .tool::<returned_literal>()
            .tool::<hidden>()
    };
    for server in [serve(builder()), serve(builder()).legacy(LEGACY[0])] {
        for (tool, arguments, text) in [
            ("literal", json!({}), "m"),
            ("formatted", json!({ "n": 1 }), "m1"),
            ("borrowed", json!({ "text": "m2" }), "m2"),
            ("borrowed_or_owned", json!({ "text": "m3" }), "m3"),
            ("returned_string", json!({}), "m"),
            ("returned_literal", json!({}), "m"),
            ("hidden", json!({}), "tool 'hidden' failed"),
        ] {
            assert_eq!(failure(&server.call(tool, arguments).await), text, "{tool}");
        }
    }
}

#[derive(Debug)]
struct Outer(io::Error);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("secret outer")
    }
}

impl Error for Outer {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[mcp_tool]
fn own_error() -> Result<String, Outer> {
    Err(Outer(io::Error::other("secret inner")))
}
#[mcp_tool]
async fn boxed() -> Result<String, Box<dyn Error + Send + Sync>> {
    Err("secret box")?;
    Ok(String::new())
}
#[mcp_tool]
async fn with_context() -> Result<String, ToolError> {
    tokio::task::yield_now().await;
    Err(anyhow::anyhow!("secret text").context("secret context"))?;
    Ok(String::new())
}
#[mcp_tool]
fn question_mark() -> Result<String, ToolError> {
    Ok("secret".parse::<u8>()?.to_string())
}
#[mcp_tool]
fn runtime_error() -> mcp_runtime::Result<String> {
    Err(mcp_runtime::Error::other(Outer(io::Error::other("secret inner"))))?;
    Ok(String::new())
}

#[tokio::test]
async fn propagated_errors_are_private() {
    let tools = ["own_error", "boxed", "with_context", "question_mark", "runtime_error"];
    let builder = || {
        mcp_runtime::server!()
            .tool::<own_error>()
            .tool::<boxed>()
            .tool::<with_context>()
            .tool::<question_mark>()
            .tool::<runtime_error>()
    };
    let server = serve(builder());
    for tool in tools {
        let reply = server.call(tool, json!({})).await;
        assert_eq!(failure(&reply), format!("tool '{tool}' failed"));
        assert!(!reply.to_string().contains("secret"), "{reply}");
    }
    let server = serve(builder().detailed_errors());
    for (tool, cause) in tools.into_iter().zip([
        "secret outer: secret inner",
        "secret box",
        "secret context: secret text",
        "invalid digit found in string",
        "secret outer: secret inner",
    ]) {
        let reply = server.call(tool, json!({})).await;
        assert_eq!(failure(&reply), format!("tool '{tool}' failed: {cause}"));
    }
}

#[mcp_tool]
fn in_place(text: String) -> String {
    assert!(text.is_empty(), "secret {text}");
    text
}
#[mcp_tool]
async fn at_once() -> String {
    panic!("secret");
}
#[mcp_tool]
async fn later() -> String {
    tokio::task::yield_now().await;
    panic!("secret");
}
#[mcp_tool(blocking)]
fn elsewhere() -> String {
    panic!("secret");
}
#[mcp_tool]
fn odd_payload() -> String {
    std::panic::panic_any(7)
}
#[mcp_tool]
fn from_context(#[mcp(inject)] _value: Panicking) -> String {
    String::new()
}
#[mcp_tool]
fn in_a_default(#[mcp(default = explode())] n: u8) -> String {
    n.to_string()
}
#[mcp_tool]
fn in_decoding(v: Explosive) -> String {
    let _ = v;
    String::new()
}
#[mcp_tool]
fn in_encoding() -> Json<Unspeakable> {
    Json(Unspeakable)
}

struct Panicking;

impl FromContext for Panicking {
    type Error = ToolError;

    async fn from_context(_: &Context) -> Result<Self, ToolError> {
        panic!("secret")
    }
}

/// Succeeds while the server is built, which checks and publishes it, and panics when it is used.
fn explode() -> u8 {
    use std::sync::atomic::{AtomicU8, Ordering};
    static USES: AtomicU8 = AtomicU8::new(0);
    assert!(USES.fetch_add(1, Ordering::Relaxed) < 2, "secret");
    1
}

#[derive(schemars::JsonSchema)]
struct Explosive;

impl<'de> serde::Deserialize<'de> for Explosive {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(d)?;
        panic!("secret")
    }
}

#[derive(schemars::JsonSchema)]
struct Unspeakable;

impl serde::Serialize for Unspeakable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("secret")
    }
}

#[tokio::test]
async fn a_panic_fails_only_its_call() {
    let server = serve(
        mcp_runtime::server!()
            .tool::<in_place>()
            .tool::<at_once>()
            .tool::<later>()
            .tool::<elsewhere>()
            .tool::<odd_payload>()
            .tool::<from_context>()
            .tool::<in_a_default>()
            .tool::<in_decoding>()
            .tool::<in_encoding>()
            .tool::<unprintable>()
            .tool::<unprintable_later>()
            .tool::<falls_apart>(),
    );
    // evaluated once before, for the published default
    server.list_tools().await;
    for (tool, sent) in [
        ("in_place", json!({ "text": "x" })),
        ("at_once", json!({})),
        ("later", json!({})),
        ("elsewhere", json!({})),
        ("odd_payload", json!({})),
        ("from_context", json!({})),
        ("in_a_default", json!({})),
        ("in_decoding", json!({ "v": null })),
        ("in_encoding", json!({})),
        ("unprintable", json!({})),
        ("unprintable_later", json!({})),
        ("falls_apart", json!({})),
    ] {
        let reply = server.call(tool, sent).await;
        match tool {
            // the panic comes when the result is ready
            "unprintable" | "unprintable_later" | "falls_apart" => {
                assert!(reply.is_error() || reply.error().is_some());
            }
            _ => assert_eq!(failure(&reply), format!("tool '{tool}' failed")),
        }
        assert!(!reply.to_string().contains("secret"), "{reply}");
        server.call("in_place", json!({ "text": "" })).await.expect_text("");
    }
}

#[derive(Clone, Copy)]
struct Sent(i64, Option<&'static str>);

#[mcp_tool(name = "coded")]
fn coded_tool(sent: &Sent) -> Result<String, ProtocolError> {
    Err(coded(*sent))
}

#[mcp_prompt(name = "coded")]
fn coded_prompt(sent: &Sent) -> Result<String, ToolError> {
    Err(coded(*sent).into())
}

#[mcp_resource(uri = "coded://it")]
async fn coded_resource(sent: &Sent) -> Result<String, ToolError> {
    tokio::task::yield_now().await;
    Err(coded(*sent).into())
}

fn coded(Sent(code, data): Sent) -> ProtocolError {
    let error = ProtocolError::new(code, "m");
    match data {
        Some(json) => error.with_data(serde_json::from_str(json).expect("JSON")),
        None => error,
    }
}

fn coded_server(sent: Sent) -> ServerBuilder {
    let items = mcp_runtime::server!().tool::<coded_tool>().prompt::<coded_prompt>();
    items.resource::<coded_resource>().state(sent)
}

const CAPABILITIES: Option<&str> = Some(r#"{"requiredCapabilities":{"roots":{}}}"#);
const VERSIONS: Option<&str> = Some(r#"{"supported":["2026-07-28"],"requested":"1"}"#);

#[tokio::test]
async fn codes_that_mcp_reserves_are_sent_only_as_it_defines_them() {
    for (sent, modern) in [
        (Sent(-32020, None), -32603),
        (Sent(-32021, CAPABILITIES), -32021),
        (Sent(-32021, None), -32603),
        (Sent(-32022, VERSIONS), -32022),
        (Sent(-32022, CAPABILITIES), -32603),
        (Sent(-32023, None), -32603),
        (Sent(-32050, CAPABILITIES), -32603),
        (Sent(-32099, None), -32603),
        (Sent(-32100, None), -32100),
        (Sent(-32019, None), -32019),
        (Sent(1, None), 1),
    ] {
        let is_reserved = (-32099..=-32020).contains(&sent.0);
        let mut server = serve(coded_server(sent));
        for revision in LEGACY.into_iter().map(Some).chain([None]).rev() {
            let code = match revision {
                None => modern,
                Some(_) if is_reserved => -32603,
                Some(_) => sent.0,
            };
            if let Some(revision) = revision {
                server = server.legacy(revision);
            }
            let log = ThreadLog::capture();
            let replies = [
                server.call("coded", json!({})).await,
                server.prompt("coded", json!({})).await,
                server.read("coded://it").await,
            ];
            for reply in replies {
                assert_eq!(refusal(&reply), (code, "m".into()), "{} {revision:?}", sent.0);
            }
            let logged = log.with(&format!("code={}", sent.0));
            assert_eq!(logged.len(), if code == sent.0 { 0 } else { 3 }, "{logged:?}");
            assert!(
                logged.iter().all(|line| line.starts_with("WARN") && line.contains("coded")),
                "{logged:?}"
            );
        }
    }
}

#[tokio::test]
async fn http_answers_the_codes_of_mcp_with_status_400() {
    for (sent, status) in [
        (Sent(-32020, None), 200),
        (Sent(-32021, CAPABILITIES), 400),
        (Sent(-32022, VERSIONS), 400),
        (Sent(-32050, None), 200),
        (Sent(1, None), 200),
    ] {
        let served = HttpServer::start(coded_server(sent)).await;
        for (method, params) in [
            ("tools/call", json!({ "name": "coded" })),
            ("prompts/get", json!({ "name": "coded" })),
            ("resources/read", json!({ "uri": "coded://it" })),
        ] {
            let reply = HttpRequest::modern(1, method, params).send(served.address).await;
            assert_eq!(reply.status, status, "{method}: {}", reply.text());
        }
    }
}

#[tokio::test]
async fn legacy_error_codes_are_replaced_for_modern_clients() {
    #[mcp_tool]
    fn lost() -> Result<String, ProtocolError> {
        Err(ProtocolError::new(-32002, "gone").with_data(json!({ "uri": "a://b" })))
    }
    #[mcp_resource(uri = "gone://{id}")]
    async fn gone(id: String) -> Result<String, ToolError> {
        tokio::task::yield_now().await;
        Err(ProtocolError::new(-32002, id).into())
    }
    let mut server = serve(mcp_runtime::server!().tool::<lost>().resource::<gone>());
    server.call("lost", json!({})).await.expect_code(-32602);
    assert_eq!(server.call("lost", json!({})).await.error().expect("an error").message, "gone");
    server.read("gone://x").await.expect_code(-32602);
    for revision in LEGACY {
        server = server.legacy(revision);
        server.call("lost", json!({})).await.expect_code(-32002);
        server.read("gone://x").await.expect_code(-32002);
    }
}

#[tokio::test]
async fn protocol_errors_are_json_rpc_errors() {
    fn error() -> ProtocolError {
        ProtocolError::new(1001, "no \"quota\"\n").with_data(json!({ "left": 0 }))
    }
    #[mcp_tool]
    fn direct() -> Result<String, ProtocolError> {
        Err(error())
    }
    #[mcp_tool]
    async fn question_mark() -> Result<String, ToolError> {
        tokio::task::yield_now().await;
        Err(error())?;
        Ok(String::new())
    }
    #[mcp_tool]
    fn boxed() -> Result<String, Box<dyn Error + Send + Sync>> {
        Err(Box::new(error()))
    }
    #[mcp_tool]
    fn plain() -> Result<String, ProtocolError> {
        Err(ProtocolError::invalid_params("no"))
    }
    let mut server = serve(
        mcp_runtime::server!().tool::<direct>().tool::<question_mark>().tool::<boxed>().tool::<plain>(),
    );
    for revision in LEGACY {
        for tool in ["direct", "question_mark", "boxed"] {
            let reply = server.call(tool, json!({})).await;
            assert_eq!(reply.error(), Some(error()), "{tool}");
            assert!(reply.value().is_null(), "{tool}");
        }
        let reply = server.call("plain", json!({})).await;
        assert_eq!(refusal(&reply), (-32602, "no".into()));
        assert_eq!(reply.error().and_then(|error| error.data), None);
        server = server.legacy(revision);
    }
}

#[tokio::test]
async fn missing_request_values_are_private_errors() {
    struct Never;
    impl FromContext for Never {
        type Error = io::Error;

        async fn from_context(_: &Context) -> Result<Self, io::Error> {
            Err(io::Error::other("secret"))
        }
    }
    struct Refused;
    impl FromContext for Refused {
        type Error = ToolError;

        async fn from_context(_: &Context) -> Result<Self, ToolError> {
            Err(ToolError::new("log in first"))
        }
    }
    #[mcp_tool]
    async fn never(#[mcp(inject)] _n: Never) -> &'static str {
        "reached"
    }
    #[mcp_tool]
    fn refused(#[mcp(inject)] _n: Refused) -> &'static str {
        "reached"
    }
    let server = serve(mcp_runtime::server!().tool::<never>().tool::<refused>());
    assert_eq!(failure(&server.call("never", json!({})).await), "tool 'never' failed");
    assert_eq!(failure(&server.call("refused", json!({})).await), "log in first");
}

/// Panics when it is formatted or dropped.
#[derive(Debug)]
struct Cursed;

impl fmt::Display for Cursed {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("secret")
    }
}
impl Error for Cursed {}

struct Mine;

impl Drop for Mine {
    fn drop(&mut self) {
        panic!("secret")
    }
}

#[mcp_tool]
fn unprintable() -> Result<String, Cursed> {
    Err(Cursed)
}
#[mcp_tool]
async fn unprintable_later() -> Result<String, Cursed> {
    tokio::task::yield_now().await;
    Err(Cursed)
}
#[mcp_tool]
async fn falls_apart() -> String {
    let _mine = Mine;
    tokio::task::yield_now().await;
    "done".into()
}

#[tokio::test]
async fn a_public_context_is_what_the_model_reads_and_the_log_has_the_error_with_its_causes() {
    fn read() -> anyhow::Result<u8> {
        anyhow::Context::context("x".parse::<u8>(), "the file is damaged")
    }
    #[mcp_tool]
    fn with_context() -> Result<u8, ToolError> {
        read().public_context("not known at the moment")
    }
    let log = ThreadLog::capture();
    let server = serve(mcp_runtime::server!().tool::<with_context>());
    assert_eq!(failure(&server.call("with_context", json!({})).await), "not known at the moment");
    let logged = log.with("call failed");
    assert!(logged.len() == 1 && logged[0].contains("the file is damaged: invalid digit"), "{logged:?}");
    assert!(log.with("the client was told only").is_empty());
    let detailed = serve(mcp_runtime::server!().tool::<with_context>().detailed_errors());
    let shown = failure(&detailed.call("with_context", json!({})).await);
    assert!(shown.starts_with("not known at the moment: the file is damaged"), "{shown}");
}

#[tokio::test]
async fn the_first_private_failure_of_an_item_says_once_in_the_log_how_the_model_gets_to_read_why() {
    #[mcp_tool]
    fn bails_at_first() -> anyhow::Result<u8> {
        anyhow::bail!("secret");
    }
    #[mcp_tool]
    fn bails_in_detail() -> anyhow::Result<u8> {
        anyhow::bail!("shown");
    }
    #[mcp_tool]
    fn panics_at_first() -> u8 {
        panic!("a bug")
    }
    let log = ThreadLog::capture();
    let server = serve(mcp_runtime::server!().tool::<bails_at_first>().tool::<panics_at_first>());
    for _ in 0..3 {
        assert_eq!(failure(&server.call("bails_at_first", json!({})).await), "tool 'bails_at_first' failed");
    }
    server.call("panics_at_first", json!({})).await.expect_failure("tool 'panics_at_first' failed");
    let detailed = serve(mcp_runtime::server!().tool::<bails_in_detail>().detailed_errors());
    detailed.call("bails_in_detail", json!({})).await.expect_failure("tool 'bails_in_detail' failed: shown");
    let hints = log.with("the client was told only");
    assert_eq!(hints.len(), 1, "{hints:?}");
    assert!(hints[0].starts_with("WARN") && hints[0].contains("bails_at_first"), "{hints:?}");
    assert!(hints[0].contains("`.public_context(") && !hints[0].contains("secret"), "{hints:?}");
    assert_eq!(log.with("call failed").len(), 5);
}
