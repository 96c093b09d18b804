//! From arguments to a request. What arguments say is percent-encoded wherever it goes, and no argument changes which path,
//! host or header is requested. A request is limited while it is written.

use std::{
    borrow::Cow,
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
    ops::RangeInclusive,
};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use mcp_runtime::{ToolError, content::Bytes};
use percent_encoding::{
    AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode, percent_decode_str, utf8_percent_encode,
};
use serde_json::{Map, Value};

use crate::{
    document::shown,
    operation::is_json,
    writer::{Encoded, Writer},
};

/// How many members a sentence names.
const MAX_LISTED: usize = 20;
/// All but the unreserved characters of URIs.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// As [`ENCODED`], without the reserved characters that neither end a query nor begin another parameter of it.
const NOT_RESERVED: &AsciiSet = &ENCODED
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';');

/// The most bytes of the path and the query of a request: a [`Uri`](http::Uri) has no more.
pub(crate) const MAX_TARGET: usize = (64 << 10) - 2;
/// The most bytes of the headers that arguments become.
const MAX_HEADERS: usize = 64 << 10;

/// How the arguments of an operation become a request.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: &'static str,
    pub(crate) path: UrlPath,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
    /// The header `Accept`.
    pub(crate) accept: String,
}

/// A request without its server.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    /// Begins with `/`; only unreserved characters, separators and percent-encoded bytes are in it.
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    /// The arguments that headers were written of, each with the name of its header.
    pub(crate) of_headers: Vec<(String, HeaderName)>,
    pub(crate) body: Vec<u8>,
}

/// Where a parameter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

impl Place {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    Space,
    Pipe,
    Deep,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Serialization {
    pub(crate) style: Style,
    pub(crate) explode: bool,
    pub(crate) keeps_reserved: bool,
    /// Whether the value is sent as JSON.
    pub(crate) is_json: bool,
}

/// A field of a form of which nothing else is said.
const FORM: Serialization =
    Serialization { style: Style::Form, explode: true, keeps_reserved: false, is_json: false };

/// A parameter, and the argument that it has its value from.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) argument: String,
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) serialization: Serialization,
}

/// A body, and the arguments that it is made of.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) format: BodyFormat,
    pub(crate) arguments: BodyArguments,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    /// With its media type, as the others.
    Json(String),
    Form,
    Multipart,
    Text(String),
    Binary(String),
}

#[derive(Debug)]
pub(crate) enum BodyArguments {
    /// The body is one argument.
    Whole(String),
    /// Each member of the body is an argument. One that is required is sent without members as well, if these are as many as
    /// it may have.
    Fields { fields: Vec<Field>, is_required: bool, count: RangeInclusive<usize> },
}

/// A member of a body that is an argument.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) argument: String,
    pub(crate) name: String,
    /// In a form.
    pub(crate) serialization: Serialization,
    /// Whether it is the bytes of a file, or of several.
    pub(crate) is_file: bool,
    /// The argument that names the file, or the files, if it is one.
    pub(crate) filename: Option<String>,
    /// Of its part, in a body of several parts.
    pub(crate) content_type: Option<String>,
}

impl Body {
    /// How many members it has, as a sentence; `None` if that is said by which are required.
    pub(crate) fn count_rule(&self) -> Option<String> {
        let BodyArguments::Fields { fields, count, .. } = &self.arguments else { return None };
        let count = match (*count.start(), *count.end()) {
            (0, usize::MAX) => return None,
            (least, usize::MAX) => format!("at least {least}"),
            (0, most) => format!("at most {most}"),
            (least, most) => format!("{least} to {most}"),
        };
        let names: Vec<_> =
            fields.iter().take(MAX_LISTED).map(|field| format!("`{}`", field.argument)).collect();
        let more = if fields.len() > MAX_LISTED { ", .." } else { "" };
        Some(format!("Give {count} of {}{more}.", names.join(", ")))
    }

    /// Names its arguments, in the order in which they were described.
    pub(crate) fn name_arguments(&mut self, names: &[String]) {
        let arguments: Vec<&mut String> = match &mut self.arguments {
            BodyArguments::Whole(argument) => vec![argument],
            BodyArguments::Fields { fields, .. } => {
                let names = fields.iter_mut().flat_map(|Field { argument, filename, .. }| {
                    [Some(argument), filename.as_mut()].into_iter().flatten()
                });
                names.collect()
            }
        };
        for (argument, name) in arguments.into_iter().zip(names) {
            argument.clone_from(name);
        }
    }
}

