//! Assembles a registry: prefixes names, finds duplicates and missing state, and reports every error at once. Items add
//! themselves, since only what they are of knows their kinds; the tools are here.

use std::{
    any::Any,
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    Capabilities, Entries, Open, Parts, Registry, ServerHandle,
    changing::{ItemPlace, Refused, RefusedItem, refusal},
    item::{AnnotatedItem, ItemSource, MadeItem, RegisteredItem, RuntimeKey},
    open_capabilities::Capability,
    transform::Transforms,
};
use crate::core::{
    admission::CallerConcurrency,
    arguments::Inject,
    build_error::BuildError,
    connection::ItemKind,
    gates::Gates,
    item::{ItemSpec, Location},
    server::Entry as _,
    store::CallerRate,
    tool::ToolEntry,
};

/// A registry while items are added to it.
pub(crate) struct Assembly<'a> {
    pub(crate) parts: &'a Parts,
    pub(crate) errors: Vec<BuildError>,
    names: NamesInUse,
    pub(crate) transforms: Transforms,
    /// With the prefix of each.
    pub(crate) tools: Vec<(ToolEntry, String)>,
    /// Whether some resource could not be added, which may be the page of a tool.
    pub(crate) resource_failed: bool,
    /// Whether the pages of tools were looked for among the resources.
    pub(crate) found_pages: bool,
    /// Capabilities that the server had before, and those that are opened now.
    lasting: Capabilities,
    catalogs: Vec<Box<dyn Capability>>,
    /// The addition whose item is added, if it changes them.
    pub(crate) place: Option<Arc<ItemPlace>>,
    refused: Vec<Refused>,
}

/// Builds the registry of these items, with the capabilities that are `open`, and those that `opens` open.
///
/// # Errors
/// Every error, with its item and location.
pub(crate) fn assemble(
    parts: &Parts,
    items: &[RegisteredItem],
    opens: &[Open],
    open: Capabilities,
) -> Result<Registry, Vec<BuildError>> {
    let require_descriptions = parts.options.lists.require_descriptions;
    let mut assembly = Assembly {
        parts,
        place: None,
        refused: Vec::new(),
        errors: Vec::new(),
        names: NamesInUse::default(),
        transforms: Transforms::new(require_descriptions),
        tools: Vec::new(),
        resource_failed: false,
        found_pages: false,
        lasting: open,
        catalogs: Vec::new(),
    };
    for open in opens {
        open(&mut assembly);
    }
    // those of additions that change come last, whenever they have come
    for item in items.iter().filter(|item| item.place.is_none()) {
        assembly.add(item);
    }
    for item in items {
        if let Some(place) = &item.place {
            assembly.add_at(place, item);
        }
    }
    assembly.finish()
}

impl Assembly<'_> {
    /// Adds an item.
    fn add(&mut self, item: &RegisteredItem) {
        let errors = match &item.source {
            ItemSource::Runtime(made) => self.errors_of_made(&*made.0, item),
            ItemSource::Place => return,
            ItemSource::Annotated(linked) => self.errors_of_function(linked, item),
        };
        let is_refused = self.place.is_some() && !errors.is_empty();
        self.errors.extend(errors);
        let (kind, added) = match &item.source {
            ItemSource::Runtime(made) if !is_refused => (made.0.key().kind, made.0.add_to(self, item)),
            ItemSource::Annotated(linked) => {
                for open in linked.descriptor().injects.iter().filter_map(|inject| inject.opens) {
                    open(self);
                }
                (linked.kind(), linked.0.add_to(self, item))
            }
            _ => return,
        };
        if let Err(error) = added {
            self.resource_failed |= kind == ItemKind::Resource;
            self.errors.push(error);
        }
    }

    /// Whether an item must have a description of its own: one that is changed is described by its transforms.
    fn needs_description(&self, item: &RegisteredItem) -> bool {
        self.parts.options.lists.require_descriptions && item.transforms.is_empty()
    }

    /// What is wrong with the common part of an item that was made at run time.
    fn errors_of_made(&self, made: &dyn MadeItem, item: &RegisteredItem) -> Vec<BuildError> {
        let (key, spec) = (made.key(), made.spec());
        let mut errors = Vec::new();
        if self.needs_description(item) && spec.description.is_none() {
            errors.push(format!("{key} has no description\nset one with `.description(..)`"));
        }
        errors.extend(self.parts.options.check_scopes(&spec.scopes).map(|text| format!("{key} {text}")));
        if let Some(Err(text)) = &spec.rate {
            errors.push(format!("{key}: {text}"));
        }
        errors.into_iter().map(BuildError::new).collect()
    }

    /// What is wrong with the common part of an annotated item.
    fn errors_of_function(&self, linked: &AnnotatedItem, item: &RegisteredItem) -> Vec<BuildError> {
        let (name, descriptor, kind) = (item.name(), linked.descriptor(), linked.kind().noun());
        let missing = |inject: &&Inject| {
            !inject.is::<ServerHandle>() && !inject.is_provided(&item.state, &item.requested)
        };
        let mut errors = Vec::new();
        for inject in descriptor.injects.iter().filter(missing) {
            let (ty, fix) = (inject.name(), inject.fix(&item.state));
            errors.push(format!(
                "{kind} `{name}` takes `&{ty}`, and no state of that type is registered\n{fix}"
            ));
        }
        for (option, takes) in linked.0.named() {
            for inject in takes.iter().filter(missing) {
                let ty = inject.name();
                let fix = descriptor.rules.fix(inject).filter(|_| option == "validate");
                let fix = fix.unwrap_or_else(|| inject.fix(&item.state));
                errors.push(format!(
                    "the `{option}` function of {kind} `{name}` takes `&{ty}`, and no state of that type is registered\n{fix}"
                ));
            }
        }
        if self.needs_description(item) && descriptor.description.is_none() {
            errors.push(format!("{kind} `{name}` has no description\nwrite a doc comment on it"));
        }
        let scopes: Vec<String> = descriptor.scopes.iter().map(|&scope| scope.to_owned()).collect();
        let unknown = self.parts.options.check_scopes(&scopes);
        errors.extend(unknown.map(|text| format!("{kind} `{name}` {text}")));
        errors.into_iter().map(|text| BuildError::at(descriptor.location, text)).collect()
    }

    /// Adds an item of an addition that changes, or keeps why it cannot be offered.
    fn add_at(&mut self, place: &Arc<ItemPlace>, item: &RegisteredItem) {
        let ItemSource::Runtime(made) = &item.source else {
            return self.transforms.await_names(&item.transforms);
        };
        let (before, failed) = (self.errors.len(), self.resource_failed);
        self.place = Some(place.clone());
        self.add(item);
        self.place = None;
        self.resource_failed = failed;
        let errors = self.errors.split_off(before);
        let claimed = self.names.last_claim.take();
        if !errors.is_empty() {
            claimed.map(|key| self.names.used.remove(&key));
            let RuntimeKey { kind, name } = made.0.key();
            let item = RefusedItem { kind, name: name.to_owned(), reason: refusal(&errors) };
            self.refused.push(Refused { place: place.clone(), item });
        }
    }
}

