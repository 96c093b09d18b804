//! Items that are found by name, as a server offers them: tools, prompts and events. All of these are looked up, listed and
//! named in logs in one way, and get into a registry in one way: transforms change them, and their names are unique. The
//! other parts of a kind are in its own module. Resources are not among these: they are found by URI and by template.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use super::{
    Assembly, List, PageCache,
    item::{ItemSource, RegisteredItem},
    registry::write_entry,
};
use crate::{
    core::{
        arguments::ArgumentChange,
        build_error::BuildError,
        connection::{Access, AccessError, ItemKind, ItemView},
        dispatch::{ObservedItem, Reply, Request, Response},
        item::ItemSpec,
        jsonrpc::decode_string,
        protocol::Revision,
        server::Server,
        tool::Hints,
    },
    schema::nearest,
};

/// An item that is found by its name.
pub(crate) trait Entry {
    const KIND: ItemKind;

    /// The part that all kinds of items have.
    fn item(&self) -> &ItemSpec;

    /// The parts that transforms change besides arguments; hints, if its kind has some.
    fn item_mut(&mut self) -> (&mut ItemSpec, Option<&mut Hints>);

    /// The names of its arguments.
    fn argument_names(&self) -> Vec<String>;

    /// Changes what clients see of arguments, and what the function gets; and follows a change of the name.
    ///
    /// # Errors
    /// A value does not fit its argument, or an argument that is required is hidden.
    fn change_arguments(&mut self, changes: &[(String, ArgumentChange)]) -> Result<(), BuildError>;

    /// Its tags, as what decides who sees it gets them.
    fn tags(&self) -> &'static [&'static str] {
        &[]
    }

    fn name(&self) -> &str {
        &self.item().name
    }

    /// The part that access decisions use.
    fn view(&self) -> ItemView<'_> {
        let ItemSpec { name, scopes, .. } = self.item();
        ItemView { tags: self.tags(), ..ItemView::new(Self::KIND, name, scopes) }
    }

    /// The same where a list of these is made.
    fn view_in<'a>(&'a self, _all: &'a Entries<Self>) -> ItemView<'a>
    where
        Self: Sized,
    {
        self.view()
    }
}

/// The items of one kind, in the order in which they were added.
pub(crate) struct Entries<E> {
    all: Vec<Arc<E>>,
    // of so few names a tree costs less than the hash of one
    index: BTreeMap<String, usize>,
    pages: PageCache,
    /// How long the entries of all are, once it is asked for.
    pub(crate) bytes: OnceLock<usize>,
}

impl<E> Default for Entries<E> {
    fn default() -> Self {
        Self { all: Vec::new(), index: BTreeMap::new(), pages: PageCache::default(), bytes: OnceLock::new() }
    }
}

