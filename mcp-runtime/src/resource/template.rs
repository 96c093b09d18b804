//! URI templates (RFC 6570, the part that can be matched backwards): compiled once, matched in time linear in the
//! URI's length, with the checks that keep a path inside its root. Reads look resources up with it.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::{arguments::Variable, protocol::normalise};

/// One step of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// `{x}`, `{+x}`, `{x*}`; `{/x}` is a literal `/` before it.
    Variable {
        name: String,
        reserved: bool,
        explode: bool,
    },
}

/// A compiled template.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    parts: Vec<Part>,
    /// `{?a,b}` and `{&a}`: any order, each optional.
    query: Vec<String>,
    literal: usize,
}

/// Variables by name, percent-decoded.
pub(crate) type Bound = Vec<(String, Variable)>;

impl Template {
    /// Compiles a template; the attribute macro has checked its form, run-time callers get the reason.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut query = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let close = rest[open..].find('}').ok_or("a `{` has no `}`")? + open;
            literal(&mut parts, &rest[..open]);
            let inside = &rest[open + 1..close];
            match inside.chars().next() {
                Some('?' | '&') => query.extend(inside[1..].split(',').map(|name| name.trim().to_owned())),
                Some(operator @ ('+' | '/')) => {
                    for name in inside[1..].split(',') {
                        if operator == '/' {
                            literal(&mut parts, "/");
                        }
                        variable(&mut parts, name.trim(), operator == '+');
                    }
                }
                Some(_) => variable(&mut parts, inside.trim(), false),
                None => return Err("a `{}` names no variable".into()),
            }
            rest = &rest[close + 1..];
        }
        literal(&mut parts, rest);
        let length = |part: &Part| if let Part::Literal(text) = part { text.len() } else { 0 };
        let literal = parts.iter().map(length).sum();
        Ok(Self { parts, query, literal })
    }

    /// Whether it has no variable at all.
    pub(crate) fn is_exact(&self) -> bool {
        self.query.is_empty() && self.parts.iter().all(|part| matches!(part, Part::Literal(_)))
    }

    /// More literal text first, then fewer variables.
    pub(crate) fn specificity(&self) -> (usize, std::cmp::Reverse<usize>) {
        let variables = self.parts.iter().filter(|part| matches!(part, Part::Variable { .. })).count();
        (self.literal, std::cmp::Reverse(variables + self.query.len()))
    }

    /// The variables of `uri`, if it is an instance; `raw` says which variables skip the path checks.
    pub(crate) fn bind(&self, uri: &str, raw: impl Fn(&str) -> bool) -> Option<Bound> {
        // `{?a}` begins the query; `{&a}` goes on with one that the literal text has begun
        let begun = self.parts.iter().any(|part| matches!(part, Part::Literal(text) if text.contains('?')));
        let (path, mut query) = match uri.split_once('?') {
            Some((path, query)) if !self.query.is_empty() && !begun => (path, Some(query)),
            _ => (uri, None),
        };
        let mut bound = Bound::new();
        let mut rest = path;
        let mut parts = self.parts.iter().enumerate().peekable();
        while let Some((at, part)) = parts.next() {
            match part {
                Part::Literal(text) if at == 0 => rest = strip_scheme_and_host(rest, text)?,
                Part::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
                Part::Variable { name, reserved, explode } => {
                    let value = match parts.peek() {
                        None => std::mem::take(&mut rest),
                        Some((next, Part::Literal(text))) => {
                            // the last literal is anchored at the end, so that `{name}.json` takes `a.b.json`
                            let last = *next + 1 == self.parts.len() && !begun;
                            let end = if last {
                                rest.strip_suffix(text.as_str())?.len()
                            } else {
                                rest.find(text.as_str())?
                            };
                            let value = &rest[..end];
                            rest = &rest[end..];
                            value
                        }
                        Some((_, Part::Variable { .. })) => {
                            let end = rest.find(',').unwrap_or(rest.len());
                            let value = &rest[..end];
                            rest = &rest[end..];
                            value
                        }
                    };
                    if value.is_empty() || (!reserved && !explode && value.contains(['/', '?', '#'])) {
                        return None;
                    }
                    bound.push((name.clone(), decode(name, value, *reserved, *explode, &raw)?));
                }
            }
        }
        if begun && !self.query.is_empty() {
            query = rest.strip_prefix('&');
            rest = if query.is_some() { "" } else { rest };
        }
        if !rest.is_empty() {
            return None;
        }
        for pair in query.into_iter().flat_map(|query| query.split('&')).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let Some(known) = self.query.iter().find(|known| known.trim_end_matches('*') == name) else {
                continue;
            };
            let known = known.trim_end_matches('*');
            let value = checked(&percent_decode(&value.replace('+', "%20"))?, raw(known), true)?;
            match bound.iter_mut().find(|(name, _)| name == known) {
                Some((_, Variable::Many(list))) => list.push(value),
                Some((_, one)) => {
                    if let Variable::One(first) = one {
                        *one = Variable::Many(vec![std::mem::take(first), value]);
                    }
                }
                None => bound.push((known.to_owned(), Variable::One(value))),
            }
        }
        // parts that are harmless one by one may be joined again: `?a=&a=etc` to `/etc`
        let joined = |list: &[String], name: &str| checked(&list.join("/"), raw(name), true);
        let safe = bound.iter().all(|(name, value)| match value {
            Variable::One(_) => true,
            Variable::Many(list) => joined(list, name).is_some(),
        });
        safe.then_some(bound)
    }
}

