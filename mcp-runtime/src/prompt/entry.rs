//! A prompt of a server, its entry in `prompts/list`, and the completions of its arguments.

use std::{any::Any, collections::HashMap, sync::Arc};

use super::{PromptDescriptor, PromptResult};
use crate::{
    arguments::ArgumentCompletion,
    connection::{Access, RequestContext},
    extensions::Extensions,
    item::{BuildError, Function, ItemSpec},
    jsonrpc::{Object, write_array},
    protocol::Revision,
    schema::nearest,
};

/// A prompt as the server offers it.
#[derive(Debug)]
pub(crate) struct PromptEntry {
    pub(crate) item: ItemSpec,
    pub(crate) function: Function<PromptResult>,
    pub(crate) state: Arc<Extensions>,
    /// Of each argument.
    pub(crate) completions: Vec<ArgumentCompletion>,
}

/// The prompts of a server, by name.
#[derive(Debug, Default)]
pub(crate) struct PromptCatalog {
    entries: Vec<Arc<PromptEntry>>,
    index: HashMap<String, usize>,
}

impl PromptCatalog {
    pub(crate) fn new(entries: Vec<Arc<PromptEntry>>) -> Self {
        let index = entries.iter().enumerate().map(|(n, prompt)| (prompt.item.name.clone(), n)).collect();
        Self { entries, index }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<PromptEntry>> {
        self.entries.iter()
    }

    /// The prompt with this name, if the request may get it.
    pub(crate) fn find(&self, name: &str, request: &RequestContext) -> Option<&Arc<PromptEntry>> {
        let prompt = self.index.get(name).and_then(|n| self.entries.get(*n))?;
        request.access().allows(&prompt.item.scopes).then_some(prompt)
    }

    /// The most similar name among the visible ones.
    pub(crate) fn nearest(&self, name: &str, access: Access<'_>) -> Option<&str> {
        let visible = self.entries.iter().filter(|prompt| access.allows(&prompt.item.scopes));
        nearest(name, visible.map(|prompt| prompt.item.name.as_str()))
    }
}

impl PromptEntry {
    pub(crate) fn new(
        name: String,
        def: &'static PromptDescriptor,
        this: Option<Arc<dyn Any + Send + Sync>>,
        state: Arc<Extensions>,
    ) -> Result<Self, BuildError> {
        let item = ItemSpec::new(name, &def.item);
        let args = def.item.args;
        for arg in args {
            if let Some(text) = arg.declaration_errors().into_iter().next() {
                let text = format_args!("prompt `{}`: `{}`: {text}", item.name, arg.name());
                return Err(item.build_error(text));
            }
        }
        let completions = args.iter().map(|arg| ArgumentCompletion::of(*arg)).collect();
        Ok(Self { item, function: Function::new(def.handler, args, this), state, completions })
    }

    pub(crate) fn completes(&self) -> bool {
        self.completions.iter().any(ArgumentCompletion::completes)
    }

    /// Appends its entry in `prompts/list`.
    pub(crate) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let args = self.function.args;
        let mut entry = Object::new(out);
        entry.str("name", &self.item.name);
        self.item.write_texts(&mut entry, revision);
        if !args.is_empty() {
            write_array(entry.key("arguments"), args, |out, arg| {
                let mut argument = Object::new(out);
                argument.str("name", arg.name());
                if revision >= Revision::V2025_06_18 {
                    argument.opt_str("title", arg.title());
                }
                argument.opt_str("description", arg.description());
                argument.value("required", &arg.required());
                argument.end();
            });
        }
        if let Some(meta) = self.item.meta.as_deref().filter(|_| revision >= Revision::V2025_06_18) {
            entry.raw("_meta", meta);
        }
        entry.end();
    }
}
