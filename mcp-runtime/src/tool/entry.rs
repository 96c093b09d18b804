//! A tool as it is offered: its schemas made and checked, its list entry for each revision.

use std::{any::Any, collections::HashMap, sync::Arc, time::Duration};

use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use crate::{
    arguments::{AnyArg, ToolInput},
    connection::{Access, HeaderParam, RequestContext},
    content::Icon,
    context::ClientFeature,
    extensions::Extensions,
    item::Common,
    jsonrpc::Object,
    protocol::Revision,
    schema::{
        Mode, Validator, generator, generator_for_output, hoist_defs, lean, nearest, needs_validation,
        wrap_for_legacy,
    },
    tool::{Hints, RuntimeTool, TaskMode, ToolDef},
};
use crate::{content::heading, item::Problem, tool::header_param::header_params};

/// A tool that can be called.
#[derive(Debug)]
pub(crate) struct ToolEntry {
    pub(crate) input: ToolInput,
    pub(crate) body: ToolBody,
    pub(crate) state: Arc<Extensions>,
    /// For keywords of the input schema that decoding does not enforce.
    pub(crate) nested: Option<Validator>,
    pub(crate) output: Option<Output>,
    pub(crate) limit: Option<Arc<Semaphore>>,
    pub(crate) timeout: Option<Duration>,
    /// Headers that repeat arguments.
    pub(crate) header_params: Vec<HeaderParam>,
    /// What a caller must have been granted.
    pub(crate) scopes: Vec<String>,
    /// What the client must be able to do.
    pub(crate) requires: Vec<ClientFeature>,
    /// How its calls become tasks.
    pub(crate) task: Option<TaskMode>,
    /// The URI of its page, as it is registered here; known when all resources are.
    pub(crate) page: Option<String>,
}

/// The tools of a server, by name.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    entries: Vec<Arc<ToolEntry>>,
    index: HashMap<String, usize>,
}

impl Tools {
    pub(crate) fn new(entries: Vec<Arc<ToolEntry>>) -> Self {
        let index = entries.iter().enumerate().map(|(n, tool)| (tool.input.name.clone(), n)).collect();
        Self { entries, index }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<ToolEntry>> {
        self.entries.iter()
    }

    /// The tool of that name, if the request may call it.
    pub(crate) fn find(&self, name: &str, request: &RequestContext) -> Option<&Arc<ToolEntry>> {
        let tool = self.index.get(name).and_then(|n| self.entries.get(*n))?;
        (tool.scopes.is_empty() || request.access().allows(&tool.scopes)).then_some(tool)
    }

    /// The name most like this of those that are visible.
    pub(crate) fn nearest(&self, name: &str, access: Access<'_>) -> Option<&str> {
        let visible = self.entries.iter().filter(|tool| access.allows(&tool.scopes));
        nearest(name, visible.map(|tool| tool.input.name.as_str()))
    }
}

/// What is behind a tool.
pub(crate) enum ToolBody {
    Annotated { def: &'static ToolDef, this: Option<Arc<dyn Any + Send + Sync>> },
    Runtime(Arc<RuntimeTool>),
}

impl std::fmt::Debug for ToolBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Annotated { def, .. } => def.fmt(f),
            Self::Runtime(tool) => tool.fmt(f),
        }
    }
}

/// The schema of structured results.
#[derive(Debug)]
pub(crate) struct Output {
    natural: Value,
    /// For clients of handshake revisions, which know objects only.
    legacy: Value,
    /// Whether values are wrapped for them as well.
    pub(crate) wrap: bool,
    pub(crate) validator: Validator,
}

/// How many calls of a tool may run at once.
fn places(calls: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(calls.clamp(1, Semaphore::MAX_PERMITS)))
}

