//! The item of a request, as those see it who watch: its kind and name, or why there is none, without its secrets.

use serde_json::{Map, Value};

use super::Request;
use crate::core::{connection::AccessError, reason::Reason, server::Registry};

/// In place of the value of a secret argument.
const SECRET: &str = "[secret]";

/// The item that a request is about.
pub(crate) enum ObservedItem {
    /// The method has none.
    None,
    Found {
        kind: &'static str,
        /// Of a resource or template, its URI.
        name: String,
        /// The names of secret arguments.
        secrets: Vec<String>,
    },
    /// A resource that is not registered, such as a file of a skill.
    Unregistered,
    /// No item has that name, for this caller or for any.
    Missing {
        kind: &'static str,
        hidden: bool,
        /// The scopes that the caller lacks.
        scopes: Vec<String>,
    },
}

impl ObservedItem {
    /// One that the caller may not call, or that is not there.
    pub(crate) fn missing(
        kind: &'static str,
        hidden: bool,
        error: &AccessError<'_>,
        request: &Request<'_>,
    ) -> Self {
        // the scopes that are missing, of an item that the caller may ask them for
        let scopes = match error {
            AccessError::MissingScopes(needed) => {
                let held = request.context.caller.as_ref().map_or(&[][..], |caller| caller.scopes());
                needed.iter().filter(|scope| !held.contains(scope)).cloned().collect()
            }
            AccessError::Unknown => Vec::new(),
        };
        Self::Missing { kind, hidden, scopes }
    }

    /// The item that a request names. Dispatch looks it up as well: whether a request is watched does not change how it
    /// is answered.
    pub(super) fn find(registry: &Registry, request: &Request<'_>) -> Self {
        match request.method {
            "tools/call" => registry.tools.observed(request),
            method => match registry.capabilities.of_method(method) {
                Some(capability) => capability.observed(registry, request),
                // the server has no items of that kind
                None => match method {
                    "prompts/get" => Self::missing("prompt", false, &AccessError::Unknown, request),
                    "resources/read" => Self::missing("resource", false, &AccessError::Unknown, request),
                    _ => Self::None,
                },
            },
        }
    }

    /// The reason of a reply for operators: to the client, an item that is hidden from it does not exist.
    pub(super) fn reason(&self, reason: Option<Reason>) -> Option<Reason> {
        match (reason, self) {
            (Some(Reason::Unknown), Self::Missing { hidden: true, .. }) => Some(Reason::Hidden),
            (reason, _) => reason,
        }
    }

    /// The name of an item, if it is of that kind; of a resource its URI, or the template that its URI is one of.
    pub(crate) fn name_of(&self, kind: &str) -> Option<&str> {
        match self {
            Self::Found { kind: own, name, .. } if *own == kind => Some(name),
            _ => None,
        }
    }

    /// The URI of a resource that is not a template.
    pub(super) fn fixed_uri(&self) -> Option<&str> {
        self.name_of("resource").filter(|uri| !uri.contains('{'))
    }

    /// Empty if the method has no items.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::None => "",
            Self::Unregistered => "resource",
            Self::Found { kind, .. } | Self::Missing { kind, .. } => kind,
        }
    }

    /// The arguments of a request for it, without the values of those that are secret. Names are compared as a model may
    /// misspell them.
    pub(crate) fn without_secrets(&self, json: &str) -> Map<String, Value> {
        let secrets = match self {
            Self::Found { secrets, .. } => &secrets[..],
            Self::None | Self::Unregistered | Self::Missing { .. } => &[],
        };
        let plain = |name: &str| {
            name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>()
        };
        let secrets: Vec<_> = secrets.iter().map(|name| plain(name)).collect();
        let mut arguments: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
        for (_, value) in arguments.iter_mut().filter(|(name, _)| secrets.contains(&plain(name))) {
            *value = SECRET.into();
        }
        arguments
    }
}
