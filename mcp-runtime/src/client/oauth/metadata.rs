//! The metadata that servers publish about authorization: that of the protected resource, and that of the authorization
//! server. Addresses must be `https:`, or on this machine.

use http::{HeaderMap, Method, StatusCode};
use serde::{Deserialize, de::DeserializeOwned};
use url::Url;

use crate::{
    client::Error,
    core::jsonrpc::null_is_absent,
    fetch::{FetchError, Fetcher, MAX_DOCUMENT, issuer_metadata_urls},
};

/// RFC 9728.
#[derive(Clone, Deserialize)]
pub(super) struct ResourceMetadata {
    pub(super) resource: String,
    #[serde(default, deserialize_with = "null_is_absent")]
    pub(super) authorization_servers: Vec<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
    /// Tokens must be bound to a key of the client (RFC 9449).
    #[serde(default, deserialize_with = "null_is_absent")]
    pub(super) dpop_bound_access_tokens_required: bool,
}

/// RFC 8414, or OpenID Connect Discovery.
#[derive(Clone, Deserialize)]
pub(super) struct ServerMetadata {
    pub(super) issuer: String,
    #[serde(default, deserialize_with = "null_is_absent")]
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Present if it binds tokens to keys (RFC 9449).
    pub(super) dpop_signing_alg_values_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "null_is_absent")]
    pub(super) client_id_metadata_document_supported: bool,
    #[serde(default, deserialize_with = "null_is_absent")]
    pub(super) authorization_response_iss_parameter_supported: bool,
    /// Whether it is assumed: servers of 2025-03-26 need not publish it.
    #[serde(skip)]
    pub(super) is_assumed: bool,
}

/// Whether a list of metadata has a value.
pub(super) fn offers(list: Option<&[String]>, value: &str) -> bool {
    list.is_some_and(|list| list.iter().any(|offered| offered == value))
}

/// The error of a request to an authorization server.
pub(super) fn fetch_error(error: FetchError) -> Error {
    match error {
        FetchError::TooLarge => Error::too_large(MAX_DOCUMENT, None),
        FetchError::Refused(what) => Error::invalid(what),
        error => Error::not_connected(error),
    }
}

/// A document, or `None` if the server says that it has none there.
///
/// # Errors
/// It cannot be fetched or read, which says nothing of whether there is one.
async fn fetch<T: DeserializeOwned>(fetcher: &Fetcher, url: &str) -> Result<Option<T>, Error> {
    let address = fetcher.check_url(url).map_err(fetch_error)?;
    let document = fetcher.send(Method::GET, address, HeaderMap::new(), "").await.map_err(fetch_error)?;
    let is_busy = matches!(
        document.status(),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
    );
    if document.status().is_client_error() && !is_busy {
        return Ok(None);
    }
    let url = shortened(url);
    if !document.status().is_success() {
        let status = document.status().as_u16();
        return Err(Error::invalid(format!(
            "the metadata at `{url}` cannot be fetched: HTTP status {status}"
        )));
    }
    serde_json::from_slice(document.body())
        .map(Some)
        .map_err(|_| Error::invalid(format!("the metadata at `{url}` cannot be read")))
}

/// The metadata of the server at `url`: where the challenge says, else at the well-known addresses, path first. `None`: the
/// server has none there.
pub(super) async fn resource_metadata(
    fetcher: &Fetcher,
    url: &Url,
    named: Option<&str>,
) -> Result<Option<ResourceMetadata>, Error> {
    let places = match named {
        Some(named) => vec![named.to_owned()],
        None => resource_places(url),
    };
    for place in places {
        let Some(metadata) = fetch::<ResourceMetadata>(fetcher, &place).await? else { continue };
        check_resource(url, &metadata.resource)?;
        return Ok(Some(metadata));
    }
    match named {
        Some(named) => Err(Error::invalid(format!(
            "the metadata at `{}`, which the server names, is not there",
            shortened(named)
        ))),
        None => Ok(None),
    }
}

/// Where the metadata of a resource may be: with its path and query inserted ([RFC 9728, section
/// 3.1](https://www.rfc-editor.org/rfc/rfc9728#section-3.1)), as servers have it that know neither its query nor the slash at
/// the end, and at the root.
fn resource_places(url: &Url) -> Vec<String> {
    let well_known = format!("{}/.well-known/oauth-protected-resource", url.origin().ascii_serialization());
    let path = url.path();
    // only the slash after the host is removed
    let whole = if path == "/" { "" } else { path };
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut places = vec![format!("{well_known}{whole}{query}"), format!("{well_known}{whole}")];
    places.extend([format!("{well_known}{}", path.trim_end_matches('/')), well_known]);
    places.dedup();
    places
}

/// The beginning of what a server has sent, for an error.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

