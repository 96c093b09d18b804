//! The YAML frontmatter of a `SKILL.md`, as JSON: parsed with the core schema of YAML 1.2, within limits, and restricted
//! to what JSON can represent. Without aliases, so that it is never larger than its text.

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput, Tag};
use serde_json::{Map, Number, Value};

const MAX_BYTES: usize = 64 << 10;
const MAX_DEPTH: usize = 32;
const MAX_DESCRIPTION: usize = 1024;
const MAX_COMPATIBILITY: usize = 500;
/// The prefix of names in `metadata` that are reserved for the protocol.
const RESERVED: &str = "io.modelcontextprotocol/";

/// Why a `SKILL.md` is invalid, and the line, counted from 1, if known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) line: Option<usize>,
    pub(super) text: String,
}

fn fault(text: impl Into<String>) -> Fault {
    Fault { line: None, text: text.into() }
}

/// The frontmatter of a skill.
#[derive(Debug)]
pub(super) struct Frontmatter {
    pub(super) description: String,
    pub(super) all: Map<String, Value>,
}

/// Reads and checks the frontmatter of the skill in the directory `name`.
pub(super) fn read(manifest: &str, name: &str) -> Result<Frontmatter, Fault> {
    let all = parse(block(manifest)?)?;
    match all.get("name") {
        Some(Value::String(declared)) if declared == name => {}
        Some(Value::String(declared)) => {
            return Err(fault(format!(
                "`name` is `{declared}`, and the directory is `{name}`\nwrite `name: {name}`, or rename the directory"
            )));
        }
        Some(_) => return Err(fault("`name` is not text\nput it in quotes")),
        None => return Err(fault(format!("the frontmatter has no `name`\nwrite `name: {name}`"))),
    }
    let description = match all.get("description") {
        Some(Value::String(text)) if !text.trim().is_empty() => text.clone(),
        Some(Value::String(_) | Value::Null) | None => {
            let text = "the frontmatter has no `description`\nwrite what the skill does, and when to use it";
            return Err(fault(text));
        }
        Some(_) => return Err(fault("`description` is not text\nput it in quotes")),
    };
    let long = [("description", MAX_DESCRIPTION), ("compatibility", MAX_COMPATIBILITY)];
    for (key, limit) in long {
        let length = all.get(key).and_then(Value::as_str).map_or(0, |text| text.chars().count());
        if length > limit {
            return Err(fault(format!("`{key}` has {length} characters\nit may have {limit}")));
        }
    }
    match all.get("metadata") {
        None | Some(Value::Null) => {}
        Some(Value::Object(metadata)) => {
            if let Some(key) = metadata.keys().find(|key| key.starts_with(RESERVED)) {
                return Err(fault(format!(
                    "`metadata` has `{key}`\n`{RESERVED}` is reserved for the protocol; use a prefix of your own"
                )));
            }
        }
        Some(_) => return Err(fault("`metadata` is not a mapping\nwrite `key: value` lines under it")),
    }
    Ok(Frontmatter { description, all })
}

/// The members of the frontmatter of a `SKILL.md`, whatever they are.
#[cfg(feature = "client")]
pub(crate) fn parse_frontmatter(manifest: &str) -> Result<Map<String, Value>, String> {
    block(manifest).and_then(parse).map_err(|fault| fault.text)
}

/// The text between the two lines `---`.
fn block(manifest: &str) -> Result<&str, Fault> {
    // editors write a byte order mark, and hosts skip it as well
    let text = manifest.strip_prefix('\u{feff}').unwrap_or(manifest);
    let missing = || {
        fault(
            "it does not begin with frontmatter\nbegin it with a line `---`, `name: …`, `description: …` and a line `---`",
        )
    };
    let rest = text.strip_prefix("---").ok_or_else(missing)?;
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).ok_or_else(missing)?;
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line
            .strip_prefix("---")
            .is_some_and(|after| after.trim_matches([' ', '\t', '\r', '\n']).is_empty())
        {
            return Ok(&rest[..end]);
        }
        end += line.len();
        if end > MAX_BYTES {
            return Err(fault(format!("the frontmatter has more than {} KiB", MAX_BYTES >> 10)));
        }
    }
    Err(fault("the frontmatter has no end\nclose it with a line `---`"))
}

