//! Services: the annotated `impl` blocks of the program, each with the type whose methods it has.

use std::{
    any::{Any, TypeId, type_name},
    fmt,
    sync::Arc,
};

use super::item::AnnotatedItem;
use crate::{
    core::{extensions::Extensions, item::Location},
    schema::sort_by,
};

/// Types that `#[mcp_service]` may be on.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a service, whose methods run concurrently",
    label = "must be `Send + Sync`",
    note = "for `Rc` write `Arc`, for `Cell` and `RefCell` a `Mutex` or an atomic"
)]
pub trait ServiceType: Send + Sync + 'static {}
#[diagnostic::do_not_recommend]
impl<S: Send + Sync + 'static> ServiceType for S {}

/// One annotated `impl` block, as the linker hands it over. A type may have several.
pub struct ServiceBlock {
    service: fn() -> TypeId,
    /// That of `Arc<S>`.
    shared: fn() -> TypeId,
    type_name: fn() -> &'static str,
    location: Location,
    items: &'static [AnnotatedItem],
    instance: fn(Box<dyn Any>) -> Option<ServiceInstance>,
}

inventory::collect!(ServiceBlock);

/// The value whose methods are called.
#[derive(Clone)]
pub(crate) struct ServiceInstance {
    /// An `Arc<S>`.
    pub(crate) this: Arc<dyn Any + Send + Sync>,
    /// The value as state, for functions that an attribute names.
    pub(crate) state: Arc<Extensions>,
}

impl ServiceBlock {
    /// The block of `S` at this location.
    #[must_use]
    pub const fn new<S: ServiceType>(location: Location, items: &'static [AnnotatedItem]) -> Self {
        Self {
            service: TypeId::of::<S>,
            shared: TypeId::of::<Arc<S>>,
            type_name: type_name::<S>,
            location,
            items,
            instance: instance::<S>,
        }
    }

    /// Every block of the program, in the order of the source.
    pub(super) fn all() -> Vec<&'static Self> {
        let mut all: Vec<&Self> = inventory::iter::<Self>.into_iter().collect();
        let key = |block: &Self| (block.location, (block.type_name)());
        sort_by(&mut all, |one, other| key(one).cmp(&key(other)));
        all
    }

    pub(super) fn service(&self) -> TypeId {
        (self.service)()
    }

    pub(super) fn type_name(&self) -> &'static str {
        (self.type_name)()
    }

    pub(super) fn location(&self) -> Location {
        self.location
    }

    pub(super) fn items(&self) -> &'static [AnnotatedItem] {
        self.items
    }
}

impl fmt::Debug for ServiceBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceBlock").field("service", &self.type_name()).finish_non_exhaustive()
    }
}

fn instance<S: ServiceType>(value: Box<dyn Any>) -> Option<ServiceInstance> {
    let shared = match value.downcast::<S>() {
        Ok(value) => Arc::new(*value),
        Err(value) => *value.downcast::<Arc<S>>().ok()?,
    };
    let mut state = Extensions::default();
    state.insert_arc(shared.clone());
    Some(ServiceInstance { this: Arc::new(shared), state: Arc::new(state) })
}

/// A value whose methods are called, and the blocks of its type.
pub(super) type FoundService = (ServiceInstance, Vec<&'static ServiceBlock>);

/// A value, given as `S` or as `Arc<S>`, and the blocks of `S`; none if no block is annotated.
pub(super) fn find_service<T: Any>(value: T) -> Option<FoundService> {
    let mut blocks = ServiceBlock::all();
    let is_given =
        |block: &&ServiceBlock| block.service() == TypeId::of::<T>() || (block.shared)() == TypeId::of::<T>();
    blocks.retain(is_given);
    let instance = (blocks.first()?.instance)(Box::new(value))?;
    Some((instance, blocks))
}
