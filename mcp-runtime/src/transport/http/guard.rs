//! Which hosts and origins are served: protects local servers from web pages that reach them through DNS rebinding.

use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderValue, Version, request::Parts};

use super::{
    headers::{HeaderField, ProtocolHeaders},
    http_error::HttpError,
};
use crate::{
    core::{config::HttpOptions, reason::Refusal},
    schema::truncate,
};

/// The hosts and origins of one server.
pub(super) struct Guard {
    any_host: bool,
    /// Empty: only the loopback names.
    hosts: Vec<String>,
    /// Empty: only pages of loopback hosts, for requests to loopback hosts.
    origins: Vec<String>,
    warned: AtomicBool,
}

impl Guard {
    pub(super) fn new(options: &HttpOptions) -> Self {
        Self {
            any_host: options.any_host,
            hosts: options.allowed_hosts.clone(),
            origins: options.allowed_origins.clone(),
            warned: AtomicBool::new(false),
        }
    }

    /// Refuses a request for a host, or from an origin, that is not allowed.
    pub(super) fn check(&self, parts: &Parts, headers: &ProtocolHeaders<'_>) -> Result<(), HttpError> {
        let is_local = self.check_authorities(parts, headers)?;
        match headers.origin {
            HeaderField::Absent => Ok(()),
            HeaderField::Repeated(_) => Err(headers.repeated_error("Origin")),
            HeaderField::One(origin) => {
                if self.allows_origin(origin, is_local()) {
                    return Ok(());
                }
                let hint = "name it in `.http(|http| http.allowed_origins([..]))`";
                self.log_refusal("origin", &String::from_utf8_lossy(origin.as_bytes()), hint);
                Err(HttpError::invalid(Refusal::Origin, "this origin is not allowed"))
            }
        }
    }

    /// Refuses a request for a host that is not allowed; returns whether it is for a loopback host.
    pub(super) fn check_authorities<'a>(
        &self,
        parts: &'a Parts,
        headers: &ProtocolHeaders<'a>,
    ) -> Result<impl FnOnce() -> bool + use<'a>, HttpError> {
        let target = parts.uri.authority().map(http::uri::Authority::as_str);
        let host = match headers.host {
            HeaderField::One(host) => {
                Some(host.to_str().map_err(|_| HttpError::bad_request("`Host` is not ASCII"))?)
            }
            HeaderField::Repeated(_) => return Err(HttpError::bad_request("`Host` is repeated")),
            HeaderField::Absent if parts.version >= Version::HTTP_2 && target.is_some() => None,
            HeaderField::Absent => return Err(HttpError::bad_request("`Host` is missing")),
        };
        let mut authorities = [host, target].into_iter().flatten();
        if let Some(refused) = authorities.clone().find(|authority| !self.allows_host(authority)) {
            self.log_refusal("host", refused, "name it in `.http(|http| http.allowed_hosts([..]))`");
            return Err(HttpError::invalid(Refusal::Host, "this host is not served"));
        }
        Ok(move || {
            authorities.all(|authority| split_authority(authority).is_some_and(|(host, _)| is_loopback(host)))
        })
    }

    /// Tells the operator, not the client, how to admit what was refused; the first time as a warning.
    fn log_refusal(&self, kind: &'static str, refused: &str, hint: &'static str) {
        let refused = truncate(refused);
        if self.warned.swap(true, Ordering::Relaxed) {
            tracing::debug!(kind, ?refused, hint, "refused a request with status 403");
        } else {
            tracing::warn!(
                kind,
                ?refused,
                hint,
                "refused a request with status 403; further ones are logged at level debug"
            );
        }
    }

    fn allows_host(&self, authority: &str) -> bool {
        if self.any_host {
            return true;
        }
        let Some((host, port)) = split_authority(authority) else { return false };
        if self.hosts.is_empty() {
            return is_loopback(host);
        }
        self.hosts.iter().any(|allowed| match split_authority(allowed) {
            Some((name, None)) => name.eq_ignore_ascii_case(host),
            Some((name, allowed_port)) => name.eq_ignore_ascii_case(host) && allowed_port == port,
            None => false,
        })
    }

    /// `is_local` says whether the request is for a loopback host.
    fn allows_origin(&self, origin: &HeaderValue, is_local: bool) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        if !self.origins.is_empty() {
            return self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin));
        }
        // a page of this machine is a stranger to a host that others serve too
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        is_local && authority.and_then(split_authority).is_some_and(|(host, _)| is_loopback(host))
    }
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host == "127.0.0.1" || host == "[::1]"
}

/// Host and port of `host[:port]`; `None` if it has another form.
fn split_authority(authority: &str) -> Option<(&str, Option<&str>)> {
    let end = match authority.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at_checked(end)?;
    if host.is_empty() {
        return None;
    }
    match rest.strip_prefix(':') {
        None => rest.is_empty().then_some((host, None)),
        Some(port) => port.bytes().all(|b| b.is_ascii_digit()).then_some((host, Some(port))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(hosts: &[&str], origins: &[&str], any_host: bool) -> Guard {
        let owned = |list: &[&str]| list.iter().map(|&s| s.to_owned()).collect();
        Guard { any_host, hosts: owned(hosts), origins: owned(origins), warned: AtomicBool::new(false) }
    }

    #[test]
    fn by_default_only_loopback_hosts_are_allowed() {
        let guard = guard(&[], &[], false);
        for good in ["localhost", "localhost:80", "LOCALHOST:8080", "127.0.0.1:1", "[::1]", "[::1]:3000"] {
            assert!(guard.allows_host(good), "{good}");
        }
        for bad in [
            "localhost.evil.example",
            "localhost.",
            "evil.example",
            "localhost:80@evil.example",
            "user@localhost",
            "127.0.0.1.evil.example",
            "127.0.0.2",
            "[::1",
            "[::1]x",
            "::1",
            "0.0.0.0",
            "",
            ":80",
        ] {
            assert!(!guard.allows_host(bad), "{bad}");
        }
    }

    #[test]
    fn by_default_only_pages_of_loopback_hosts_are_allowed() {
        let allows = |guard: &Guard, origin: &'static str| {
            guard.allows_origin(&HeaderValue::from_static(origin), true)
        };
        let default = guard(&[], &[], false);
        for good in ["http://localhost", "http://localhost:5173", "https://127.0.0.1:1", "http://[::1]:8080"]
        {
            assert!(allows(&default, good), "{good}");
            assert!(!default.allows_origin(&HeaderValue::from_static(good), false), "{good}");
        }
        for bad in [
            "null",
            "",
            "http://localhost.evil.example",
            "ftp://localhost",
            "localhost",
            "http://localhost/",
            "http://",
        ] {
            assert!(!allows(&default, bad), "{bad}");
        }
        let listed = guard(&[], &["https://app.example", "null"], false);
        assert!(allows(&listed, "https://app.example") && allows(&listed, "null"));
        assert!(!allows(&listed, "http://localhost") && !allows(&listed, "https://app.example:444"));
    }

    #[test]
    fn listed_hosts_replace_the_default() {
        let listed = guard(&["mcp.example", "other.example:8443"], &[], false);
        assert!(listed.allows_host("mcp.example") && listed.allows_host("MCP.example:1234"));
        assert!(listed.allows_host("other.example:8443") && !listed.allows_host("other.example"));
        assert!(!listed.allows_host("localhost") && !listed.allows_host("x.mcp.example"));
        assert!(guard(&[], &[], true).allows_host("anything.example"));
    }
}
