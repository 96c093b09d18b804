//! Fills in the variables of a URI template (RFC 6570, the forms that resources have). Values that the
//! server's matching would refuse, such as one that leads out of its segment, are refused here.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use crate::resource::Template;

/// Everything but unreserved characters is encoded.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// `{+x}` keeps reserved characters too; a `?` or `#` would end the path.
const PATH: &AsciiSet = &SEGMENT
    .remove(b'/')
    .remove(b':')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// The URI of a resource; `is_raw` says which variables may have any value.
///
/// # Errors
/// A variable of the path has no value and cannot be empty, or the URI would not match.
pub(super) fn expand(
    template: &str,
    values: &Map<String, Value>,
    is_raw: impl Fn(&str) -> bool,
) -> Result<String, String> {
    let mut uri = String::new();
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        let (expression, after) = after.split_once('}').ok_or("a `{` has no `}`")?;
        uri.push_str(literal);
        rest = after;
        let operator = expression.chars().next().filter(|first| "?&+/".contains(*first));
        let names = expression.get(usize::from(operator.is_some())..).unwrap_or_default();
        for variable in names.split(',').map(str::trim) {
            let name = variable.trim_end_matches('*');
            let value = values.get(name).filter(|value| !value.is_null());
            match operator {
                Some('?' | '&') => {
                    let texts = match value {
                        None => Vec::new(),
                        Some(Value::Array(list)) if variable.ends_with('*') => {
                            list.iter().map(text).collect()
                        }
                        Some(value) => vec![text(value)],
                    };
                    for text in texts {
                        uri.push(if uri.contains('?') { '&' } else { '?' });
                        uri.push_str(&format!("{name}={}", utf8_percent_encode(&text, SEGMENT)));
                    }
                }
                // an empty path matches as well
                Some('/') if value.is_none() => {}
                Some('/') if variable.ends_with('*') && value.is_some_and(is_empty_list) => {}
                _ => {
                    let value = value.ok_or_else(|| format!("`{name}` has no value"))?;
                    let set = if operator == Some('+') { PATH } else { SEGMENT };
                    if operator == Some('/') {
                        uri.push('/');
                    }
                    match value {
                        Value::Array(list) if variable.ends_with('*') => {
                            let texts =
                                list.iter().map(|item| utf8_percent_encode(&text(item), set).to_string());
                            let separator = if operator == Some('/') { "/" } else { "," };
                            uri.push_str(&texts.collect::<Vec<_>>().join(separator));
                        }
                        value => uri.push_str(&utf8_percent_encode(&text(value), set).to_string()),
                    }
                }
            }
        }
    }
    uri.push_str(rest);
    let matches = Template::parse(template)?.bind(&uri, is_raw).is_some();
    matches.then_some(uri).ok_or_else(|| format!("a value does not fit into `{template}`"))
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

/// A value as servers parse it: text as it is, and everything else as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Checks that a template matches its own expansions: with the same values if it tells where each of them ends, and always
/// with values that expand to the same URI but for its encoding.
#[cfg(any(test, feature = "_fuzzing"))]
fn fuzz(data: &[u8]) {
    let Some((template, values)) = crate::fuzzing::halves(data) else { return };
    let Ok(parsed) = Template::parse(template) else { return };
    let _for_a_panic = parsed.bind(values, |_| false);
    let Ok(Value::Object(values)) = serde_json::from_str(values) else { return };
    compare(template, &parsed, &values);
}

