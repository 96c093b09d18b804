//! Additions whose items change while the server runs: each has a place among the items of its builder, so that what it
//! adds later has the prefix, the layers, the rates and the state of that place, and comes after what the program itself
//! offers, in the order of the additions and not in that of time. An item that cannot be offered is left out alone.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    Error, MadeState, RegisteredItem, Result, ServerBuilder, ServerInner,
    handle::{ItemChange, ItemsInChange},
    item::{IntoRuntimeItem, ItemSource, RuntimeItem},
};
use crate::core::{
    build_error::BuildError, connection::ItemKind, extensions::Extensions, spawn::spawn, sync::Mutex,
};

/// How long a list waits for the first items of additions.
pub(crate) const FIRST_ITEMS: Duration = Duration::from_secs(5);

type RunFn = Box<dyn FnOnce(AddedItems) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// The place of an addition among the items of a server.
pub(crate) struct ItemPlace {
    /// Its name in errors.
    pub(crate) name: String,
    run: Mutex<Option<RunFn>>,
}

/// The additions of a server whose first items are awaited.
#[derive(Default)]
pub(super) struct AwaitedItems {
    additions: AtomicUsize,
    arrived: Notify,
    /// Cancelled once a request waits for them.
    wanted: CancellationToken,
}

impl AwaitedItems {
    pub(super) fn is_empty(&self) -> bool {
        self.additions.load(Ordering::Acquire) == 0
    }

    /// Waits until the first items of all additions are there, for a short time.
    pub(super) async fn arrive(&self) {
        self.wanted.cancel();
        let arrived = async {
            loop {
                let mut arrived = std::pin::pin!(self.arrived.notified());
                arrived.as_mut().enable();
                if self.is_empty() {
                    return;
                }
                arrived.await;
            }
        };
        // those that come later are notified
        let _is_late = timeout(FIRST_ITEMS, arrived).await;
    }

    fn begin(self: &Arc<Self>) -> FirstItems {
        self.additions.fetch_add(1, Ordering::AcqRel);
        FirstItems { awaited: self.clone(), has_arrived: AtomicBool::new(false) }
    }
}

/// The first items of one addition.
struct FirstItems {
    awaited: Arc<AwaitedItems>,
    has_arrived: AtomicBool,
}

impl FirstItems {
    fn arrive(&self) {
        if !self.has_arrived.swap(true, Ordering::AcqRel) {
            self.awaited.additions.fetch_sub(1, Ordering::AcqRel);
            self.awaited.arrived.notify_waiters();
        }
    }
}

/// Ends the wait for the first items with the function of their addition.
struct ArriveAtEnd(Arc<FirstItems>);

impl Drop for ArriveAtEnd {
    fn drop(&mut self) {
        self.0.arrive();
    }
}

impl ServerBuilder {
    /// Adds the place of an addition, whose function runs from when the server opens.
    pub(crate) fn push_place(&mut self, name: String, run: RunFn) {
        let place = Arc::new(ItemPlace { name, run: Mutex::new(Some(run)) });
        let item = RegisteredItem::new(ItemSource::Place);
        self.items.push(RegisteredItem { place: Some(place), ..item });
    }
}

/// Lets the additions of these items begin when the server opens.
pub(super) fn begin_when_opened(
    items: &[RegisteredItem],
    server: &Weak<ServerInner>,
    state: &MadeState,
    awaited: &Arc<AwaitedItems>,
) {
    let places = items.iter().filter(|item| matches!(item.source, ItemSource::Place));
    for (item, place) in places.filter_map(|item| Some((item, item.place.as_ref()?))) {
        let Some(run) = place.run.lock().take() else { continue };
        let handle = (server.clone(), place.clone(), item.clone());
        let awaited = awaited.clone();
        state.begin_when_made(Box::new(move || {
            let (server, place, item) = handle;
            let first = Arc::new(awaited.begin());
            let at_end = ArriveAtEnd(first.clone());
            let running =
                run(AddedItems { server, place, state: item.state, prefix: item.prefix.into(), first });
            spawn(async move {
                running.await;
                drop(at_end);
            })
        }));
    }
}

/// The items of one [addition](super::Addition::changing) in a server that runs; clones are of the same one.
///
/// They have the prefix, the layers, the transforms, the rates and the state of the builder that the addition was given
/// to. It does not keep the server alive.
#[derive(Clone)]
pub struct AddedItems {
    server: Weak<ServerInner>,
    place: Arc<ItemPlace>,
    state: Arc<Extensions>,
    prefix: Arc<str>,
    first: Arc<FirstItems>,
}

impl fmt::Debug for AddedItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddedItems").field("name", &self.place.name).finish_non_exhaustive()
    }
}

/// An item that a server does not offer, though its addition has it: another item has its name, or its definition is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedItem {
    /// Its kind.
    pub kind: ItemKind,
    /// Its name or URI.
    pub name: String,
    /// The reason, which names the owner of its name, if it has one.
    pub reason: String,
}

