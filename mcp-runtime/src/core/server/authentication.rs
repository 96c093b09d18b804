//! The interface between the authentication of callers and a builder. The folder `auth` implements it, and only a program
//! that calls the builder's method there contains it.

use crate::core::{config::Options, crypto::KeyRing, observer::Observers, store::SealedStore};

/// Sets up in the options the authentication that they describe; returns its problems.
pub(crate) type SetUpAuthentication = fn(&mut Options, &SealedStore, &KeyRing, &Observers) -> Vec<String>;
