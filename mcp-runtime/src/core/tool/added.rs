//! How tools get into a registry: annotated ones and those made at run time.

use super::{ToolDef, ToolDescriptor, ToolEntry};
use crate::core::{
    build_error::BuildError,
    connection::ItemKind,
    item::{ItemDescriptor, ItemSpec},
    server::{AnnotatedItem, Annotation, Assembly, MadeItem, RegisteredItem, RuntimeKey, impl_additions},
};

impl AnnotatedItem {
    /// An annotated tool.
    #[must_use]
    pub const fn tool(descriptor: &'static ToolDescriptor) -> Self {
        Self(descriptor)
    }
}

impl Annotation for ToolDescriptor {
    fn descriptor(&self) -> &ItemDescriptor {
        &self.item
    }

    fn kind(&self) -> ItemKind {
        ItemKind::Tool
    }

    fn add_to(&'static self, assembly: &mut Assembly<'_>, item: &RegisteredItem) -> Result<(), BuildError> {
        let strict = assembly.parts.options.lists.strict;
        let (this, state) = (item.this.clone(), item.state.clone());
        let entry = ToolEntry::annotated(item.name(), self, this, state, strict);
        let entry = assembly.named(item, entry)?;
        assembly.add_tool(item, entry);
        Ok(())
    }
}

impl_additions!(ToolDef);

impl MadeItem for ToolDef {
    fn key(&self) -> RuntimeKey<'_> {
        RuntimeKey { kind: ItemKind::Tool, name: self.name() }
    }

    fn spec(&self) -> &ItemSpec {
        &self.spec.item
    }

    fn tags(&self) -> &'static [&'static str] {
        self.spec.tags
    }

    fn add_to(&self, assembly: &mut Assembly<'_>, item: &RegisteredItem) -> Result<(), BuildError> {
        let strict = assembly.parts.options.lists.strict;
        let is_new = item.gates.get().is_none();
        let entry = ToolEntry::runtime(item.name(), self, item.state.clone(), strict, is_new);
        let entry = assembly.named(item, entry)?;
        assembly.add_tool(item, entry);
        Ok(())
    }
}
