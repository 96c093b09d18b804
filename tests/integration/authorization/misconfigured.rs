//! Options that contradict each other, or that have no effect, are errors of the build that name the fix.

use mcp_runtime::auth::Oauth;

use super::RESOURCE;

/// What is wrong with these options.
#[track_caller]
fn problem(oauth: Oauth) -> String {
    let error = mcp_runtime::server!().auth(oauth.resource(RESOURCE)).build();
    error.expect_err("nothing is wrong").to_string()
}

#[test]
fn an_issuer_without_a_scheme_is_told_what_to_write() {
    for issuer in ["id.example.com", "id.example.com:8443", "id.example.com/realms/a", "//id.example.com"] {
        let text = problem(Oauth::issuer(issuer));
        let fix = format!("write `https://{}`", issuer.trim_start_matches('/'));
        assert!(text.contains(&fix) && !text.contains("allow_private_network"), "{issuer}: {text}");
    }
    let text = problem(Oauth::issuer("https://id.example.com").jwks_uri("id.example.com/keys"));
    assert!(text.contains("write `https://id.example.com/keys`"), "{text}");
}

#[test]
fn options_of_introspection_need_introspection() {
    let oauth = || Oauth::issuer("https://id.example.com");
    for (oauth, option) in [
        (oauth().introspection_endpoint("https://id.example.com/introspect"), "introspection_endpoint"),
        (oauth().introspection_cache(std::time::Duration::ZERO), "introspection_cache"),
        (oauth().audience_by_endpoint(), "audience_by_endpoint"),
    ] {
        let text = problem(oauth);
        assert!(text.contains(option) && text.contains("add `.introspection("), "{text}");
    }
    // in any order
    let oauth = oauth().introspection_endpoint("https://id.example.com/introspect").introspection("a", "b");
    mcp_runtime::server!().auth(oauth.resource(RESOURCE)).build().unwrap();
}