fn parse(yaml: &str) -> Result<Map<String, Value>, Fault> {
    let mut reader = Reader { parser: Parser::new_from_str(yaml), line: 1 };
    loop {
        match reader.next()? {
            Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
            // only comments
            Event::StreamEnd | Event::DocumentEnd => return Ok(Map::new()),
            first => {
                let line = reader.line;
                let value = reader.value(first, 0)?;
                if !matches!(reader.next()?, Event::DocumentEnd)
                    || !matches!(reader.next()?, Event::StreamEnd)
                {
                    return Err(reader.fault("the frontmatter is more than one document"));
                }
                return match value {
                    Value::Object(map) => Ok(map),
                    Value::Null => Ok(Map::new()),
                    _ => Err(Fault {
                        line: Some(line),
                        text: "the frontmatter is not a mapping\nwrite `key: value` lines".into(),
                    }),
                };
            }
        }
    }
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    /// The line of the last event, in the file.
    line: usize,
}

impl<'a> Reader<'a> {
    fn fault(&self, text: impl Into<String>) -> Fault {
        Fault { line: Some(self.line), text: text.into() }
    }

    fn next(&mut self) -> Result<Event<'a>, Fault> {
        // the parser does not see the line `---`
        match self.parser.next_event() {
            Some(Ok((event, Span { start, .. }))) => {
                self.line = start.line() + 1;
                Ok(event)
            }
            Some(Err(error)) => {
                let text = format!("the frontmatter is not YAML: {}", error.info());
                Err(Fault { line: Some(error.marker().line() + 1), text })
            }
            None => Err(self.fault("the frontmatter ends too early")),
        }
    }

    fn value(&mut self, event: Event<'a>, depth: usize) -> Result<Value, Fault> {
        if depth > MAX_DEPTH {
            return Err(self.fault(format!("the frontmatter is more than {MAX_DEPTH} levels deep")));
        }
        match event {
            Event::Scalar(text, style, _, tag) => self.scalar(&text, style, tag.as_deref()),
            Event::SequenceStart(_, tag) => {
                self.untagged(tag.as_deref())?;
                self.sequence(depth)
            }
            Event::MappingStart(_, tag) => {
                self.untagged(tag.as_deref())?;
                self.mapping(depth)
            }
            Event::Alias(_) => Err(self.fault("an alias is not supported\nwrite the value out")),
            _ => Err(self.fault("the frontmatter ends too early")),
        }
    }

    fn sequence(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Value::Array(items)),
                item => items.push(self.value(item, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut map = Map::new();
        loop {
            let event = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(Value::Object(map));
            }
            let plain = matches!(event, Event::Scalar(_, ScalarStyle::Plain, ..));
            let key = match self.value(event, depth + 1)? {
                Value::String(key) if plain && key == "<<" => {
                    return Err(self.fault("`<<` is not part of YAML 1.2\nwrite the keys out"));
                }
                Value::String(key) => key,
                _ => return Err(self.fault("a key is not text\nput it in quotes")),
            };
            let line = self.line;
            let event = self.next()?;
            let value = self.value(event, depth + 1)?;
            if map.contains_key(&key) {
                let text = format!("`{key}` is duplicated in a mapping\nremove one of them");
                return Err(Fault { line: Some(line), text });
            }
            map.insert(key, value);
        }
    }

    fn untagged(&self, tag: Option<&Tag>) -> Result<(), Fault> {
        let Some(tag) = tag else { return Ok(()) };
        let handle = if tag.is_yaml_core_schema() { "!!" } else { tag.handle.as_str() };
        let text = format!("`{handle}{}` means nothing in JSON\nwrite the value without a tag", tag.suffix);
        Err(self.fault(text))
    }

    fn scalar(&self, text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, Fault> {
        if tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str") {
            return Ok(text.into());
        }
        self.untagged(tag)?;
        if style != ScalarStyle::Plain {
            return Ok(text.into());
        }
        plain(text).ok_or_else(|| self.fault(format!("`{text}` is not a JSON number\nput it in quotes")))
    }
}

