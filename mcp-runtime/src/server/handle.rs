//! Changes a running server's tools.

use std::sync::{Arc, PoisonError};

use super::{Error, Result, Server};
use crate::{
    def::RuntimeTool,
    registry::{Registered, Source, assemble},
};

/// Adds and removes tools while a server runs; clones change the same server.
#[derive(Debug, Clone)]
pub struct ServerHandle(Server);

impl ServerHandle {
    pub(super) fn new(server: Server) -> Self {
        Self(server)
    }

    /// Adds a tool, or replaces the one made at run time that has its name.
    ///
    /// # Errors
    /// An annotated tool has its name, or its schema cannot be enforced; nothing has changed then.
    pub fn add_tool(&self, tool: RuntimeTool) -> Result<()> {
        self.change(|items| {
            items.retain(|item| !matches!(&item.source, Source::Runtime(old) if old.name() == tool.name()));
            items.push(Registered {
                source: Source::Runtime(Arc::new(tool)),
                prefix: String::new(),
                this: None,
                state: Arc::default(),
                requested: Arc::from([]),
            });
        })
    }

    /// Removes a tool made at run time; whether there was one of that name.
    ///
    /// # Errors
    /// None today; the signature leaves room.
    pub fn remove_tool(&self, name: &str) -> Result<bool> {
        let mut found = false;
        self.change(|items| {
            let before = items.len();
            items.retain(|item| !matches!(&item.source, Source::Runtime(old) if old.name() == name));
            found = items.len() < before;
        })?;
        Ok(found)
    }

    fn change(&self, edit: impl FnOnce(&mut Vec<Registered>)) -> Result<()> {
        let shared = &self.0.0;
        let mut items = shared.items.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = items.clone();
        edit(&mut changed);
        let registry = assemble(&shared.identity.name, &changed, shared.require_docs)
            .map_err(|problems| super::builder::report(&problems))?;
        *items = changed;
        *shared.registry.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registry);
        Ok::<_, Error>(())
    }
}
