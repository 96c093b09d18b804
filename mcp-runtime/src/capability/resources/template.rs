//! URI templates (RFC 6570, the part that can be matched against a URI): compiled once, matched in time linear in the
//! URI's length, with checks that keep a path inside its root.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::core::{
    arguments::TextArgument,
    protocol::{normalize_escapes, normalize_uri},
};

/// All but the unreserved characters of URIs.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const PATH: &AsciiSet = &SEGMENT.remove(b'/');

/// A literal or a variable of a template.
#[derive(Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// `{x}`, `{+x}`, `{x*}`; `{/x}` is a literal `/` before it.
    Variable {
        name: String,
        reserved: bool,
        explode: bool,
        /// `{/x*}`: a `/` is before each segment, and no segment matches as well.
        path: bool,
    },
}

impl Part {
    fn begins_a_query(&self) -> bool {
        matches!(self, Self::Literal(text) if text.contains('?'))
    }
}

/// A compiled template.
#[derive(Clone)]
pub(crate) struct Template {
    parts: Vec<Part>,
    /// Variables of `{?a,b}` and `{&a}`: in any order, each optional.
    query: Vec<String>,
    /// The length of all literals, in bytes.
    literal_length: usize,
}

/// The most parts of a variable that explodes, or is repeated in a query; a URI with more does not match.
const MAX_PARTS: usize = 10_000;

/// Variables by name, percent-decoded.
pub(crate) type UriVariables = Vec<(Cow<'static, str>, TextArgument<'static>)>;