/// A refused item, and the addition that it is of.
pub(crate) struct Refused {
    pub(super) place: Arc<ItemPlace>,
    pub(super) item: RefusedItem,
}

impl AddedItems {
    /// State of the builder that the addition was given to.
    #[must_use]
    pub fn state<T: ?Sized + 'static>(&self) -> Option<&T> {
        self.state.get()
    }

    /// The prefix of its mounts, joined; empty without one.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Waits until a client wants the first items: it has sent a request for a list, or for an item that the server does not
    /// have. An addition that waits for this before it connects anywhere connects nowhere until a server is used.
    pub async fn wanted(&self) {
        self.first.awaited.wanted.cancelled().await;
    }

    /// Says that the first items are there, or will not come soon: until then, lists, and requests for items that the server
    /// does not have, wait for them, for at most 5 seconds.
    pub fn arrived(&self) {
        self.first.arrive();
    }

    /// Changes the items of the addition as one change, and notifies clients: with one notification for each list. An item
    /// that cannot be offered is left out alone and returned; it is offered once that is possible.
    ///
    /// # Errors
    /// The server has been dropped, or the change is not possible as a whole.
    pub fn update(&self, edit: impl FnOnce(&mut ItemEdits)) -> Result<Vec<RefusedItem>> {
        let mut edits = ItemEdits::default();
        edit(&mut edits);
        self.apply(edits)
    }

    /// Adds one item, or nothing.
    ///
    /// # Errors
    /// It cannot be offered, or the server has been dropped.
    pub fn try_add(&self, item: impl IntoRuntimeItem) -> Result<()> {
        let item = item.into_runtime_item();
        let (kind, name) = (item.0.key().kind, item.0.key().name.to_owned());
        let add = |removed: Vec<(ItemKind, String)>, added| {
            self.apply(ItemEdits { removed, added, ..ItemEdits::default() })
        };
        let refused = add(Vec::new(), vec![item])?;
        match refused.into_iter().find(|refused| refused.kind == kind && refused.name == name) {
            None => Ok(()),
            Some(refused) => {
                add(vec![(kind, name)], Vec::new())?;
                Err(Error::build(refused.reason))
            }
        }
    }

    fn apply(&self, edits: ItemEdits) -> Result<Vec<RefusedItem>> {
        let shared = self.server.upgrade().ok_or_else(|| Error::from("the server has been dropped"))?;
        let items = ItemsInChange::lock(&shared)?;
        let is_own =
            |item: &RegisteredItem| item.place.as_ref().is_some_and(|place| Arc::ptr_eq(place, &self.place));
        let ItemEdits { cleared, removed, added } = edits;
        let mut edited = Vec::with_capacity(items.guard.len() + added.len());
        let (mut end, mut changes) = (0, Vec::new());
        for item in items.guard.iter() {
            if let ItemSource::Runtime(made) = &item.source
                && is_own(item)
            {
                let key = made.0.key();
                let is_removed = removed.iter().any(|(kind, name)| *kind == key.kind && name == key.name);
                if is_removed || cleared.contains(&key.kind) {
                    changes.push(ItemChange::of(made));
                    continue;
                }
            }
            edited.push(item.clone());
            if is_own(item) {
                end = edited.len();
            }
        }
        changes.extend(added.iter().map(ItemChange::of));
        let Some(place) = edited.iter().find(|item| is_own(item)).cloned() else { return Ok(Vec::new()) };
        let added = added.into_iter().map(|item| place.clone().with_item(item));
        drop(edited.splice(end..end, added));
        let registry = super::ServerHandle::apply(&shared, items, edited, &changes)?;
        let own = registry.refused.iter().filter(|refused| Arc::ptr_eq(&refused.place, &self.place));
        Ok(own.map(|refused| refused.item.clone()).collect())
    }
}

impl RegisteredItem {
    /// An item at the place of an addition.
    fn with_item(self, item: RuntimeItem) -> Self {
        let source = ItemSource::Runtime(item);
        let layers = self.layers.iter().cloned().chain(source.layers()).collect();
        Self { source, layers, gates: Arc::default(), ..self }
    }
}

/// Changes of the items of one addition, in [`AddedItems::update`].
#[derive(Debug, Default)]
pub struct ItemEdits {
    cleared: Vec<ItemKind>,
    removed: Vec<(ItemKind, String)>,
    added: Vec<RuntimeItem>,
}

impl ItemEdits {
    /// Removes all items of a kind that the addition has had before.
    pub fn clear(&mut self, kind: ItemKind) {
        self.cleared.push(kind);
    }

    /// Removes an item that the addition has had before: the name, or the URI of a resource, as it was added.
    pub fn remove(&mut self, kind: ItemKind, name: impl Into<String>) {
        self.removed.push((kind, name.into()));
    }

    /// Adds a tool, resource or prompt, after those that the addition has.
    pub fn add(&mut self, item: impl IntoRuntimeItem) {
        self.added.push(item.into_runtime_item());
    }
}

/// The reason why an item of an addition is not offered.
pub(super) fn refusal(errors: &[BuildError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
