//! The interface between the authentication of callers and a builder. The folder `auth` implements it, and only a program
//! that calls the builder's method there contains it.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use crate::core::{config::Options, crypto::KeyRing, store::SealedStore};

/// What authenticates callers, before the server is built.
pub(crate) trait PendingAuthentication: Any + Send {
    /// Sets it up in the options; returns what is wrong with it.
    fn set_up(
        self: Box<Self>,
        options: &mut Options,
        store: &SealedStore,
        keys: &KeyRing,
        observer: Option<&Arc<dyn IssuerObserver>>,
    ) -> Vec<String>;
}

/// Is told what an authorization server was asked, and how long that took.
pub(crate) trait IssuerObserver: fmt::Debug + Send + Sync {
    /// `question`: `keys` or `introspection`; `outcome`: `ok`, `active`, `inactive` or `error`.
    fn asked(&self, issuer: &str, question: &'static str, outcome: &'static str, duration: Duration);
}
