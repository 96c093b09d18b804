//! The claims of a token, whether it is a JWT or an authorization server was asked for them: who calls, until when, and
//! for which resource the token was made.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use super::verifier::Denied;
use crate::core::{connection::Principal, reason::Refusal};

/// The values that the claims of a token must have.
#[derive(Clone)]
pub(super) struct ExpectedClaims {
    pub(super) issuer: String,
    /// The resource, and other names of it.
    pub(super) audiences: Vec<String>,
    /// How far clocks may differ.
    pub(super) skew: Duration,
    pub(super) names: ClaimNames,
    /// Answers of the authorization server need not name the resource: it answers this server about its tokens only.
    pub(super) audience_by_endpoint: bool,
}

/// Which claims say what, where that is not as the standards have it. A name that begins with `/` is a JSON pointer.
#[derive(Clone, Default)]
pub(super) struct ClaimNames {
    /// In place of `sub`.
    pub(super) subject: Option<String>,
    /// In place of `scope` or `scp`; all of them.
    pub(super) scopes: Vec<String>,
    /// In place of `aud`.
    pub(super) audience: Option<String>,
}

/// Where claims come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimSource {
    /// A JWT, which has all claims that matter.
    Token,
    /// The authorization server, which was asked about a token: most members of its answer are optional (RFC 7662,
    /// section 2.2).
    Answer,
}

/// The prefix of the subjects of machines, where a claim other than `sub` names users.
const MACHINE: &str = "client:";

/// The claims of a token whose origin is certain.
#[derive(Clone)]
pub(super) struct TokenClaims(pub(super) Map<String, Value>);

/// The proof of possession that a token is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Binding {
    /// Anyone who bears it may use it.
    Bearer,
    /// The thumbprint of a key that the client proves to hold.
    Key(String),
    /// Something else, such as a TLS certificate, which cannot be checked here.
    Other,
}

impl TokenClaims {
    /// The value of a claim, by its name or a JSON pointer.
    fn claim(&self, name: &str) -> Option<&Value> {
        let Some(path) = name.strip_prefix('/') else { return self.0.get(name) };
        let (first, rest) = path.find('/').map_or((path, ""), |end| path.split_at(end));
        self.0.get(&first.replace("~1", "/").replace("~0", "~"))?.pointer(rest)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.claim(name)?.as_str()
    }

    /// The OAuth client, by the names that authorization servers have for it.
    fn client_id(&self) -> Option<&str> {
        let named = ["client_id", "azp", "cid", "appid"].iter().find_map(|name| self.text(name));
        named.filter(|client| !client.is_empty())
    }

