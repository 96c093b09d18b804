//! What a server is besides its items: options that were checked, and what is made of them. Whenever the items of the server
//! are assembled, they get it from here.

use std::{
    sync::{Arc, Weak},
    time::SystemTime,
};

use super::{Identity, ServerHandle, ServerInner, WeakServer};
#[cfg(feature = "auth")]
use crate::auth::{Authentication, set_up_authentication};
use crate::core::{
    admission::CallerConcurrency,
    build_error::BuildError,
    changes::Hub,
    config::{Limits, Options, ServerInfo},
    connection::AccessRules,
    context::Settings,
    crypto::KeyRing,
    observer::Observers,
    store::{CallerRate, SealedStore, SingleUse},
};

/// Without the feature `auth`, no builder has one.
#[cfg(not(feature = "auth"))]
pub(super) enum Authentication {}

/// The parts of a server that do not change with its items.
pub(crate) struct Parts {
    pub(super) identity: Arc<Identity>,
    pub(crate) options: Options,
    pub(super) access_rules: Arc<AccessRules>,
    pub(super) keys: KeyRing,
    /// State that outlives calls.
    pub(crate) store: SealedStore,
    pub(super) observers: Observers,
    /// Where capabilities publish changes.
    pub(crate) hub: Hub,
    /// How often one caller may send a request.
    pub(super) rate: Option<CallerRate>,
    /// How many calls one caller may run at once.
    pub(super) caller_concurrency: Option<Arc<CallerConcurrency>>,
}

impl Parts {
    /// Makes them of a builder's options, which it takes, and adds everything that is wrong with these to the errors.
    pub(super) fn new(
        info: ServerInfo,
        options: &mut Options,
        observers: Observers,
        authentications: &[Authentication],
        errors: &mut Vec<BuildError>,
    ) -> Self {
        let icon = info.icons.iter().find_map(|icon| icon.validate().err());
        errors.extend(icon.map(|error| BuildError::new(format!("the server's {error}"))));
        #[cfg(feature = "http")]
        errors.extend(options.http.check().into_iter().map(BuildError::new));
        let keys = options.stores.open_keys().unwrap_or_else(|error| {
            errors.push(BuildError::new(error));
            KeyRing::new(Vec::new())
        });
        let store = SealedStore::of_server(options, &keys, &info.name, &observers, errors);
        #[cfg(feature = "auth")]
        if !authentications.is_empty() {
            let found = set_up_authentication(authentications, options, &store, &keys, &observers);
            errors.extend(found.into_iter().map(BuildError::new));
            let required = options.http.authenticator.as_ref().map(|auth| auth.required_scopes());
            if let Some(text) = options.check_scopes(required.unwrap_or_default()) {
                errors.push(BuildError::new(format!("the server {text}")));
            }
        }
        #[cfg(not(feature = "auth"))]
        let _: &[Authentication] = authentications;
        #[cfg(feature = "server-card")]
        match crate::core::config::ServerCard::new(&info, options) {
            Ok(card) => options.http.card = card,
            Err(found) => errors.extend(found.into_iter().map(BuildError::new)),
        }
        let rate = check_limits(&options.limits, "", errors);
        let concurrency = options.limits.max_concurrency_per_caller;
        Self {
            identity: Arc::new(Identity::new(info)),
            access_rules: Arc::new(options.access_rules()),
            keys,
            store,
            observers,
            hub: Hub::new(options.limits.subscriptions),
            rate,
            caller_concurrency: concurrency.map(|calls| Arc::new(CallerConcurrency::new(calls))),
            options: std::mem::take(options),
        }
    }

    /// The server's name.
    pub(crate) fn name(&self) -> &str {
        self.identity.name()
    }

    /// What the calls of this server have in common. Its handle is weak, so the server does not keep itself alive.
    pub(super) fn settings(&self, server: &Weak<ServerInner>, has_handle: bool) -> Settings {
        let limits = &self.options.limits;
        let mut settings = Settings {
            client_request_timeout: limits.client_request_timeout,
            single_use: SingleUse::new(&self.store, "calls", limits.max_consumed_calls, SystemTime::now()),
            server: (self.identity.name().to_owned(), self.identity.version().to_owned()),
            max_message: self.options.max_message(),
            logging: self.options.telemetry.client_logging,
            ..Settings::default()
        };
        settings.server_values.insert(WeakServer(server.clone()));
        if has_handle {
            settings.server_values.insert(ServerHandle::new(server.clone()));
        }
        settings
    }
}

/// Adds what is wrong with the limits of a builder to the errors; returns their rate.
pub(super) fn check_limits(limits: &Limits, whose: &str, errors: &mut Vec<BuildError>) -> Option<CallerRate> {
    if limits.timeout.is_some_and(|limit| limit.is_zero()) {
        errors.push(BuildError::new(format!(
            "{whose}a time limit of 0 s ends every call before it begins\n\
             leave `.limits(|limits| limits.timeout(..))` out, or set a longer one"
        )));
    }
    let rate = limits.rate.clone()?;
    rate.map(CallerRate::new).map_err(|text| errors.push(BuildError::new(format!("{whose}{text}")))).ok()
}
