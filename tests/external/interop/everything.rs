//! The `everything` example as a client sees it: client requests, progress, log messages, change notifications, and
//! cancelled calls.
//!
//! Both SDKs support all of it, in legacy and modern revisions: `mcp` 2.3.0 for Python and
//! `@modelcontextprotocol/client` 2.4.0 for TypeScript. The revisions differ in two ways. `listen` is refused on a
//! legacy connection, so there the steps subscribe; and `logging/setLevel` is legacy, so modern requests carry their
//! level in `_meta`.
//! One thing only the TypeScript SDK does: see [`reports`].

use serde_json::{Value, json};

use crate::interop::{
    driver::{Mode, Sdk},
    expect::Step,
};

/// More calls than a stdio connection runs at once: if cancelled calls kept their permits, the last ones would wait
/// forever.
const CANCELLED: u32 = 300;

/// The text of `test_simple_text`.
const SIMPLE: &str = "This is a simple text response for testing.";

const WATCHED: &str = "test://watched-resource";

pub(crate) fn steps(sdk: Sdk, mode: Mode) -> Vec<Step> {
    let mut steps = progress();
    steps.extend(elicitation(sdk, mode));
    steps.extend(sampling());
    steps.extend(roots());
    steps.extend(several());
    steps.extend(if mode == Mode::Legacy { legacy_logging() } else { modern_logging() });
    steps.extend(if mode == Mode::Legacy { legacy_subscriptions() } else { modern_subscriptions() });
    steps.push(cancellation());
    // unexpected messages are reported here at the latest
    steps.push(call("test_simple_text", &json!({}), SIMPLE).into());
    steps
}

/// A request and what must come back besides its result; client requests and notifications that are not listed fail.
struct Expected {
    send: Value,
    want: Value,
}

impl Expected {
    fn new(send: Value, want: Value) -> Self {
        let mut expected = Self { send, want };
        expected.want["asked"] =
            json!({ "elicitation/create": null, "sampling/createMessage": null, "roots/list": null });
        expected.want["heard"] = json!([]);
        expected
    }

    /// The server sends a client request, and the client responds.
    fn with_request(mut self, method: &str, questions: &Value, answers: &Value) -> Self {
        self.send["answers"][method] = answers.clone();
        self.want["asked"][method] = questions.clone();
        self
    }

    /// The client receives these messages, in this order.
    fn with_messages(mut self, said: &[Value]) -> Self {
        self.send["hear"] = json!(said.len());
        self.want["heard"] = json!(said);
        self
    }
}

impl From<Expected> for Step {
    fn from(expected: Expected) -> Self {
        Self::result(expected.send, &expected.want)
    }
}

/// A call that succeeds with this text.
fn call(name: &str, arguments: &Value, text: &str) -> Expected {
    let send = json!({ "op": "call", "name": name, "arguments": arguments });
    Expected::new(send, result(&json!(text)))
}

/// A result that is one text.
fn result(text: &Value) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "structuredContent": null, "isError": null })
}

/// A call whose result is one text that contains these parts.
fn call_for_parts(name: &str, parts: &[&str]) -> Expected {
    let mut expected = call(name, &json!({}), "");
    expected.want["content"][0]["text"] = json!({ "$contains": parts });
    expected
}

fn progress() -> Vec<Step> {
    let mut three = call("test_tool_with_progress", &json!({}), "Progress test completed");
    three.want["progress"] = json!([
        { "progress": 0, "total": 100 },
        { "progress": 50, "total": 100 },
        { "progress": 100, "total": 100 },
    ]);
    vec![three.into()]
}

/// One form elicitation, as a client receives it.
fn form(message: &str, properties: &Value, required: &[&str]) -> Value {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    json!([{ "message": message, "requestedSchema": schema }])
}

fn accepted(content: &Value) -> Value {
    json!([{ "action": "accept", "content": content }])
}

/// The progress of a call that reports and then elicits. Without a session, the response comes with a second call,
/// which reports again.
fn reports(sdk: Sdk, mode: Mode) -> Vec<Value> {
    let report = json!({ "progress": 1, "total": 2 });
    match (sdk, mode) {
        (_, Mode::Legacy) => vec![report],
        (Sdk::Python, _) => vec![report.clone(), report],
        // the client's `notifications/initialized` comes in between
        (Sdk::TypeScript, _) => {
            vec![report.clone(), json!({ "progress": 1, "message": { "$contains": ["round 1"] } }), report]
        }
    }
}

