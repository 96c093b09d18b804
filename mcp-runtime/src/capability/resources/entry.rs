//! A resource or template of a server, and its entry in `resources/list` or `resources/templates/list`.

use std::{any::Any, sync::Arc};

use serde_json::{Map, Value};

use super::{
    DynList, DynSubscribe, ListedResource, ResourceCall, ResourceDef, ResourceDescriptor, ResourceSpec,
    UriVariables,
    template::{Template, without_variable},
    template_syntax::parse_variables,
};
use crate::core::{
    arguments::{
        ArgumentChange, ArgumentCompletion, CompletionSource, GivenArguments, Inject, declaration_errors,
        is_always_object, text_of_value as text_of,
    },
    build_error::BuildError,
    callback::Callback,
    connection::{ItemKind, ItemView, Principal},
    content::{Annotations, ContentWriter, is_media_type},
    extensions::Extensions,
    item::{ItemSpec, write_texts},
    item_function::{Function, ItemFunction},
    jsonrpc::Object,
    protocol::{Revision, uri_with_prefix},
};

/// A resource or template as the server offers it.
pub(crate) struct ResourceEntry {
    pub(crate) item: ItemSpec,
    pub(crate) uri: String,
    pub(crate) template: Template,
    pub(crate) function: ItemFunction<ResourceCall>,
    /// Lists the instances of a template.
    pub(crate) list: Option<Callback<DynList>>,
    /// Whether its function sees who reads it, so that what it returns may differ by caller.
    pub(crate) sees_caller: bool,
    /// Decides who may subscribe.
    pub(crate) subscribe: Option<Callback<DynSubscribe>>,
    pub(crate) mime: Option<String>,
    annotations: Annotations,
    /// Bytes.
    size: Option<u64>,
    /// Milliseconds, and whether caches may share it.
    pub(crate) cache: Option<(u64, bool)>,
    /// JSON text of a page's `_meta.ui`.
    pub(crate) ui: Option<String>,
    pub(crate) state: Arc<Extensions>,
    /// The prefix of its service or mount; may be empty.
    prefix: String,
    /// Completions of the variables that have one.
    completions: Vec<ArgumentCompletion>,
    /// Variables that its function gets from the server.
    given: GivenArguments,
}

impl ResourceEntry {
    /// The entry of an annotated resource.
    pub(crate) fn annotated(
        name: String,
        prefix: &str,
        server: &str,
        def: &'static ResourceDescriptor,
        this: Option<Arc<dyn Any + Send + Sync>>,
        state: Arc<Extensions>,
    ) -> Result<Self, BuildError> {
        let uri = def.uri.map_or_else(|| default_uri(server, def), str::to_owned);
        let spec = ResourceSpec::new(name, uri_with_prefix(&uri, prefix), def);
        let args = def.item.args;
        let mut errors = declaration_errors(args);
        let rules = def.item.rules.bind(args).unwrap_or_else(|found| {
            errors.extend(found);
            Vec::new()
        });
        let function = ItemFunction::Annotated(Function::new(def.handler, args, rules, this));
        let mut entry = Self::new(spec, prefix, function, state)?;
        for arg in args {
            let name = arg.name();
            if is_always_object(*arg) {
                errors.push(format!(
                    "`{name}` is an object, and a variable of a URI is text\ntake each part as a parameter, or parse a `String`"
                ));
            } else if entry.template.is_in_path(name) && !arg.required() {
                errors.push(format!(
                    "`{name}` may be absent, and `{{{name}}}` in the path of a URI never is\nmake it required, or write `{{?{name}}}`"
                ));
            }
        }
        BuildError::check_all(errors.iter().map(|text| build_error(&entry.item, text)).collect())?;
        entry.sees_caller = def.item.makes_values || def.item.injects.iter().any(Inject::is::<Principal>);
        entry.list = def.list.map(|list| list().call);
        entry.subscribe = def.subscribe.map(|check| check().call);
        entry.completions = args.iter().map(|arg| ArgumentCompletion::of(*arg)).collect();
        Ok(entry)
    }

