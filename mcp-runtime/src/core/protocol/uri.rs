//! The normal form of URIs, by which they are compared and looked up, and the prefixes of mounts in them.

use std::borrow::Cow;

/// Converts scheme and host to lower case, and the digits of escapes to upper case; URIs are equivalent if their normal forms are
/// equal. See [RFC 3986](https://www.rfc-editor.org/rfc/rfc3986#section-6.2.2.1).
pub(crate) fn normalize_uri(uri: &str) -> String {
    let end = match uri.find("://") {
        Some(scheme) => uri[scheme + 3..].find(['/', '?', '#']).map_or(uri.len(), |host| scheme + 3 + host),
        None => uri.find(':').unwrap_or(0),
    };
    normalize_escapes(&format!("{}{}", uri[..end].to_ascii_lowercase(), &uri[end..])).into_owned()
}

/// Converts the digits of escapes to upper case: `%c3` is `%C3`.
pub(crate) fn normalize_escapes(text: &str) -> Cow<'_, str> {
    let digits = |after: &str| after.len().min(2);
    let is_lower = |after: &str| after.bytes().take(2).any(|byte| matches!(byte, b'a'..=b'f'));
    if !text.split('%').skip(1).any(is_lower) {
        return text.into();
    }
    let mut parts = text.split('%');
    let mut normal = parts.next().unwrap_or_default().to_owned();
    for after in parts {
        normal.push('%');
        match after.split_at_checked(digits(after)) {
            Some((digits, rest)) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                normal.push_str(&digits.to_ascii_uppercase());
                normal.push_str(rest);
            }
            _ => normal.push_str(after),
        }
    }
    normal.into()
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