/// The path of an operation, with variables, encoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UrlPath {
    segments: Vec<Vec<PathPart>>,
    /// What the description has after a `?`: a query that is always sent.
    query: String,
    /// The names of the parameters of this query.
    pub(crate) fixed: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum PathPart {
    Text(String),
    Variable(String),
}

/// Whether a text has a segment that leads to another path, as it is or as a server reads it that decodes once more, takes
/// `\` for `/`, or leaves out what comes after `;`, `?` or `#`.
fn leads_out(text: &str) -> bool {
    let decoded = percent_decode_str(text).decode_utf8_lossy();
    let mut segments = [text, &decoded].into_iter().flat_map(|text| text.split(['/', '\\']));
    segments.any(|segment| matches!(segment.split([';', '?', '#']).next(), Some("." | "..")))
}

impl UrlPath {
    /// # Errors
    /// It is not the path of a URL.
    pub(crate) fn parse(path: &str) -> Result<Self, String> {
        let invalid = |why: &str| format!("the path `{}` {why}", shown(path));
        let path_text = path.strip_prefix('/').ok_or_else(|| invalid("does not begin with `/`"))?;
        let (path_text, query) = path_text.split_once('?').unwrap_or((path_text, ""));
        let is_allowed =
            |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@%".contains(c);
        if !query.chars().all(|c| is_allowed(c) || "/?".contains(c)) {
            return Err(invalid("has characters in its query that a query cannot have"));
        }
        let encoded = |text: &str| utf8_percent_encode(text, CONTROLS).to_string();
        let segments = path_text.split('/').map(|segment| {
            if leads_out(&percent_decode_str(segment).decode_utf8_lossy()) {
                return Err(invalid("leads out of the API"));
            }
            let mut parts = Vec::new();
            let mut rest = segment;
            while let Some((text, after)) = rest.split_once('{') {
                let (name, after) = after.split_once('}').ok_or_else(|| invalid("has a `{` without `}`"))?;
                parts.push(PathPart::Text(encoded(text)));
                parts.push(PathPart::Variable(name.to_owned()));
                rest = after;
            }
            parts.push(PathPart::Text(encoded(rest)));
            parts.retain(|part| *part != PathPart::Text(String::new()));
            let is_text = |part: &PathPart| match part {
                PathPart::Text(text) => text.chars().all(is_allowed),
                PathPart::Variable(_) => true,
            };
            if parts.iter().all(is_text) {
                Ok(parts)
            } else {
                Err(invalid("has characters that a path cannot have"))
            }
        });
        let segments = segments.collect::<Result<_, _>>()?;
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let fixed = pairs.map(|pair| pair.split('=').next().unwrap_or_default());
        let fixed = fixed.map(|name| percent_decode_str(name).decode_utf8_lossy().into_owned()).collect();
        Ok(Self { segments, query: encoded(query), fixed })
    }

    /// Whether it has a query.
    pub(crate) fn has_query(&self) -> bool {
        !self.query.is_empty()
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flatten().filter_map(|part| match part {
            PathPart::Variable(name) => Some(name.as_str()),
            PathPart::Text(_) => None,
        })
    }

    /// Writes the path; `variable` writes the text of one.
    pub(crate) fn write(
        &self,
        path: &mut Writer,
        variable: impl Fn(&str, &mut Writer) -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        for segment in &self.segments {
            path.push(b"/")?;
            let start = path.len();
            for part in segment {
                match part {
                    PathPart::Text(text) => path.push(text.as_bytes())?,
                    PathPart::Variable(name) => variable(name, path)?,
                }
            }
            let segment = path.bytes().get(start..).unwrap_or_default();
            if leads_out(&percent_decode(segment).decode_utf8_lossy()) {
                return Err(ToolError::new("the arguments lead to another path"));
            }
        }
        Ok(())
    }
}