    /// The entry of a resource made at run time.
    pub(crate) fn runtime(
        prefix: &str,
        def: &ResourceDef,
        state: Arc<Extensions>,
    ) -> Result<Self, BuildError> {
        let mut spec = def.spec.clone();
        spec.uri = uri_with_prefix(&spec.uri, prefix);
        spec.item.name = match spec.item.name.as_str() {
            "" => spec.uri.clone(),
            name if prefix.is_empty() => name.to_owned(),
            name => format!("{prefix}_{name}"),
        };
        let error = |text: &str| build_error(&spec.item, text);
        let variables = parse_variables(&def.spec.uri).map_err(|text| error(&text))?;
        if let Some(text) = spec.item.icons.iter().find_map(|icon| icon.validate().err()) {
            return Err(error(&text));
        }
        if let Some(mime) = spec.mime.as_deref().filter(|mime| !is_media_type(mime)) {
            return Err(error(&format!("`{mime}` is not a media type\nwrite `type/subtype`")));
        }
        if spec.size.is_some() && !variables.is_empty() {
            return Err(error("`size` is for a single resource, and this is a template\nremove it"));
        }
        if def.list.is_some() && variables.is_empty() {
            return Err(error(
                "`list` is for the instances of a template, and this is a single resource\nremove it, or add a variable to the URI",
            ));
        }
        if let Some(name) = def.completions.keys().find(|name| !variables.contains(&name.as_str())) {
            return Err(error(&format!(
                "its URI has no variable `{name}`, which it completes\nadd `{{{name}}}` to it"
            )));
        }
        let completion = |name: &&str| {
            let source = def.completions.get(*name).cloned();
            let source = source.unwrap_or_else(|| CompletionSource::Choices(Vec::new()));
            ArgumentCompletion { argument: (*name).to_owned().into(), source }
        };
        let completions = variables.iter().map(completion).collect();
        let mut entry = Self::new(spec, prefix, ItemFunction::Runtime(def.handler.clone()), state)?;
        entry.list.clone_from(&def.list);
        entry.subscribe.clone_from(&def.subscribe);
        entry.completions = completions;
        Ok(entry)
    }

    fn new(
        spec: ResourceSpec,
        prefix: &str,
        function: ItemFunction<ResourceCall>,
        state: Arc<Extensions>,
    ) -> Result<Self, BuildError> {
        let template = Template::parse(&spec.uri)
            .map_err(|e| build_error(&spec.item, &format!("`{}` is not a URI template: {e}", spec.uri)))?;
        let ResourceSpec { item, uri, mime, annotations, size, cache, ui } = spec;
        Ok(Self {
            item,
            uri,
            template,
            function,
            list: None,
            sees_caller: false,
            subscribe: None,
            mime,
            annotations,
            size,
            cache,
            ui,
            state,
            prefix: prefix.to_owned(),
            completions: Vec::new(),
            given: GivenArguments::default(),
        })
    }

    /// The names of its variables.
    pub(super) fn variables(&self) -> Vec<String> {
        self.template.variables().map(str::to_owned).collect()
    }

    /// Changes what clients see of its variables, and what its function gets: a hidden variable leaves the URI,
    /// and a fixed one in the path is the text of its value there, so that other URIs do not lead to it.
    ///
    /// # Errors
    /// A value does not fit its variable, or one in the path is hidden.
    pub(super) fn change_arguments(
        &mut self,
        changes: &[(String, ArgumentChange)],
    ) -> Result<(), BuildError> {
        let mut errors = Vec::new();
        for (name, change) in changes {
            let value = match change {
                ArgumentChange::Describe(_) => continue,
                ArgumentChange::Hide => None,
                ArgumentChange::Default(value) | ArgumentChange::Fix(value) => Some(value),
            };
            let text = value.map(text_of).unwrap_or_default();
            let arg = self.function.args().iter().find(|arg| arg.name() == name).filter(|_| value.is_some());
            if let Some(error) = arg.and_then(|arg| arg.text_error(&text)) {
                errors.push(format!("a transform gives it another value than it takes: `{name}`: {error}"));
            }
            if let ArgumentChange::Default(value) = change {
                self.given.defaults.push((name.clone(), value.clone()));
                continue;
            }
            if text.is_empty() && self.template.is_in_path(name) {
                errors.push(format!("`{name}` is in the path of its URI, so it cannot be hidden\ngive it a value with `.fix(\"{name}\", ..)`"));
            }
            self.given.hidden.push((name.clone(), value.cloned()));
            self.completions.retain(|completion| completion.argument != *name);
            self.uri = without_variable(&self.uri, name, &text);
        }
        BuildError::check_all(errors.iter().map(|text| build_error(&self.item, text)).collect())?;
        self.template = Template::parse(&self.uri).map_err(|error| build_error(&self.item, &error))?;
        Ok(())
    }

    /// Whether a change of it concerns not everyone who may read it, for all that is known here: its function decides by
    /// the caller, and no separate check decides on subscriptions.
    pub(crate) fn differs_by_caller(&self) -> bool {
        self.sees_caller && self.subscribe.is_none()
    }

