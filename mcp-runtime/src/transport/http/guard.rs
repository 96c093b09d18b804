//! Which hosts and origins are served: the defence against web pages that reach a local server through a name of
//! their own. The endpoint asks before it looks at anything else.

use http::{HeaderValue, Version, request::Parts};

use super::{
    headers::{HeaderField, ProtocolHeaders},
    response::HttpError,
};
use crate::config::HttpOptions;

/// The hosts and origins of one server.
#[derive(Debug)]
pub(super) struct Guard {
    any_host: bool,
    /// Empty: the names of this machine.
    hosts: Vec<String>,
    /// Empty: pages of this machine.
    origins: Vec<String>,
}

impl Guard {
    pub(super) fn new(options: &HttpOptions) -> Self {
        Self {
            any_host: options.any_host,
            hosts: options.allowed_hosts.clone(),
            origins: options.allowed_origins.clone(),
        }
    }

    /// Refuses a request that names a foreign host or comes from a foreign page.
    pub(super) fn check(&self, parts: &Parts, head: &ProtocolHeaders<'_>) -> Result<(), HttpError> {
        let target = parts.uri.authority().map(http::uri::Authority::as_str);
        let host = match head.host {
            HeaderField::One(host) => {
                Some(host.to_str().map_err(|_| HttpError::bad_request("`Host` is not ASCII"))?)
            }
            HeaderField::Repeated(_) => return Err(HttpError::bad_request("`Host` is repeated")),
            HeaderField::Absent if parts.version >= Version::HTTP_2 && target.is_some() => None,
            HeaderField::Absent => return Err(HttpError::bad_request("`Host` is missing")),
        };
        if ![host, target].into_iter().flatten().all(|name| self.serves(name)) {
            return Err(HttpError::forbidden(
                "this host is not served here\nname it in `.allowed_hosts([..])`",
            ));
        }
        match head.origin {
            HeaderField::Absent => Ok(()),
            HeaderField::Repeated(_) => Err(head.repeated("Origin")),
            HeaderField::One(origin) if self.admits(origin) => Ok(()),
            HeaderField::One(_) => Err(HttpError::forbidden(
                "this origin is not served here\nname it in `.allowed_origins([..])`",
            )),
        }
    }

    fn serves(&self, authority: &str) -> bool {
        if self.any_host {
            return true;
        }
        let Some((host, port)) = split_authority(authority) else { return false };
        if self.hosts.is_empty() {
            return is_loopback(host);
        }
        self.hosts.iter().any(|allowed| match split_authority(allowed) {
            Some((name, None)) => name.eq_ignore_ascii_case(host),
            Some((name, wanted)) => name.eq_ignore_ascii_case(host) && wanted == port,
            None => false,
        })
    }

    fn admits(&self, origin: &HeaderValue) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        if !self.origins.is_empty() {
            return self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin));
        }
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        authority.and_then(split_authority).is_some_and(|(host, _)| is_loopback(host))
    }
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host == "127.0.0.1" || host == "[::1]"
}

/// Host and port of `host[:port]`; `None` if it is something else.
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
        let own = |list: &[&str]| list.iter().map(|&s| s.to_owned()).collect();
        Guard { any_host, hosts: own(hosts), origins: own(origins) }
    }

    #[test]
    fn by_default_only_this_machine_is_served() {
        let guard = guard(&[], &[], false);
        for good in ["localhost", "localhost:80", "LOCALHOST:8080", "127.0.0.1:1", "[::1]", "[::1]:3000"] {
            assert!(guard.serves(good), "{good}");
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
            assert!(!guard.serves(bad), "{bad}");
        }
    }

    #[test]
    fn by_default_only_pages_of_this_machine_are_admitted() {
        let admits = |guard: &Guard, origin: &'static str| guard.admits(&HeaderValue::from_static(origin));
        let default = guard(&[], &[], false);
        for good in ["http://localhost", "http://localhost:5173", "https://127.0.0.1:1", "http://[::1]:8080"]
        {
            assert!(admits(&default, good), "{good}");
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
            assert!(!admits(&default, bad), "{bad}");
        }
        let listed = guard(&[], &["https://app.example", "null"], false);
        assert!(admits(&listed, "https://app.example") && admits(&listed, "null"));
        assert!(!admits(&listed, "http://localhost") && !admits(&listed, "https://app.example:444"));
    }

    #[test]
    fn listed_hosts_replace_the_default() {
        let listed = guard(&["mcp.example", "other.example:8443"], &[], false);
        assert!(listed.serves("mcp.example") && listed.serves("MCP.example:1234"));
        assert!(listed.serves("other.example:8443") && !listed.serves("other.example"));
        assert!(!listed.serves("localhost") && !listed.serves("x.mcp.example"));
        assert!(guard(&[], &[], true).serves("anything.example"));
    }
}