impl Assembly<'_> {
    /// The state of a capability that is opened once, here if it is not open yet, and stays open, so that what it has begun
    /// can be brought to its end. Others have the items of one kind, and are made anew whenever the items of the server change:
    /// [`catalog`](Self::catalog).
    pub(crate) fn open<C: Capability>(&mut self, open: fn(&mut Assembly<'_>) -> Arc<C>) -> Arc<C> {
        if let Some(known) = self.lasting.get::<C>() {
            return known;
        }
        let opened = open(self);
        self.lasting.0.push(opened.clone());
        opened
    }

    /// The items of one kind, so far.
    pub(crate) fn catalog<C: Capability + Default>(&mut self) -> &mut C {
        let known = self.catalogs.iter().position(|catalog| (&**catalog as &dyn Any).is::<C>());
        let index = known.unwrap_or_else(|| {
            self.catalogs.push(Box::new(C::default()));
            self.catalogs.len() - 1
        });
        let found = self.catalogs.get_mut(index).map(|catalog| &mut **catalog as &mut dyn Any);
        found
            .and_then(|found| found.downcast_mut())
            .unwrap_or_else(|| unreachable!("the catalog has been found by its type, or added"))
    }

    /// Records a name or URI, or reports that it is in use.
    ///
    /// # Errors
    /// It is in use, and the item is one of an addition that changes, which is left out.
    pub(crate) fn claim_name(
        &mut self,
        kind: &'static str,
        key: &str,
        display: &str,
        at: Option<Location>,
    ) -> Result<(), BuildError> {
        match &self.place {
            None => self.names.insert(kind, key, display, at, &mut self.errors),
            Some(place) => self.names.insert_if_free(kind, key, display, place)?,
        }
        Ok(())
    }

    /// Adds a tool.
    pub(crate) fn add_tool(&mut self, item: &RegisteredItem, mut entry: ToolEntry) {
        #[cfg(feature = "tasks")]
        let own_timeout = entry.spec.item.timeout;
        self.parts.apply_with_concurrency(item, &mut entry.spec.item, entry.spec.max_concurrency);
        #[cfg(feature = "tasks")]
        {
            entry.continuation = crate::capability::tasks::open_for_tool(self, item, &entry);
            // work that continues outside of its request is meant to take long
            if entry.continuation.is_some() {
                entry.spec.item.timeout = own_timeout;
            }
        }
        self.tools.push((entry, item.prefix.clone()));
    }

    fn finish(mut self) -> Result<Registry, Vec<BuildError>> {
        self.errors.extend(std::mem::take(&mut self.transforms).errors());
        let mut capabilities = Vec::new();
        for mut catalog in std::mem::take(&mut self.catalogs) {
            catalog.finish(&mut self);
            capabilities.push(Arc::from(catalog));
        }
        if !self.found_pages && !self.resource_failed {
            let unknown = |tool: &ToolEntry| Some(unknown_page(tool, tool.spec.ui.as_deref()?, None));
            self.errors.extend(self.tools.iter().filter_map(|(tool, _)| unknown(tool)));
        }
        if !self.errors.is_empty() {
            return Err(self.errors);
        }
        let has_forwarders = self.tools.iter().any(|(tool, _)| tool.is_forwarder());
        let mut tools = Entries::default();
        self.tools.into_iter().for_each(|(tool, _)| tools.push(Arc::new(tool)));
        capabilities.extend(self.lasting.iter().cloned());
        let (capabilities, refused) = (Capabilities(capabilities), self.refused);
        static GENERATION: AtomicU64 = AtomicU64::new(1);
        let generation = GENERATION.fetch_add(1, Ordering::Relaxed);
        Ok(Registry { tools, capabilities, lasting: self.lasting, refused, generation, has_forwarders })
    }
}