impl Call {
    /// The arguments in which `null` is a value: in the JSON of a `PATCH`, it removes what is there.
    pub(crate) fn arguments_with_null(&self) -> Vec<&str> {
        match &self.body {
            Some(Body { format: BodyFormat::Json(_), arguments }) if self.method == "PATCH" => {
                match arguments {
                    BodyArguments::Whole(argument) => vec![argument],
                    BodyArguments::Fields { fields, .. } => {
                        fields.iter().map(|field| &*field.argument).collect()
                    }
                }
            }
            _ => Vec::new(),
        }
    }

    /// The path with a text for each of its parameters, which `write` writes.
    ///
    /// # Errors
    /// A text is missing, or they lead to another path, or it is too long.
    pub(crate) fn path_with(
        &self,
        limit: usize,
        write: impl Fn(&Parameter, &mut Writer) -> Result<(), ToolError>,
    ) -> Result<String, ToolError> {
        let mut path = Writer::new("URL", limit);
        self.path.write(&mut path, |variable, path| {
            let is_it = |parameter: &&Parameter| parameter.place == Place::Path && parameter.name == variable;
            let parameter = self.parameters.iter().find(is_it);
            write(parameter.ok_or_else(|| ToolError::new(format!("`{}` is missing", shown(variable))))?, path)
        })?;
        path.into_text()
    }

    /// The names of the parameters in a place.
    fn names(&self, place: Place) -> Names<'_> {
        let parameters = self.parameters.iter().filter(|parameter| parameter.place == place);
        let fixed = self.path.fixed.iter().filter(|_| place == Place::Query);
        Names::new(parameters.map(|parameter| &parameter.name).chain(fixed).map(String::as_str).collect())
    }

    /// The request with these arguments: its path and query have at most `max_target` bytes, and its body `max_body`.
    ///
    /// # Errors
    /// An argument cannot be sent where it belongs; the message names it. Or the request would be too large.
    pub(crate) fn request(
        &self,
        arguments: &Map<String, Value>,
        max_target: usize,
        max_body: usize,
    ) -> Result<Request, ToolError> {
        let path = self.path_with(max_target, |parameter, path| {
            let value = arguments.get(&parameter.argument).unwrap_or(&Value::Null);
            parameter.write_step(value, path, || self.names(Place::Path))
        })?;
        let mut query = Writer::new("URL", max_target.saturating_sub(path.len() + 1));
        query.push(self.path.query.as_bytes())?;
        let mut cookies = Writer::new("headers", MAX_HEADERS);
        let mut of_query = Pairs { out: &mut query, between: "&", names: self.names(Place::Query) };
        let mut of_cookies = Pairs { out: &mut cookies, between: "; ", names: self.names(Place::Cookie) };
        let (mut headers, mut of_headers, mut size) = (HeaderMap::new(), Vec::new(), 0);
        for parameter in &self.parameters {
            let Parameter { argument, name, place, serialization } = parameter;
            let Some(value) = arguments.get(argument).filter(|value| !value.is_null()) else { continue };
            match place {
                Place::Path => {}
                Place::Query => of_query.write(*serialization, argument, name, value)?,
                Place::Cookie => {
                    of_cookies.write(*serialization, argument, name, value)?;
                    of_headers.push((argument.clone(), header::COOKIE));
                }
                Place::Header => {
                    let mut text = Writer::new("headers", MAX_HEADERS.saturating_sub(size + name.len()));
                    serialization.simple(value, ("", ","), None, &mut text)?;
                    size += name.len() + text.len();
                    let value = header_value(argument, &text.into_text()?)?;
                    let name = header_name(name)?;
                    of_headers.push((argument.clone(), name.clone()));
                    // the description may have one header by two names
                    if headers.insert(name, value).is_some() {
                        return Err(ToolError::new(format!(
                            "`{argument}` is the header of another argument"
                        )));
                    }
                }
            }
        }
        if !cookies.is_empty() {
            cookies.reserve(size)?;
            headers.insert(header::COOKIE, header_value("cookie", &cookies.into_text()?)?);
        }
        if let Ok(accept) = HeaderValue::try_from(&self.accept) {
            headers.insert(header::ACCEPT, accept);
        }
        let mut body = Writer::new("body", max_body);
        if let Some(described) = &self.body
            && let Some(content_type) = described.write(arguments, &mut body)?
        {
            headers.insert(header::CONTENT_TYPE, header_value("content-type", &content_type)?);
        }
        let (query, body) = (query.into_text()?, body.into_bytes());
        Ok(Request { method: self.method, path, query, headers, of_headers, body })
    }
}

