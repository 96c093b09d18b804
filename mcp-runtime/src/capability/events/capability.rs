//! The events of a server: what is declared of them, which method is answered by what, and how they get there.

use std::sync::Arc;

use super::{
    Delivery, EventDescriptor, EventLimits,
    entry::EventEntry,
    error::{needs_caller, refused, unsupported_delivery},
    ring::EventRings,
};
use crate::{
    capability::open_for_handle,
    core::{
        build_error::BuildError,
        connection::ItemKind,
        dispatch::{CapabilityStream, ObservedItem, Reply, Request, Response},
        item::ItemDescriptor,
        protocol::EVENTS_EXTENSION,
        server::{
            AnnotatedItem, Annotation, Assembly, Capability, Declared, Entries, Entry as _, RegisteredItem,
            Registry, Server, ServerHandle,
        },
    },
};

/// The events of a server.
#[derive(Default)]
pub(crate) struct Events {
    pub(super) catalog: Entries<EventEntry>,
}

impl Events {
    fn add(assembly: &mut Assembly<'_>, item: &RegisteredItem, mut entry: EventEntry) {
        let function = &mut entry.function;
        assembly.parts.apply_to(item, &mut function.spec.item);
        // layers around calls do not apply to polls
        function.spec.item.layers = Arc::default();
        if item.takes::<ServerHandle>() {
            open_for_handle(assembly);
        }
        #[cfg(feature = "events-webhook")]
        if assembly.parts.options.http.identifies_callers() {
            let _opened = assembly.open(super::webhook::Webhooks::open);
        }
        let offered = offered(assembly);
        if entry.delivery.is_empty() {
            entry.delivery.clone_from(&offered);
        } else {
            entry.delivery.retain(|mode| offered.contains(mode));
        }
        if entry.delivery.is_empty() {
            let modes: Vec<_> = offered.iter().map(|mode| mode.as_str()).collect();
            let modes = modes.join(", ");
            let text = format!(
                "it has `deliver(..)` with no way of delivery that the server has\nadd one of {modes}"
            );
            assembly.errors.push(entry.function.spec.build_error(text));
        }
        assembly.catalog::<Self>().catalog.push(Arc::new(entry));
    }

    /// Answers the methods of webhooks, which a server may not have.
    fn webhook(&self, server: &Server, registry: &Registry, request: Request<'_>) -> Result<Response, Reply> {
        #[cfg(feature = "events-webhook")]
        if let Some(webhooks) = registry.capabilities.get::<super::webhook::Webhooks>() {
            return webhooks.answer(server, registry, request);
        }
        let _without_webhooks = registry;
        if request.context.caller.is_none() {
            return Err(needs_caller());
        }
        let (entry, _) = self.wanted(server, &request, Delivery::Webhook)?;
        Err(unsupported_delivery(entry.name(), Delivery::Webhook, &entry.delivery).into())
    }

    /// The event that a request subscribes to, and its arguments as JSON of an object.
    ///
    /// # Errors
    /// The reply that refuses it.
    pub(super) fn wanted<'a>(
        &self,
        server: &Server,
        request: &Request<'a>,
        mode: Delivery,
    ) -> Result<(&Arc<EventEntry>, &'a str), Reply> {
        let name = request.name()?;
        let arguments = request.arguments()?;
        let access = request.access();
        let entry = self
            .catalog
            .find(&name, access)
            .map_err(|error| refused(server, &name, self.catalog.nearest(&name, access), &error))?;
        if !entry.delivery.contains(&mode) {
            return Err(unsupported_delivery(&name, mode, &entry.delivery).into());
        }
        if entry.needs_caller && request.context.caller.is_none() {
            return Err(needs_caller());
        }
        Ok((entry, arguments))
    }
}

/// The ways of delivery that a server has.
fn offered(assembly: &Assembly<'_>) -> Vec<Delivery> {
    // a webhook belongs to a principal
    #[cfg(feature = "events-webhook")]
    if assembly.parts.options.http.identifies_callers() {
        return vec![Delivery::Poll, Delivery::Push, Delivery::Webhook];
    }
    let _without_webhooks = assembly;
    vec![Delivery::Poll, Delivery::Push]
}

impl Capability for Events {
    fn methods(&self) -> &'static [&'static str] {
        &["events/list", "events/poll", "events/stream", "events/subscribe", "events/unsubscribe"]
    }

    fn declare(&self, declared: &mut Declared) {
        if declared.revision.is_modern() {
            declared.list_extension(EVENTS_EXTENSION);
            // where clients look that were written before the extension had its name
            declared.list("events");
        }
    }

    fn answer(
        self: Arc<Self>,
        server: &Server,
        registry: &Registry,
        request: Request<'_>,
    ) -> Result<Response, Reply> {
        match request.method {
            "events/list" => self.catalog.list(server, request, "events", |event, out, _| event.write(out)),
            "events/poll" => self.poll(server, request),
            "events/subscribe" | "events/unsubscribe" => self.webhook(server, registry, request),
            // those that open a stream are in `open_stream`
            method => Err(Reply::unknown_method(method)),
        }
    }

    fn open_stream(&self, server: &Server, request: Request<'_>) -> Result<CapabilityStream, Reply> {
        let mut stream = self.stream(server, request)?;
        Ok(Box::new(move |cx| stream.poll_next(cx)))
    }

    fn observed(&self, _: &Registry, request: &Request<'_>) -> ObservedItem {
        if request.method == "events/list" {
            return ObservedItem::None;
        }
        self.catalog.observed(request)
    }

    fn scoped(&self) -> Vec<String> {
        self.catalog.scoped()
    }
}

/// The rings last, so that cursors read on when the items of the server change.
impl Capability for EventRings {}

impl AnnotatedItem {
    /// An annotated event.
    #[must_use]
    pub const fn event(descriptor: &'static EventDescriptor) -> Self {
        Self(descriptor)
    }
}

impl Annotation for EventDescriptor {
    fn descriptor(&self) -> &ItemDescriptor {
        &self.function.item
    }

    fn kind(&self) -> ItemKind {
        ItemKind::Event
    }

    fn registration(&self) -> String {
        ".add(event::of::<..>())".to_owned()
    }

    fn add_to(&'static self, assembly: &mut Assembly<'_>, item: &RegisteredItem) -> Result<(), BuildError> {
        let limits = assembly.parts.options.limits.of_capabilities.get::<EventLimits>().cloned();
        let declared = &self.function.item;
        let name = format!("{}::{}", declared.location.module, declared.name);
        let ring = assembly.open::<EventRings>(|_| Arc::default()).of(
            self.key(),
            &name,
            &limits.unwrap_or_else(EventLimits::new),
        );
        let strict = assembly.parts.options.lists.strict;
        let entry = assembly.named(item, EventEntry::annotated(self, item, ring, strict))?;
        Events::add(assembly, item, entry);
        Ok(())
    }
}
