//! The resources of a server: their declared capability, the handlers of their methods, and their registration.

use std::{collections::HashMap, sync::Arc};

use super::{Resource, ResourceDef, ResourceDescriptor, ResourceEntry, UriVariables, ui_pages::UiPages};
use crate::{
    capability::{completion::Completions, open_for_handle},
    core::{
        arguments::Inject,
        build_error::BuildError,
        changes::Filter,
        config::ListOptions,
        connection::{Access, AccessError, ItemKind, Principal},
        dispatch::{ObservedItem, Reply, Request, Response},
        item::{ItemDescriptor, ItemSpec},
        jsonrpc::decode_string,
        protocol::{Revision, UI_EXTENSION, UI_SETTINGS, is_ui_uri, normalize_uri},
        server::{
            AnnotatedItem, Annotation, Assembly, Capability, CompletionOfItem, Declared, List, MadeItem,
            PageCache, RegisteredItem, Registry, RuntimeKey, Server, ServerBuilder, ServerHandle,
            comparable_uri, impl_additions, named_functions, write_entry,
        },
        tool::Hints,
    },
    schema::sort_by,
};

/// Another origin of what `resources/read` returns than registered items.
pub(crate) trait ResourceSource: Send + Sync {
    /// Whether clients of a revision are offered it.
    fn is_offered(&self, revision: Revision) -> bool;