impl Template {
    /// Compiles a template.
    ///
    /// # Errors
    /// Why it is not a template.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut query = Vec::new();
        let text = normalize_escapes(text);
        let mut rest = &*text;
        while let Some(open) = rest.find('{') {
            let close = rest[open..].find('}').ok_or("a `{` has no `}`")? + open;
            push_literal(&mut parts, &rest[..open]);
            let inside = &rest[open + 1..close];
            match inside.chars().next() {
                Some('?' | '&') => query.extend(inside[1..].split(',').map(|name| name.trim().to_owned())),
                Some(operator @ ('+' | '/')) => {
                    for name in inside[1..].split(',').map(str::trim) {
                        let path = operator == '/' && name.ends_with('*');
                        if operator == '/' && !path {
                            push_literal(&mut parts, "/");
                        }
                        push_variable(&mut parts, name, operator == '+', path);
                    }
                }
                Some(_) => push_variable(&mut parts, inside.trim(), false, false),
                None => return Err("a `{}` names no variable".into()),
            }
            rest = &rest[close + 1..];
        }
        push_literal(&mut parts, rest);
        let length = |part: &Part| if let Part::Literal(text) = part { text.len() } else { 0 };
        let literal_length = parts.iter().map(length).sum();
        Ok(Self { parts, query, literal_length })
    }

    /// The template with each variable in place of its name: equal for two of which one is never asked. Variables of a query
    /// tell no templates apart, since each may be absent, and others are ignored.
    pub(crate) fn without_names(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Variable { path: true, .. } => text.push_str("/{*}"),
                Part::Variable { reserved, explode, .. } => {
                    text.push_str(match (reserved, explode) {
                        (false, false) => "{}",
                        (true, _) => "{+}",
                        (false, true) => "{*}",
                    });
                }
            }
        }
        if !self.query.is_empty() {
            text.push_str("{?}");
        }
        text
    }

    /// Whether it has no variable.
    pub(crate) fn is_exact(&self) -> bool {
        self.query.is_empty() && self.parts.iter().all(|part| matches!(part, Part::Literal(_)))
    }

    /// The names of its variables.
    pub(super) fn variables(&self) -> impl Iterator<Item = &str> {
        let in_path = self.parts.iter().filter_map(|part| match part {
            Part::Variable { name, .. } => Some(name.as_str()),
            Part::Literal(_) => None,
        });
        in_path.chain(self.query.iter().map(|name| name.trim_end_matches('*')))
    }

    /// Whether a variable is in the path, where every URI that matches has a value for it.
    pub(crate) fn is_in_path(&self, variable: &str) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Variable { name, .. } if name == variable))
    }

    /// More literal text first, then fewer variables.
    pub(crate) fn specificity(&self) -> (usize, std::cmp::Reverse<usize>) {
        let variables = self.parts.iter().filter(|part| matches!(part, Part::Variable { .. })).count();
        (self.literal_length, std::cmp::Reverse(variables + self.query.len()))
    }

    /// Whether the end of each variable can be told, whatever the values of the variables are.
    #[cfg(all(feature = "client", any(test, feature = "_fuzzing")))]
    pub(crate) fn is_unambiguous(&self) -> bool {
        let in_values = |c: char| c.is_ascii_alphanumeric() || "-._~%".contains(c);
        let count = self.parts.len();
        self.parts.iter().enumerate().all(|(at, part)| {
            let Part::Variable { reserved, explode, .. } = part else { return true };
            match self.parts.get(at + 1) {
                // a separator in a part of the value is a separator of parts
                None => !(*reserved && *explode),
                Some(Part::Variable { .. }) => false,
                Some(Part::Literal(text)) => {
                    let is_last = at + 2 == count && !self.parts.iter().any(Part::begins_a_query);
                    let in_value = |c: char| in_values(c) || (*explode && matches!(c, '/' | ','));
                    !reserved && (is_last || !text.chars().all(in_value))
                }
            }
        })
    }

    /// The variables of `uri`, if it matches; variables for which `raw` is true skip the path checks.
    pub(crate) fn bind(&self, uri: &str, raw: impl Fn(&str) -> bool) -> Option<UriVariables> {
        let uri = &*normalize_escapes(uri);
        // `{?a}` begins the query; `{&a}` continues one that a literal has begun
        let literal_query = self.parts.iter().any(Part::begins_a_query);
        let (path, mut query) = match uri.split_once('?') {
            Some((path, query)) if !self.query.is_empty() && !literal_query => (path, Some(query)),
            _ => (uri, None),
        };
        let mut variables = UriVariables::new();
        let mut rest = path;
        let mut parts = self.parts.iter().enumerate().peekable();
        let mut in_query = false;
        while let Some((at, part)) = parts.next() {
            in_query |= part.begins_a_query();
            match part {
                Part::Literal(text) if at == 0 => rest = strip_scheme_and_host(rest, text)?,
                Part::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
                Part::Variable { name, reserved, explode, path } => {
                    let value = match parts.peek() {
                        None => std::mem::take(&mut rest),
                        Some((next, Part::Literal(text))) => {
                            // the last literal is anchored at the end, so that `{name}.json` takes `a.b.json`
                            let last = *next + 1 == self.parts.len() && !literal_query;
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
                    if *path && value.is_empty() {
                        variables.push((name.clone().into(), TextArgument::Many(Vec::new())));
                        continue;
                    }
                    let value = if *path { value.strip_prefix('/')? } else { value };
                    // RFC 6570: what separates the parts of a URI is escaped in a value
                    let separators: &[char] = if in_query { &['/', '?', '#', '&'] } else { &['/', '?', '#'] };
                    if value.is_empty() || (!reserved && !explode && value.contains(separators)) {
                        return None;
                    }
                    let decoded = decode_variable(name, value, *reserved, *explode, &raw)?;
                    variables.push((name.clone().into(), decoded));
                }
            }
        }
        if literal_query && !self.query.is_empty() {
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
            let value = if value.contains('+') { Cow::from(value.replace('+', "%20")) } else { value.into() };
            let value = decode_one(&value, raw(known), true)?;
            match variables.iter_mut().find(|(name, _)| name == known) {
                Some((_, TextArgument::Repeated(list))) if list.len() > MAX_PARTS => return None,
                Some((_, TextArgument::Repeated(list))) => list.extend(value.into_text()),
                Some((_, one)) => {
                    let first = std::mem::replace(one, TextArgument::Repeated(Vec::new()));
                    *one = TextArgument::Repeated(
                        first.into_text().into_iter().chain(value.into_text()).collect(),
                    );
                }
                None => variables.push((known.to_owned().into(), value)),
            }
        }
        // users may join parts that are harmless one by one: `?a=&a=etc` to `/etc`
        let safe = variables.iter().all(|(name, value)| match value {
            TextArgument::Many(list) | TextArgument::Repeated(list) => {
                raw(name) || !matches!(list.as_slice(), [first, _, ..] if first.is_empty())
            }
            TextArgument::One(_) => true,
            TextArgument::Listed(_, list) => {
                raw(name) || !matches!(list.as_slice(), [first, _, ..] if first.is_empty())
            }
        });
        safe.then_some(variables)
    }
}

/// A template without one of its variables: in the path is this text instead.
pub(super) fn without_variable(template: &str, variable: &str, text: &str) -> String {
    let (mut uri, mut rest) = (String::new(), template);
    while let Some((literal, (inside, after))) =
        rest.split_once('{').and_then(|(literal, after)| Some((literal, after.split_once('}')?)))
    {
        let names = inside.trim_start_matches(['?', '&', '+', '/']);
        let operator = inside.strip_suffix(names).unwrap_or_default();
        let is_other = |name: &&str| name.trim().trim_end_matches('*') != variable;
        let others: Vec<_> = names.split(',').filter(is_other).collect();
        uri.push_str(literal);
        if !others.is_empty() {
            uri.extend(["{", operator, &others.join(","), "}"]);
        } else if !matches!(operator, "?" | "&") {
            let encoded = if operator == "+" || names.ends_with('*') { PATH } else { SEGMENT };
            uri.push_str(operator.trim_start_matches('+'));
            uri.extend(utf8_percent_encode(text, encoded));
        }
        rest = after;
    }
    uri.push_str(rest);
    // what has continued the query begins it now
    if uri.contains('?') { uri } else { uri.replacen("{&", "{?", 1) }
}

fn push_literal(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(Part::Literal(before)) => before.push_str(text),
        _ => parts.push(Part::Literal(text.to_owned())),
    }
}

