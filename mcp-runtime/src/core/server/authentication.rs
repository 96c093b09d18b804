//! The interface between the authentication of callers and a builder. The folder `auth` implements it, and only a program
//! that calls the builder's method there contains it.

use std::{fmt, sync::Arc, time::Duration};

use crate::core::{config::Options, crypto::KeyRing, store::SealedStore};

/// Sets up in the options the authentication that they describe; returns its problems.
pub(crate) type SetUpAuthentication =
    fn(&mut Options, &SealedStore, &KeyRing, Option<&Arc<dyn IssuerObserver>>) -> Vec<String>;

/// Is told what an authorization server was asked, and how long that took.
pub(crate) trait IssuerObserver: fmt::Debug + Send + Sync {
    /// `question`: `keys` or `introspection`; `outcome`: `ok`, `active`, `inactive` or `error`.
    fn asked(&self, issuer: &str, question: &'static str, outcome: &'static str, duration: Duration);
}
