//! The prompts of a server: their declared capability, the handlers of their methods, and their registration.

use std::sync::Arc;

use super::{Prompt, PromptDef, PromptDescriptor, PromptEntry};
use crate::{
    capability::{completion::Completions, open_for_handle},
    core::{
        build_error::BuildError,
        connection::ItemKind,
        dispatch::{ObservedItem, Reply, Request, Response},
        item::{ItemDescriptor, ItemSpec},
        server::{
            AnnotatedItem, Annotation, Assembly, Capability, CompletionOfItem, Declared, Entries, MadeItem,
            RegisteredItem, Registry, RuntimeKey, Server, ServerBuilder, ServerHandle, impl_additions,
        },
    },
};

/// The prompts of a server.
#[derive(Default)]
pub(crate) struct Prompts {
    pub(super) catalog: Entries<PromptEntry>,
    /// Whether they are declared even if there is none.
    pub(crate) may_come: bool,
}

impl Prompts {
    fn add(assembly: &mut Assembly<'_>, item: &RegisteredItem, mut entry: PromptEntry) {
        assembly.parts.apply_to(item, &mut entry.item);
        // of one that completes an argument; the function of the item names it by itself
        if item.takes::<ServerHandle>() {
            open_for_handle(assembly);
        }
        if entry.completes() {
            let _opened = assembly.catalog::<Completions>();
        }
        assembly.catalog::<Self>().catalog.push(Arc::new(entry));
    }

    fn is_offered(&self) -> bool {
        self.may_come || !self.catalog.is_empty()
    }
}

impl Capability for Prompts {
    fn methods(&self) -> &'static [&'static str] {
        &["prompts/get", "prompts/list"]
    }

    fn declare(&self, declared: &mut Declared) {
        if self.is_offered() {
            declared.list("prompts");
        }
    }

    fn answer(
        self: Arc<Self>,
        server: &Server,
        _: &Registry,
        request: Request<'_>,
    ) -> Result<Response, Reply> {
        if !self.is_offered() {
            return Err(Reply::unknown_method(request.method));
        }
        if request.method == "prompts/get" {
            return self.get(server, request);
        }
        self.catalog.list(server, request, "prompts", PromptEntry::write)
    }

    fn observed(&self, _: &Registry, request: &Request<'_>) -> ObservedItem {
        if request.method != "prompts/get" {
            return ObservedItem::None;
        }
        self.catalog.observed(request)
    }

    fn completion<'r>(
        &'r self,
        server: &Server,
        request: &Request<'_>,
        kind: ItemKind,
        name: &str,
        argument: &str,
    ) -> Option<Result<CompletionOfItem<'r>, Reply>> {
        let found = (kind == ItemKind::Prompt).then(|| self.catalog.find_for(server, request, name));
        found.map(|found| found.map(|entry| Some((entry.completion(argument)?, &entry.state))))
    }

    fn scoped(&self) -> Vec<String> {
        self.catalog.scoped()
    }
}

impl AnnotatedItem {
    /// An annotated prompt.
    #[must_use]
    pub const fn prompt(descriptor: &'static PromptDescriptor) -> Self {
        Self(descriptor)
    }
}

impl Annotation for PromptDescriptor {
    fn descriptor(&self) -> &ItemDescriptor {
        &self.item
    }

    fn kind(&self) -> ItemKind {
        ItemKind::Prompt
    }

    fn add_to(&'static self, assembly: &mut Assembly<'_>, item: &RegisteredItem) -> Result<(), BuildError> {
        let entry = PromptEntry::annotated(item.name(), self, item.this.clone(), item.state.clone());
        let entry = assembly.named(item, entry)?;
        Prompts::add(assembly, item, entry);
        Ok(())
    }
}

impl_additions!(PromptDef);

impl MadeItem for PromptDef {
    fn key(&self) -> RuntimeKey<'_> {
        RuntimeKey { kind: ItemKind::Prompt, name: self.name() }
    }

    fn spec(&self) -> &ItemSpec {
        &self.item
    }

    fn add_to(&self, assembly: &mut Assembly<'_>, item: &RegisteredItem) -> Result<(), BuildError> {
        let entry = PromptEntry::runtime(item.name(), self, item.state.clone());
        let entry = assembly.named(item, entry)?;
        Prompts::add(assembly, item, entry);
        Ok(())
    }
}

impl ServerBuilder {
    /// Offers one annotated prompt.
    #[doc(alias("add_prompt", "with_prompt", "register_prompt"))]
    // rustc shows the next line to those who pass the function as a value
    pub fn prompt<T: Prompt>(self /* write `.prompt::<name>()` */) -> Self {
        self.with_named(const { AnnotatedItem::prompt(T::DESCRIPTOR) })
    }
}
