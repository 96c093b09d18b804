//! A resource or template as it is offered.

use std::{any::Any, sync::Arc};

use serde_json::{Map, Value};

use super::{Bound, ListFn, ListedResource, ResourceDef, ResourceResult, SubscribeFn, template::Template};
use crate::{
    arguments::choices,
    content::{Annotations, ContentWriter, Role},
    extensions::Extensions,
    item::{Function, ItemSpec, Problem, write_texts},
    jsonrpc::Object,
    protocol::Revision,
};

/// A resource that can be read.
#[derive(Debug)]
pub(crate) struct ResourceEntry {
    pub(crate) item: ItemSpec,
    pub(crate) uri: String,
    pub(crate) template: Template,
    pub(crate) function: Function<ResourceResult>,
    /// Lists the instances of a template.
    pub(crate) list: Option<ListFn>,
    /// Decides who may subscribe.
    pub(crate) subscribe: Option<SubscribeFn>,
    pub(crate) mime: Option<String>,
    annotations: Annotations,
    /// Bytes.
    size: Option<u64>,
    /// Milliseconds, and whether caches may share it.
    pub(crate) cache: Option<(u64, bool)>,
    /// JSON text of a page's `_meta.ui`.
    pub(crate) ui: Option<String>,
    pub(crate) state: Arc<Extensions>,
    /// Of its service or mount; empty for none.
    prefix: String,
    /// By argument, what it offers by itself: listed choices, enums, bools.
    choices: Vec<Vec<String>>,
}

impl ResourceEntry {
    pub(crate) fn new(
        name: String,
        prefix: &str,
        server: &str,
        def: &'static ResourceDef,
        this: Option<Arc<dyn Any + Send + Sync>>,
        state: Arc<Extensions>,
    ) -> Result<Self, Problem> {
        let own = def.uri.map_or_else(|| default_uri(server, def), str::to_owned);
        let uri = uri_with_prefix(&own, prefix);
        let item = ItemSpec::new(name, &def.common);
        let problem = |text: String| item.problem(format_args!("resource `{}`: {text}", item.name));
        let template =
            Template::parse(&uri).map_err(|e| problem(format!("`{uri}` is not a URI template: {e}")))?;
        let args = def.common.args;
        for arg in args {
            if let Some(bad) = arg.problems().into_iter().next() {
                return Err(problem(format!("`{}`: {bad}", arg.name())));
            }
        }
        let role = |name: &&str| if *name == "assistant" { Role::Assistant } else { Role::User };
        let annotations = Annotations {
            audience: def.audience.iter().map(role).collect(),
            // the shortest text of the 32-bit number, and not its digits as a 64-bit one
            priority: def.priority.map(|p| p.to_string().parse().unwrap_or(f64::from(p))),
            last_modified: None,
        };
        Ok(Self {
            uri,
            template,
            function: Function { handler: def.handler, args, this },
            list: def.list,
            subscribe: def.subscribe,
            mime: def.mime_type().map(str::to_owned),
            annotations,
            size: def.size,
            cache: def.cache,
            ui: def.ui.map(str::to_owned),
            state,
            prefix: prefix.to_owned(),
            choices: args.iter().map(|arg| choices(*arg)).collect(),
            item,
        })
    }

    pub(crate) fn choices(&self, index: usize) -> &[String] {
        self.choices.get(index).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn completes(&self) -> bool {
        !self.template.is_exact()
            && (self.choices.iter().any(|c| !c.is_empty())
                || self.function.args.iter().any(|arg| arg.completer().is_some()))
    }

    /// The variables of a URI that its template matches.
    pub(crate) fn bind(&self, uri: &str) -> Option<Bound> {
        self.template.bind(uri, |name| self.function.args.iter().any(|a| a.is_raw() && a.name() == name))
    }

    /// Of an instance, its own `annotations` come first, each by itself.
    fn annotations(&self, entry: &mut Object<'_>, revision: Revision, own: &Annotations) {
        let audience = if own.audience.is_empty() { &self.annotations.audience } else { &own.audience };
        let annotations = Annotations {
            audience: audience.clone(),
            priority: own.priority.or(self.annotations.priority),
            last_modified: own.last_modified.clone().filter(|_| revision >= Revision::V2025_06_18),
        };
        if annotations != Annotations::default() {
            ContentWriter(revision).write_annotations(entry, &annotations);
        }
    }

    /// Of an instance, its own `_meta` wins over the template's, member by member.
    fn meta(&self, entry: &mut Object<'_>, revision: Revision, own: &Map<String, Value>) {
        if revision < Revision::V2025_06_18 {
            return;
        }
        match (self.item.meta.as_deref(), self.ui.as_deref()) {
            (None, None) if own.is_empty() => {}
            (Some(meta), None) if own.is_empty() => {
                entry.raw("_meta", meta);
            }
            (meta, ui) => {
                entry.object("_meta", |all| {
                    let meta = meta.and_then(|meta| serde_json::from_str::<Map<_, _>>(meta).ok());
                    let of_template = meta.iter().flatten().filter(|(key, _)| !own.contains_key(*key));
                    for (key, value) in of_template.chain(own) {
                        all.escaped_value(key, value);
                    }
                    if let Some(ui) = ui.filter(|_| !own.contains_key("ui")) {
                        all.raw("ui", ui);
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
        self.annotations(&mut entry, revision, &Annotations::default());
        self.meta(&mut entry, revision, &Map::new());
        entry.end();
    }

    /// Appends the entry of one instance of this template.
    ///
    /// Listers do not know where their template is mounted: their URIs get its prefix, so that they can be read.
    pub(crate) fn write_instance(&self, out: &mut Vec<u8>, revision: Revision, instance: &ListedResource) {
        let mut entry = Object::new(out);
        let uri = uri_with_prefix(&instance.uri, &self.prefix);
        entry.str("uri", &uri).str("name", instance.name.as_deref().unwrap_or(&uri));
        let description = instance.description.as_deref().or(self.item.description.as_deref());
        let icons = if instance.icons.is_empty() { &self.item.icons } else { &instance.icons };
        write_texts(&mut entry, revision, instance.title.as_deref(), description, icons);
        entry.opt_str("mimeType", instance.mime.as_deref().or(self.mime.as_deref()));
        if let Some(size) = instance.size {
            entry.value("size", &size);
        }
        self.annotations(&mut entry, revision, &instance.annotations);
        self.meta(&mut entry, revision, &instance.meta);
        entry.end();
    }
}

/// `resource://<server>/<fn>{?params}`.
fn default_uri(server: &str, def: &ResourceDef) -> String {
    let host: String = server
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '-' })
        .collect();
    let names: Vec<_> = def.common.args.iter().map(|arg| arg.name()).collect();
    let query = if names.is_empty() { String::new() } else { format!("{{?{}}}", names.join(",")) };
    format!("resource://{host}/{}{query}", def.common.name)
}

/// `scheme://prefix/rest`, so that two instances of one service do not share URIs.
pub(crate) fn uri_with_prefix(uri: &str, prefix: &str) -> String {
    if prefix.is_empty() {
        return uri.to_owned();
    }
    match uri.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{prefix}/{rest}"),
        None => match uri.split_once(':') {
            Some((scheme, rest)) => format!("{scheme}:{prefix}/{rest}"),
            None => format!("{prefix}/{uri}"),
        },
    }
}
