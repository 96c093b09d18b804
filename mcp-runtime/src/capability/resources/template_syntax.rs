//! URIs and URI templates of resources, in the subset of RFC 6570 that the runtime can match: variables are unique
//! and separated from each other, and queries are at the end.
//!
//! Both crates compile this file, the runtime for resources that a program makes: it uses nothing of either. A test holds the
//! two copies equal.

const FORMS: &str = "the supported forms are `{x}`, `{+x}`, `{x*}`, `{/x}`, `{/x*}`, `{?a,b}` and `{&a}`";

/// The variables of a template in order; none for a URI. The error is a message.
pub(crate) fn parse_variables(uri: &str) -> Result<Vec<&str>, String> {
    check_scheme(uri)?;
    let mut found: Vec<&str> = Vec::new();
    let mut query = false;
    // a variable of the path after a `?` that is part of the text
    let mut in_query = None;
    let mut closed = false;
    let mut after_variable = false;
    let mut rest = uri;
    while let Some((literal, after)) = rest.split_once('{') {
        check_literal(literal)?;
        if literal.ends_with('$') {
            return Err(
                "`$` before `{` would be part of the URI\nwrite `{x}`; for a `$` in the URI write `%24`"
                    .to_owned(),
            );
        }
        if closed && !literal.is_empty() {
            return Err(format!("`{literal}` follows a query\nput `{{?..}}` and `{{&..}}` at the end"));
        }
        let Some((expression, tail)) = after.split_once('}') else {
            return Err(format!("`{{{after}` is not closed\n{FORMS}"));
        };
        let part = Expression::parse(expression)?;
        let adjoins = after_variable && literal.is_empty();
        if adjoins && matches!(part.operator, Operator::Path) && !expression.starts_with('/') {
            return Err(format!(
                "nothing separates `{{{expression}}}` from the variable before it\nput a character between them"
            ));
        }
        after_variable = true;
        query |= literal.contains('?');
        match part.operator {
            Operator::Path if closed => {
                return Err(format!(
                    "`{{{expression}}}` follows a query\nput `{{?..}}` and `{{&..}}` at the end"
                ));
            }
            Operator::Path if query => in_query = Some(expression),
            Operator::Path => {}
            Operator::FirstQuery if query => {
                return Err(format!(
                    "`{{{expression}}}` starts a second query\nwrite `{{&..}}` for more query variables"
                ));
            }
            Operator::NextQuery if !query => {
                return Err(format!(
                    "`{{{expression}}}` continues a query that has not started\nwrite `{{?..}}`"
                ));
            }
            Operator::FirstQuery | Operator::NextQuery => {
                // where the value of the one ends and the other begins cannot be told
                if let Some(before) = in_query {
                    return Err(format!(
                        "`{{{before}}}` is in the query that `{{{expression}}}` continues\nput it before the `?`, or into `{{{expression}}}`"
                    ));
                }
                query = true;
                closed = true;
            }
        }
        for name in part.names {
            if found.contains(&name) {
                return Err(format!("variable `{name}` is duplicated in the template\nrename one of them"));
            }
            found.push(name);
        }
        rest = tail;
    }
    check_literal(rest)?;
    if closed && !rest.is_empty() {
        return Err(format!("`{rest}` follows a query\nput `{{?..}}` and `{{&..}}` at the end"));
    }
    Ok(found)
}

/// Whether the text starts with a scheme (RFC 3986, section 3.1).
pub(crate) fn has_scheme(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
            && !rest.is_empty()
    })
}

fn check_scheme(uri: &str) -> Result<(), String> {
    if has_scheme(uri) {
        return Ok(());
    }
    Err(format!("`{uri}` has no scheme\nwrite an absolute URI such as `docs://pages/{{id}}`"))
}

fn check_literal(text: &str) -> Result<(), String> {
    if text.contains('}') {
        return Err(format!("unmatched `}}`\n{FORMS}"));
    }
    let bad = |c: char| !c.is_ascii_graphic() || "\"<>\\^`|".contains(c);
    if let Some(c) = text.chars().find(|&c| bad(c)) {
        let shown = if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
        return Err(format!("a URI cannot contain `{shown}`\npercent-encode it"));
    }
    let is_encoded = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if text.split('%').skip(1).any(|rest| !is_encoded(rest)) {
        return Err(
            "`%` is not followed by two hexadecimal digits\nwrite `%25` for a percent sign".to_owned()
        );
    }
    Ok(())
}

enum Operator {
    /// No operator, `+` or `/`.
    Path,
    /// `?`
    FirstQuery,
    /// `&`
    NextQuery,
}

struct Expression<'a> {
    operator: Operator,
    names: Vec<&'a str>,
}

impl<'a> Expression<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let malformed = || format!("`{{{text}}}` is not a variable\n{FORMS}");
        let (operator, names): (Operator, Vec<&str>) = if let Some(names) = text.strip_prefix('?') {
            (Operator::FirstQuery, names.split(',').collect())
        } else if let Some(names) = text.strip_prefix('&') {
            (Operator::NextQuery, names.split(',').collect())
        } else if let Some(name) = text.strip_prefix('+') {
            (Operator::Path, vec![name])
        } else {
            let name = text.strip_prefix('/').unwrap_or(text);
            (Operator::Path, vec![name.strip_suffix('*').unwrap_or(name)])
        };
        if names.iter().all(|name| is_variable(name)) {
            Ok(Self { operator, names })
        } else {
            Err(malformed())
        }
    }
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.')
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
            ("repo://x{/a}", &["a"]),
            ("find://x{?q,limit}", &["q", "limit"]),
            ("find://{kind}{?q}{&limit}", &["kind", "q", "limit"]),
            ("find://x?fixed=1{&limit}", &["limit"]),
            ("find://{kind}?fixed=1{&limit}", &["kind", "limit"]),
            ("find://x?fixed={kind}", &["kind"]),
        ] {
            assert_eq!(parse_variables(uri).unwrap(), names, "{uri}");
        }
    }

    #[test]
    fn malformed_templates_are_errors() {
        for uri in [
            "",
            "app",
            "://x",
            "1a://x",
            "a b://x",
            "x:",
            "docs://{",
            "docs://}",
            "docs://{}",
            "docs://{a",
            "docs://a}b",
            "docs://{a}}",
            "docs://{a,b}",
            "docs://{#a}",
            "docs://{.a}",
            "docs://{;a}",
            "docs://{a:3}",
            "docs://{?a*}",
            "docs://{+a*}",
            "docs://{?}",
            "docs://{?a,}",
            "docs://{a b}",
            "docs://{a}/{a}",
            "docs://x{&a}",
            "docs://x?y{?a}",
            "docs://{?a}/x",
            "docs://{?a}{b}",
            "docs://{?a}{?b}",
            "docs://x?y{/a}{&b}",
            "docs://x?y={a}{&b}",
            "docs://x?y={+a}{&b}",
            "docs://x?y{/a*}&z{&b}",
            "docs://{a}?y=1{/c}{&b}",
            "docs://{a}?y=1{?b}",
            "docs://{a}{b}",
            "docs://{+a}{b*}",
            "docs://{{a}}",
            "docs://a b",
            "docs://a\n",
            "docs://\u{e9}",
            "docs://a%",
            "docs://a%zz/{b}",
            "docs://é{é}",
        ] {
            assert!(parse_variables(uri).is_err(), "{uri}");
        }
    }
}
