//! Features that clients declare as capabilities.

use std::fmt;

use serde_json::{Map, Value, json};

/// A feature that only some clients have.
///
/// Annotated functions name them in `requires(..)`; [`Context::supports`](crate::Context::supports) reports
/// whether the client of a request has one.
///
/// See [capabilities](https://modelcontextprotocol.io/specification/2026-07-28/basic/index#capabilities).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ClientFeature {
    /// It shows forms to its user: `elicitation`, with `form` or without any mode.
    Elicitation,
    /// It sends its user to a URL: `elicitation.url`.
    ElicitationUrl,
    /// It samples from its model: `sampling`.
    Sampling,
    /// Its model uses tools while it samples: `sampling.tools`.
    SamplingTools,
    /// It lists the folders that its user works in: `roots`.
    Roots,
}

impl ClientFeature {
    /// Its path in the wire's capabilities.
    const fn path(self) -> &'static [&'static str] {
        match self {
            Self::Elicitation => &["elicitation"],
            Self::ElicitationUrl => &["elicitation", "url"],
            Self::Sampling => &["sampling"],
            Self::SamplingTools => &["sampling", "tools"],
            Self::Roots => &["roots"],
        }
    }

    /// Whether these capabilities have it.
    pub(crate) fn is_in(self, capabilities: &Value) -> bool {
        let found = self.path().iter().try_fold(capabilities, |at, key| at.get(key));
        let Some(Value::Object(found)) = found else { return false };
        // without any mode it supports forms, the only mode before 2025-11-25
        self != Self::Elicitation || found.contains_key("form") || !found.contains_key("url")
    }

    /// The capabilities that a client with `declared` lacks for these features.
    pub(crate) fn required(features: &[Self], declared: &Value) -> Value {
        let mut all = Map::new();
        for feature in features {
            let mut at = &mut all;
            // `{}` includes forms, but beside another mode it would say nothing new
            let other_mode =
                || features.contains(&Self::ElicitationUrl) || declared.get("elicitation").is_some();
            let form = *feature == Self::Elicitation && other_mode();
            for key in feature.path().iter().chain(form.then_some(&"form")) {
                match at.entry(*key).or_insert_with(|| json!({})) {
                    Value::Object(inner) => at = inner,
                    _ => break,
                }
            }
        }
        Value::Object(all)
    }
}

impl fmt::Display for ClientFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path().join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_read_from_capabilities() {
        use ClientFeature as F;
        let has = |capabilities: Value| {
            let all = [F::Elicitation, F::ElicitationUrl, F::Sampling, F::SamplingTools, F::Roots];
            all.into_iter().filter(|feature| feature.is_in(&capabilities)).collect::<Vec<_>>()
        };
        assert_eq!(has(json!({})), []);
        assert_eq!(has(json!({ "elicitation": {} })), [F::Elicitation]);
        assert_eq!(has(json!({ "elicitation": { "url": {} } })), [F::ElicitationUrl]);
        assert_eq!(
            has(json!({ "elicitation": { "url": {}, "form": {} } })),
            [F::Elicitation, F::ElicitationUrl]
        );
        assert_eq!(
            has(json!({ "sampling": { "tools": {} }, "roots": {} })),
            [F::Sampling, F::SamplingTools, F::Roots]
        );
        assert_eq!(has(json!({ "sampling": true, "roots": null })), []);
    }

    #[test]
    fn missing_features_are_written_as_capabilities() {
        use ClientFeature as F;
        let none = json!({});
        assert_eq!(F::required(&[F::Sampling], &none), json!({ "sampling": {} }));
        assert_eq!(F::required(&[F::Elicitation], &none), json!({ "elicitation": {} }));
        assert_eq!(
            F::required(&[F::Elicitation, F::ElicitationUrl, F::SamplingTools], &none),
            json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} } })
        );
        let urls = json!({ "elicitation": { "url": {} } });
        assert_eq!(F::required(&[F::Elicitation], &urls), json!({ "elicitation": { "form": {} } }));
    }
}
