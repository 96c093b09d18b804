//! From the entries in the lists of another server to items of this one: their members are kept, and texts for people and
//! models are bounded and have no characters that cannot be seen.

use std::sync::Arc;

use mcp_runtime::{
    Completion, Context,
    content::{Icon, Theme},
    prompt::{PromptArgument, PromptCall, PromptDef},
    resource::{ResourceCall, ResourceDef},
    tool::{ToolCall, ToolDef},
};
use serde_json::{Map, Value, json};

use crate::upstream::Upstream;

/// The longest title or description, in characters.
const MAX_TEXT: usize = 16 << 10;
/// The deepest value whose texts are read; a schema that is nested more deeply is not offered.
const MAX_DEPTH: usize = 100;

/// The members of an entry, which are taken one by one.
pub(crate) struct Definition(Map<String, Value>);

/// A builder with the texts and icons of a definition, which every kind of item has.
macro_rules! described {
    ($definition:ident, $builder:expr) => {{
        let mut builder = $builder;
        if let Some(title) = $definition.text("title") {
            builder = builder.title(title);
        }
        if let Some(description) = $definition.text("description") {
            builder = builder.description(description);
        }
        for icon in $definition.icons() {
            builder = builder.icon(icon);
        }
        builder
    }};
}

impl Definition {
    /// # Errors
    /// It is not an object, or nested too deeply.
    pub(crate) fn read(entry: &Value) -> Result<Self, String> {
        let mut entry = entry.clone();
        clean(&mut entry, 0)?;
        match entry {
            Value::Object(members) => Ok(Self(members)),
            _ => Err("its definition is not an object".to_owned()),
        }
    }

