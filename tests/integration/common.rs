//! Helpers that compare replies as exact JSON, and read the log.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    sync::{Arc, Mutex, PoisonError},
};

use mcp_runtime::{
    Revision, ServerBuilder,
    audit::Audit,
    testing::{Reply, TestServer},
};
use mcp_tests::support::{PrintedText, Subscribed, soon, subscribe};
use serde_json::Value;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{
    Layer,
    layer::{self, SubscriberExt as _},
    registry::LookupSpan,
};

/// The legacy revisions, oldest first.
pub(crate) const LEGACY: [Revision; 4] =
    [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

/// What users are asked for.
#[mcp_runtime::mcp_type]
pub(crate) struct Name {
    pub(crate) name: String,
}

/// A modern in-memory client of a server that is built from `builder`.
#[track_caller]
pub(crate) fn serve(builder: ServerBuilder) -> TestServer {
    match TestServer::new(builder) {
        Ok(server) => server,
        Err(error) => panic!("{error:?}"),
    }
}

/// The message of the build error.
#[track_caller]
pub(crate) fn build_error(builder: ServerBuilder) -> String {
    match builder.build() {
        Ok(_) => panic!("the server was built"),
        Err(error) => format!("{error:?}"),
    }
}

/// Lines of an audit log.
#[derive(Clone, Default)]
pub(crate) struct AuditLines(pub(crate) Arc<Mutex<Vec<String>>>);

impl AuditLines {
    pub(crate) fn sink(&self) -> Audit {
        let lines = self.0.clone();
        Audit::to(move |line: &str| lines.lock().unwrap().push(line.to_owned()))
    }

    /// The next line, as it was written.
    pub(crate) async fn text(&self) -> String {
        assert!(soon(|| !self.0.lock().unwrap().is_empty()).await, "no line");
        self.0.lock().unwrap().remove(0)
    }

    pub(crate) async fn next(&self) -> Value {
        serde_json::from_str(&self.text().await).unwrap()
    }
}

/// A result without the members that every modern result has, after checking that they are present.
#[track_caller]
pub(crate) fn result(reply: &Reply) -> Value {
    let mut result = reply.value().clone();
    let map = result.as_object_mut().unwrap_or_else(|| panic!("not a result: {reply}"));
    assert_eq!(map.remove("resultType"), Some("complete".into()), "{reply}");
    let Some(Value::Object(mut meta)) = map.remove("_meta") else { panic!("no `_meta`: {reply}") };
    let info = meta.remove("io.modelcontextprotocol/serverInfo");
    assert!(info.is_some_and(|info| info["name"].is_string() && info["version"].is_string()), "{reply}");
    if !meta.is_empty() {
        map.insert("_meta".into(), Value::Object(meta));
    }
    result
}

/// The only entry of `tools/list`.
pub(crate) async fn only_tool(server: &TestServer) -> Value {
    match server.list_tools().await.as_slice() {
        [one] => one.clone(),
        other => panic!("not one tool: {other:?}"),
    }
}

/// The schema of one argument of the only tool.
pub(crate) async fn property(server: &TestServer, name: &str) -> Value {
    only_tool(server).await["inputSchema"]["properties"][name].clone()
}

/// The entry of a list with that name.
#[track_caller]
pub(crate) fn named<'a>(entries: &'a [Value], name: &str) -> &'a Value {
    entries.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("no `{name}`: {entries:?}"))
}

/// The names of the tools in the response to `tools/list`.
pub(crate) fn tool_names(reply: &Value) -> Vec<&str> {
    let tools = reply["result"]["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str()).collect()
}

/// The text of a failed call.
#[track_caller]
pub(crate) fn failure(reply: &Reply) -> String {
    assert_eq!(reply.value()["isError"], true, "{reply}");
    reply.text()
}

/// Code and message of a JSON-RPC error.
#[track_caller]
pub(crate) fn refusal(reply: &Reply) -> (i64, String) {
    match reply.error() {
        Some(error) => (error.code, error.message),
        None => panic!("not an error: {reply}"),
    }
}

/// What this thread logs while it is held, and what tasks of its current-thread runtime log.
pub(crate) struct ThreadLog {
    lines: Lines,
    _subscribed: Subscribed,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl ThreadLog {
    pub(crate) fn capture() -> Self {
        let lines = Lines::default();
        let _subscribed = subscribe(tracing_subscriber::registry().with(lines.clone()));
        Self { lines, _subscribed }
    }

    /// The entries that contain a text, each as `LEVEL name=value ..`.
    pub(crate) fn with(&self, text: &str) -> Vec<String> {
        let lines = self.lines.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|line| line.contains(text)).cloned().collect()
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: layer::Context<'_, S>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &Field, value: &dyn fmt::Debug| {
            let _ = write!(line, " {field}={value:?}");
        });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

/// Prints every event and span of this thread, until what comes with it is dropped.
pub(crate) fn everything_printed() -> (PrintedText, impl Sized) {
    let everything = PrintedText::default();
    let writer = everything.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::FULL)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    (everything, subscribe(subscriber))
}

/// What a span has recorded.
pub(crate) type Fields = BTreeMap<String, String>;

pub(crate) struct IntoFields<'a>(pub(crate) &'a mut Fields);

impl Visit for IntoFields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

/// The spans of requests of this thread while it is held.
pub(crate) struct Spans {
    ended: Ended,
    _subscribed: Subscribed,
}

#[derive(Clone, Default)]
struct Ended(Arc<Mutex<Vec<Fields>>>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Ended {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: layer::Context<'_, S>) {
        let mut fields = Fields::new();
        attributes.record(&mut IntoFields(&mut fields));
        context.span(id).expect("it is new").extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: layer::Context<'_, S>) {
        let span = context.span(id).expect("it is open");
        let mut extensions = span.extensions_mut();
        values.record(&mut IntoFields(extensions.get_mut().expect("its fields")));
    }

    fn on_close(&self, id: span::Id, context: layer::Context<'_, S>) {
        let fields = context.span(&id).expect("it ends").extensions_mut().remove().expect("its fields");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(fields);
    }
}

impl Spans {
    pub(crate) fn capture() -> Self {
        let ended = Ended::default();
        let _subscribed = subscribe(tracing_subscriber::registry().with(ended.clone()));
        Self { ended, _subscribed }
    }

    /// Those that have ended since the last call of this.
    pub(crate) fn take(&self) -> Vec<Fields> {
        let mut spans = std::mem::take(&mut *self.ended.0.lock().unwrap_or_else(PoisonError::into_inner));
        spans.retain(|fields| fields.contains_key("mcp.method.name"));
        spans
    }

    #[track_caller]
    pub(crate) fn only(&self) -> Fields {
        let mut spans = self.take();
        assert_eq!(spans.len(), 1, "{spans:?}");
        spans.remove(0)
    }
}

/// The samples of a metric: labels and value.
pub(crate) fn samples(text: &str, metric: &str) -> BTreeMap<String, String> {
    let of_metric = text.lines().filter_map(|line| line.strip_prefix(metric));
    let samples = of_metric.filter_map(|rest| rest.rsplit_once(' '));
    let samples: BTreeMap<_, _> =
        samples.map(|(labels, value)| (labels.to_owned(), value.to_owned())).collect();
    let has_type = text.contains(&format!("# TYPE {} ", metric.trim_end_matches("_count")));
    assert!(has_type || samples.is_empty(), "{metric} has no type: {text}");
    samples
}