/// The error of a tool whose page is not there; `nearest` is the one with the most similar URI.
pub(crate) fn unknown_page(tool: &ToolEntry, page: &str, nearest: Option<&str>) -> BuildError {
    let fix = match nearest {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("register one with `uri = \"{page}\"`"),
    };
    let name = tool.name();
    tool.spec.item.build_error(format!("tool `{name}` shows `{page}`, and no resource has that URI\n{fix}"))
}

impl Parts {
    /// Sets an item's layers, the options of the server, and the gates that it had in earlier registries.
    pub(crate) fn apply_to(&self, item: &RegisteredItem, spec: &mut ItemSpec) {
        self.apply_with_concurrency(item, spec, None);
    }

    /// The same for an item with a maximum of concurrent calls.
    fn apply_with_concurrency(&self, item: &RegisteredItem, spec: &mut ItemSpec, calls: Option<usize>) {
        let limits = &self.options.limits;
        spec.layers = item.layers.clone();
        spec.timeout = spec.timeout.or(limits.timeout);
        spec.max_result = spec.max_result.or(limits.max_result);
        spec.gates = item.gates.get_or_init(|| self.make_gates(item, spec, calls)).clone();
    }

    /// The gates of an item. The innermost rate comes first, so that what an item refuses is not counted by its server.
    fn make_gates(&self, item: &RegisteredItem, spec: &ItemSpec, calls: Option<usize>) -> Option<Arc<Gates>> {
        let own = spec.max_concurrency_per_caller.map(|calls| Arc::new(CallerConcurrency::new(calls)));
        let callers = own.into_iter().chain(self.caller_concurrency.clone()).collect();
        let mut rates = Vec::new();
        if let Some(Ok(rate)) = spec.rate {
            let rate = CallerRate::new(rate);
            self.store.share_rate(&rate, item.source.kind().noun(), &spec.name);
            rates.push(rate);
        }
        rates.extend(item.mount_rates.iter().cloned());
        Gates::new(callers, rates, calls)
    }
}

/// A kind, and a name or URI.
type NameKey = (&'static str, String);

/// Names and URIs that are in use.
#[derive(Default)]
struct NamesInUse {
    used: HashMap<NameKey, NameInUse>,
    /// The last name that an addition which changes has got.
    last_claim: Option<NameKey>,
}

/// A name as its item has it, and where that is: its location, or the addition that changes it.
struct NameInUse {
    display: String,
    at: Option<Location>,
    place: Option<Arc<ItemPlace>>,
}

impl NamesInUse {
    /// Adds a name of an addition that changes.
    ///
    /// # Errors
    /// Another item has it.
    fn insert_if_free(
        &mut self,
        kind: &'static str,
        key: &str,
        display: &str,
        place: &Arc<ItemPlace>,
    ) -> Result<(), BuildError> {
        let key = (kind, key.to_owned());
        if let Some(used) = self.used.get(&key) {
            let owner = used.place.as_ref().map_or("this server", |place| &place.name);
            return Err(BuildError::new(format!("`{owner}` has the {kind} `{}`", used.display)));
        }
        let name = NameInUse { display: display.to_owned(), at: None, place: Some(place.clone()) };
        self.used.insert(key.clone(), name);
        self.last_claim = Some(key);
        Ok(())
    }

    /// Adds a name, or reports that it is in use.
    fn insert(
        &mut self,
        kind: &'static str,
        key: &str,
        display: &str,
        at: Option<Location>,
        errors: &mut Vec<BuildError>,
    ) {
        let name = NameInUse { display: display.to_owned(), at, place: None };
        if let Some(NameInUse { display: first_display, at: first, .. }) =
            self.used.insert((kind, key.to_owned()), name)
        {
            let location =
                |at: Option<Location>| at.map_or("made at run time".to_owned(), |at| at.to_string());
            let option = if kind == "resource" { "uri" } else { "name" };
            let names = if first_display == display {
                format!("`{display}`")
            } else {
                format!("`{first_display}` and `{display}`, which match the same URIs")
            };
            let has_query = |uri: &str| uri.contains("{?") || uri.contains("{&");
            let fix = if has_query(&first_display) && has_query(display) {
                "let one of them have all variables of the query, each of which may be absent, or "
            } else {
                ""
            };
            errors.push(BuildError::new(format!(
                "two {kind}s are {names}\n  --> {}\n  --> {}\n{fix}give one of them another `{option}`",
                location(first),
                location(at)
            )));
        }
    }
}