pub(crate) fn header_name(name: &str) -> Result<HeaderName, ToolError> {
    HeaderName::try_from(name)
        .map_err(|_| ToolError::new(format!("`{}` is not the name of a header", shown(name))))
}

pub(crate) fn header_value(argument: &str, text: &str) -> Result<HeaderValue, ToolError> {
    let refused = || ToolError::new(format!("`{argument}` has characters that a header cannot have"));
    HeaderValue::from_str(text).map_err(|_| refused())
}

/// The text of a value that is not a list or an object; JSON of others.
fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        Value::Null => "".into(),
        value => value.to_string().into(),
    }
}

impl Parameter {
    /// Writes the text of a variable of a path.
    fn write_step<'n>(
        &self,
        value: &Value,
        path: &mut Writer,
        names: impl FnOnce() -> Names<'n>,
    ) -> Result<(), ToolError> {
        let Self { argument, name, serialization, .. } = self;
        let refused = |why: &str| ToolError::new(format!("`{argument}` {why}"));
        let texts: Vec<Cow<'_, str>> = match value {
            Value::Array(items) => items.iter().map(text_of).collect(),
            Value::Object(members) => {
                members.iter().flat_map(|(key, value)| [key.into(), text_of(value)]).collect()
            }
            value => vec![text_of(value)],
        };
        if texts.is_empty() || texts.iter().any(|text| text.is_empty()) {
            return Err(refused("is empty, and a path cannot have that"));
        }
        for text in &texts {
            if leads_out(text) {
                return Err(refused("leads to another path"));
            }
            if text.chars().any(char::is_control) {
                return Err(refused("has control characters"));
            }
        }
        match serialization.style {
            Style::Matrix => {
                let mut pairs = Pairs { out: path, between: ";", names: names() };
                pairs.write(*serialization, argument, name, value)
            }
            Style::Label if serialization.explode => {
                serialization.simple(value, (".", "."), Some(ENCODED), path)
            }
            Style::Label => serialization.simple(value, (".", ","), Some(ENCODED), path),
            _ => serialization.simple(value, ("", ","), Some(ENCODED), path),
        }
    }
}

impl Serialization {
    /// Writes a value without its name: `a,b` of a list, `k,v` or `k=v` of an object. `before` comes first, `between` between
    /// two items.
    fn simple(
        self,
        value: &Value,
        (before, between): (&str, &str),
        encoded: Encoded,
        out: &mut Writer,
    ) -> Result<(), ToolError> {
        out.push(before.as_bytes())?;
        match self.is_json {
            true => out.json(value, encoded),
            false => joined(value, between, if self.explode { "=" } else { "," }, (encoded, encoded), out),
        }
    }
}

/// Writes the items of a list or the members of an object one after the other; `equals` is between the name of a member and
/// its value. Names and values may be encoded differently.
fn joined(
    value: &Value,
    between: &str,
    equals: &str,
    (of_names, of_values): (Encoded, Encoded),
    out: &mut Writer,
) -> Result<(), ToolError> {
    let separator = |index: usize| if index == 0 { "" } else { between }.as_bytes();
    match value {
        Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
            out.push(separator(index))?;
            out.value(item, of_values)
        }),
        Value::Object(members) => members.iter().enumerate().try_for_each(|(index, (name, value))| {
            out.push(separator(index))?;
            out.text(name, of_names)?;
            out.push(equals.as_bytes())?;
            out.value(value, of_values)
        }),
        value => out.value(value, of_values),
    }
}

/// Writes `name=value` several times, as a query, a form, cookies and the style `matrix` have it.
struct Pairs<'a> {
    out: &'a mut Writer,
    between: &'static str,
    names: Names<'a>,
}

