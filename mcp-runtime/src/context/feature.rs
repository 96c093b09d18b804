//! What a client can be asked for, and whether it said that it can.

use std::fmt;

use serde_json::{Map, Value, json};

use super::Context;

/// Something that only some clients can do.
///
/// Annotated functions name them in `requires(..)`; [`Context::supports`](crate::Context::supports) tells whether the
/// client of a request has one.
///
/// See [capabilities](https://modelcontextprotocol.io/specification/2026-07-28/basic/index#capabilities).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ClientFeature {
    /// It shows forms to its user: `elicitation`, with `form` or without any mode.
    Elicitation,
    /// It sends its user to a URL: `elicitation.url`.
    ElicitationUrl,
    /// It lets its model answer: `sampling`.
    Sampling,
    /// It lets its model use tools for that: `sampling.tools`.
    SamplingTools,
    /// It tells the folders that it works in: `roots`.
    Roots,
}

impl ClientFeature {
    /// Where it stands in the wire's capabilities.
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
        // no mode at all means forms, as it did before there were modes
        self != Self::Elicitation || found.contains_key("form") || !found.contains_key("url")
    }

    /// The capabilities that a client lacks if it has none of these.
    pub(crate) fn required(features: &[Self]) -> Value {
        let mut all = Map::new();
        for feature in features {
            let mut at = &mut all;
            let form = *feature == Self::Elicitation && features.contains(&Self::ElicitationUrl);
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

impl Context {
    /// Whether the client of this request declares that feature.
    #[must_use]
    pub fn supports(&self, feature: ClientFeature) -> bool {
        feature.is_in(&self.client_capabilities())
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
    fn what_is_declared_counts() {
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
    fn what_is_missing_is_written_as_capabilities() {
        use ClientFeature as F;
        assert_eq!(F::required(&[F::Sampling]), json!({ "sampling": {} }));
        assert_eq!(
            F::required(&[F::Elicitation, F::ElicitationUrl, F::SamplingTools]),
            json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} } })
        );
    }
}