impl ToolEntry {
    /// Makes an annotated tool's entry.
    pub(crate) fn annotated(
        name: &str,
        def: &'static ToolDef,
        this: Option<Arc<dyn Any + Send + Sync>>,
        state: Arc<Extensions>,
    ) -> Result<Self, Problem> {
        let problem = |text: String| Problem::at(def.common.at, format!("tool `{name}`: {text}"));
        check_flatten(def.common.args).map_err(&problem)?;
        let (schema, unenforced) = input_schema(&def.common, def.strict);
        for arg in def.common.args {
            if let Some(bad) = arg.problems().into_iter().next() {
                return Err(problem(format!("`{}`: {bad}", arg.name())));
            }
            check_header(*arg, &schema).map_err(&problem)?;
        }
        let flatten = def.common.args.first().is_some_and(|arg| arg.is_flatten());
        // a struct that is the whole object decodes past members that `strict` refuses
        let nested = if needs_validation(&unenforced) || (def.strict && flatten) {
            Some(Validator::compile(&schema).map_err(|e| problem(e.to_string()))?.null_is_absent())
        } else {
            None
        };
        let output = output_schema(def).map_err(&problem)?;
        Ok(Self {
            header_params: header_params(&schema).map_err(&problem)?,
            scopes: def.common.scopes.iter().map(|&scope| scope.to_owned()).collect(),
            requires: def.common.requires.to_vec(),
            task: def.task,
            input: ToolInput::typed(name.to_owned(), schema),
            state,
            nested,
            output,
            limit: def.max_concurrency.map(places),
            timeout: def.timeout,
            body: ToolBody::Annotated { def, this },
            page: None,
        })
    }

    /// Makes the entry of a tool made at run time.
    pub(crate) fn runtime(
        name: &str,
        tool: Arc<RuntimeTool>,
        state: Arc<Extensions>,
    ) -> Result<Self, Problem> {
        let problem = |text: String| Problem::new(format!("tool `{name}`: {text}"));
        if !is_tool_name(name) {
            return Err(problem("a tool's name is 1 to 128 of `A-Z a-z 0-9 _ . -`".into()));
        }
        let spec = &tool.spec;
        if let Some(bad) = spec.icons.iter().find_map(Icon::problem) {
            return Err(problem(bad));
        }
        let schema = spec.input.clone().unwrap_or_else(|| json!({"type": "object"}));
        if schema.get("type") != Some(&Value::from("object")) {
            return Err(problem("an input schema has `\"type\": \"object\"` at its root".into()));
        }
        let nested = Validator::compile(&schema).map_err(|e| problem(e.to_string()))?;
        let output = spec.output.clone().map(Output::new).transpose().map_err(&problem)?;
        Ok(Self {
            header_params: header_params(&schema).map_err(&problem)?,
            scopes: spec.scopes.clone(),
            requires: spec.requires.clone(),
            task: spec.task,
            input: ToolInput::written(name.to_owned(), schema),
            state,
            nested: Some(nested),
            output,
            limit: spec.max_concurrency.map(places),
            timeout: spec.timeout,
            body: ToolBody::Runtime(tool),
            page: None,
        })
    }

    pub(crate) fn strict(&self) -> bool {
        match &self.body {
            ToolBody::Annotated { def, .. } => def.strict,
            ToolBody::Runtime(tool) => tool.spec.strict,
        }
    }

