//! A description in YAML as JSON text: the core schema of YAML 1.2, restricted to what JSON can represent. What aliases
//! repeat is limited, so that a small text does not become a large one.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
};

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput, Tag};
use serde_json::value::RawValue;

/// How many levels a value may have; readers of JSON have a limit of 128.
const MAX_DEPTH: usize = 100;
/// How much longer than the YAML its JSON may be, by a factor and by bytes.
const MAX_GROWTH: (usize, usize) = (4, 1 << 20);

/// The JSON text of a YAML document.
///
/// # Errors
/// It is not YAML, or has no JSON form; the message names the line.
pub(crate) fn to_json(yaml: &str) -> Result<String, String> {
    let limit = yaml.len().saturating_mul(MAX_GROWTH.0).saturating_add(MAX_GROWTH.1);
    let parser = Parser::new_from_str(yaml);
    let mut writer =
        Writer { parser, json: String::new(), limit, anchors: HashMap::new(), merged: 0, line: 1 };
    loop {
        match writer.next()? {
            Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
            Event::StreamEnd | Event::DocumentEnd => return Err("the description is empty".to_owned()),
            first => {
                writer.value(first, 0)?;
                return Ok(writer.json);
            }
        }
    }
}

struct Writer<'a> {
    parser: Parser<'a, StrInput<'a>>,
    json: String,
    /// The most bytes of JSON.
    limit: usize,
    /// Where the JSON of each anchored value is.
    anchors: HashMap<usize, Range<usize>>,
    /// How many bytes of JSON were merged into others.
    merged: usize,
    line: usize,
}

impl<'a> Writer<'a> {
    fn error(&self, text: &str) -> String {
        format!("line {}: {text}", self.line)
    }

    fn next(&mut self) -> Result<Event<'a>, String> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                self.line = span.start.line();
                Ok(event)
            }
            Some(Err(error)) => {
                self.line = error.marker().line();
                Err(self.error(&format!("it is not YAML: {}", error.info().escape_debug())))
            }
            None => Err(self.error("it ends too early")),
        }
    }

    fn push(&mut self, json: &str) -> Result<(), String> {
        if self.json.len() + json.len() > self.limit {
            return Err(self.error("aliases repeat too much of the description"));
        }
        self.json.push_str(json);
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        let json = serde_json::to_string(text).map_err(|error| error.to_string())?;
        self.push(&json)
    }

    fn value(&mut self, event: Event<'a>, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(self.error(&format!("it is more than {MAX_DEPTH} levels deep")));
        }
        let start = self.json.len();
        let anchor = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text =
                    tag.as_deref().is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                match plain(&text) {
                    Some(json) if style == ScalarStyle::Plain && !is_text => self.push(&json)?,
                    _ => self.text(&text)?,
                }
                if !is_text {
                    self.refuse(tag.as_deref())?;
                }
                anchor
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse(tag.as_deref())?;
                self.sequence(depth)?;
                anchor
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse(tag.as_deref())?;
                self.mapping(depth)?;
                anchor
            }
            Event::Alias(anchor) => {
                let place = self.anchors.get(&anchor).cloned();
                let json = place.and_then(|place| self.json.get(place)).map(str::to_owned);
                let json = json.ok_or_else(|| self.error("an alias refers to a value that contains it"))?;
                return self.push(&json);
            }
            _ => return Err(self.error("it ends too early")),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, start..self.json.len());
        }
        Ok(())
    }

    fn sequence(&mut self, depth: usize) -> Result<(), String> {
        let mut separator = "[";
        loop {
            match self.next()? {
                Event::SequenceEnd => return self.push(if separator == "[" { "[]" } else { "]" }),
                item => {
                    self.push(separator)?;
                    self.value(item, depth + 1)?;
                }
            }
            separator = ",";
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<(), String> {
        let (start, mut separator, mut merged) = (self.json.len(), "{", Vec::new());
        loop {
            match self.next()? {
                Event::MappingEnd => {
                    self.merge(start, merged)?;
                    return self.push(if self.json.len() == start { "{}" } else { "}" });
                }
                Event::Scalar(key, ScalarStyle::Plain, 0, _) if key == "<<" => {
                    merged.extend(self.merged_objects()?);
                    continue;
                }
                Event::Scalar(key, _, 0, _) => {
                    self.push(separator)?;
                    // a status is a number in many descriptions
                    self.text(&key)?;
                }
                _ => return Err(self.error("a key is not plain text")),
            }
            self.push(":")?;
            let value = self.next()?;
            self.value(value, depth + 1)?;
            separator = ",";
        }
    }

    /// Where the objects are that `<<` names, an alias or a list of aliases.
    fn merged_objects(&mut self) -> Result<Vec<Range<usize>>, String> {
        let mut aliases = vec![self.next()?];
        if matches!(aliases.as_slice(), [Event::SequenceStart(0, None)]) {
            aliases.clear();
            loop {
                match self.next()? {
                    Event::SequenceEnd => break,
                    item => aliases.push(item),
                }
            }
        }
        let place = |alias: &Event<'_>| match alias {
            Event::Alias(anchor) => self.anchors.get(anchor).cloned(),
            _ => None,
        };
        let is_object =
            |place: &Range<usize>| self.json.get(place.clone()).is_some_and(|json| json.starts_with('{'));
        let places = aliases.iter().map(|alias| place(alias).filter(is_object));
        let refused =
            || self.error("`<<` takes an alias of a mapping, or a list of them\nwrite the keys out");
        places.collect::<Option<_>>().ok_or_else(refused)
    }

    /// Adds the members of other objects that the object which begins at a place does not have.
    fn merge(&mut self, start: usize, merged: Vec<Range<usize>>) -> Result<(), String> {
        type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;
        if merged.is_empty() {
            return Ok(());
        }
        let own = format!("{}}}", self.json.get(start..).filter(|own| !own.is_empty()).unwrap_or("{"));
        let keys: Members<'_> = serde_json::from_str(&own).map_err(|error| error.to_string())?;
        let mut known: HashSet<String> = keys.into_keys().map(Cow::into_owned).collect();
        for place in merged {
            let json = self.json.get(place).unwrap_or_default().to_owned();
            self.merged += json.len();
            if self.merged > self.limit {
                return Err(self.error("aliases repeat too much of the description"));
            }
            for (name, value) in
                serde_json::from_str::<Members<'_>>(&json).map_err(|error| error.to_string())?
            {
                if known.insert(name.clone().into_owned()) {
                    self.push(if self.json.len() == start { "{" } else { "," })?;
                    self.text(&name)?;
                    self.push(":")?;
                    self.push(value.get())?;
                }
            }
        }
        Ok(())
    }

    fn refuse(&self, tag: Option<&Tag>) -> Result<(), String> {
        match tag {
            None => Ok(()),
            Some(_) => Err(self.error("a tag means nothing in JSON\nwrite the value without it")),
        }
    }
}

/// The JSON of a plain scalar that is not text.
fn plain(text: &str) -> Option<String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some("null".to_owned()),
        "true" | "True" | "TRUE" => return Some("true".to_owned()),
        "false" | "False" | "FALSE" => return Some("false".to_owned()),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let radix = |prefix, radix| u64::from_str_radix(text.strip_prefix(prefix)?, radix).ok();
    if let Some(number) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return Some(number.to_string());
    }
    let positive = text.strip_prefix('+').unwrap_or(text);
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let integer = positive.parse::<i128>().ok()?;
        return Some(integer.to_string());
    }
    let number = positive.parse::<f64>().ok().filter(|number| number.is_finite())?;
    serde_json::Number::from_f64(number).map(|number| number.to_string())
}
