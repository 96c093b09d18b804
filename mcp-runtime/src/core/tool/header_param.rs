//! Headers that clients mirror arguments into: `x-mcp-header` on a property of the input schema, at any depth.
//!
//! See [custom headers](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters).

use std::collections::HashSet;

use serde_json::Value;

use crate::{core::connection::HeaderParam, schema::subschemas};

const KEYWORD: &str = "x-mcp-header";

/// The headers of an input schema.
///
/// # Errors
/// The specification does not allow one of them, so that clients would drop the tool.
pub(crate) fn header_params(schema: &Value) -> Result<Vec<HeaderParam>, String> {
    let mut params = Vec::new();
    collect(schema, Some(&[]), &mut params)?;
    let mut names = HashSet::new();
    match params.iter().find(|param| !names.insert(param.header.to_ascii_lowercase())) {
        Some(param) => Err(format!(
            "two arguments are mirrored into the header `{}`\nrename one of the two",
            param.header
        )),
        None => Ok(params),
    }
}

/// `path` has the names of properties that lead to `schema`; `None` if the way there leads through other keywords.
fn collect(schema: &Value, path: Option<&[String]>, params: &mut Vec<HeaderParam>) -> Result<(), String> {
    let Some(keywords) = schema.as_object() else { return Ok(()) };
    if let Some(header) = keywords.get(KEYWORD) {
        let header = header.as_str().filter(|name| is_token(name)).ok_or_else(|| {
            format!("`{header}` is not a header name\nwrite letters, digits and `-` in a string")
        })?;
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            return Err(format!(
                "the header `{header}` is not on a property that clients can find\n\
                 only properties, and properties of those, can be mirrored: not items of lists, nor alternatives"
            ));
        };
        if !matches!(keywords.get("type").and_then(Value::as_str), Some("string" | "boolean" | "integer")) {
            return Err(format!(
                "`{}` cannot be mirrored into the header `{header}`\nmake it a string, a bool or an integer",
                path.join(".")
            ));
        }
        params.push(HeaderParam { header: header.to_owned(), path: path.to_vec() });
    }
    for (name, property) in keywords.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = path.map(|path| [path, std::slice::from_ref(name)].concat());
        collect(property, path.as_deref(), params)?;
    }
    let mut rest = Ok(());
    subschemas(keywords, |step, child| {
        if rest.is_ok() && !step.starts_with("/properties/") {
            rest = collect(child, None, params);
        }
    });
    rest
}

/// RFC 9110's `token`.
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers_of(properties: &Value) -> Result<Vec<(String, String)>, String> {
        let params = header_params(&json!({ "type": "object", "properties": properties }))?;
        Ok(params.iter().map(|param| (param.header.clone(), param.path.join("/"))).collect())
    }

    #[test]
    fn properties_at_any_depth_have_headers() {
        let deep =
            json!({ "type": "object", "properties": { "b/c": { "type": "integer", "x-mcp-header": "B" } } });
        let headers =
            headers_of(&json!({ "a": deep, "x-mcp-header": { "type": "string", "x-mcp-header": "A" } }));
        let pair = |header: &str, path: &str| (header.to_owned(), path.to_owned());
        assert_eq!(headers, Ok(vec![pair("B", "a/b/c"), pair("A", "x-mcp-header")]));
        assert_eq!(headers_of(&json!({ "a": { "const": { "x-mcp-header": 1 } } })), Ok(vec![]));
    }

    #[test]
    fn headers_that_make_clients_drop_the_tool_are_refused() {
        let text = |header: Value| json!({ "type": "string", "x-mcp-header": header });
        for bad in [json!(""), json!(1), json!("A B"), json!("A\r\nB"), json!("Ä"), json!("A:")] {
            assert!(headers_of(&json!({ "a": text(bad.clone()) })).is_err(), "{bad}");
        }
        for kind in [json!("number"), json!("object"), json!(["string", "null"]), json!(null)] {
            let property = json!({ "type": kind, "x-mcp-header": "A" });
            assert!(headers_of(&json!({ "a": property })).is_err(), "{kind}");
        }
        let a = text(json!("A"));
        for unreachable in [
            json!({ "items": a }),
            json!({ "anyOf": [a] }),
            json!({ "if": a }),
            json!({ "additionalProperties": a }),
            json!({ "items": [a] }),
            json!({ "additionalItems": a }),
            json!({ "contentSchema": a }),
            json!({ "dependencies": { "b": ["c"], "d": a } }),
            json!({ "anyOf": [{ "properties": { "b": a } }] }),
        ] {
            assert!(headers_of(&json!({ "a": unreachable })).is_err(), "{unreachable}");
        }
        assert!(header_params(&json!({ "type": "object", "$defs": { "a": a } })).is_err());
        assert!(header_params(&a).is_err());
        let duplicate = headers_of(&json!({ "a": a, "b": { "properties": { "c": text(json!("a")) } } }));
        assert!(duplicate.is_err_and(|error| error.contains("two arguments")));
    }
}