    pub(crate) fn args(&self) -> &'static [&'static dyn AnyArg] {
        match &self.body {
            ToolBody::Annotated { def, .. } => def.common.args,
            ToolBody::Runtime(_) => &[],
        }
    }

    /// Appends its entry in `tools/list`.
    pub(crate) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let (title, description, icons, meta, hints, tags) = match &self.body {
            ToolBody::Annotated { def, .. } => {
                let common = &def.common;
                let meta = common.meta.and_then(|meta| serde_json::from_str(meta).ok());
                (common.title, common.description, common.icons, meta, def.hints, def.tags)
            }
            ToolBody::Runtime(tool) => {
                let spec = &tool.spec;
                let texts = (spec.title.as_deref(), spec.description.as_deref());
                (texts.0, texts.1, &spec.icons[..], spec.meta.clone(), spec.hints, &[][..])
            }
        };
        let mut entry = Object::new(out);
        entry.str("name", &self.input.name);
        heading(&mut entry, revision, title, description, icons);
        write_input(entry.key("inputSchema"), &self.input.schema, self.args());
        if let Some(output) = self.output.as_ref().filter(|_| revision >= Revision::V2025_06_18) {
            let schema = if revision.is_modern() { &output.natural } else { &output.legacy };
            // any JSON at all: the protocol has schemas only as objects
            match schema {
                Value::Bool(true) => entry.raw("outputSchema", "{}"),
                schema => entry.value("outputSchema", schema),
            };
        }
        if revision >= Revision::V2025_03_26 && hints != Hints::default() {
            entry.object("annotations", |a| {
                let hints = [
                    ("readOnlyHint", hints.read_only),
                    ("destructiveHint", hints.destructive),
                    ("idempotentHint", hints.idempotent),
                    ("openWorldHint", hints.open_world),
                ];
                for (key, hint) in hints {
                    if let Some(hint) = hint {
                        a.value(key, &hint);
                    }
                }
            });
        }
        if revision >= Revision::V2025_06_18 {
            self.write_meta(&mut entry, meta, tags);
        }
        entry.end();
    }

    /// Tags travel in `_meta`, where registries look for them, and so does what hosts with the apps extension read.
    fn write_meta(&self, entry: &mut Object<'_>, meta: Option<Value>, tags: &[&str]) {
        let mut meta = match meta {
            Some(Value::Object(meta)) => meta,
            _ => Map::new(),
        };
        if !tags.is_empty() {
            meta.entry("tags").or_insert_with(|| json!(tags));
        }
        let visibility = match &self.body {
            ToolBody::Annotated { def, .. } => def.visibility,
            ToolBody::Runtime(_) => &[],
        };
        if (self.page.is_some() || !visibility.is_empty())
            && let Value::Object(ui) = meta.entry("ui").or_insert_with(|| json!({}))
        {
            if let Some(page) = &self.page {
                ui.insert("resourceUri".into(), page.as_str().into());
            }
            if !visibility.is_empty() {
                ui.insert("visibility".into(), json!(visibility));
            }
        }
        if let Some(page) = &self.page {
            // deprecated, and all that the first hosts read
            meta.insert("ui/resourceUri".into(), page.as_str().into());
        }
        if !meta.is_empty() {
            entry.value("_meta", &meta);
        }
    }
}

/// A map keeps its keys sorted; people and models read arguments in the order in which they were declared.
fn write_input(out: &mut Vec<u8>, schema: &Value, args: &[&'static dyn AnyArg]) {
    let mut root = Object::new(out);
    root.value("type", &schema["type"]);
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        root.object("properties", |p| {
            let declared = args.iter().map(|arg| arg.name()).filter(|name| properties.contains_key(*name));
            let others = properties
                .keys()
                .map(String::as_str)
                .filter(|name| !args.iter().any(|arg| arg.name() == *name));
            for name in declared.chain(others) {
                p.any_value(name, &properties[name]);
            }
        });
    }
    for (key, value) in
        schema.as_object().into_iter().flatten().filter(|(k, _)| *k != "type" && *k != "properties")
    {
        root.any_value(key, value);
    }
    root.end();
}