    fn text(&mut self, key: &str) -> Option<String> {
        match self.0.remove(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    fn object(&mut self, key: &str) -> Map<String, Value> {
        match self.0.remove(key) {
            Some(Value::Object(members)) => members,
            _ => Map::new(),
        }
    }

    /// The icons that clients accept.
    fn icons(&mut self) -> Vec<Icon> {
        let Some(Value::Array(icons)) = self.0.remove("icons") else { return Vec::new() };
        icons.iter().filter_map(icon).collect()
    }

    /// The URI of the page that shows the results of a tool.
    pub(crate) fn page(&self) -> Option<&str> {
        let meta = self.0.get("_meta")?;
        let page = meta.pointer("/ui/resourceUri").or_else(|| meta.get("ui/resourceUri"));
        page?.as_str()
    }

    /// The tool, under this name.
    pub(crate) fn tool(mut self, name: &str, own: &str, upstream: &Arc<Upstream>) -> ToolDef {
        drop(self.text("name"));
        // tasks of the other server are awaited
        drop(self.0.remove("execution"));
        let mut tool = described!(self, ToolDef::builder(name));
        if let Some(schema) = self.0.remove("inputSchema") {
            tool = tool.unchecked_input_schema(schema);
        }
        if let Some(schema) = self.0.remove("outputSchema") {
            tool = tool.unchecked_output_schema(schema);
        }
        if let Some(annotations) = self.0.remove("annotations") {
            tool = tool.hints(|hints| {
                let hint = |key: &str| annotations.get(key).and_then(Value::as_bool);
                hints.read_only = hint("readOnlyHint");
                hints.destructive = hint("destructiveHint");
                hints.idempotent = hint("idempotentHint");
                hints.open_world = hint("openWorldHint");
            });
            tool = tool.member("annotations", annotations);
        }
        let meta = self.object("_meta");
        if !meta.is_empty() {
            tool = tool.meta(Value::Object(meta));
        }
        for (key, value) in self.0 {
            tool = tool.member(key, value);
        }
        let (own, upstream) = (Arc::<str>::from(own), upstream.clone());
        tool.handler(move |call: ToolCall| {
            let (own, upstream) = (own.clone(), upstream.clone());
            async move { upstream.call_tool(&own, &call).await }
        })
    }

    /// The prompt, under this name; its arguments complete if the other server completes.
    pub(crate) fn prompt(
        mut self,
        name: &str,
        own: &str,
        completes: bool,
        upstream: &Arc<Upstream>,
    ) -> PromptDef {
        drop(self.text("name"));
        let mut prompt = described!(self, PromptDef::builder(name));
        for (key, value) in self.object("_meta") {
            prompt = prompt.meta(key, value);
        }
        let arguments = self.0.remove("arguments");
        for argument in arguments.iter().filter_map(Value::as_array).flatten() {
            let text = |key: &str| argument.get(key).and_then(Value::as_str);
            let mut made = PromptArgument::new(text("name").unwrap_or_default());
            if let Some(title) = text("title") {
                made = made.title(title);
            }
            if let Some(description) = text("description") {
                made = made.description(description);
            }
            if argument.get("required") == Some(&Value::Bool(true)) {
                made = made.required();
            }
            if completes {
                let reference = json!({ "type": "ref/prompt", "name": own });
                made = made.complete_with(completer(reference, upstream));
            }
            prompt = prompt.argument(made);
        }
        for (key, value) in self.0 {
            prompt = prompt.member(key, value);
        }
        let (own, upstream) = (Arc::<str>::from(own), upstream.clone());
        prompt.handler(move |call: PromptCall| {
            let (own, upstream) = (own.clone(), upstream.clone());
            async move { upstream.get_prompt(&own, call).await }
        })
    }

    /// The resource or template, whose URI stays.
    pub(crate) fn resource(mut self, uri: &str, completes: bool, upstream: &Arc<Upstream>) -> ResourceDef {
        let is_template = self.0.remove("uriTemplate").is_some();
        drop(self.0.remove("uri"));
        let name = self.text("name").unwrap_or_default();
        let mut resource = described!(self, ResourceDef::builder(uri).name(name));
        if let Some(mime) = self.text("mimeType") {
            resource = resource.mime(mime);
        }
        if let Some(size) = self.0.remove("size").and_then(|size| size.as_u64()).filter(|_| !is_template) {
            resource = resource.size(size);
        }
        for (key, value) in self.object("_meta") {
            resource = resource.meta(key, value);
        }
        if is_template && completes {
            for variable in variables(uri) {
                let reference = json!({ "type": "ref/resource", "uri": uri });
                resource = resource.complete_with(variable, completer(reference, upstream));
            }
        }
        for (key, value) in self.0 {
            resource = resource.member(key, value);
        }
        let (exact, upstream) = ((!is_template).then(|| Arc::<str>::from(uri)), upstream.clone());
        resource.subscribe(|_, _| false).handler(move |call: ResourceCall| {
            let (exact, upstream) = (exact.clone(), upstream.clone());
            async move { upstream.read_resource(exact.as_deref(), call).await }
        })
    }
}

/// Completes by asking the other server.
fn completer(
    reference: Value,
    upstream: &Arc<Upstream>,
) -> impl Fn(Completion, Context) -> CompletionFuture + Send + Sync + 'static {
    let upstream = upstream.clone();
    move |completion, context| {
        let (reference, upstream) = (reference.clone(), upstream.clone());
        Box::pin(async move { upstream.complete(reference, completion, &context).await })
    }
}

type CompletionFuture =
    std::pin::Pin<Box<dyn Future<Output = Result<Vec<String>, mcp_runtime::ToolError>> + Send>>;

/// The names of the variables of a template: of `{+path}`, `{?a,b*}` and `{id:3}`.
fn variables(template: &str) -> Vec<&str> {
    let expressions = template.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let names = expressions.flat_map(|(expression, _)| {
        expression.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']).split(',')
    });
    let names = names.map(|name| name.split(':').next().unwrap_or(name).trim_end_matches('*'));
    let mut found: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    found.dedup();
    found
}

fn icon(icon: &Value) -> Option<Icon> {
    let text = |key: &str| icon.get(key).and_then(Value::as_str).map(str::to_owned);
    let src = text("src").filter(|src| src.starts_with("https:") || src.starts_with("data:"))?;
    let mut made = Icon::new(src);
    if let Some(mime) = text("mimeType") {
        made = made.mime(mime);
    }
    let sizes = icon.get("sizes").and_then(Value::as_array).into_iter().flatten();
    made = made.sizes(sizes.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>());
    Some(match text("theme").as_deref() {
        Some("light") => made.theme(Theme::Light),
        Some("dark") => made.theme(Theme::Dark),
        _ => made,
    })
}

/// Cuts titles and descriptions at any depth, and removes characters from them that people cannot see and models can.
///
/// # Errors
/// The value is nested too deeply.
fn clean(value: &mut Value, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err("its definition is nested too deeply".to_owned());
    }
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(text) if key == "description" || key == "title" => {
                        if text.len() > MAX_TEXT || text.chars().any(is_invisible) {
                            *text = text.chars().filter(|c| !is_invisible(*c)).take(MAX_TEXT).collect();
                        }
                    }
                    value => clean(value, depth + 1)?,
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| clean(item, depth + 1)),
        _ => Ok(()),
    }
}

/// Characters without a shape, and those that change the direction of others. Joiners, which scripts and emoji need, stay.
fn is_invisible(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