impl Pairs<'_> {
    /// Writes the beginning of a pair.
    fn begin(&mut self, name: &str) -> Result<(), ToolError> {
        self.begin_encoded(&utf8_percent_encode(name, ENCODED).to_string())
    }

    fn begin_encoded(&mut self, name: &str) -> Result<(), ToolError> {
        if !self.out.is_empty() {
            self.out.push(self.between.as_bytes())?;
        }
        self.out.push(name.as_bytes())?;
        self.out.push(b"=")
    }

    /// Writes the value of an argument under the name of its parameter.
    ///
    /// # Errors
    /// It is too large, or a member of it is named as another parameter.
    fn write(
        &mut self,
        serialization: Serialization,
        argument: &str,
        name: &str,
        value: &Value,
    ) -> Result<(), ToolError> {
        let Serialization { style, explode, keeps_reserved, is_json } = serialization;
        let encoded = Some(if keeps_reserved { NOT_RESERVED } else { ENCODED });
        match value {
            value if is_json => {
                self.begin(name)?;
                self.out.json(value, encoded)
            }
            Value::Object(_) | Value::Array(_) if style == Style::Deep => {
                let mut inner = utf8_percent_encode(name, ENCODED).to_string();
                self.write_deep(name, &mut inner, value, encoded)?;
                self.names.keep();
                Ok(())
            }
            Value::Array(items) if explode => items.iter().try_for_each(|item| {
                self.begin(name)?;
                self.out.value(item, encoded)
            }),
            Value::Object(members) if explode => {
                for (member, value) in members.iter().filter(|(_, value)| !value.is_null()) {
                    self.begin(member)?;
                    self.names.choose(name, member, || format!("{argument}.{member}"))?;
                    self.out.value(value, encoded)?;
                }
                self.names.keep();
                Ok(())
            }
            Value::Array(items) if items.is_empty() => Ok(()),
            value => {
                self.begin(name)?;
                let between = match style {
                    Style::Space => "%20",
                    Style::Pipe => "%7C",
                    _ => ",",
                };
                joined(value, between, between, (Some(ENCODED), encoded), self.out)
            }
        }
    }

    /// `name[key]=value`, at any depth; items of lists by their number. `name` is encoded, and as before at the end.
    fn write_deep(
        &mut self,
        own: &str,
        name: &mut String,
        value: &Value,
        encoded: Encoded,
    ) -> Result<(), ToolError> {
        let length = name.len();
        let mut inner = |step: &str, value: &Value| {
            name.extend(["%5B"].into_iter().chain(utf8_percent_encode(step, ENCODED)).chain(["%5D"]));
            let written = self.write_deep(own, name, value, encoded);
            name.truncate(length);
            written
        };
        match value {
            Value::Object(members) => {
                let mut given = members.iter().filter(|(_, value)| !value.is_null());
                given.try_for_each(|(key, value)| inner(key, value))
            }
            Value::Array(items) => {
                items.iter().enumerate().try_for_each(|(index, item)| inner(&index.to_string(), item))
            }
            value => {
                self.begin_encoded(name)?;
                let name = percent_decode_str(name).decode_utf8_lossy();
                self.names.choose(own, &name, || name.to_string())?;
                self.out.value(value, encoded)
            }
        }
    }
}

/// The names that are written in one place of a request. Parameters are the description's, and may be values that the program
/// has fixed; a model that chooses the names of members must not choose one of these.
struct Names<'a> {
    parameters: Vec<&'a str>,
    /// All that were written, as [`comparable`] makes them; made when a member is the first.
    known: Option<HashSet<String>>,
    /// Those of the argument that is being written.
    chosen: Vec<String>,
}

impl<'a> Names<'a> {
    fn new(parameters: Vec<&'a str>) -> Self {
        Self { parameters, known: None, chosen: Vec::new() }
    }

    /// Takes the name of a member of the parameter `own`, or of something inside of it.
    ///
    /// # Errors
    /// Another parameter, or a member of one, has it.
    fn choose(&mut self, own: &str, name: &str, shown: impl FnOnce() -> String) -> Result<(), ToolError> {
        let parameters = &self.parameters;
        let known =
            self.known.get_or_insert_with(|| parameters.iter().map(|name| comparable(name)).collect());
        let (own, name) = (comparable(own), comparable(name));
        let root = name.split('[').next().unwrap_or_default();
        if (name != own && known.contains(&name)) || (root != own && known.contains(root)) {
            return Err(ToolError::new(format!(
                "`{}` is a parameter of its own",
                crate::document::shown(&shown())
            )));
        }
        self.chosen.push(name);
        Ok(())
    }