/// Whether a name may be a tool's: the specification's advice, which clients enforce.
pub(crate) fn is_tool_name(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

/// The schema of a tool's arguments, and the part of it that neither decoding nor parameter rules are known to enforce.
fn input_schema(common: &Common, strict: bool) -> (Value, Value) {
    let mut generator = generator();
    let mut root = Map::new();
    if let [arg] = common.args
        && arg.is_flatten()
    {
        let mut schema = arg.property(&mut generator).to_value();
        hoist_defs(&mut schema, generator.take_definitions(true));
        root = match schema {
            Value::Object(map) => map,
            _ => Map::new(),
        };
    } else if !common.args.is_empty() {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for arg in common.args {
            properties.insert(arg.name().to_owned(), arg.property(&mut generator).to_value());
            if arg.required() {
                required.push(Value::from(arg.name()));
            }
        }
        root.insert("properties".into(), Value::Object(properties));
        if !required.is_empty() {
            root.insert("required".into(), Value::Array(required));
        }
    }
    root.insert("type".into(), "object".into());
    let mut root = Value::Object(root);
    let definitions = generator.take_definitions(true);
    if !definitions.is_empty() {
        hoist_defs(&mut root, definitions);
    }
    // before `lean`: a type's own bounds are told from a user's by schemars' `format`
    let unenforced = nested_only(&root, common.args);
    if strict && let Some(root) = root.as_object_mut() {
        // names in alternatives are known as well, and a map among the fields takes any name
        let composed = ["allOf", "anyOf", "oneOf", "$ref"].iter().any(|keyword| root.contains_key(*keyword));
        let keyword = if composed { "unevaluatedProperties" } else { "additionalProperties" };
        root.entry(keyword).or_insert(false.into());
    }
    lean(&mut root, Mode::Input);
    for arg in common.args.iter().filter(|arg| arg.header().is_some()) {
        if let Some(property) = root.get_mut("properties").and_then(|p| p.get_mut(arg.name())) {
            type_choices(property);
        }
    }
    (root, unenforced)
}

/// The input schema without what parameter rules enforce by themselves.
fn nested_only(schema: &Value, args: &[&'static dyn AnyArg]) -> Value {
    let mut schema = schema.clone();
    let flatten = args.first().is_some_and(|arg| arg.is_flatten());
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut).filter(|_| !flatten)
    {
        for (name, property) in properties.iter_mut() {
            let Some(arg) = args.iter().find(|arg| arg.name() == name) else { continue };
            let Some(property) = property.as_object_mut() else { continue };
            let own = arg.own_keywords();
            property.retain(|key, _| !own.iter().any(|own| own == key));
        }
    }
    schema
}

/// What is the whole arguments object has to be an object.
fn check_flatten(args: &[&'static dyn AnyArg]) -> Result<(), String> {
    fn may_be_object(schema: &Value) -> bool {
        let branches = || ["oneOf", "anyOf"].iter().find_map(|key| schema.get(*key)?.as_array());
        match schema.get("type") {
            Some(Value::String(name)) => name == "object",
            Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
            _ => match branches() {
                Some(branches) => branches.iter().any(may_be_object),
                None => schema.get("enum").is_none() && schema.get("const").is_none(),
            },
        }
    }
    let Some(arg) = args.first().filter(|arg| arg.is_flatten()) else { return Ok(()) };
    let mut generator = generator();
    let mut schema = arg.property(&mut generator).to_value();
    hoist_defs(&mut schema, generator.take_definitions(true));
    if may_be_object(&schema) {
        return Ok(());
    }
    Err(format!("`{}` with `flatten` is no object\nmake it a struct, or remove `flatten`", arg.name()))
}

/// An enum that is no string, or a type with bounds of its own, cannot be mirrored.
fn check_header(arg: &'static dyn AnyArg, schema: &Value) -> Result<(), String> {
    let Some(header) = arg.header() else { return Ok(()) };
    let property = schema.get("properties").and_then(|properties| properties.get(arg.name()));
    match property.and_then(|p| p.get("type")).and_then(Value::as_str) {
        Some("string" | "boolean" | "integer") => Ok(()),
        _ => Err(format!(
            "`{}` cannot be mirrored into the header `{header}`\nmake it a string, a bool or an integer",
            arg.name()
        )),
    }
}

/// Clients mirror what has a primitive `type`; an enum with documented variants is an alternative of constants.
fn type_choices(property: &mut Value) {
    let choices = property.get("oneOf").or(property.get("enum")).and_then(Value::as_array);
    let text = |choice: &Value| choice.get("const").unwrap_or(choice).is_string();
    if choices.is_some_and(|choices| choices.iter().all(text))
        && let Some(property) = property.as_object_mut()
    {
        property.entry("type").or_insert_with(|| "string".into());
    }
}

fn output_schema(def: &ToolDef) -> Result<Option<Output>, String> {
    let mut generator = generator_for_output();
    let schema = match (def.output_type, def.out) {
        (Some(output), _) => Some((output.schema)(&mut generator)),
        (None, Some(out)) => out.schema(&mut generator),
        (None, None) => None,
    };
    let Some(schema) = schema else { return Ok(None) };
    let mut root = schema.to_value();
    hoist_defs(&mut root, generator.take_definitions(true));
    lean(&mut root, Mode::Output);
    Output::new(root).map(Some)
}

impl Output {
    fn new(natural: Value) -> Result<Self, String> {
        let wrap = natural.get("type") != Some(&Value::from("object"));
        let legacy = if wrap { wrap_for_legacy(&natural) } else { natural.clone() };
        let validator = Validator::compile(&natural).map_err(|e| e.to_string())?;
        Ok(Self { natural, legacy, wrap, validator })
    }
}