/// Compares the expansions with these values to what the template reads in them.
#[cfg(any(test, feature = "_fuzzing"))]
fn compare(template: &str, parsed: &Template, values: &Map<String, Value>) {
    use percent_encoding::percent_decode_str;

    use crate::{core::arguments::TextArgument, resource::parse_variables};

    let is_supported = parse_variables(template).is_ok();
    let words = template.split(['{', '}', ',', '?', '&', '+', '/']).map(str::trim);
    let explodes = |name: &str| words.clone().any(|word| word.strip_suffix('*') == Some(name));
    for is_raw in [false, true] {
        let Ok(uri) = expand(template, values, |_| is_raw) else { continue };
        let bound = parsed.bind(&uri, |_| is_raw);
        let Some(bound) = bound else { panic!("`{template}` does not match `{uri}`") };
        // a server does not start with another template
        if !is_supported {
            continue;
        }
        let mut again = Map::new();
        for (name, value) in bound {
            let sent: Vec<String> = match values.get(&*name) {
                Some(Value::Array(list)) if explodes(&name) => list.iter().map(text).collect(),
                value => value.filter(|value| !value.is_null()).map(text).into_iter().collect(),
            };
            let read = match value {
                TextArgument::One(one) => vec![one.into_owned()],
                TextArgument::Listed(one, _) => vec![one],
                TextArgument::Many(list) | TextArgument::Repeated(list) => list,
            };
            if parsed.is_unambiguous() {
                assert_eq!(read, sent, "`{name}` of `{template}` and `{uri}`");
            }
            let value = match <[String; 1]>::try_from(read) {
                Ok([one]) => Value::from(one),
                Err(list) => Value::from(list),
            };
            again.insert(name.into_owned(), value);
        }
        // which characters are encoded depends on the variable that they are in
        let decoded = |uri: &str| percent_decode_str(uri).decode_utf8_lossy().into_owned();
        let again = expand(template, &again, |_| is_raw).map(|again| decoded(&again));
        assert_eq!(again, Ok(decoded(&uri)), "`{template}` and `{uri}`");
    }
}

#[cfg(any(test, feature = "_fuzzing"))]
inventory::submit!(crate::fuzzing::Target { name: "templates", run: fuzz });

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn uri(template: &str, values: &Value) -> Result<String, String> {
        expand(template, values.as_object().expect("an object"), |_| false)
    }

    #[test]
    fn variables_are_encoded_by_their_form() {
        for (template, values, expected) in [
            ("a://h/{x}", json!({ "x": "a b/ü" }), None),
            ("a://h/{x}", json!({ "x": "a b,ü" }), Some("a://h/a%20b%2C%C3%BC")),
            ("a://h/{x}", json!({ "x": 7 }), Some("a://h/7")),
            ("a:///{+x}", json!({ "x": "src/lib.rs?" }), Some("a:///src/lib.rs%3F")),
            ("a://h{/x*}", json!({ "x": ["a", "b c"] }), Some("a://h/a/b%20c")),
            ("a://h/{x*}", json!({ "x": ["a", "b"] }), Some("a://h/a,b")),
            ("a://h{?x,y}", json!({ "y": true }), Some("a://h?y=true")),
            ("a://h{?x,y}", json!({ "x": null, "y": "&=" }), Some("a://h?y=%26%3D")),
            ("a://h{?x*}", json!({ "x": ["1", "2"] }), Some("a://h?x=1&x=2")),
            ("a://h?v=1{&x}", json!({ "x": [1, 2] }), Some("a://h?v=1&x=%5B1%2C2%5D")),
            ("a://h{/x*}", json!({ "x": [] }), Some("a://h")),
            ("a://h{/x*}/tail", json!({}), Some("a://h/tail")),
            ("a://h{/x}", json!({ "x": null }), None),
            ("a://h{/x}", json!({ "x": "a" }), Some("a://h/a")),
            ("a://h{/x*}", json!({ "x": [""] }), None),
            ("a://h", json!({}), Some("a://h")),
        ] {
            assert_eq!(uri(template, &values).ok().as_deref(), expected, "{template} {values}");
            // a server reads what was sent
            compare(template, &Template::parse(template).unwrap(), values.as_object().unwrap());
        }
    }

    #[test]
    fn values_that_no_server_would_accept_are_refused() {
        for (template, value) in
            [("a:///{+x}", "../etc"), ("a:///{+x}", "/etc"), ("a:///{x}", ".."), ("a:///{x}", "")]
        {
            let error = uri(template, &json!({ "x": value })).unwrap_err();
            assert_eq!(error, format!("a value does not fit into `{template}`"), "{value}");
        }
        assert_eq!(uri("a:///{x}", &json!({})).unwrap_err(), "`x` has no value");
    }
}
