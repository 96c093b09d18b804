//! A tool of a server: its compiled schemas, and its entry in `tools/list` for each revision.

use std::{any::Any, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    ForwardFn, Hints, ToolCall, ToolDef, ToolDescriptor, ToolSpec,
    header_param::header_params,
    schema::{
        Enforcement, HandWrittenSchema, InputSchema, OutputSchema, check_flatten, input_schema, output_schema,
    },
};
use crate::{
    core::{
        arguments::{
            AnyArg, ArgumentChange, BoundRule, GivenArguments, ToolInput, declaration_errors, has_flatten,
        },
        build_error::BuildError,
        connection::{HeaderParam, ItemKind, ItemView},
        context::Continuation,
        extensions::Extensions,
        item::ItemSpec,
        item_function::{Function, ItemFunction},
        jsonrpc::Object,
        protocol::Revision,
        server::{Entries, Entry},
    },
    schema::{Validator, flat_root},
};

/// A tool as the server offers it.
pub(crate) struct ToolEntry {
    pub(crate) spec: ToolSpec,
    pub(crate) function: ItemFunction<ToolCall>,
    pub(crate) state: Arc<Extensions>,
    pub(crate) input: ToolInput,
    /// For keywords of typed parameters that decoding does not enforce.
    pub(crate) input_validator: Option<Validator>,
    pub(crate) output: Option<OutputSchema>,
    /// How its calls continue outside of their requests; set when the server's options are known.
    pub(crate) continuation: Option<Arc<dyn Continuation>>,
    /// Headers that mirror arguments.
    pub(crate) header_params: Vec<HeaderParam>,
    /// What comes before its function, if anything does.
    pub(crate) before: Option<Box<BeforeCall>>,
    /// The URI of its page as registered on this server; set when all resources are known.
    pub(crate) page: Option<String>,
}

/// What the server does with the arguments of a call before its function gets them.
#[derive(Default)]
pub(crate) struct BeforeCall {
    /// Arguments that the function gets from the server.
    pub(crate) given: GivenArguments,
    /// Passes the call on to another tool, in place of a function.
    pub(crate) forward: Option<ForwardFn>,
}

impl Entry for ToolEntry {
    const KIND: ItemKind = ItemKind::Tool;

    fn item(&self) -> &ItemSpec {
        &self.spec.item
    }

    fn item_mut(&mut self) -> (&mut ItemSpec, Option<&mut Hints>) {
        let ToolSpec { item, hints, .. } = &mut self.spec;
        (item, Some(hints))
    }

    fn argument_names(&self) -> Vec<String> {
        let properties = self.input.published().get("properties").and_then(Value::as_object);
        properties.map(|members| members.keys().cloned().collect()).unwrap_or_default()
    }

    fn tags(&self) -> &'static [&'static str] {
        self.spec.tags
    }

    fn view(&self) -> ItemView<'_> {
        let ItemSpec { name, scopes, .. } = &self.spec.item;
        ItemView { tags: self.spec.tags, tool: Some(self), ..ItemView::new(ItemKind::Tool, name, scopes) }
    }

    fn view_in<'a>(&'a self, all: &'a Entries<Self>) -> ItemView<'a> {
        ItemView { all: Some(all), ..self.view() }
    }

    fn change_arguments(&mut self, changes: &[(String, ArgumentChange)]) -> Result<(), BuildError> {
        self.input.name.clone_from(&self.spec.item.name);
        let mut errors: Vec<_> = check_tool_name(&self.spec).err().into_iter().collect();
        let mut shown = self.input.published().clone();
        let mut given = GivenArguments::default();
        for (name, change) in changes {
            if let ArgumentChange::Default(value) | ArgumentChange::Fix(value) = change {
                errors.extend(self.value_error(name, value));
            }
            let property = shown.get_mut("properties").and_then(|properties| properties.get_mut(name));
            let property = property.and_then(Value::as_object_mut);
            match change {
                ArgumentChange::Describe(text) => {
                    property.map(|property| property.insert("description".into(), text.as_str().into()));
                }
                ArgumentChange::Default(value) => {
                    property.map(|property| property.insert("default".into(), value.clone()));
                    remove_required(&mut shown, name);
                    given.defaults.push((name.clone(), value.clone()));
                }
                ArgumentChange::Fix(value) => {
                    hide(&mut shown, name);
                    given.hidden.push((name.clone(), Some(value.clone())));
                }
                ArgumentChange::Hide => {
                    if remove_required(&mut shown, name) {
                        errors.push(format!("`{name}` is required, so it cannot be hidden\ngive it a value with `.fix(\"{name}\", ..)`"));
                    }
                    hide(&mut shown, name);
                    given.hidden.push((name.clone(), None));
                }
            }
        }
        let error = |text: String| self.spec.build_error(text);
        BuildError::check_all(errors.into_iter().map(error).collect())?;
        if !changes.is_empty() {
            self.header_params =
                header_params(&shown, self.spec.strict).map_err(|text| self.spec.build_error(text))?;
            self.input.show(shown);
            if self.before.is_some() || !given.is_empty() {
                self.before.get_or_insert_default().given = given;
            }
        }
        Ok(())
    }
}

