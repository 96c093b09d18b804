//! W3C Trace Context: the trace that a request is part of.

use std::borrow::Cow;

use super::Context;

impl Context {
    /// The trace that the request is part of, in the format of W3C Trace Context: the `traceparent` of its `_meta`, or
    /// else the HTTP header of that name. A malformed one is ignored.
    ///
    /// The related values are `ctx.meta("tracestate")` and `ctx.meta("baggage")`.
    ///
    /// See [trace context](https://modelcontextprotocol.io/specification/2026-07-28/basic/index#meta).
    #[must_use]
    pub fn traceparent(&self) -> Option<Cow<'_, str>> {
        let in_meta = match self.meta("traceparent") {
            Some(serde_json::Value::String(text)) => Some(Cow::Owned(text)),
            _ => None,
        };
        let in_meta = in_meta.filter(|text| is_traceparent(text));
        in_meta.or_else(|| self.header("traceparent").filter(|text| is_traceparent(text)).map(Cow::Borrowed))
    }
}

/// `version-trace-parent-flags` in lower-case hexadecimal digits; later versions may append more.
pub(crate) fn is_traceparent(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut next = |length: usize| {
        let part = parts.next().unwrap_or_default();
        let digits = part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        (part.len() == length && digits).then_some(part)
    };
    let (Some(version), Some(trace), Some(parent), Some(_)) = (next(2), next(32), next(16), next(2)) else {
        return false;
    };
    let is_set = |id: &str| id.bytes().any(|b| b != b'0');
    version != "ff" && is_set(trace) && is_set(parent) && (version != "00" || parts.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::is_traceparent;

    #[test]
    fn a_traceparent_has_the_format_of_its_version() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
        assert!(is_traceparent(good));
        assert!(is_traceparent(&format!("01{}-more", &good[2..])));
        for bad in [
            "",
            "00",
            &good.to_uppercase(),
            &good[..54],
            &format!("{good}-more"),
            &format!("ff{}", &good[2..]),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        ] {
            assert!(!is_traceparent(bad), "{bad}");
        }
    }
}