    /// Its entries in `resources/list` that the caller may see, each as JSON.
    fn entries(&self, revision: Revision, access: Access<'_>) -> Vec<Vec<u8>>;

    /// Whether this client can read that URI.
    fn has(&self, request: &Request<'_>, uri: &str) -> bool;

    /// Answers `resources/read`; `None` if the URI is not one of its own.
    fn read(&self, server: &Server, request: &Request<'_>, uri: &str) -> Option<Result<Reply, Reply>>;

    /// The existing owner of that URI, which no item may have then.
    fn owner_of(&self, uri: &str) -> Option<String>;

    /// Resources with `scopes`, for an error message.
    fn scoped(&self) -> Vec<String>;
}

/// The resources of a server.
#[derive(Default)]
pub(crate) struct Resources {
    pub(super) entries: Vec<Arc<ResourceEntry>>,
    /// Exact URIs, with scheme and host in lower case.
    exact: HashMap<String, usize>,
    /// Templates, the most specific first.
    templates: Vec<usize>,
    pub(crate) sources: Vec<Arc<dyn ResourceSource>>,
    /// Whether they are declared even if there is none.
    pub(crate) may_come: bool,
    pages: PageCache,
    template_pages: PageCache,
}

impl Resources {
    fn add(
        assembly: &mut Assembly<'_>,
        item: &RegisteredItem,
        mut entry: ResourceEntry,
    ) -> Result<(), BuildError> {
        assembly.parts.apply_to(item, &mut entry.item);
        // names of variables tell no URI from another
        let (key, at) = (comparable_uri(&entry.template.without_names()), entry.item.location);
        assembly.claim_name("resource", &key, &entry.uri, at)?;
        // of others, it is an error of the server
        if assembly.place.is_some()
            && let Some(owner) =
                assembly.catalog::<Self>().sources.iter().find_map(|source| source.owner_of(&entry.uri))
        {
            return Err(entry.item.build_error(format!("`{}` is a URI of {owner}", entry.uri)));
        }
        // of one that an attribute names; the function of the item names it by itself
        if item.takes::<ServerHandle>() {
            open_for_handle(assembly);
        }
        if entry.completes() {
            let _opened = assembly.catalog::<Completions>();
        }
        assembly.catalog::<Self>().entries.push(Arc::new(entry));
        Ok(())
    }

    fn is_offered(&self, revision: Revision) -> bool {
        self.may_come
            || !self.entries.is_empty()
            || self.sources.iter().any(|source| source.is_offered(revision))
    }

    /// The resource that serves `uri` for that access, and its variables: of those that it sees, an exact URI before
    /// templates.
    ///
    /// # Errors
    /// None does, or the one that does may not be read.
    pub(crate) fn find(
        &self,
        uri: &str,
        access: Access<'_>,
    ) -> Result<(&Arc<ResourceEntry>, UriVariables), AccessError<'_>> {
        let visible = |resource: &&Arc<ResourceEntry>| access.sees(resource.view());
        let exact = self.exact.get(uri).or_else(|| self.exact.get(&normalize_uri(uri)));
        let exact = exact.and_then(|n| self.entries.get(*n)).filter(visible);
        let found = exact.map(|resource| (resource, resource.given_variables())).or_else(|| {
            let templates = self.templates.iter().filter_map(|n| self.entries.get(*n)).filter(visible);
            templates.into_iter().find_map(|resource| Some((resource, resource.bind(uri)?)))
        });
        let (resource, variables) = found.ok_or(AccessError::Unknown)?;
        access.check(resource.view())?;
        Ok((resource, variables))
    }

    /// Whether not every subscriber may get the updates of some resource or template: it has scopes, or differs by caller.
    pub(crate) fn guards_updates(&self) -> bool {
        self.entries.iter().any(|resource| !resource.item.scopes.is_empty() || resource.differs_by_caller())
    }

    fn lists_instances(&self, request: &Request<'_>) -> bool {
        #[cfg(feature = "cli")]
        if request.context.extensions.get::<crate::core::connection::WithoutInstances>().is_some() {
            return false;
        }
        #[cfg(not(feature = "cli"))]
        let _ = request;
        self.entries.iter().any(|resource| resource.list.is_some())
    }

    /// The entries of `resources/list`, or those of `resources/templates/list`, that the caller may see.
    pub(super) fn entries_of(
        &self,
        exact: bool,
        lists: &ListOptions,
        revision: Revision,
        access: Access<'_>,
    ) -> Vec<Vec<u8>> {
        let visible = self.entries.iter().filter(|r| r.template.is_exact() == exact);
        let visible = visible.filter(|r| lists.shows(r.view(), access));
        let mut entries: Vec<_> =
            visible.map(|resource| write_entry(|out| resource.write(out, revision))).collect();
        if exact {
            for source in self.sources.iter().filter(|source| source.is_offered(revision)) {
                entries.extend(source.entries(revision, access));
            }
        }
        entries
    }
}

impl Capability for Resources {
    fn finish(&mut self, assembly: &mut Assembly<'_>) {
        for entry in self.entries.iter().filter(|entry| entry.template.is_exact()) {
            if let Some(owner) = self.sources.iter().find_map(|source| source.owner_of(&entry.uri)) {
                let text = format!("`{}` is a URI of {owner}", entry.uri);
                assembly.errors.push(entry.item.build_error(text));
            }
        }
        let is_exact = |(_, resource): &(usize, &Arc<ResourceEntry>)| resource.template.is_exact();
        let exact = self.entries.iter().enumerate().filter(is_exact);
        self.exact = exact.map(|(n, resource)| (normalize_uri(&resource.uri), n)).collect();
        let templates = self.entries.iter().enumerate().filter(|resource| !is_exact(resource));
        self.templates = templates.map(|(n, _)| n).collect();
        // stable, so that registration order decides between equals
        let specificity = |n: &usize| self.entries[*n].template.specificity();
        sort_by(&mut self.templates, |one, other| specificity(other).cmp(&specificity(one)));
        UiPages::new(&self.entries).find_those_of_tools(assembly);
    }
    fn methods(&self) -> &'static [&'static str] {
        &["resources/read", "resources/list", "resources/templates/list"]
    }

    fn declare(&self, declared: &mut Declared) {
        if self.is_offered(declared.revision) {
            declared.list_with_subscriptions("resources");
        }
        if self.entries.iter().any(|resource| is_ui_uri(&resource.uri)) {
            declared.extension(UI_EXTENSION, UI_SETTINGS);
        }
    }

    fn answer(
        self: Arc<Self>,
        server: &Server,
        _: &Registry,
        request: Request<'_>,
    ) -> Result<Response, Reply> {
        if !self.is_offered(request.revision) {
            return Err(Reply::unknown_method(request.method));
        }
        let lists = &server.options().lists;
        match request.method {
            "resources/read" => self.read(server, request),
            "resources/list" if self.lists_instances(&request) => self.list_with_instances(server, request),
            "resources/list" => {
                let entries = |revision, access: Access<'_>| self.entries_of(true, lists, revision, access);
                server.list(request, List { key: RESOURCES, entries: &entries, pages: &self.pages })
            }
            _ => {
                let entries = |revision, access: Access<'_>| self.entries_of(false, lists, revision, access);
                let pages = &self.template_pages;
                server.list(request, List { key: "resourceTemplates", entries: &entries, pages })
            }
        }
    }

    fn observed(&self, _: &Registry, request: &Request<'_>) -> ObservedItem {
        if request.method != "resources/read" {
            return ObservedItem::None;
        }
        let uri = request.params.uri.and_then(decode_string).unwrap_or_default();
        if self.sources.iter().any(|source| source.has(request, &uri)) {
            return ObservedItem::Unregistered;
        }
        match self.find(&uri, request.access()) {
            Ok((entry, _)) => {
                let (name, secrets) = (entry.uri.clone(), entry.item.secrets.clone());
                ObservedItem::Found { kind: "resource", name, secrets }
            }
            Err(error) => {
                let hidden = self.find(&uri, Access::TRUSTED).is_ok();
                ObservedItem::missing("resource", hidden, &error, request)
            }
        }
    }

    fn completion<'r>(
        &'r self,
        server: &Server,
        request: &Request<'_>,
        kind: ItemKind,
        uri: &str,
        variable: &str,
    ) -> Option<Result<CompletionOfItem<'r>, Reply>> {
        (kind == ItemKind::Resource).then(|| {
            let template = self.entries.iter().find(|resource| resource.uri == uri);
            let Some(entry) = template.filter(|entry| request.access().sees(entry.view())) else {
                let is_resource = self.find(uri, request.access()).is_ok()
                    || self.sources.iter().any(|source| source.has(request, uri));
                let unknown = || Reply::unknown_item("resource template", uri, None);
                return if is_resource { Ok(None) } else { Err(unknown()) };
            };
            match request.access().check(entry.view()) {
                Err(AccessError::MissingScopes(scopes)) => Err(server.insufficient_scope(scopes)),
                _ => Ok(entry.completion(variable).map(|source| (source, &entry.state))),
            }
        })
    }

    fn scoped(&self) -> Vec<String> {
        let scoped = self.entries.iter().filter(|resource| !resource.item.scopes.is_empty());
        let scoped = scoped.map(|resource| format!("resource `{}`", resource.uri));
        scoped.chain(self.sources.iter().flat_map(|source| source.scoped())).collect()
    }

    fn differs_by_caller(&self) -> bool {
        self.entries.iter().any(|resource| resource.differs_by_caller())
    }

    fn publish_update(
        &self,
        server: &Server,
        uri: &str,
        concerns: Option<&dyn Fn(&Principal) -> bool>,
        reporter: Option<&str>,
    ) {
        self.tell_subscribers(server, uri, concerns, reporter);
    }

    #[cfg(feature = "shared")]
    fn may_read(&self, uri: &str, access: Access<'_>) -> bool {
        self.find(uri, access).is_ok()
    }

    fn subscribe_to_resources<'u>(
        &self,
        server: &Server,
        request: &Request<'_>,
        uris: &'u [String],
        filter: &Filter,
    ) -> Result<Vec<&'u str>, Reply> {
        self.subscribe_to(server, request, uris, filter)
    }
}

