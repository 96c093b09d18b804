//! When two URIs are the same one. The registry and subscriptions look URIs up by it.

/// A URI with its scheme and host in lower case: two URIs are equal if this is.
pub(crate) fn normalise(uri: &str) -> String {
    let end = match uri.find("://") {
        Some(at) => uri[at + 3..].find(['/', '?', '#']).map_or(uri.len(), |host| at + 3 + host),
        None => uri.find(':').unwrap_or(0),
    };
    format!("{}{}", uri[..end].to_ascii_lowercase(), &uri[end..])
}