impl ToolEntry {
    /// The entry of an annotated tool, on a server all of whose tools may be `strict`.
    pub(crate) fn annotated(
        name: String,
        def: &'static ToolDescriptor,
        this: Option<Arc<dyn Any + Send + Sync>>,
        state: Arc<Extensions>,
        strict: bool,
    ) -> Result<Self, BuildError> {
        let mut spec = ToolSpec::new(name, def);
        spec.strict |= strict;
        Self::described(spec, def, this, state)
    }

    pub(crate) fn described(
        spec: ToolSpec,
        def: &'static ToolDescriptor,
        this: Option<Arc<dyn Any + Send + Sync>>,
        state: Arc<Extensions>,
    ) -> Result<Self, BuildError> {
        let args = def.item.args;
        let error = |text: String| spec.build_error(text);
        // the schema's errors name a parameter less plainly than these
        let mut errors: Vec<_> = check_flatten(args).err().into_iter().collect();
        errors.extend(declaration_errors(args));
        let rules = def.item.rules.bind(args).unwrap_or_else(|found| {
            errors.extend(found);
            Vec::new()
        });
        let schemas =
            if errors.is_empty() { input_schema(&def.item, spec.strict) } else { Ok(InputSchema::default()) };
        let output = output_schema(def);
        errors.extend(schemas.as_ref().err().cloned());
        errors.extend(output.as_ref().err().cloned());
        errors.extend(check_tool_name(&spec).err());
        BuildError::check_all(errors.into_iter().map(error).collect())?;
        let (schema, output) = (schemas.map_err(error)?, output.map_err(error)?);
        let InputSchema { published, accepted, unenforced, closes_objects, .. } = &schema;
        // decoding ignores members of structs that `strict` refuses
        let input_validator = if spec.strict && (has_flatten(args) || *closes_objects) {
            Validator::compile_generated(accepted.as_ref().unwrap_or(published)).map(Some)
        } else {
            Validator::compile_unenforced(unenforced)
        };
        let input_validator =
            input_validator.map_err(|e| error(e.to_string()))?.map(Validator::null_is_absent);
        let flat = if has_flatten(args) { flat_root(published) } else { None };
        let mut input = ToolInput::from_parameters(spec.item.name.clone(), schema);
        input.noun = spec.noun();
        if let Some(flat) = flat {
            input = input.published_as(flat);
        }
        input.rules = rules.iter().filter_map(BoundRule::title).collect();
        let function = ItemFunction::Annotated(Function::new(def.handler, args, rules, this));
        Self::new(spec, function, state, input, input_validator, output)
    }

    /// The entry of a tool made at run time; if it is new, the log says what of its schemas is not enforced.
    pub(crate) fn runtime(
        name: String,
        tool: &ToolDef,
        state: Arc<Extensions>,
        strict: bool,
        is_new: bool,
    ) -> Result<Self, BuildError> {
        let mut spec = tool.spec.clone();
        spec.item.name = name;
        spec.strict |= strict;
        let forward = spec.forward.take();
        if let Some(option) = forward.as_ref().and_then(|_| spec.option_of_function()) {
            let text = "set it on the tools that are called";
            return Err(
                spec.build_error(format!("it passes its calls on, so `{option}` has no effect\n{text}"))
            );
        }
        // the definition has them, for the next registry
        let (schema, output) = (spec.input_schema.take(), spec.output_schema.take());
        let error = |text: String| spec.build_error(text);
        if let Some(text) = spec.item.icons.iter().find_map(|icon| icon.validate().err()) {
            return Err(error(text));
        }
        let schema =
            schema.unwrap_or_else(|| HandWrittenSchema::new(json!({"type": "object"}), Enforcement::Whole));
        let value = schema.value().map_err(error)?;
        let properties = value.get("properties");
        let is_missing = |name: &&String| properties.is_some_and(|known| known.get(name.as_str()).is_none());
        // a misspelt name would leave the value in traces and the audit log
        if let Some(name) = spec.item.secrets.iter().find(is_missing) {
            return Err(error(format!(
                "the secret `{name}` is not a property of the input schema\nadd it there, or name one that is"
            )));
        }
        let name = &spec.item.name;
        let mut input = schema.input(value, name, is_new, spec.strict).map_err(error)?;
        let kept_nulls = spec.kept_nulls.clone().or_else(|| (!schema.is_trusted()).then(Vec::new));
        input.kept_nulls = kept_nulls.map(|names| names.into_iter().collect());
        let output = output.map(|schema| schema.output(name, is_new)).transpose().map_err(error)?;
        let function = ItemFunction::Runtime(tool.handler.clone());
        let mut entry = Self::new(spec, function, state, input, None, output)?;
        entry.before =
            forward.map(|forward| Box::new(BeforeCall { forward: Some(forward), ..BeforeCall::default() }));
        Ok(entry)
    }