    /// Keeps the names of the members of an argument that is written.
    fn keep(&mut self) {
        self.known.get_or_insert_default().extend(self.chosen.drain(..));
    }
}

/// A name without what servers ignore: case, the kind of separator between words, and the ends of keys in brackets.
fn comparable(name: &str) -> String {
    let plain = |c| match c {
        '-' | '.' | ' ' => '_',
        c => c,
    };
    let letters = name.trim().chars().filter(|c| *c != ']').map(plain);
    letters.flat_map(char::to_lowercase).flat_map(char::to_uppercase).collect()
}

/// A member of a body by its name, with what is described of it.
type Member<'a> = (&'a str, &'a Value, Option<&'a Field>);

impl Body {
    /// Writes the body; returns its content type, or `None` without a body.
    fn write<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
        out: &mut Writer,
    ) -> Result<Option<String>, ToolError> {
        let (whole, members): (Option<&Value>, Vec<Member<'_>>) = match &self.arguments {
            BodyArguments::Whole(argument) => {
                let Some(value) = arguments.get(argument) else { return Ok(None) };
                let members = value.as_object().into_iter().flatten();
                (Some(value), members.map(|(name, value)| (name.as_str(), value, None)).collect())
            }
            BodyArguments::Fields { fields, is_required, count } => {
                let given = |field: &'a Field| {
                    Some((field.name.as_str(), arguments.get(&field.argument)?, Some(field)))
                };
                let names_no_file = |field: &&Field| {
                    let has = |name| arguments.contains_key(name);
                    field.filename.as_ref().is_some_and(|name| has(name) && !has(&field.argument))
                };
                if let Some(Field { argument, .. }) = fields.iter().find(names_no_file) {
                    return Err(ToolError::new(format!("`{argument}` is missing, the file that is named")));
                }
                let members: Vec<_> = fields.iter().filter_map(given).collect();
                if members.is_empty() && !is_required {
                    return Ok(None);
                }
                if !count.contains(&members.len()) {
                    return Err(ToolError::new(self.count_rule().unwrap_or_default()));
                }
                (None, members)
            }
        };
        let mut sent = members.iter().filter(|(_, value, _)| !value.is_null());
        Ok(Some(match (&self.format, whole) {
            (BodyFormat::Json(media), Some(value)) => {
                out.json(value, None)?;
                media.clone()
            }
            (BodyFormat::Json(media), None) => {
                for (index, (name, value, _)) in members.iter().enumerate() {
                    out.push(if index == 0 { b"{" } else { b"," })?;
                    out.json(name, None)?;
                    out.push(b":")?;
                    out.json(value, None)?;
                }
                out.push(if members.is_empty() { b"{}" } else { b"}" })?;
                media.clone()
            }
            (BodyFormat::Form, _) => {
                let fields = match &self.arguments {
                    BodyArguments::Whole(_) => [].as_slice(),
                    BodyArguments::Fields { fields, .. } => fields,
                };
                let names = Names::new(fields.iter().map(|field| field.name.as_str()).collect());
                let mut pairs = Pairs { out, between: "&", names };
                for (name, value, field) in sent {
                    let serialization = field.map_or(FORM, |field| field.serialization);
                    // an object in the style of forms would lose its name
                    let is_json = value.is_object() && serialization.style == Style::Form;
                    let argument = field.map_or(*name, |field| &field.argument);
                    pairs.write(Serialization { is_json, ..serialization }, argument, name, value)?;
                }
                check_written(&members, pairs.out.is_empty())?;
                "application/x-www-form-urlencoded".to_owned()
            }
            (BodyFormat::Multipart, _) => {
                let mut parts = Parts::new(out);
                sent.try_for_each(|(name, value, field)| match field {
                    Some(field) => {
                        let names = field.filename.as_ref().and_then(|name| arguments.get(name));
                        let mut names = match names {
                            Some(Value::Array(names)) => names.iter(),
                            name => name.map_or([].as_slice(), std::slice::from_ref).iter(),
                        };
                        parts.write_field(field, &mut names, value)?;
                        let left = field.filename.as_ref().filter(|_| names.next().is_some());
                        left.map_or(Ok(()), |name| {
                            Err(ToolError::new(format!("`{name}` has more names than there are files")))
                        })
                    }
                    None => parts.write_value(name, value, None),
                })?;
                check_written(&members, parts.out.is_empty())?;
                parts.end()?
            }
            (BodyFormat::Text(media), value) => {
                out.value(value.unwrap_or(&Value::Null), None)?;
                media.clone()
            }
            (BodyFormat::Binary(media), value) => {
                write_bytes("body", value.unwrap_or(&Value::Null), out)?;
                media.clone()
            }
        }))
    }
}

