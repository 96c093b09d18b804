//! The normal form of URIs, by which they are compared and looked up, and the prefixes of mounts in them.

/// Converts scheme and host to lower case; URIs are equivalent if their normal forms are equal.
pub(crate) fn normalize_uri(uri: &str) -> String {
    let end = match uri.find("://") {
        Some(scheme) => uri[scheme + 3..].find(['/', '?', '#']).map_or(uri.len(), |host| scheme + 3 + host),
        None => uri.find(':').unwrap_or(0),
    };
    format!("{}{}", uri[..end].to_ascii_lowercase(), &uri[end..])
}

/// `scheme://prefix/rest`, so that two instances of one service have different URIs.
pub(crate) fn uri_with_prefix(uri: &str, prefix: &str) -> String {
    if prefix.is_empty() {
        return uri.to_owned();
    }
    match uri.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{prefix}/{rest}"),
        None => match uri.split_once(':') {
            Some((scheme, rest)) => format!("{scheme}:{prefix}/{rest}"),
            None => format!("{prefix}/{uri}"),
        },
    }
}
