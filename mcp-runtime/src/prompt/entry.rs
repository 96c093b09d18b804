//! A prompt as it is offered, and what arguments complete to by themselves.

use std::{any::Any, collections::HashMap, sync::Arc};

use crate::{
    arguments::choices,
    connection::{Access, RequestContext},
    extensions::Extensions,
    jsonrpc::{Object, array},
    prompt::PromptDef,
    protocol::Revision,
    schema::nearest,
};
use crate::{content::heading, item::Problem};

/// A prompt that can be got.
#[derive(Debug)]
pub(crate) struct PromptEntry {
    pub(crate) name: String,
    pub(crate) def: &'static PromptDef,
    pub(crate) this: Option<Arc<dyn Any + Send + Sync>>,
    pub(crate) state: Arc<Extensions>,
    choices: Vec<Vec<String>>,
}

/// The prompts of a server, by name.
#[derive(Debug, Default)]
pub(crate) struct Prompts {
    entries: Vec<Arc<PromptEntry>>,
    index: HashMap<String, usize>,
}

impl Prompts {
    pub(crate) fn new(entries: Vec<Arc<PromptEntry>>) -> Self {
        let index = entries.iter().enumerate().map(|(n, prompt)| (prompt.name.clone(), n)).collect();
        Self { entries, index }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<PromptEntry>> {
        self.entries.iter()
    }

    /// The prompt of that name, if the request may get it.
    pub(crate) fn find(&self, name: &str, request: &RequestContext) -> Option<&Arc<PromptEntry>> {
        let prompt = self.index.get(name).and_then(|n| self.entries.get(*n))?;
        request.access().allows(prompt.def.common.scopes).then_some(prompt)
    }

    /// The name most like this of those that are visible.
    pub(crate) fn nearest(&self, name: &str, access: Access<'_>) -> Option<&str> {
        let visible = self.entries.iter().filter(|prompt| access.allows(prompt.def.common.scopes));
        nearest(name, visible.map(|prompt| prompt.name.as_str()))
    }
}

impl PromptEntry {
    pub(crate) fn new(
        name: String,
        def: &'static PromptDef,
        this: Option<Arc<dyn Any + Send + Sync>>,
        state: Arc<Extensions>,
    ) -> Result<Self, Problem> {
        for arg in def.common.args {
            if let Some(bad) = arg.problems().into_iter().next() {
                return Err(Problem::at(def.common.at, format!("prompt `{name}`: `{}`: {bad}", arg.name())));
            }
        }
        let choices = def.common.args.iter().map(|arg| choices(*arg)).collect();
        Ok(Self { name, def, this, state, choices })
    }

    pub(crate) fn choices(&self, index: usize) -> &[String] {
        self.choices.get(index).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn completes(&self) -> bool {
        self.choices.iter().any(|c| !c.is_empty())
            || self.def.common.args.iter().any(|arg| arg.completer().is_some())
    }

    /// Appends its entry in `prompts/list`.
    pub(crate) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let common = &self.def.common;
        let mut entry = Object::new(out);
        entry.str("name", &self.name);
        heading(&mut entry, revision, common.title, common.description, common.icons);
        if !common.args.is_empty() {
            array(entry.key("arguments"), common.args, |out, arg| {
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
        if let Some(meta) = common.meta.filter(|_| revision >= Revision::V2025_06_18) {
            entry.raw("_meta", meta);
        }
        entry.end();
    }
}