impl<E: Entry> Entries<E> {
    pub(crate) fn push(&mut self, entry: Arc<E>) {
        self.index.insert(entry.name().to_owned(), self.all.len());
        self.all.push(entry);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Arc<E>> {
        self.all.iter()
    }

    /// The item with this name, for every caller.
    pub(crate) fn any(&self, name: &str) -> Option<&Arc<E>> {
        self.index.get(name).and_then(|n| self.all.get(*n))
    }

    /// The item with this name.
    ///
    /// # Errors
    /// It does not exist, or may not be called.
    pub(crate) fn find(&self, name: &str, access: Access<'_>) -> Result<&Arc<E>, AccessError<'_>> {
        let entry = self.any(name).ok_or(AccessError::Unknown)?;
        if access.rules.is_some() {
            access.check(entry.view())?;
        }
        Ok(entry)
    }

    /// The same, for the reply to a request.
    ///
    /// # Errors
    /// The reply that refuses it.
    pub(crate) fn find_for(
        &self,
        server: &Server,
        request: &Request<'_>,
        name: &str,
    ) -> Result<&Arc<E>, Reply> {
        self.find(name, request.access()).map_err(|error| match error {
            AccessError::MissingScopes(scopes) => server.insufficient_scope(scopes),
            AccessError::Unknown => {
                Reply::unknown_item(E::KIND.noun(), name, self.nearest(name, request.access()))
            }
        })
    }

    /// The most similar name among the visible ones.
    pub(crate) fn nearest(&self, name: &str, access: Access<'_>) -> Option<&str> {
        let visible = self.all.iter().filter(|entry| access.sees(entry.view()));
        nearest(name, visible.map(|entry| entry.name()))
    }

    /// Answers a request for their list, whose entries are a member of this name.
    ///
    /// # Errors
    /// The reply that refuses it.
    pub(crate) fn list(
        &self,
        server: &Server,
        request: Request<'_>,
        key: &'static str,
        write: fn(&E, &mut Vec<u8>, Revision),
    ) -> Result<Response, Reply> {
        let entries = |revision, access: Access<'_>| {
            let lists = &server.options().lists;
            let listed = self.all.iter().filter(|entry| lists.shows(entry.view_in(self), access));
            listed.map(|entry| write_entry(|out| write(entry, out, revision))).collect()
        };
        server.list(request, List { key, entries: &entries, pages: &self.pages })
    }

    /// The one that a request names, as logs have it.
    pub(crate) fn observed(&self, request: &Request<'_>) -> ObservedItem {
        let name = request.params.name.and_then(decode_string).unwrap_or_default();
        match self.find(&name, request.access()) {
            Ok(entry) => {
                let ItemSpec { name, secrets, .. } = entry.item();
                let (kind, name, secrets) = (E::KIND.noun(), name.clone(), secrets.clone());
                ObservedItem::Found { kind, name, secrets }
            }
            Err(error) => {
                ObservedItem::missing(E::KIND.noun(), self.index.contains_key(&*name), &error, request)
            }
        }
    }

    /// Entries with `scopes`, for an error message.
    pub(crate) fn scoped(&self) -> Vec<String> {
        let scoped = self.all.iter().filter(|entry| !entry.item().scopes.is_empty());
        scoped.map(|entry| format!("{} `{}`", E::KIND.noun(), entry.name())).collect()
    }
}

impl Assembly<'_> {
    /// Checks the scopes that transforms have set.
    ///
    /// # Errors
    /// One of them is not a scope, or the server does not identify its callers.
    pub(crate) fn check_changed_scopes(&self, spec: &ItemSpec) -> Result<(), BuildError> {
        let error = self.parts.options.check_scopes(&spec.scopes);
        error.map_or(Ok(()), |text| Err(spec.build_error(format_args!("`{}` {text}", spec.name))))
    }

    /// The entry of an item with the changes of the item's transforms, under a name that no other has.
    ///
    /// # Errors
    /// The item could not be made, or a change does not fit it.
    pub(crate) fn named<E: Entry>(
        &mut self,
        item: &RegisteredItem,
        entry: Result<E, BuildError>,
    ) -> Result<E, BuildError> {
        let at = match &item.source {
            ItemSource::Annotated(annotated) => Some(annotated.descriptor().location),
            ItemSource::Runtime(_) | ItemSource::Place => None,
        };
        if item.transforms.is_empty() {
            // of one that is wrong, too: both errors are reported
            let name = item.name();
            self.claim_name(E::KIND.noun(), &name, &name, at)?;
            return entry;
        }
        let mut entry = entry?;
        let (arguments, mut no_hints) = (entry.argument_names(), Hints::default());
        let (spec, hints) = entry.item_mut();
        let hints = hints.unwrap_or(&mut no_hints);
        let changes = self.transforms.run(item, E::KIND, spec, hints, arguments)?;
        entry.change_arguments(&changes)?;
        self.check_changed_scopes(entry.item())?;
        self.claim_name(E::KIND.noun(), entry.name(), entry.name(), at)?;
        Ok(entry)
    }
}