    /// A time in seconds since 1970, which may have a fraction; `Err` if it is something else.
    fn time(&self, name: &str) -> Result<Option<SystemTime>, Denied> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        // no clock shows a time beyond this
        let seconds = value.as_f64().filter(|seconds| (0.0..=1e11).contains(seconds));
        match seconds {
            Some(seconds) => Ok(Some(UNIX_EPOCH + Duration::from_secs_f64(seconds))),
            None => Err(Denied::token(
                Refusal::TokenClaims,
                format!("the claim `{name}` of the token is not a time"),
            )),
        }
    }

    /// Whether a claim that is a string, or an array of strings, contains one of these.
    fn contains(&self, name: &str, wanted: &[String]) -> bool {
        match self.claim(name) {
            Some(Value::String(text)) => wanted.contains(text),
            Some(Value::Array(texts)) => {
                texts.iter().filter_map(Value::as_str).any(|text| wanted.iter().any(|wanted| wanted == text))
            }
            _ => false,
        }
    }

    /// The binding of the token: its claim `cnf`.
    pub(super) fn binding(&self) -> Binding {
        match self.0.get("cnf") {
            None => Binding::Bearer,
            Some(Value::Object(members)) => match members.get("jkt").and_then(Value::as_str) {
                Some(thumbprint) if members.len() == 1 => Binding::Key(thumbprint.to_owned()),
                _ => Binding::Other,
            },
            Some(_) => Binding::Other,
        }
    }

    /// Checks the claims, and makes a principal of them.
    ///
    /// # Errors
    /// The token is not for this resource, or not valid now.
    pub(super) fn into_principal(
        self,
        expected: &ExpectedClaims,
        now: SystemTime,
        source: ClaimSource,
    ) -> Result<Principal, Denied> {
        let invalid = |reason, text: &'static str| Denied::token(reason, text);
        let is_answer = source == ClaimSource::Answer;
        match self.text("iss") {
            Some(issuer) if issuer == expected.issuer => {}
            None if is_answer && !self.0.contains_key("iss") => {}
            _ => return Err(invalid(Refusal::TokenIssuer, "the token is of another issuer")),
        }
        self.check_audience(expected, is_answer)?;
        let expires = self.time("exp")?;
        match expires {
            // the moment itself is too late (RFC 7519, section 4.1.4)
            Some(expires) if now >= expires + expected.skew => {
                return Err(invalid(Refusal::TokenExpired, "the token has expired"));
            }
            None if !is_answer => {
                return Err(invalid(Refusal::TokenClaims, "the token does not say when it expires"));
            }
            _ => {}
        }
        for name in ["nbf", "iat"] {
            if self.time(name)?.is_some_and(|since| since > now + expected.skew) {
                return Err(invalid(Refusal::TokenNotYetValid, "the token is not valid yet"));
            }
        }
        let subject = self.subject(&expected.names, source)?;
        let scopes = self.scopes(&expected.names);
        let mut principal = Principal::new(expected.issuer.clone(), subject).with_scopes(scopes);
        if let Some(expires) = expires {
            principal = principal.with_expiry(expires + expected.skew);
        }
        if let Some(client) = self.client_id() {
            principal = principal.with_client_id(client);
        }
        if let Some(actor) = self.0.get("act").filter(|actor| actor.is_object()) {
            principal = principal.with_actor(actor.clone());
        }
        if let Binding::Key(thumbprint) = self.binding() {
            principal = principal.with_confirmation_key(thumbprint);
        }
        Ok(principal.with_claims(self.0))
    }

    /// # Errors
    /// The token is for another resource, or does not say for which.
    fn check_audience(&self, expected: &ExpectedClaims, is_answer: bool) -> Result<(), Denied> {
        let named = expected.names.audience.as_deref();
        // a claim in place of `aud` does not make up for an `aud` that names another resource
        let claims =
            named.into_iter().chain(Some("aud").filter(|aud| named.is_none() || self.0.contains_key(*aud)));
        for claim in claims {
            match self.claim(claim) {
                None if is_answer && expected.audience_by_endpoint => {}
                None if is_answer => {
                    return Err(Denied::token(
                        Refusal::TokenAudience,
                        "the authorization server does not say which resource the token is for",
                    ));
                }
                _ if self.contains(claim, &expected.audiences) => {}
                _ => return Err(Denied::token(Refusal::TokenAudience, "the token is not for this resource")),
            }
        }
        Ok(())
    }

    /// The caller. A machine calls for itself: its token has no user's subject, or its client's id as the subject.
    ///
    /// # Errors
    /// The token does not name a caller.
    fn subject(&self, names: &ClaimNames, source: ClaimSource) -> Result<String, Denied> {
        let absent = |text: &'static str| Denied::token(Refusal::TokenClaims, text);
        let claim = names.subject.as_deref().unwrap_or("sub");
        match (self.claim(claim), &names.subject) {
            // one of a user could otherwise be chosen like that of a machine
            (Some(Value::String(subject)), Some(_)) if subject.starts_with(MACHINE) => {
                return Err(absent("the subject of the token is like that of a machine"));
            }
            (Some(Value::String(subject)), _) if !subject.is_empty() => return Ok(subject.clone()),
            (Some(_), _) => return Err(absent("the token does not name its subject")),
            (None, _) => {}
        }
        let client = self.client_id();
        let is_machine = match (&names.subject, source) {
            (None, ClaimSource::Token) => false,
            (None, ClaimSource::Answer) => !self.0.contains_key("username"),
            (Some(_), _) => self.0.get("sub").is_none_or(|subject| subject.as_str() == client),
        };
        match client.filter(|_| is_machine) {
            Some(client) if names.subject.is_some() => Ok(format!("{MACHINE}{client}")),
            Some(client) => Ok(client.to_owned()),
            None => Err(absent("the token does not name its subject")),
        }
    }

    /// `scope` is the name of the standards; some authorization servers say `scp`.
    fn scopes(&self, names: &ClaimNames) -> Vec<String> {
        let standard = || if self.0.contains_key("scope") { "scope" } else { "scp" };
        let claims: Vec<&str> = match &*names.scopes {
            [] => vec![standard()],
            names => names.iter().map(String::as_str).collect(),
        };
        let mut scopes = Vec::new();
        for claim in claims {
            let texts: Vec<&str> = match self.claim(claim) {
                Some(Value::String(scopes)) => scopes.split_ascii_whitespace().collect(),
                Some(Value::Array(scopes)) => scopes.iter().filter_map(Value::as_str).collect(),
                _ => Vec::new(),
            };
            for text in texts {
                if !scopes.iter().any(|scope| scope == text) {
                    scopes.push(text.to_owned());
                }
            }
        }
        scopes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_000_000;

    fn check(change: impl FnOnce(&mut Map<String, Value>)) -> Result<Principal, Denied> {
        let mut claims = json!({
            "iss": "https://id.example.com", "sub": "ada", "aud": "https://mcp.example.com/mcp",
            "exp": NOW + 100, "nbf": NOW - 1, "iat": NOW, "scope": "notes:read notes:write", "client_id": "c",
        });
        change(claims.as_object_mut().unwrap());
        let Value::Object(claims) = claims else { unreachable!("an object") };
        let expected = ExpectedClaims {
            issuer: "https://id.example.com".into(),
            audiences: vec!["https://mcp.example.com/mcp".into()],
            skew: Duration::from_secs(30),
            names: ClaimNames::default(),
            audience_by_endpoint: false,
        };
        let now = UNIX_EPOCH + Duration::from_secs(NOW);
        TokenClaims(claims).into_principal(&expected, now, ClaimSource::Token)
    }

    #[test]
    fn claims_become_a_principal() {
        let ada = check(|claims| {
            claims.insert("act".into(), json!({ "sub": "agent" }));
            claims.insert("cnf".into(), json!({ "jkt": "thumb" }));
        })
        .unwrap();
        assert_eq!((ada.issuer(), ada.subject()), ("https://id.example.com", "ada"));
        assert_eq!(ada.scopes(), ["notes:read", "notes:write"]);
        assert_eq!((ada.client_id(), ada.confirmation_key()), (Some("c"), Some("thumb")));
        assert_eq!(ada.actor().unwrap()["sub"], "agent");
        assert_eq!(ada.claims().unwrap()["aud"], "https://mcp.example.com/mcp");
        assert!(!format!("{ada:?}").contains("agent"), "claims are not in logs");
        let scopes = check(|claims| {
            claims.remove("scope");
            claims.insert("scp".into(), json!(["a", "b"]));
        });
        assert_eq!(scopes.unwrap().scopes(), ["a", "b"]);
        let unnamed = check(|claims| drop(claims.insert("client_id".into(), json!(""))));
        assert_eq!(unnamed.unwrap().client_id(), None);
    }

    #[test]
    fn claims_for_others_or_another_time_are_refused() {
        let long = "https://mcp.example.com/mcp/";
        for (name, value, reason) in [
            ("iss", json!("https://evil.example.com"), "another issuer"),
            ("iss", json!(["https://id.example.com"]), "another issuer"),
            ("aud", json!("https://other.example.com/mcp"), "not for this resource"),
            ("aud", json!(long), "not for this resource"),
            ("aud", json!([]), "not for this resource"),
            ("exp", json!(NOW - 30), "has expired"),
            ("exp", json!("1000100"), "not a time"),
            ("exp", json!(-1), "not a time"),
            ("exp", json!(1e300), "not a time"),
            ("nbf", json!(NOW + 31), "not valid yet"),
            ("nbf", json!("later"), "not a time"),
            ("iat", json!(NOW + 31), "not valid yet"),
            ("sub", json!(""), "subject"),
            ("sub", json!(7), "subject"),
        ] {
            let refused = check(|claims| drop(claims.insert(name.into(), value.clone()))).unwrap_err();
            assert!(refused.description.contains(reason), "{name}: {value}: {refused:?}");
        }
        for name in ["iss", "aud", "exp", "sub"] {
            assert!(check(|claims| drop(claims.remove(name))).is_err(), "{name}");
        }
        for (name, value) in [
            ("exp", json!(NOW - 29)),
            ("exp", json!(NOW as f64 + 0.5)),
            ("nbf", json!(NOW + 30)),
            ("aud", json!(["x", "https://mcp.example.com/mcp"])),
        ] {
            assert!(check(|claims| drop(claims.insert(name.into(), value))).is_ok(), "{name}");
        }
    }

    #[test]
    fn what_a_token_is_bound_to_is_not_guessed() {
        let binding = |cnf: Value| TokenClaims(Map::from_iter([("cnf".to_owned(), cnf)])).binding();
        assert_eq!(TokenClaims(Map::new()).binding(), Binding::Bearer);
        assert_eq!(binding(json!({ "jkt": "a" })), Binding::Key("a".into()));
        for other in
            [json!({ "x5t#S256": "a" }), json!({ "jkt": "a", "x5t#S256": "b" }), json!("a"), json!({})]
        {
            assert_eq!(binding(other.clone()), Binding::Other, "{other}");
        }
    }
}