/// The resource must be the server, or contain it.
fn check_resource(server: &Url, resource: &str) -> Result<(), Error> {
    let named = shortened(resource);
    let refused = || Error::invalid(format!("the metadata of the server is of another resource, `{named}`"));
    let resource: Url = resource.parse().map_err(|_| refused())?;
    let base = resource.path().trim_end_matches('/');
    let contains =
        server.path().strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if resource.origin() == server.origin() && contains { Ok(()) } else { Err(refused()) }
}

/// The metadata of an authorization server, whose issuer must be exactly this one.
pub(super) async fn server_metadata(fetcher: &Fetcher, issuer: &str) -> Result<ServerMetadata, Error> {
    let mut failed = None;
    for place in places_of(&fetcher.check_url(issuer).map_err(fetch_error)?) {
        let metadata = match fetch::<ServerMetadata>(fetcher, &place).await {
            Ok(Some(metadata)) => metadata,
            Ok(None) => continue,
            // another place may have it, such as where a server answers every address with a page
            Err(error @ Error::Invalid { .. }) => {
                failed.get_or_insert(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        if metadata.issuer != issuer {
            return Err(Error::invalid(format!(
                "the metadata of the authorization server `{issuer}` names another issuer, `{}`",
                shortened(&metadata.issuer)
            )));
        }
        return Ok(metadata);
    }
    let none = || Error::invalid(format!("the authorization server `{issuer}` publishes no metadata"));
    Err(failed.unwrap_or_else(none))
}

fn places_of(issuer: &Url) -> Vec<String> {
    issuer_metadata_urls(&format!("{}{}", issuer.origin().ascii_serialization(), issuer.path()))
}

/// The metadata of servers of 2025-03-26, which are their own authorization servers.
pub(super) async fn own_server_metadata(fetcher: &Fetcher, url: &Url) -> Result<ServerMetadata, Error> {
    let origin = url.origin().ascii_serialization();
    let place = format!("{origin}/.well-known/oauth-authorization-server");
    if let Some(metadata) = fetch::<ServerMetadata>(fetcher, &place).await? {
        // an id that another issuer has given to this client is not valid here
        let issuer: Option<Url> = metadata.issuer.parse().ok();
        if issuer.is_none_or(|issuer| issuer.origin() != url.origin()) {
            return Err(Error::invalid(format!(
                "the metadata at `{place}` names another issuer, `{}`",
                shortened(&metadata.issuer)
            )));
        }
        return Ok(metadata);
    }
    Ok(ServerMetadata {
        authorization_endpoint: format!("{origin}/authorize"),
        token_endpoint: format!("{origin}/token"),
        registration_endpoint: Some(format!("{origin}/register")),
        issuer: origin,
        scopes_supported: None,
        code_challenge_methods_supported: None,
        token_endpoint_auth_methods_supported: None,
        dpop_signing_alg_values_supported: None,
        client_id_metadata_document_supported: false,
        authorization_response_iss_parameter_supported: false,
        is_assumed: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_the_server_or_contains_it() {
        let server: Url = "https://example.com/a/mcp".parse().unwrap();
        for resource in [
            "https://example.com",
            "https://example.com/",
            "https://example.com/a",
            "https://example.com/a/mcp",
        ] {
            assert!(check_resource(&server, resource).is_ok(), "{resource}");
        }
        for resource in
            ["https://evil.example.com/a/mcp", "https://example.com/a/m", "http://example.com/a/mcp", "x"]
        {
            assert!(check_resource(&server, resource).is_err(), "{resource}");
        }
    }

    #[test]
    fn metadata_of_a_resource_is_looked_for_with_its_path_and_query_first() {
        for (url, places) in [
            ("https://example.com", &[""][..]),
            ("https://example.com/mcp", &["/mcp", ""]),
            ("https://example.com/mcp/", &["/mcp/", "/mcp", ""]),
            ("https://example.com/?k=v", &["?k=v", ""]),
            ("https://example.com/a/mcp/?k=v", &["/a/mcp/?k=v", "/a/mcp/", "/a/mcp", ""]),
        ] {
            let found = resource_places(&url.parse().unwrap());
            let found: Vec<_> = found
                .iter()
                .map(|place| {
                    place.strip_prefix("https://example.com/.well-known/oauth-protected-resource").unwrap()
                })
                .collect();
            assert_eq!(found, places, "{url}");
        }
    }

    #[test]
    fn metadata_is_looked_for_with_the_path_inserted_first() {
        let places = places_of(&"https://auth.example.com/tenant1".parse().unwrap());
        assert_eq!(
            places,
            [
                "https://auth.example.com/.well-known/oauth-authorization-server/tenant1",
                "https://auth.example.com/.well-known/openid-configuration/tenant1",
                "https://auth.example.com/tenant1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(places_of(&"https://auth.example.com".parse().unwrap()).len(), 2);
    }
}
