//! The `WWW-Authenticate` challenge of a server that refuses a request: the scopes, the error, and the location of its
//! metadata.
//!
//! See [RFC 9110, section 11.6.1](https://www.rfc-editor.org/rfc/rfc9110#section-11.6.1).

use http::{HeaderMap, header::WWW_AUTHENTICATE};

/// The parameters of the challenges that this client understands.
#[derive(Default, PartialEq, Eq)]
pub(in crate::client) struct Challenge {
    pub(in crate::client) scopes: Vec<String>,
    pub(in crate::client) resource_metadata: Option<String>,
    pub(in crate::client) error: Option<String>,
}

/// One parameter, of a challenge of that scheme.
struct AuthParam<'a> {
    scheme: &'a str,
    name: &'a str,
    value: String,
}

impl Challenge {
    /// The challenge for access tokens among all of a response.
    pub(in crate::client) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        Self::parse(values)
    }

    /// Whether the token lacks scopes.
    #[cfg(feature = "client-oauth")]
    pub(in crate::client) fn needs_scopes(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    fn parse<'a>(values: impl Iterator<Item = &'a str>) -> Self {
        let mut params = Vec::new();
        for value in values {
            read_params(value, &mut params);
        }
        let is_for_tokens = |param: &&AuthParam<'_>| {
            ["bearer", "dpop"].iter().any(|scheme| param.scheme.eq_ignore_ascii_case(scheme))
        };
        let parameter = |name: &str| {
            let named = || params.iter().filter(|param| param.name.eq_ignore_ascii_case(name));
            // some servers have a scheme of their own
            named().find(is_for_tokens).or_else(|| named().next()).map(|param| param.value.clone())
        };
        let scopes = parameter("scope").unwrap_or_default();
        Self {
            scopes: scopes.split_whitespace().map(str::to_owned).collect(),
            resource_metadata: parameter("resource_metadata"),
            error: parameter("error"),
        }
    }
}

/// Reads `scheme name=value, name="value", scheme ..`, up to what is not of that form.
fn read_params<'a>(text: &'a str, params: &mut Vec<AuthParam<'a>>) {
    let mut scheme = "";
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t', '=']);
        let (name, after) = split_token(rest);
        if name.is_empty() {
            return;
        }
        let Some(value) = after.trim_start().strip_prefix('=') else {
            (scheme, rest) = (name, after);
            continue;
        };
        let value = value.trim_start();
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => unquote(quoted),
            None => {
                let (token, after) = split_token(value);
                (token.to_owned(), after)
            }
        };
        params.push(AuthParam { scheme, name, value });
        rest = after;
    }
}

/// The token at the beginning, which may be empty.
fn split_token(text: &str) -> (&str, &str) {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/:".contains(c);
    text.split_at(text.find(|c| !is_token(c)).unwrap_or(text.len()))
}

/// The content of a quoted string, and what follows it.
fn unquote(quoted: &str) -> (String, &str) {
    let mut content = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (content, quoted.get(at + 1..).unwrap_or_default()),
            '\\' => content.extend(chars.next().map(|(_, escaped)| escaped)),
            c => content.push(c),
        }
    }
    (content, "")
}

/// Scopes that are quoted as HTTP says are read as they were, whatever surrounds them.
#[cfg(any(test, feature = "_fuzzing"))]
fn fuzz(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _for_a_panic = Challenge::parse(text.split('\0'));
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    let challenge = format!("Basic realm=\"{quoted}\", Bearer realm=\"{quoted}\", scope=\"{quoted}\"");
    let found = Challenge::parse(std::iter::once(&*challenge)).scopes;
    assert!(found.iter().map(String::as_str).eq(text.split_whitespace()), "{challenge}");
}

#[cfg(any(test, feature = "_fuzzing"))]
inventory::submit!(crate::fuzzing::Target { name: "challenges", run: fuzz });

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(values: &[&str]) -> Vec<String> {
        Challenge::parse(values.iter().copied()).scopes
    }

    #[test]
    fn scopes_are_read_quoted_or_not_in_any_case() {
        for challenge in [
            r#"Bearer error="insufficient_scope", scope="a b:c""#,
            r#"bearer SCOPE = "a b:c" , realm=x"#,
            r#"Bearer realm="a, Bearer scope=\"x\"", scope="a b:c""#,
            r#"Basic realm="x", Bearer scope="a b:c", Digest scope="z""#,
            r#"Digest scope="z", Bearer scope="a b:c""#,
            r#"Negotiate YWJj==, Bearer scope="a b:c""#,
        ] {
            assert_eq!(scopes(&[challenge]), ["a", "b:c"], "{challenge}");
        }
        assert_eq!(scopes(&["Bearer scope=read"]), ["read"]);
        assert_eq!(scopes(&["Basic realm=\"x\"", "DPoP scope=\"read\""]), ["read"]);
        assert_eq!(scopes(&["OAuth scope=\"read\""]), ["read"]);
    }

    #[test]
    fn texts_that_are_not_challenges_have_no_parameters() {
        for text in
            ["", "Bearer", "Bearer ,,", "\"scope=\"a\"", "Bearer x_scope=\"a\"", "Bearer =", "\u{e9} scope=a"]
        {
            assert!(scopes(&[text]).is_empty(), "{text}");
        }
        assert_eq!(scopes(&["Bearer scope=\"unterminated \\"]), ["unterminated"]);
    }

    #[cfg(feature = "client-oauth")]
    #[test]
    fn the_error_and_the_address_of_the_metadata_are_read() {
        let text = r#"Bearer error_description="no scope=\"z\"", error="insufficient_scope", resource_metadata="https://x/y""#;
        let challenge = Challenge::parse([text].into_iter());
        assert_eq!(challenge.resource_metadata.as_deref(), Some("https://x/y"));
        assert_eq!(challenge.error.as_deref(), Some("insufficient_scope"));
        assert!(challenge.scopes.is_empty());
    }
}