fn push_variable(parts: &mut Vec<Part>, name: &str, reserved: bool, path: bool) {
    let explode = name.ends_with('*');
    parts.push(Part::Variable { name: name.trim_end_matches('*').to_owned(), reserved, explode, path });
}

/// Scheme and host match ignoring case, the rest exactly.
fn strip_scheme_and_host<'a>(uri: &'a str, literal: &str) -> Option<&'a str> {
    let head = uri.get(..literal.len())?;
    let same = head == literal || normalize_uri(head) == normalize_uri(literal);
    same.then(|| &uri[literal.len()..])
}

fn decode_variable(
    name: &str,
    value: &str,
    reserved: bool,
    explode: bool,
    raw: &impl Fn(&str) -> bool,
) -> Option<TextArgument<'static>> {
    let raw = raw(name);
    if !explode {
        return decode_one(value, raw, reserved);
    }
    if memchr::memchr2_iter(b'/', b',', value.as_bytes()).nth(MAX_PARTS).is_some() {
        return None;
    }
    let parts = value.split(['/', ',']).map(|part| decode_value(part, raw, false));
    parts.collect::<Option<Vec<_>>>().map(TextArgument::Many)
}

/// The value of a variable that does not explode, whose parts are those between commas that are not escaped.
fn decode_one(value: &str, raw: bool, separators: bool) -> Option<TextArgument<'static>> {
    let text = decode_value(value, raw, separators)?;
    if !value.contains("%2C") || value.split(',').count() > MAX_PARTS {
        return Some(TextArgument::One(text.into()));
    }
    let parts = value.split(',').map(|part| decode_value(part, raw, separators));
    Some(TextArgument::Listed(text, parts.collect::<Option<_>>()?))
}

/// The percent-decoded value, unless it is refused; `raw` disables the check of paths.
fn decode_value(value: &str, raw: bool, separators: bool) -> Option<String> {
    let decoded = percent_decode(value)?;
    (raw || is_safe_path(&decoded, separators)).then(|| decoded.into_owned())
}

/// Decodes `%XX` once; `None` for a broken escape, or bytes that are not UTF-8.
pub(crate) fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    let escape =
        |after: &str| after.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
    if !text.split('%').skip(1).all(escape) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok()
}

