//! A resource or template as it is offered.

use std::{any::Any, sync::Arc};

use serde_json::{Map, Value};

use crate::{
    arguments::choices,
    content::heading,
    item::Problem,
    resource::{Bound, template::Template},
};
use crate::{
    content::{Annotations, Role, Writer},
    extensions::Extensions,
    jsonrpc::Object,
    protocol::Revision,
    resource::{ListedResource, ResourceDef},
};

/// A resource that can be read.
#[derive(Debug)]
pub(crate) struct ResourceEntry {
    pub(crate) name: String,
    pub(crate) uri: String,
    pub(crate) template: Template,
    pub(crate) def: &'static ResourceDef,
    pub(crate) this: Option<Arc<dyn Any + Send + Sync>>,
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
        let template = Template::parse(&uri).map_err(|e| {
            Problem::at(def.common.at, format!("resource `{name}`: `{uri}` is no URI template: {e}"))
        })?;
        for arg in def.common.args {
            if let Some(bad) = arg.problems().into_iter().next() {
                return Err(Problem::at(
                    def.common.at,
                    format!("resource `{name}`: `{}`: {bad}", arg.name()),
                ));
            }
        }
        let choices = def.common.args.iter().map(|arg| choices(*arg)).collect();
        Ok(Self { name, uri, template, def, this, state, prefix: prefix.to_owned(), choices })
    }

    pub(crate) fn choices(&self, index: usize) -> &[String] {
        self.choices.get(index).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn completes(&self) -> bool {
        !self.template.is_exact()
            && (self.choices.iter().any(|c| !c.is_empty())
                || self.def.common.args.iter().any(|arg| arg.completer().is_some()))
    }

    /// The variables of a URI that its template matches.
    pub(crate) fn bind(&self, uri: &str) -> Option<Bound> {
        self.template.bind(uri, |name| self.def.common.args.iter().any(|a| a.is_raw() && a.name() == name))
    }

    /// Of an instance, its own `annotations` come first, each by itself.
    fn annotations(&self, entry: &mut Object<'_>, revision: Revision, own: &Annotations) {
        let role = |name: &&str| if *name == "assistant" { Role::Assistant } else { Role::User };
        let audience = match own.audience.as_slice() {
            [] => self.def.audience.iter().map(role).collect(),
            own => own.to_vec(),
        };
        let priority = self.def.priority.map(|p| p.to_string().parse().unwrap_or(f64::from(p)));
        let last_modified = own.last_modified.clone().filter(|_| revision >= Revision::V2025_06_18);
        let annotations = Annotations { audience, priority: own.priority.or(priority), last_modified };
        if annotations != Annotations::default() {
            Writer(revision).annotations(entry, &annotations);
        }
    }

    /// Of an instance, its own `_meta` wins over the template's, member by member.
    fn meta(&self, entry: &mut Object<'_>, revision: Revision, own: &Map<String, Value>) {
        if revision < Revision::V2025_06_18 {
            return;
        }
        match (self.def.common.meta, self.def.ui) {
            (None, None) if own.is_empty() => {}
            (Some(meta), None) if own.is_empty() => {
                entry.raw("_meta", meta);
            }
            (meta, ui) => {
                entry.object("_meta", |all| {
                    let meta = meta.and_then(|meta| serde_json::from_str::<Map<_, _>>(meta).ok());
                    let of_template = meta.iter().flatten().filter(|(key, _)| !own.contains_key(*key));
                    for (key, value) in of_template.chain(own) {
                        all.any_value(key, value);
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
        entry.str(if exact { "uri" } else { "uriTemplate" }, &self.uri).str("name", &self.name);
        let common = &self.def.common;
        heading(&mut entry, revision, common.title, common.description, common.icons);
        entry.opt_str("mimeType", self.def.mime_type());
        if let Some(size) = self.def.size.filter(|_| exact) {
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
        let description = instance.description.as_deref().or(self.def.common.description);
        let icons = if instance.icons.is_empty() { self.def.common.icons } else { &instance.icons };
        heading(&mut entry, revision, instance.title.as_deref(), description, icons);
        entry.opt_str("mimeType", instance.mime.as_deref().or(self.def.mime_type()));
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
