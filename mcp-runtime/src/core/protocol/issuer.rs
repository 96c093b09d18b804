//! The URLs at which the metadata of an authorization server may be.

/// Where the metadata of an issuer may be, in the order in which clients look for it; see
/// [discovery](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/authorization-server-discovery).
pub(crate) fn issuer_metadata_urls(issuer: &str) -> Vec<String> {
    let bare = issuer.trim_end_matches('/');
    let authority = bare.find("://").map_or(0, |at| at + 3);
    let path_start = bare[authority..].find('/').map_or(bare.len(), |at| authority + at);
    let (origin, path) = bare.split_at(path_start);
    let mut urls = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    urls
}
