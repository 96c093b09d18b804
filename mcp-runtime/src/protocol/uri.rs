//! The normal form of URIs, by which they are compared and looked up.

/// Converts scheme and host to lower case; URIs are equivalent if their normal forms are equal.
pub(crate) fn normalize_uri(uri: &str) -> String {
    let end = match uri.find("://") {
        Some(scheme) => uri[scheme + 3..].find(['/', '?', '#']).map_or(uri.len(), |host| scheme + 3 + host),
        None => uri.find(':').unwrap_or(0),
    };
    format!("{}{}", uri[..end].to_ascii_lowercase(), &uri[end..])
}
