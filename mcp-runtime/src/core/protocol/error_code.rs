//! Error codes of JSON-RPC and of MCP, and which of them functions may fail with.

use serde_json::Value;

use super::revision::Revision;

/// JSON-RPC: the text is not JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the JSON is not a request.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: the method is unknown.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the params are invalid for the method.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC: an error inside the server.
pub(crate) const INTERNAL_ERROR: i64 = -32603;
/// Before 2026-07-28: no resource with this URI exists.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;
/// 2025-11-25 only: the user must visit URLs before the request is retried.
pub(crate) const URL_ELICITATION_REQUIRED: i64 = -32042;
/// 2026-07-28: a header differs from the member of the body that it mirrors.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// 2026-07-28: the client lacks a capability that the request needs.
pub(crate) const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// 2026-07-28: the server does not support the protocol version.
pub(crate) const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

/// Whether MCP keeps the code for itself.
///
/// See [error codes](https://modelcontextprotocol.io/specification/2026-07-28/basic/index#error-codes).
pub(crate) fn is_reserved_code(code: i64) -> bool {
    (-32099..=-32020).contains(&code)
}

/// Whether an error with a reserved code has the meaning that the revision gives it, as far as its data shows. That a header
/// differs from the body is for the transport to say, and not for a function.
pub(crate) fn is_defined_error(code: i64, data: Option<&Value>, revision: Revision) -> bool {
    let member = |name| data.and_then(|data| data.get(name));
    let is_list = |value: Option<&Value>, fits: fn(&Value) -> bool| {
        value.and_then(Value::as_array).is_some_and(|list| !list.is_empty() && list.iter().all(fits))
    };
    match code {
        MISSING_CLIENT_CAPABILITY => {
            revision.is_modern() && member("requiredCapabilities").is_some_and(Value::is_object)
        }
        UNSUPPORTED_PROTOCOL_VERSION => {
            revision.is_modern()
                && is_list(member("supported"), Value::is_string)
                && member("requested").is_some_and(Value::is_string)
        }
        URL_ELICITATION_REQUIRED => {
            revision == Revision::V2025_11_25 && is_list(member("elicitations"), Value::is_object)
        }
        _ => false,
    }
}

/// Whether HTTP answers an error of that code with status 400 in 2026-07-28.
pub(crate) fn is_bad_request(code: i64) -> bool {
    [HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION].contains(&code)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reserved_code_is_defined_only_with_its_data_and_in_its_revision() {
        let modern = Revision::LATEST;
        let url = json!({ "elicitations": [{ "mode": "url" }] });
        let versions = json!({ "supported": ["2026-07-28"], "requested": "1" });
        let capabilities = json!({ "requiredCapabilities": { "roots": {} } });
        for (code, data, revision) in [
            (-32021, Some(&capabilities), modern),
            (-32022, Some(&versions), modern),
            (-32042, Some(&url), Revision::V2025_11_25),
        ] {
            assert!(is_reserved_code(code) && is_defined_error(code, data, revision), "{code}");
            for other in Revision::ALL.iter().copied().filter(|other| *other != revision) {
                assert!(!is_defined_error(code, data, other), "{code} {other}");
            }
            for wrong in [
                json!({}),
                json!([]),
                json!({ "requiredCapabilities": [], "supported": [], "elicitations": [] }),
            ] {
                assert!(!is_defined_error(code, Some(&wrong), revision), "{code} {wrong}");
            }
        }
        for code in [-32019, -32100, -32000, -32603, 1001, i64::MIN] {
            assert!(!is_reserved_code(code), "{code}");
        }
        for code in [-32020, -32023, -32050, -32099] {
            assert!(is_reserved_code(code) && !is_defined_error(code, Some(&capabilities), modern), "{code}");
        }
    }
}
