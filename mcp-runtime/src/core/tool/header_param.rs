//! Headers that clients mirror arguments into: `x-mcp-header` on a property of the input schema, at any depth.
//!
//! See [custom headers](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters).

use std::collections::HashSet;

use serde_json::Value;

use crate::{
    core::connection::HeaderParam,
    schema::{reads_objects, subschemas},
};

const KEYWORD: &str = "x-mcp-header";

/// The headers of an input schema; `strict` arguments are not coerced.
///
/// # Errors
/// The specification does not allow one of them, so that clients would drop the tool.
pub(crate) fn header_params(schema: &Value, strict: bool) -> Result<Vec<HeaderParam>, String> {
    let mut params = Vec::new();
    let is_coerced = |pointer: &str| !strict && reads_objects(schema, pointer);
    collect(schema, Some(&[]), &is_coerced, &mut params)?;
    let mut names = HashSet::new();
    match params.iter().find(|param| !names.insert(param.header.to_ascii_lowercase())) {
        Some(param) => Err(format!(
            "two arguments are mirrored into the header `{}`\nrename one of the two",
            param.header
        )),
        None => Ok(params),
    }
}

/// `way` has the names of the properties that lead to `schema`; `None` if the way there leads through other
/// keywords. `is_coerced`: whether text is coerced to an object at that JSON pointer.
fn collect(
    schema: &Value,
    way: Option<&[&String]>,
    is_coerced: &dyn Fn(&str) -> bool,
    params: &mut Vec<HeaderParam>,
) -> Result<(), String> {
    let Some(keywords) = schema.as_object() else { return Ok(()) };
    if let Some(header) = keywords.get(KEYWORD) {
        let header = header.as_str().filter(|name| is_token(name)).ok_or_else(|| {
            format!("`{header}` is not a header name\nwrite letters, digits and `-` in a string")
        })?;
        let Some((_, objects)) = way.and_then(|way| way.split_last()) else {
            return Err(format!(
                "the header `{header}` is not on a property that clients can find\n\
                 only properties, and properties of those, can be mirrored: not items of lists, nor alternatives"
            ));
        };
        let path: Vec<String> = way.into_iter().flatten().map(|name| (*name).clone()).collect();
        let kind = keywords.get("type").and_then(Value::as_str);
        if !matches!(kind, Some("string" | "boolean" | "integer")) {
            return Err(format!(
                "`{}` cannot be mirrored into the header `{header}`\nmake it a string, a bool or an integer",
                path.join(".")
            ));
        }
        params.push(HeaderParam {
            header: header.to_owned(),
            path,
            is_integer: kind == Some("integer"),
            coerced: (1..=objects.len()).map(|depth| is_coerced(&pointer(&objects[..depth]))).collect(),
        });
    }
    for (name, property) in keywords.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let way = way.map(|way| [way, &[name][..]].concat());
        collect(property, way.as_deref(), is_coerced, params)?;
    }
    let mut rest = Ok(());
    subschemas(keywords, |step, child| {
        if rest.is_ok() && !step.starts_with("/properties/") {
            rest = collect(child, None, is_coerced, params);
        }
    });
    rest
}

/// The JSON pointer of the schema that some properties lead to.
fn pointer(way: &[&String]) -> String {
    way.iter().map(|name| format!("/properties/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
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
        let params = header_params(&json!({ "type": "object", "properties": properties }), false)?;
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
        assert!(header_params(&json!({ "type": "object", "$defs": { "a": a } }), false).is_err());
        assert!(header_params(&a, false).is_err());
        let duplicate = headers_of(&json!({ "a": a, "b": { "properties": { "c": text(json!("a")) } } }));
        assert!(duplicate.is_err_and(|error| error.contains("two arguments")));
    }

    #[test]
    fn integers_and_objects_that_text_is_coerced_to_are_known() {
        let integer = json!({ "type": "integer", "x-mcp-header": "A" });
        let inner = json!({ "type": ["object", "string"], "properties": { "c": integer } });
        let properties = json!({ "a": { "type": "object", "properties": { "b": inner } } });
        let schema = json!({ "type": "object", "properties": properties });
        for (strict, coerced) in [(false, [true, false]), (true, [false, false])] {
            let params = header_params(&schema, strict).expect("headers");
            assert_eq!((params[0].is_integer, &*params[0].coerced), (true, &coerced[..]), "{strict}");
        }
    }
}
