//! How tools get into a registry: annotated ones and those made at run time.

use serde_json::Value;

use super::{ToolBuilder, ToolDef, ToolDescriptor, ToolEntry, ToolSpec};
use crate::core::{
    connection::ItemKind,
    item::{BuildError, ItemDescriptor, ItemSpec, Location},
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
        let strict = assembly.rules.options.lists.strict;
        let make = |name| ToolEntry::annotated(name, self, item.this.clone(), item.state.clone(), strict);
        add(assembly, item, Some(self.item.location), make)
    }
}

impl_additions!(ToolDef, ToolBuilder);

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
        let strict = assembly.rules.options.lists.strict;
        add(assembly, item, None, |name| ToolEntry::runtime(name, self, item.state.clone(), strict))
    }
}

/// Adds the tool that `make` makes, with the changes of its transforms.
fn add(
    assembly: &mut Assembly<'_>,
    item: &RegisteredItem,
    at: Option<Location>,
    make: impl FnOnce(String) -> Result<ToolEntry, BuildError>,
) -> Result<(), BuildError> {
    let name = item.name();
    if item.transforms.is_empty() {
        assembly.claim_name("tool", &name, &name, at);
        let entry = make(name)?;
        assembly.add_tool(item, entry);
        return Ok(());
    }
    let mut entry = make(name)?;
    let properties = entry.input.published().get("properties").and_then(Value::as_object);
    let arguments = properties.map(|members| members.keys().cloned().collect()).unwrap_or_default();
    let ToolSpec { item: spec, hints, .. } = &mut entry.spec;
    let changes = assembly.transforms.run(item, ItemKind::Tool, spec, hints, arguments)?;
    entry.change_arguments(&changes)?;
    assembly.claim_name("tool", entry.name(), entry.name(), at);
    assembly.add_tool(item, entry);
    Ok(())
}