    fn new(
        spec: ToolSpec,
        function: ItemFunction<ToolCall>,
        state: Arc<Extensions>,
        input: ToolInput,
        input_validator: Option<Validator>,
        output: Option<OutputSchema>,
    ) -> Result<Self, BuildError> {
        check_tool_name(&spec).map_err(|text| spec.item.build_error(text))?;
        let header_params =
            header_params(&input.schema, spec.strict).map_err(|text| spec.build_error(text))?;
        Ok(Self {
            spec,
            function,
            state,
            input,
            input_validator,
            output,
            continuation: None,
            header_params,
            before: None,
            page: None,
        })
    }

    /// Why the function cannot get this value.
    fn value_error(&self, name: &str, value: &Value) -> Option<String> {
        let errors = self.input.value_errors(name, value);
        let arg = self.function.args().iter().find(|arg| arg.name() == name && !arg.is_flatten());
        let found = errors
            .into_iter()
            .next()
            .or_else(|| arg?.json_error(value).map(|error| format!("{name}: {error}")))?;
        Some(format!("a transform gives it another value than it takes: {found}"))
    }

    /// Whether clients cannot know an argument: the input schema lists its properties without this one.
    pub(crate) fn is_unknown_argument(&self, name: &str) -> bool {
        let schema = &self.input.schema;
        let open = ["allOf", "anyOf", "oneOf", "$ref", "patternProperties", "additionalProperties"];
        schema.get("properties").is_some_and(|properties| properties.get(name).is_none())
            && !open
                .iter()
                .any(|keyword| schema.get(*keyword).is_some_and(|value| *value != Value::Bool(false)))
    }

    /// Appends its entry in `tools/list`.
    pub(crate) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let mut entry = Object::new(out);
        entry.str("name", &self.spec.item.name);
        self.spec.item.write_texts(&mut entry, revision);
        self.write_input(entry.key("inputSchema"));
        if let Some(output) = self.output.as_ref().filter(|_| revision >= Revision::V2025_06_18) {
            entry.raw("outputSchema", output.published(revision.is_modern()));
        }
        let others = self.spec.item.members.get("annotations").and_then(Value::as_object);
        if revision >= Revision::V2025_03_26 && (self.spec.hints != Hints::default() || others.is_some()) {
            let hints = self.spec.hints;
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
                let is_hint = |key: &str| hints.iter().any(|(hint, _)| *hint == key);
                for (key, value) in others.into_iter().flatten().filter(|(key, _)| !is_hint(key)) {
                    a.escaped_value(key, value);
                }
            });
        }
        self.spec.item.write_members(&mut entry, &["inputSchema", "outputSchema", "annotations"]);
        if revision >= Revision::V2025_06_18 {
            self.write_meta(&mut entry);
        }
        entry.end();
    }

    /// Appends the schema of its arguments.
    pub(crate) fn write_input(&self, out: &mut Vec<u8>) {
        write_input_schema(out, self.input.published(), self.function.args());
    }

    /// Tags are in `_meta`, where registries look for them, and so are the members of the apps extension.
    fn write_meta(&self, entry: &mut Object<'_>) {
        let ToolSpec { item, visibility, tags, .. } = &self.spec;
        let mut meta: Map<String, Value> =
            item.meta.as_deref().and_then(|meta| serde_json::from_str(meta).ok()).unwrap_or_default();
        if !tags.is_empty() {
            meta.entry("tags").or_insert_with(|| json!(tags));
        }
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
            // deprecated, but the first hosts read only this
            meta.insert("ui/resourceUri".into(), page.as_str().into());
        }
        if !meta.is_empty() {
            entry.value("_meta", &meta);
        }
    }
}

fn hide(schema: &mut Value, name: &str) {
    remove_required(schema, name);
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.remove(name);
    }
}

/// Makes a property optional; returns whether it was required.
fn remove_required(schema: &mut Value, name: &str) -> bool {
    let Some(root) = schema.as_object_mut() else { return false };
    let Some(required) = root.get_mut("required").and_then(Value::as_array_mut) else { return false };
    let before = required.len();
    required.retain(|required| required != name);
    let (was_required, is_empty) = (required.len() < before, required.is_empty());
    if is_empty {
        root.remove("required");
    }
    was_required
}

/// Writes the properties in the order in which the arguments are declared; the map has them sorted.
fn write_input_schema(out: &mut Vec<u8>, schema: &Value, args: &[&'static dyn AnyArg]) {
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
                p.escaped_value(name, &properties[name]);
            }
        });
    }
    for (key, value) in
        schema.as_object().into_iter().flatten().filter(|(k, _)| *k != "type" && *k != "properties")
    {
        root.escaped_value(key, value);
    }
    root.end();
}

/// The format that the specification recommends, and clients enforce.
fn check_tool_name(spec: &ToolSpec) -> Result<(), String> {
    let name = &spec.item.name;
    let is_right = (1..=128).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    if is_right {
        return Ok(());
    }
    Err(format!("`{name}` is not a {} name: 1 to 128 of `A-Z a-z 0-9 _ . -`", spec.noun()))
}
