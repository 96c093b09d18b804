//! The syntax of URIs and templates that a program makes at run time, which is that of the attribute: variables are unique
//! and separated from each other, and queries are at the end.

const FORMS: &str = "the supported forms are `{x}`, `{+x}`, `{x*}`, `{/x}`, `{/x*}`, `{?a,b}` and `{&a}`";

/// The variables of a template in order; none for a URI.
///
/// # Errors
/// Why it is neither, and what to write.
pub(super) fn parse_variables(uri: &str) -> Result<Vec<&str>, String> {
    if !has_scheme(uri) {
        return Err("it has no scheme\nwrite an absolute URI such as `docs://pages/{id}`".into());
    }
    let mut found: Vec<&str> = Vec::new();
    let (mut rest, mut in_query, mut after_variable) = (uri, false, false);
    loop {
        let (literal, after) = match rest.split_once('{') {
            Some((literal, after)) => (literal, Some(after)),
            None => (rest, None),
        };
        check_literal(literal)?;
        if in_query && !literal.is_empty() {
            return Err(format!("`{literal}` follows a query\nput `{{?..}}` and `{{&..}}` at the end"));
        }
        let Some(after) = after else { return Ok(found) };
        let Some((expression, tail)) = after.split_once('}') else {
            return Err(format!("`{{{after}` is not closed\n{FORMS}"));
        };
        let (names, is_query) = match expression.strip_prefix(['?', '&']) {
            Some(names) => (names.split(',').collect(), true),
            None => (vec![path_variable(expression)], false),
        };
        if !names.iter().all(|name| is_variable(name)) {
            return Err(format!("`{{{expression}}}` is not a variable\n{FORMS}"));
        }
        let has_query = in_query || uri.split('{').next().is_some_and(|start| start.contains('?'));
        if is_query && expression.starts_with('?') == has_query {
            let form = if has_query { "{&..}" } else { "{?..}" };
            return Err(format!("`{{{expression}}}` is not how this query is written\nwrite `{form}`"));
        }
        if !is_query && in_query {
            return Err(format!(
                "`{{{expression}}}` follows a query\nput `{{?..}}` and `{{&..}}` at the end"
            ));
        }
        if !is_query && after_variable && literal.is_empty() && !expression.starts_with('/') {
            return Err(format!(
                "nothing separates `{{{expression}}}` from the variable before it\nput a character between them"
            ));
        }
        for name in names {
            if found.contains(&name) {
                return Err(format!("the variable `{name}` is duplicated\nrename one of them"));
            }
            found.push(name);
        }
        (rest, in_query, after_variable) = (tail, in_query || is_query, true);
    }
}

/// The name in `{x}`, `{+x}`, `{x*}`, `{/x}` and `{/x*}`.
fn path_variable(expression: &str) -> &str {
    if let Some(name) = expression.strip_prefix('+') {
        return name;
    }
    let name = expression.strip_prefix('/').unwrap_or(expression);
    name.strip_suffix('*').unwrap_or(name)
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.')
}

/// Whether the text starts with a scheme (RFC 3986, section 3.1).
fn has_scheme(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
            && !rest.is_empty()
    })
}

fn check_literal(text: &str) -> Result<(), String> {
    if text.contains('}') {
        return Err(format!("a `}}` has no `{{`\n{FORMS}"));
    }
    let is_invalid = |c: char| !c.is_ascii_graphic() || "\"<>\\^`|".contains(c);
    if let Some(c) = text.chars().find(|&c| is_invalid(c)) {
        return Err(format!("a URI cannot contain `{}`\npercent-encode it", c.escape_default()));
    }
    let is_encoded = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if text.split('%').skip(1).all(is_encoded) {
        return Ok(());
    }
    Err("a `%` is not followed by two hexadecimal digits\nwrite `%25` for a percent sign".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supported_forms_give_their_variables_in_order() {
        for (uri, names) in [
            ("config://app", &[][..]),
            ("urn:isbn:1", &[]),
            ("docs://a/{id}", &["id"]),
            ("file://{+path}", &["path"]),
            ("file:///{path*}", &["path"]),
            ("repo://{owner}{/rest*}", &["owner", "rest"]),
            ("find://x{?q,limit}", &["q", "limit"]),
            ("find://{kind}{?q}{&limit}", &["kind", "q", "limit"]),
            ("find://x?fixed=1{&limit}", &["limit"]),
        ] {
            assert_eq!(parse_variables(uri).expect(uri), names, "{uri}");
        }
    }

    #[test]
    fn malformed_templates_are_errors() {
        for uri in [
            "",
            "app",
            "://x",
            "1a://x",
            "x:",
            "docs://{",
            "docs://}",
            "docs://{}",
            "docs://{a",
            "docs://{a,b}",
            "docs://{#a}",
            "docs://{a:3}",
            "docs://{?a*}",
            "docs://{+a*}",
            "docs://{?a,}",
            "docs://{a b}",
            "docs://{a}/{a}",
            "docs://x{&a}",
            "docs://x?y{?a}",
            "docs://{?a}/x",
            "docs://{?a}{b}",
            "docs://{?a}{?b}",
            "docs://{a}{b}",
            "docs://{{a}}",
            "docs://a b",
            "docs://\u{e9}",
            "docs://a%zz/{b}",
        ] {
            assert!(parse_variables(uri).is_err(), "{uri}");
        }
    }
}