/// Whether a value cannot lead out of a root: `.` and `..` segments, absolute and drive paths, NUL, and separators where
/// the variable is one segment do.
fn is_safe_path(value: &str, separators: bool) -> bool {
    // most values have none of what the rules are about
    if !value.bytes().any(|byte| matches!(byte, b'.' | b':' | b'/' | b'\\' | b'\0')) {
        return true;
    }
    let drive = matches!(value.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    let leads_out = value.contains('\0')
        || value.starts_with(['/', '\\'])
        || drive
        || value.split(['/', '\\']).any(|segment| segment == "." || segment == "..")
        || (!separators && value.contains(['/', '\\']));
    !leads_out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        let variables = Template::parse(template).expect("template").bind(uri, |_| false)?;
        let to_text = |v| match v {
            TextArgument::One(text) => text.into_owned(),
            TextArgument::Listed(_, list) => list.join("|"),
            TextArgument::Many(list) | TextArgument::Repeated(list) => list.join("|"),
        };
        Some(variables.into_iter().map(|(name, v)| (name.into_owned(), to_text(v))).collect())
    }

    fn one(template: &str, uri: &str) -> Option<String> {
        bind(template, uri).and_then(|b| b.into_iter().next()).map(|(_, v)| v)
    }

    #[test]
    fn every_operator_matches() {
        assert_eq!(one("docs://a/{id}", "docs://a/7").as_deref(), Some("7"));
        assert_eq!(one("docs://a/{id}", "DOCS://A/a%20b").as_deref(), Some("a b"));
        assert_eq!(one("docs://a/{id}", "docs://a/b/c"), None);
        assert_eq!(one("repo:///{+path}", "repo:///src/lib.rs").as_deref(), Some("src/lib.rs"));
        assert_eq!(one("x://{/a}", "x:///7").as_deref(), Some("7"));
        assert_eq!(one("x://h{/path*}", "x://h/a/b").as_deref(), Some("a|b"));
        assert_eq!(one("x://h{/path*}/raw{?a}", "x://h/a/b/raw?a=1").as_deref(), Some("a|b"));
        for (template, uri) in [
            ("x://h{/path*}", "x://h"),
            ("x://h{/path*}{?a}", "x://h?b=1"),
            ("x://h{/path*}/raw", "x://h/raw"),
        ] {
            assert_eq!(one(template, uri).as_deref(), Some(""), "{uri}");
        }
        for uri in ["x://h/", "x://ha", "x://hraw"] {
            assert_eq!(one("x://h{/path*}", uri), None, "{uri}");
        }
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
    fn escapes_are_compared_and_decoded_as_the_standards_say() {
        for uri in ["x://caf%c3%a9/a", "x://caf%C3%A9/a", "x://caf%C3%a9/a"] {
            assert_eq!(one("x://caf%C3%A9/{p}", uri).as_deref(), Some("a"), "{uri}");
            assert_eq!(one("x://caf%c3%a9/{p}", uri).as_deref(), Some("a"), "{uri}");
        }
        assert_eq!(one("x://h/caf%C3%A9/{p}", "x://h/caf%c3%a9/%c3%a9").as_deref(), Some("é"));
        assert_eq!(one("x://h/%zz{p}", "x://h/%zza").as_deref(), Some("a"));
        // a separator of the query is escaped in a value
        assert_eq!(one("x://h?q={search}", "x://h?q=a&r=1"), None);
        assert_eq!(one("x://h?q={search}", "x://h?q=a%26r").as_deref(), Some("a&r"));
        assert_eq!(one("x://h/{a}", "x://h/b&c").as_deref(), Some("b&c"));
        // lists are split where a comma is not escaped
        for (template, uri) in [("x://h/{a}", "x://h/a,b%2Cc"), ("x://h{?a}", "x://h?a=a,b%2cc")] {
            let variables =
                Template::parse(template).expect("template").bind(uri, |_| false).expect("a match");
            let list = TextArgument::Listed("a,b,c".to_owned(), vec!["a".to_owned(), "b,c".to_owned()]);
            assert_eq!(variables, [("a".into(), list)]);
        }
        assert_eq!(one("x://h{?a}", "x://h?a=1%2C2&a=3").as_deref(), Some("1,2|3"));
    }

    #[test]
    fn paths_that_leave_the_root_do_not_match() {
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
    fn a_variable_that_is_fixed_is_a_text_of_the_path_and_nothing_of_the_query() {
        for (template, variable, text, expected) in [
            ("x://{tenant}/{id}{?a}", "tenant", "a b/c", "x://a%20b%2Fc/{id}{?a}"),
            ("x://h/{+path}", "path", "a/b c", "x://h/a/b%20c"),
            ("x://h{/path*}{?a}", "path", "a/b", "x://h/a/b{?a}"),
            ("x://h{/a}", "a", "b/c", "x://h/b%2Fc"),
            ("x://{id}{?a,b,c}", "b", "1", "x://{id}{?a,c}"),
            ("x://{id}{?a}", "a", "1", "x://{id}"),
            ("x://{id}{?a}{&b}", "a", "1", "x://{id}{?b}"),
            ("x://{id}?v=1{&a}", "a", "1", "x://{id}?v=1"),
            ("x://{id}", "other", "1", "x://{id}"),
        ] {
            assert_eq!(without_variable(template, variable, text), expected);
        }
    }

    #[test]
    fn matching_takes_linear_time() {
        let template = Template::parse("x://{a}-{b}-{c}-{d}!").expect("template");
        assert!(template.bind(&format!("x://{}", "-".repeat(2_000_000)), |_| false).is_none());
    }
}
