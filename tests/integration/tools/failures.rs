//! Failures: which errors are public, private or JSON-RPC errors, and that a panic fails only its own call.

use std::{error::Error, fmt, io};

use mcp_runtime::FromContext;

use crate::prelude::*;

/// What they fail with is for the model.
mod shown {
    use std::borrow::Cow;

    use crate::prelude::*;

    #[mcp_tool]
    fn with_blocks() -> Result<(), ToolError> {
        Err(ToolError::new(format!("{}!", "m")).with("more"))
    }
    #[mcp_tool]
    fn made_public() -> Result<u8, ToolError> {
        "x".parse::<u8>().public()
    }
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
}

#[tokio::test]
async fn what_a_function_writes_or_makes_public_is_sent_to_the_client() {
    let mut server = serve(mcp_runtime::server!().discover_in(concat!(module_path!(), "::shown")));
    let blocks = json!([{ "type": "text", "text": "m!" }, { "type": "text", "text": "more" }]);
    let whole = json!({ "content": blocks, "isError": true });
    assert_eq!(result(&server.call("with_blocks", json!({})).await), whole);
    for revision in LEGACY {
        for (tool, arguments, text) in [
            ("made_public", json!({}), "invalid digit found in string"),
            ("literal", json!({}), "m"),
            ("formatted", json!({ "n": 1 }), "m1"),
            ("borrowed", json!({ "text": "m2" }), "m2"),
            ("borrowed_or_owned", json!({ "text": "m3" }), "m3"),
            ("returned_string", json!({}), "m"),
            ("returned_literal", json!({}), "m"),
        ] {
            assert_eq!(failure(&server.call(tool, arguments).await), text, "{tool}");
        }
        server = server.legacy(revision);
        assert_eq!(*server.call("with_blocks", json!({})).await.value(), whole, "{revision}");
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

/// What they fail with is for the log.
mod hidden {
    use std::error::Error;

    use super::Outer;
    use crate::prelude::*;

    #[mcp_tool]
    fn own_error() -> Result<String, Outer> {
        Err(Outer(std::io::Error::other("secret inner")))
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
    fn made_private() -> Result<(), ToolError> {
        Err(ToolError::private("secret"))
    }
    #[mcp_tool]
    fn runtime_error() -> mcp_runtime::Result<String> {
        Err(mcp_runtime::Error::other(Outer(std::io::Error::other("secret inner"))))?;
        Ok(String::new())
    }
}

#[tokio::test]
async fn propagated_errors_are_private() {
    let builder = || mcp_runtime::server!().discover_in(concat!(module_path!(), "::hidden"));
    let (server, detailed) = (serve(builder()), serve(builder().detailed_errors()));
    for (tool, cause) in [
        ("own_error", "secret outer: secret inner"),
        ("boxed", "secret box"),
        ("with_context", "secret context: secret text"),
        ("question_mark", "invalid digit found in string"),
        ("made_private", "secret"),
        ("runtime_error", "secret outer: secret inner"),
    ] {
        let reply = server.call(tool, json!({})).await;
        assert_eq!(failure(&reply), format!("tool '{tool}' failed"));
        assert!(!reply.to_string().contains("secret"), "{reply}");
        let reply = detailed.call(tool, json!({})).await;
        assert_eq!(failure(&reply), format!("tool '{tool}' failed: {cause}"));
    }
}

mod panicking {
    use std::{error::Error, fmt};

    use mcp_runtime::FromContext;

    use crate::prelude::*;

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
        static USES: AtomicUsize = AtomicUsize::new(0);
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
}

#[tokio::test]
async fn a_panic_fails_only_its_call() {
    let server = serve(mcp_runtime::server!().discover_in(concat!(module_path!(), "::panicking")));
    // evaluated once before, for the published default
    let tools = server.list_tools().await;
    for tool in tools.iter().map(|tool| tool["name"].as_str().expect("a name")) {
        let reply = server.call(tool, json!({ "text": "x", "v": null })).await;
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
    assert_eq!(tools.len(), 12);
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
        (Sent(-32100, None), -32100),
        // of older revisions only
        (Sent(-32002, None), -32602),
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
            assert_eq!(logged.len(), if code == -32603 { 3 } else { 0 }, "{logged:?}");
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
async fn a_protocol_error_in_a_box_is_a_json_rpc_error_with_its_data() {
    fn error() -> ProtocolError {
        ProtocolError::new(1001, "no \"quota\"\n").with_data(json!({ "left": 0 }))
    }
    #[mcp_tool]
    fn boxed() -> Result<String, Box<dyn Error + Send + Sync>> {
        Err(Box::new(error()))
    }
    let mut server = serve(mcp_runtime::server!().tool::<boxed>());
    for revision in LEGACY {
        let reply = server.call("boxed", json!({})).await;
        assert_eq!((reply.error(), reply.value()), (Some(error()), &Value::Null));
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
    #[mcp_tool]
    async fn never(#[mcp(inject)] _n: Never) -> &'static str {
        "reached"
    }
    let server = serve(mcp_runtime::server!().tool::<never>());
    assert_eq!(failure(&server.call("never", json!({})).await), "tool 'never' failed");
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