/// The value of a plain scalar in the core schema; `None` for a number that JSON cannot represent.
fn plain(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(true.into()),
        "false" | "False" | "FALSE" => return Some(false.into()),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let all = |digits: &str, kind: fn(&u8) -> bool| !digits.is_empty() && digits.as_bytes().iter().all(kind);
    if all(unsigned, u8::is_ascii_digit) {
        let positive = text.strip_prefix('+').unwrap_or(text);
        return positive
            .parse::<i64>()
            .map(Value::from)
            .or_else(|_| positive.parse::<u64>().map(Value::from))
            .ok();
    }
    if let Some(digits) = text.strip_prefix("0o").filter(|d| all(d, |b| (b'0'..=b'7').contains(b))) {
        return u64::from_str_radix(digits, 8).map(Value::from).ok();
    }
    if let Some(digits) = text.strip_prefix("0x").filter(|d| all(d, u8::is_ascii_hexdigit)) {
        return u64::from_str_radix(digits, 16).map(Value::from).ok();
    }
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return None;
    }
    if is_float(unsigned) {
        return text.parse().ok().and_then(Number::from_f64).map(Value::Number);
    }
    Some(text.into())
}

/// `1.5`, `.5`, `1.`, `1e3`, without a sign.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

/// Frontmatter has the name of its directory, a description, and no more than its limits.
#[cfg(any(test, feature = "_fuzzing"))]
fn fuzz(data: &[u8]) {
    let Ok(manifest) = std::str::from_utf8(data) else { return };
    let Ok(read) = read(manifest, "a") else { return };
    assert_eq!(read.all.get("name"), Some(&Value::from("a")));
    assert_eq!(read.all.get("description"), Some(&Value::from(read.description.as_str())));
    assert!(!read.description.trim().is_empty() && read.description.chars().count() <= MAX_DESCRIPTION);
    let json = Value::Object(read.all).to_string();
    // a character may become an escape of six
    assert!(json.len() <= 8 * (MAX_BYTES + 1), "{} bytes of {}", json.len(), manifest.len());
    assert!(serde_json::from_str::<Value>(&json).is_ok(), "it is not nested too deeply for readers of JSON");
}