/// The member of the result of `resources/list`.
pub(super) const RESOURCES: &str = "resources";

impl AnnotatedItem {
    /// An annotated resource.
    #[must_use]
    pub const fn resource(descriptor: &'static ResourceDescriptor) -> Self {
        Self(descriptor)
    }
}

impl Annotation for ResourceDescriptor {
    fn descriptor(&self) -> &ItemDescriptor {
        &self.item
    }

    fn kind(&self) -> ItemKind {
        ItemKind::Resource
    }

    fn named(&self) -> Vec<(&'static str, Vec<Inject>)> {
        let mut named = named_functions(&self.item);
        named.extend(self.list.map(|list| ("list", list().injects)));
        named.extend(self.subscribe.map(|check| ("subscribe", check().injects)));
        named
    }

    fn add_to(&'static self, assembly: &mut Assembly<'_>, item: &RegisteredItem) -> Result<(), BuildError> {
        let (this, state) = (item.this.clone(), item.state.clone());
        let name = item.name();
        let mut entry =
            ResourceEntry::annotated(name, &item.prefix, assembly.parts.name(), self, this, state)?;
        // middleware puts what it knows of the caller into requests
        entry.sees_caller |= self.item.injects.iter().any(|inject| item.requested.contains(&inject.target()));
        change(assembly, item, &mut entry)?;
        Resources::add(assembly, item, entry)
    }
}

impl_additions!(ResourceDef);

impl MadeItem for ResourceDef {
    fn key(&self) -> RuntimeKey<'_> {
        RuntimeKey { kind: ItemKind::Resource, name: self.uri() }
    }

    fn spec(&self) -> &ItemSpec {
        &self.spec.item
    }

    fn add_to(&self, assembly: &mut Assembly<'_>, item: &RegisteredItem) -> Result<(), BuildError> {
        let mut entry = ResourceEntry::runtime(&item.prefix, self, item.state.clone())?;
        change(assembly, item, &mut entry)?;
        Resources::add(assembly, item, entry)
    }
}

/// Makes the changes of an item's transforms; its arguments are the variables of its URI.
fn change(
    assembly: &mut Assembly<'_>,
    item: &RegisteredItem,
    entry: &mut ResourceEntry,
) -> Result<(), BuildError> {
    if item.transforms.is_empty() {
        return Ok(());
    }
    let (arguments, hints) = (entry.variables(), &mut Hints::default());
    let changes = assembly.transforms.run(item, ItemKind::Resource, &mut entry.item, hints, arguments)?;
    entry.change_arguments(&changes)?;
    assembly.check_changed_scopes(&entry.item)
}

impl ServerBuilder {
    /// Offers one annotated resource or template.
    #[doc(alias("add_resource", "with_resource", "register_resource"))]
    // rustc shows the next line to those who pass the function as a value
    pub fn resource<T: Resource>(self /* write `.resource::<name>()` */) -> Self {
        self.with_named(const { AnnotatedItem::resource(T::DESCRIPTOR) })
    }
}