fn elicitation(sdk: Sdk, mode: Mode) -> Vec<Step> {
    const METHOD: &str = "elicitation/create";
    let string = json!({ "type": "string" });
    let contact =
        form("Who are you?", &json!({ "username": string, "email": string }), &["username", "email"]);
    let ask = |parts: &[&str], answer: &Value| {
        let mut expected = call_for_parts("test_elicitation", parts).with_request(METHOD, &contact, answer);
        expected.send["arguments"] = json!({ "message": "Who are you?" });
        expected.into()
    };
    let name = form("What is your name?", &json!({ "name": string }), &["name"]);
    let color = form("Ada, what is your favorite color?", &json!({ "color": string }), &["color"]);

    let mut streaming = call("test_streaming_elicitation", &json!({}), "Answered true").with_request(
        METHOD,
        &json!([{ "message": "Go on?" }]),
        &accepted(&json!({ "value": true })),
    );
    streaming.want["progress"] = json!(reports(sdk, mode));

    let mut declined = call_for_parts("test_input_required_result_elicitation", &["declined", "`user_name`"])
        .with_request(METHOD, &name, &json!([{ "action": "decline" }]));
    declined.want["isError"] = json!(true);

    let mut prompt = Expected::new(
        json!({ "op": "prompt", "name": "test_input_required_result_prompt" }),
        json!({
            "messages": [{ "role": "user", "content": { "type": "text", "text": "Please help with tides." } }],
        }),
    );
    prompt = prompt.with_request(
        METHOD,
        &form("What is this about?", &json!({ "context": string }), &["context"]),
        &accepted(&json!({ "context": "tides" })),
    );

    vec![
        ask(
            &["action=accept", r#""username":"ada""#, r#""email":"ada@example.org""#],
            &accepted(&json!({ "username": "ada", "email": "ada@example.org" })),
        ),
        ask(&["action=decline, content={}"], &json!([{ "action": "decline" }])),
        ask(&["action=cancel, content={}"], &json!([{ "action": "cancel" }])),
        call_for_parts(
            "test_elicitation_sep1034_defaults",
            &["action=accept", r#""name":"Grace""#, r#""age":30"#, r#""score":95.5"#, r#""status":"active""#],
        )
        .with_request(
            METHOD,
            &json!([{
                "message": "Please check your profile",
                "requestedSchema": {
                    "properties": {
                        "name": { "type": "string", "default": "John Doe" },
                        "age": { "type": "integer", "default": 30 },
                        "score": { "type": "number", "default": 95.5 },
                        "status": { "enum": ["active", "inactive", "pending"], "default": "active" },
                        "verified": { "type": "boolean", "default": true },
                    },
                },
            }]),
            &accepted(&json!({ "name": "Grace" })),
        )
        .into(),
        call_for_parts(
            "test_elicitation_sep1330_enums",
            &["action=accept", r#""titledSingle":"value2""#, r#""untitledMulti":["option1","option3"]"#],
        )
        .with_request(
            METHOD,
            &json!([{ "message": "Please choose" }]),
            &accepted(&json!({
                "untitledSingle": "option1",
                "titledSingle": "value2",
                "legacyEnum": "opt3",
                "untitledMulti": ["option1", "option3"],
                "titledMulti": ["value1"],
            })),
        )
        .into(),
        call("test_input_required_result_elicitation", &json!({}), "Hello, Ada!")
            .with_request(METHOD, &name, &accepted(&json!({ "name": "Ada" })))
            .into(),
        declined.into(),
        call("test_input_required_result_request_state", &json!({}), "state-ok: confirmed")
            .with_request(
                METHOD,
                &json!([{ "message": "Please confirm" }]),
                &accepted(&json!({ "ok": true })),
            )
            .into(),
        call("test_input_required_result_multi_round", &json!({}), "Ada likes green")
            .with_request(
                METHOD,
                &json!([name[0], color[0]]),
                &json!([
                    { "action": "accept", "content": { "name": "Ada" } },
                    { "action": "accept", "content": { "color": "green" } },
                ]),
            )
            .into(),
        streaming.into(),
        prompt.into(),
    ]
}

/// One sampling request, as a client receives it.
fn sample(question: &str, max_tokens: u32) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": question } });
    json!([{ "messages": [message], "maxTokens": max_tokens }])
}

fn sampled(text: &str) -> Value {
    let content = json!({ "type": "text", "text": text });
    json!([{ "role": "assistant", "content": content, "model": "interop", "stopReason": "endTurn" }])
}

fn sampling() -> Vec<Step> {
    const METHOD: &str = "sampling/createMessage";
    vec![
        call("test_sampling", &json!({ "prompt": "Say hello" }), "LLM response: hello")
            .with_request(METHOD, &sample("Say hello", 100), &sampled("hello"))
            .into(),
        call("test_input_required_result_sampling", &json!({}), "Paris")
            .with_request(METHOD, &sample("What is the capital of France?", 100), &sampled("Paris"))
            .into(),
    ]
}

fn roots() -> Vec<Step> {
    let roots = json!([{ "roots": [{ "uri": "file:///work", "name": "work" }, { "uri": "file:///notes" }] }]);
    vec![
        call("test_input_required_result_list_roots", &json!({}), "file:///work, file:///notes")
            .with_request("roots/list", &json!([{}]), &roots)
            .into(),
    ]
}

fn several() -> Vec<Step> {
    let properties = json!({ "name": { "type": "string" } });
    vec![
        call("test_input_required_result_multiple_inputs", &json!({}), "Ada: Welcome! (1 roots)")
            .with_request(
                "elicitation/create",
                &form("What is your name?", &properties, &["name"]),
                &accepted(&json!({ "name": "Ada" })),
            )
            .with_request("sampling/createMessage", &sample("Write a greeting", 50), &sampled("Welcome!"))
            .with_request("roots/list", &json!([{}]), &json!([{ "roots": [{ "uri": "file:///work" }] }]))
            .into(),
    ]
}

/// A call that logs three times.
fn three_logs() -> Expected {
    call_for_parts("test_tool_with_logging", &[])
}

/// A call that logs once, with data.
fn one_log() -> Expected {
    call_for_parts("test_logging_tool", &[])
}

fn three_messages() -> [Value; 3] {
    ["Tool execution started", "Tool processing data", "Tool execution completed"]
        .map(|text| json!({ "method": "notifications/message", "params": { "level": "info", "data": text } }))
}

fn one_message() -> Value {
    let params = json!({ "level": "info", "logger": "everything", "data": { "event": "called" } });
    json!({ "method": "notifications/message", "params": params })
}

/// `logging/setLevel` applies to all later requests.
fn legacy_logging() -> Vec<Step> {
    let level = |level: &str| Expected::new(json!({ "op": "level", "level": level }), json!({})).into();
    vec![
        three_logs().with_messages(&three_messages()).into(),
        level("warning"),
        three_logs().into(),
        one_log().into(),
        level("debug"),
        one_log().with_messages(&[one_message()]).into(),
    ]
}

/// Each request carries the level.
fn modern_logging() -> Vec<Step> {
    let at = |level: &str, mut call: Expected| {
        call.send["level"] = json!(level);
        call
    };
    vec![
        three_logs().into(),
        at("info", three_logs()).with_messages(&three_messages()).into(),
        at("warning", three_logs()).into(),
        at("debug", one_log()).with_messages(&[one_message()]).into(),
        one_log().into(),
    ]
}

fn changed(list: &str) -> Value {
    json!({ "method": format!("notifications/{list}/list_changed") })
}

fn updated() -> Value {
    json!({ "method": "notifications/resources/updated", "params": { "uri": WATCHED } })
}

/// A call that publishes a change.
fn trigger(what: &str) -> Expected {
    call_for_parts(&format!("test_trigger_{what}_change"), &[])
}

/// A session is notified of every list, and of a resource while it is subscribed to it.
fn legacy_subscriptions() -> Vec<Step> {
    let subscription = |op: &str| Expected::new(json!({ "op": op, "uri": WATCHED }), json!({})).into();
    vec![
        trigger("tool").with_messages(&[changed("tools")]).into(),
        trigger("prompt").with_messages(&[changed("prompts")]).into(),
        trigger("resource").into(),
        subscription("subscribe"),
        trigger("resource").with_messages(&[updated()]).into(),
        subscription("unsubscribe"),
        trigger("resource").into(),
    ]
}

/// A client is notified of what its listen stream selects, while it is open; and the SDK knows a stream that the server
/// has ended from one that was lost.
fn modern_subscriptions() -> Vec<Step> {
    let listen = |filter: &Value| {
        Expected::new(json!({ "op": "listen", "filter": filter }), json!({ "honored": filter })).into()
    };
    let unlisten = || Expected::new(json!({ "op": "unlisten" }), json!({})).into();
    vec![
        trigger("tool").into(),
        listen(&json!({ "toolsListChanged": true, "resourceSubscriptions": [WATCHED] })),
        trigger("tool").with_messages(&[changed("tools")]).into(),
        trigger("prompt").into(),
        trigger("resource").with_messages(&[updated()]).into(),
        unlisten(),
        trigger("tool").into(),
        listen(&json!({ "promptsListChanged": true })),
        trigger("prompt").with_messages(&[changed("prompts")]).into(),
        trigger("resource").into(),
        unlisten(),
        listen(&json!({ "toolsListChanged": true })),
        call("test_end_subscriptions", &json!({}), "Ended").into(),
        Expected::new(json!({ "op": "ended" }), json!({ "ended": "graceful" })).into(),
    ]
}

fn cancellation() -> Step {
    let send = json!({
        "op": "cancel",
        "name": "slow_compute",
        "arguments": { "seconds": 3600 },
        "meanwhile": "test_simple_text",
        "times": CANCELLED,
    });
    Expected::new(send, json!({ "last": result(&json!(SIMPLE)) })).into()
}