#[cfg(any(test, feature = "_fuzzing"))]
inventory::submit!(crate::fuzzing::Target { name: "frontmatter", run: fuzz });

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn manifest(yaml: &str) -> String {
        format!("---\nname: x\ndescription: d\n{yaml}\n---\nbody\n")
    }

    #[track_caller]
    fn extra(yaml: &str) -> Value {
        match read(&manifest(yaml), "x") {
            Ok(front) => {
                let mut all = front.all;
                assert_eq!(
                    (all.remove("name"), all.remove("description")),
                    (Some("x".into()), Some("d".into()))
                );
                Value::Object(all)
            }
            Err(fault) => panic!("{fault:?}"),
        }
    }

    #[track_caller]
    fn refused(text: &str) -> (Option<usize>, String) {
        match read(text, "x") {
            Ok(front) => panic!("{front:?}"),
            Err(fault) => (fault.line, fault.text),
        }
    }

    #[test]
    fn every_field_passes_through() {
        let yaml =
            "license: MIT\nmetadata:\n  version: \"1.0\"\n  list: [a, 'b', {c: d}]\nlong: >\n  one\n  two\n";
        assert_eq!(
            extra(yaml),
            json!({
                "license": "MIT",
                "metadata": {"version": "1.0", "list": ["a", "b", {"c": "d"}]},
                "long": "one two\n"
            })
        );
    }

    #[test]
    fn scalars_are_what_the_core_schema_says() {
        let cases = [
            ("~", json!(null)),
            ("", json!(null)),
            ("True", json!(true)),
            ("yes", json!("yes")),
            ("-12", json!(-12)),
            ("+12", json!(12)),
            ("012", json!(12)),
            ("0o17", json!(15)),
            ("0xfF", json!(255)),
            ("18446744073709551615", json!(u64::MAX)),
            ("1.5", json!(1.5)),
            (".5", json!(0.5)),
            ("-2.e3", json!(-2000.0)),
            ("1.2.3", json!("1.2.3")),
            (".", json!(".")),
            ("2026-07-28", json!("2026-07-28")),
            ("'1'", json!("1")),
            ("!!str 1", json!("1")),
        ];
        for (yaml, value) in cases {
            assert_eq!(extra(&format!("k: {yaml}")), json!({ "k": value }), "{yaml}");
        }
    }

    #[test]
    fn line_ends_a_byte_order_mark_and_comments_are_not_content() {
        let text = "\u{feff}---\r\nname: x # the name\r\ndescription: \"d\"\r\n--- \t\r\nbody";
        assert_eq!(read(text, "x").expect("frontmatter").description, "d");
        assert_eq!(read("---\nname: x\ndescription: d\n---", "x").expect("frontmatter").all.len(), 2);
    }

    #[test]
    fn what_is_missing_is_named() {
        let head = "it does not begin with frontmatter";
        for text in ["", "# x", "--- \nname: x\n---\n", " ---\nname: x\n---\n", "---"] {
            assert!(refused(text).1.starts_with(head), "{text:?}: {:?}", refused(text));
        }
        assert!(refused("---\nname: x\n").1.contains("no end"));
        assert!(refused("---\n---\n").1.contains("no `name`"));
        assert!(refused("---\n# nothing\n---\n").1.contains("no `name`"));
        assert!(refused("---\nname: y\ndescription: d\n---\n").1.contains("rename the directory"));
        assert!(refused("---\nname: 1\ndescription: d\n---\n").1.contains("`name` is not text"));
        for text in ["", "description:", "description: ' '"] {
            assert!(
                refused(&format!("---\nname: x\n{text}\n---\n")).1.contains("no `description`"),
                "{text}"
            );
        }
        assert!(refused("---\nname: x\ndescription: [d]\n---\n").1.contains("`description` is not text"));
        assert!(refused("---\n- name\n---\n").1.contains("not a mapping"));
        assert!(refused(&manifest("metadata: 1")).1.contains("`metadata` is not a mapping"));
        assert!(refused(&manifest("metadata: {io.modelcontextprotocol/x: 1}")).1.contains("reserved"));
    }

    #[test]
    fn what_json_cannot_say_is_refused_with_its_line() {
        assert_eq!(refused(&manifest("k: v\nk: w")).0, Some(5));
        for (yaml, part) in [
            ("k: v\nk: w", "is duplicated"),
            ("1: v", "a key is not text"),
            ("[a]: v", "a key is not text"),
            ("k: .inf", "is not a JSON number"),
            ("k: 99999999999999999999", "is not a JSON number"),
            ("k: 1e999", "is not a JSON number"),
            ("k: !!binary aGk=", "`!!binary` means nothing"),
            ("k: !mine {}", "`!mine` means nothing"),
            ("a: &a {b: c}\nd:\n  <<: *a", "write the keys out"),
            ("a: &a [1]\nb: *a", "write the value out"),
            ("a: &a [*a]", "write the value out"),
            ("k: [v", "not YAML"),
            ("k: *none", "not YAML"),
            ("\tk: v", "not YAML"),
        ] {
            let (line, text) = refused(&manifest(yaml));
            assert!(text.contains(part) && line.is_some(), "{yaml}: {line:?} {text}");
        }
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let deep = format!("k: {}{}", "[".repeat(40), "]".repeat(40));
        assert!(refused(&manifest(&deep)).1.contains("levels deep"));
        assert!(refused(&manifest(&format!("k: {}", "x\n  ".repeat(40_000)))).1.contains("more than 64 KiB"));
        let long = refused(&format!("---\nname: x\ndescription: {}\n---\n", "d".repeat(1025)));
        assert!(long.1.contains("1025 characters"), "{long:?}");
    }
}