fn literal(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(Part::Literal(before)) => before.push_str(text),
        _ => parts.push(Part::Literal(text.to_owned())),
    }
}

fn variable(parts: &mut Vec<Part>, name: &str, reserved: bool) {
    let explode = name.ends_with('*');
    parts.push(Part::Variable { name: name.trim_end_matches('*').to_owned(), reserved, explode });
}

/// Scheme and host match ignoring case, the rest exactly.
fn strip_scheme_and_host<'a>(uri: &'a str, literal: &str) -> Option<&'a str> {
    let head = uri.get(..literal.len())?;
    let same = head == literal || normalise(head) == normalise(literal);
    same.then(|| &uri[literal.len()..])
}

fn decode(
    name: &str,
    value: &str,
    reserved: bool,
    explode: bool,
    raw: &impl Fn(&str) -> bool,
) -> Option<Variable> {
    let raw = raw(name);
    if !explode {
        return checked(&percent_decode(value)?, raw, reserved).map(Variable::One);
    }
    let parts = value.split(['/', ',']).map(|part| checked(&percent_decode(part)?, raw, false));
    parts.collect::<Option<Vec<_>>>().map(Variable::Many)
}

/// Decodes `%XX` once; `None` for a broken escape, or bytes that are not UTF-8.
pub(crate) fn percent_decode(text: &str) -> Option<String> {
    let escape =
        |after: &str| after.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
    if !text.split('%').skip(1).all(escape) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok().map(Cow::into_owned)
}

/// Refuses what could lead out of a root: `.` and `..` segments, absolute and drive paths, NUL; and separators where
/// the variable is one segment.
fn checked(value: &str, raw: bool, separators: bool) -> Option<String> {
    let drive = matches!(value.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    let unsafe_path = value.contains('\0')
        || value.starts_with(['/', '\\'])
        || drive
        || value.split(['/', '\\']).any(|segment| segment == "." || segment == "..")
        || (!separators && value.contains(['/', '\\']));
    (raw || !unsafe_path).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        let bound = Template::parse(template).expect("template").bind(uri, |_| false)?;
        let show = |v| match v {
            Variable::One(text) => text,
            Variable::Many(list) => list.join("|"),
        };
        Some(bound.into_iter().map(|(name, v)| (name, show(v))).collect())
    }

    fn one(template: &str, uri: &str) -> Option<String> {
        bind(template, uri).and_then(|b| b.into_iter().next()).map(|(_, v)| v)
    }

    #[test]
    fn r07_every_form_binds() {
        assert_eq!(one("docs://a/{id}", "docs://a/7").as_deref(), Some("7"));
        assert_eq!(one("docs://a/{id}", "DOCS://A/a%20b").as_deref(), Some("a b"));
        assert_eq!(one("docs://a/{id}", "docs://a/b/c"), None);
        assert_eq!(one("repo:///{+path}", "repo:///src/lib.rs").as_deref(), Some("src/lib.rs"));
        assert_eq!(one("x://{/a}", "x:///7").as_deref(), Some("7"));
        assert_eq!(one("x://h{/path*}", "x://h/a/b").as_deref(), Some("a|b"));
        assert_eq!(one("x://{name}.json", "x://a.b.json").as_deref(), Some("a.b"));
        assert_eq!(
            bind("x://s{?a,b}", "x://s?b=2&a=1"),
            Some(vec![("b".into(), "2".into()), ("a".into(), "1".into())])
        );
        assert_eq!(bind("x://s{?a,b}", "x://s"), Some(vec![]));
        assert_eq!(bind("x://s?v=1{&a}", "x://s?v=1&a=2"), Some(vec![("a".into(), "2".into())]));
        assert_eq!(bind("x://s?v=1{&a}", "x://s?v=1"), Some(vec![]));
        assert_eq!(bind("x://s?v=1{&a}", "x://s?v=12"), None);
        assert_eq!(
            bind("x://{a}-{b}", "x://1-2-3"),
            Some(vec![("a".into(), "1".into()), ("b".into(), "2-3".into())])
        );
    }

    #[test]
    fn r07_nothing_leads_out_of_the_root() {
        for uri in [
            "repo:///../x",
            "repo:///a/../x",
            "repo:///a/%2e%2e/x",
            "repo:///%2e%2e%2fx",
            "repo:///a%5c..%5cx",
            "repo:////etc/passwd",
            "repo:///%2fetc",
            "repo:///C:/x",
            "repo:///c:%5cx",
            "repo:///a%00b",
            "repo:///./x",
            "repo:///a/..",
            "repo:///%ff",
        ] {
            assert_eq!(one("repo:///{+path}", uri), None, "{uri}");
        }
        assert_eq!(one("x:///{p}", "x:///a%2Fb"), None);
        assert_eq!(
            one("repo:///{+path}", "repo:///%252e%252e/x").as_deref(),
            Some("%2e%2e/x"),
            "decoded once"
        );
        let raw = Template::parse("x:///{+p}").expect("template");
        assert!(raw.bind("x:///../y", |_| true).is_some());
    }

    #[test]
    fn r07_matching_is_linear() {
        let template = Template::parse("x://{a}-{b}-{c}-{d}!").expect("template");
        assert!(template.bind(&format!("x://{}", "-".repeat(2_000_000)), |_| false).is_none());
    }
}