    /// The part that access decisions use.
    pub(crate) fn view(&self) -> ItemView<'_> {
        ItemView::new(ItemKind::Resource, &self.uri, &self.item.scopes)
    }

    pub(crate) fn completes(&self) -> bool {
        !self.template.is_exact() && self.completions.iter().any(ArgumentCompletion::completes)
    }

    /// How a variable completes, if the template has one of that name.
    pub(crate) fn completion(&self, variable: &str) -> Option<&CompletionSource> {
        let found = self.completions.iter().find(|completion| completion.argument == variable);
        found.map(|completion| &completion.source)
    }

    /// The variables of a URI that its template matches.
    pub(crate) fn bind(&self, uri: &str) -> Option<UriVariables> {
        let is_raw = |name: &str| self.function.args().iter().any(|a| a.options().raw && a.name() == name);
        let mut variables = self.template.bind(uri, is_raw)?;
        self.given.apply_to_texts(&mut variables);
        Some(variables)
    }

    /// The variables of its URI if it has none besides those that transforms have given.
    pub(crate) fn given_variables(&self) -> UriVariables {
        let mut variables = UriVariables::new();
        self.given.apply_to_texts(&mut variables);
        variables
    }

    /// Appends `annotations`; those of an instance override the template's one by one.
    fn write_annotations(&self, entry: &mut Object<'_>, revision: Revision, instance: &Annotations) {
        let audience =
            if instance.audience.is_empty() { &self.annotations.audience } else { &instance.audience };
        let annotations = Annotations {
            audience: audience.clone(),
            priority: instance.priority.or(self.annotations.priority),
            last_modified: instance
                .last_modified
                .clone()
                .or_else(|| self.annotations.last_modified.clone())
                .filter(|_| revision >= Revision::V2025_06_18),
        };
        if annotations != Annotations::default() {
            ContentWriter(revision).write_annotations(entry, &annotations);
        }
    }

    /// Appends `_meta`; members of an instance override the template's.
    fn write_meta(&self, entry: &mut Object<'_>, revision: Revision, instance: &Map<String, Value>) {
        if revision < Revision::V2025_06_18 {
            return;
        }
        match (self.item.meta.as_deref(), self.ui.as_deref()) {
            (None, None) if instance.is_empty() => {}
            (Some(meta), None) if instance.is_empty() => {
                entry.raw("_meta", meta);
            }
            (meta, ui) => {
                entry.object("_meta", |members| {
                    let meta = meta.and_then(|meta| serde_json::from_str::<Map<_, _>>(meta).ok());
                    let inherited = meta.iter().flatten().filter(|(key, _)| !instance.contains_key(*key));
                    for (key, value) in inherited.chain(instance) {
                        members.escaped_value(key, value);
                    }
                    if let Some(ui) = ui.filter(|_| !instance.contains_key("ui")) {
                        members.raw("ui", ui);
                    }
                });
            }
        }
    }

    /// Appends its entry in `resources/list`, or in `resources/templates/list`.
    pub(crate) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let mut entry = Object::new(out);
        let exact = self.template.is_exact();
        entry.str(if exact { "uri" } else { "uriTemplate" }, &self.uri).str("name", &self.item.name);
        self.item.write_texts(&mut entry, revision);
        entry.opt_str("mimeType", self.mime.as_deref());
        if let Some(size) = self.size.filter(|_| exact) {
            entry.value("size", &size);
        }
        self.write_annotations(&mut entry, revision, &Annotations::default());
        self.write_meta(&mut entry, revision, &Map::new());
        self.item.write_members(&mut entry, &["uri", "uriTemplate", "mimeType", "size", "annotations"]);
        entry.end();
    }

    /// Appends the entry of one instance of this template.
    ///
    /// `list` functions do not know where their template is mounted, so the URIs that they return get its prefix.
    pub(crate) fn write_instance(&self, out: &mut Vec<u8>, revision: Revision, instance: &ListedResource) {
        let mut entry = Object::new(out);
        let uri = uri_with_prefix(&instance.uri, &self.prefix);
        entry.str("uri", &uri).str("name", if instance.name.is_empty() { &uri } else { &instance.name });
        let description = instance.description.as_deref().or(self.item.description.as_deref());
        let icons = if instance.icons.is_empty() { &self.item.icons } else { &instance.icons };
        write_texts(&mut entry, revision, instance.title.as_deref(), description, icons);
        entry.opt_str("mimeType", instance.mime.as_deref().or(self.mime.as_deref()));
        if let Some(size) = instance.size {
            entry.value("size", &size);
        }
        self.write_annotations(
            &mut entry,
            revision,
            instance.annotations.as_deref().unwrap_or(&Annotations::default()),
        );
        self.write_meta(&mut entry, revision, instance.meta.as_deref().unwrap_or(&Map::new()));
        entry.end();
    }
}

/// An error in a resource, at its location.
fn build_error(item: &ItemSpec, text: &str) -> BuildError {
    item.build_error(format_args!("resource `{}`: {text}", item.name))
}

/// `resource://<server>/<fn>{?params}`.
fn default_uri(server: &str, def: &ResourceDescriptor) -> String {
    let host: String = server
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '-' })
        .collect();
    let names: Vec<_> = def.item.args.iter().map(|arg| arg.name()).collect();
    let query = if names.is_empty() { String::new() } else { format!("{{?{}}}", names.join(",")) };
    format!("resource://{host}/{}{query}", def.item.name)
}