/// Refuses a body of which nothing would be sent: an API would take the call for one that changes nothing.
fn check_written(members: &[Member<'_>], is_empty: bool) -> Result<(), ToolError> {
    match members.first() {
        Some((name, ..)) if is_empty => {
            let name = shown(name);
            Err(ToolError::new(format!(
                "the body would be empty: `{name}` has no value that can be sent in it"
            )))
        }
        _ => Ok(()),
    }
}

/// Writes the bytes that an argument has in base64, also as models write it: without padding, in lines, in the alphabet of
/// URLs, or as a `data:` URL.
fn write_bytes(argument: &str, value: &Value, out: &mut Writer) -> Result<(), ToolError> {
    let invalid = || ToolError::new(format!("`{argument}` is not base64"));
    let Bytes(bytes) = value.as_str().and_then(Bytes::from_base64).ok_or_else(invalid)?;
    out.push(&bytes)
}

/// Writes a body of several parts.
struct Parts<'a> {
    out: &'a mut Writer,
    /// Random, so that no part contains it: searching the parts for it would take time that grows with their number.
    boundary: String,
}

impl<'a> Parts<'a> {
    fn new(out: &'a mut Writer) -> Self {
        let number = || RandomState::new().hash_one("boundary");
        Self { out, boundary: format!("mcp-runtime-{:016x}{:016x}", number(), number()) }
    }

    /// Writes what is before the content of a part.
    fn begin(
        &mut self,
        name: &str,
        filename: Option<&str>,
        content_type: Option<&str>,
    ) -> Result<(), ToolError> {
        let Self { out, boundary } = self;
        let quoted = |text: &str| text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        let name = quoted(name);
        let file =
            filename.map(|filename| format!("; filename=\"{}\"", quoted(filename))).unwrap_or_default();
        out.push(
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n").as_bytes(),
        )?;
        if let Some(media) = content_type.filter(|media| HeaderValue::from_str(media).is_ok()) {
            out.push(format!("Content-Type: {media}\r\n").as_bytes())?;
        }
        out.push(b"\r\n")
    }

    fn write_value(
        &mut self,
        name: &str,
        value: &Value,
        content_type: Option<&str>,
    ) -> Result<(), ToolError> {
        let is_structured = matches!(value, Value::Object(_) | Value::Array(_));
        let is_sent_as_json = is_structured || content_type.is_some_and(is_json);
        self.begin(name, None, content_type.or(is_sent_as_json.then_some("application/json")))?;
        if is_sent_as_json { self.out.json(value, None) } else { self.out.value(value, None) }?;
        self.out.push(b"\r\n")
    }

    /// Writes a part, or one for each item of a list.
    fn write_field(
        &mut self,
        field: &Field,
        names: &mut std::slice::Iter<'_, Value>,
        value: &Value,
    ) -> Result<(), ToolError> {
        // a wildcard is not the type of anything
        let content_type = field.content_type.as_deref().filter(|media| !media.contains('*'));
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.write_field(field, names, item)),
            value if field.is_file => {
                let content_type = content_type.or(Some("application/octet-stream"));
                let filename = names.next().and_then(Value::as_str).unwrap_or(&field.name);
                self.begin(&field.name, Some(filename), content_type)?;
                write_bytes(&field.argument, value, self.out)?;
                self.out.push(b"\r\n")
            }
            value => self.write_value(&field.name, value, content_type),
        }
    }

    /// Ends the body; returns its content type.
    fn end(self) -> Result<String, ToolError> {
        let Self { out, boundary } = self;
        out.push(format!("--{boundary}--\r\n").as_bytes())?;
        Ok(format!("multipart/form-data; boundary={boundary}"))
    }
}
