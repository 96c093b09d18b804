//! From arguments to a request. What arguments say is percent-encoded wherever it goes, and no argument changes which path,
//! host or header is requested.

use std::hash::{BuildHasher as _, RandomState};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use mcp_runtime::ToolError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};

use crate::{document::shown, operation::is_json};

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
    /// Each member of the body is an argument. One that is required is sent without members as well.
    Fields { fields: Vec<Field>, is_required: bool },
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
    /// Of its part, in a body of several parts.
    pub(crate) content_type: Option<String>,
}

impl Body {
    /// Names its arguments, in the order in which they were described.
    pub(crate) fn name_arguments(&mut self, names: &[String]) {
        let arguments: Vec<&mut String> = match &mut self.arguments {
            BodyArguments::Whole(argument) => vec![argument],
            BodyArguments::Fields { fields, .. } => {
                fields.iter_mut().map(|field| &mut field.argument).collect()
            }
        };
        for (argument, name) in arguments.into_iter().zip(names) {
            argument.clone_from(name);
        }
    }
}

/// The path of an operation, with variables.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UrlPath {
    segments: Vec<Vec<PathPart>>,
}

#[derive(Debug, PartialEq, Eq)]
enum PathPart {
    Text(String),
    Variable(String),
}

impl UrlPath {
    /// # Errors
    /// It is not the path of a URL.
    pub(crate) fn parse(path: &str) -> Result<Self, String> {
        let invalid = |why: &str| format!("the path `{}` {why}", shown(path));
        let path_text = path.strip_prefix('/').ok_or_else(|| invalid("does not begin with `/`"))?;
        let segments = path_text.split('/').map(|segment| {
            if matches!(percent_decode_str(segment).decode_utf8_lossy().as_ref(), "." | "..") {
                return Err(invalid("leads out of the API"));
            }
            let mut parts = Vec::new();
            let mut rest = segment;
            while let Some((text, after)) = rest.split_once('{') {
                let (name, after) = after.split_once('}').ok_or_else(|| invalid("has a `{` without `}`"))?;
                parts.push(PathPart::Text(text.to_owned()));
                parts.push(PathPart::Variable(name.to_owned()));
                rest = after;
            }
            parts.push(PathPart::Text(rest.to_owned()));
            parts.retain(|part| *part != PathPart::Text(String::new()));
            let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@%".contains(c);
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
        Ok(Self { segments: segments.collect::<Result<_, _>>()? })
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flatten().filter_map(|part| match part {
            PathPart::Variable(name) => Some(name.as_str()),
            PathPart::Text(_) => None,
        })
    }

    /// The path with a text for each variable.
    pub(crate) fn filled(
        &self,
        value: impl Fn(&str) -> Result<String, ToolError>,
    ) -> Result<String, ToolError> {
        let mut path = String::new();
        for segment in &self.segments {
            path.push('/');
            let start = path.len();
            for part in segment {
                match part {
                    PathPart::Text(text) => path.push_str(text),
                    PathPart::Variable(name) => path.push_str(&value(name)?),
                }
            }
            if matches!(path.get(start..), Some("." | "..")) {
                return Err(ToolError::new("the arguments lead to another path"));
            }
        }
        Ok(path)
    }
}

impl Call {
    /// The path with a text for each of its parameters.
    ///
    /// # Errors
    /// A text is missing, or they lead to another path.
    pub(crate) fn path_with(
        &self,
        text: impl Fn(&Parameter) -> Result<String, ToolError>,
    ) -> Result<String, ToolError> {
        self.path.filled(|variable| {
            let is_it = |parameter: &&Parameter| parameter.place == Place::Path && parameter.name == variable;
            let parameter = self.parameters.iter().find(is_it);
            text(parameter.ok_or_else(|| ToolError::new(format!("`{}` is missing", shown(variable))))?)
        })
    }

    /// The parameter that a member of an exploded object would be: it may be one that this caller cannot set.
    fn named_by_member(&self, parameter: &Parameter, value: &Value) -> Option<&str> {
        let Serialization { style, explode, is_json, .. } = parameter.serialization;
        let is_split = explode && !is_json && matches!(style, Style::Form | Style::Space | Style::Pipe);
        let members = value.as_object().filter(|_| is_split)?;
        let names =
            self.parameters.iter().filter(|other| other.place == parameter.place).map(|other| &*other.name);
        names.filter(|name| *name != parameter.name).find(|name| members.contains_key(*name))
    }

    /// The request with these arguments.
    ///
    /// # Errors
    /// An argument cannot be sent where it belongs; the message names it.
    pub(crate) fn request(&self, arguments: &Map<String, Value>) -> Result<Request, ToolError> {
        let path = self.path_with(|parameter| {
            path_text(parameter, arguments.get(&parameter.argument).unwrap_or(&Value::Null))
        })?;
        let (mut query, mut cookies, mut headers) = (Vec::new(), Vec::new(), HeaderMap::new());
        for parameter in &self.parameters {
            let Parameter { argument, name, place, serialization } = parameter;
            let Some(value) = arguments.get(argument).filter(|value| !value.is_null()) else { continue };
            if let Some(other) = self.named_by_member(parameter, value) {
                return Err(ToolError::new(format!("`{argument}.{other}` is a parameter of its own")));
            }
            match place {
                Place::Path => {}
                Place::Query => serialization.pairs(name, value, &mut query),
                Place::Cookie => {
                    let as_cookie = Serialization { keeps_reserved: false, ..*serialization };
                    as_cookie.pairs(name, value, &mut cookies);
                }
                Place::Header => {
                    let text = simple(value, serialization.explode, serialization.is_json, &str::to_owned);
                    headers.insert(header_name(name)?, header_value(argument, &text)?);
                }
            }
        }
        if !cookies.is_empty() {
            headers.insert(header::COOKIE, header_value("cookie", &cookies.join("; "))?);
        }
        if let Ok(accept) = HeaderValue::try_from(&self.accept) {
            headers.insert(header::ACCEPT, accept);
        }
        let body = match &self.body {
            None => Vec::new(),
            Some(body) => match body.encoded(arguments)? {
                None => Vec::new(),
                Some((content_type, bytes)) => {
                    headers.insert(header::CONTENT_TYPE, header_value("content-type", &content_type)?);
                    bytes
                }
            },
        };
        Ok(Request { method: self.method, path, query: query.join("&"), headers, body })
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

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// A value that is not a list or an object as text; others as JSON.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

/// `a,b` of a list, `k,v` or `k=v` of an object.
fn simple(value: &Value, explode: bool, is_json: bool, encode: &dyn Fn(&str) -> String) -> String {
    let joined = if explode { "=" } else { "," };
    match value {
        value if is_json => encode(&value.to_string()),
        Value::Array(items) => items.iter().map(|item| encode(&scalar(item))).collect::<Vec<_>>().join(","),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| format!("{}{joined}{}", encode(key), encode(&scalar(value))));
            members.collect::<Vec<_>>().join(",")
        }
        value => encode(&scalar(value)),
    }
}

/// The text of a variable of a path, encoded.
fn path_text(parameter: &Parameter, value: &Value) -> Result<String, ToolError> {
    let Parameter { argument, name, serialization, .. } = parameter;
    let Serialization { style, explode, is_json, .. } = *serialization;
    let refused = |why: &str| ToolError::new(format!("`{argument}` {why}"));
    let texts: Vec<String> = match value {
        Value::Array(items) => items.iter().map(scalar).collect(),
        Value::Object(members) => {
            members.iter().flat_map(|(key, value)| [key.clone(), scalar(value)]).collect()
        }
        value => vec![scalar(value)],
    };
    if texts.is_empty() || texts.iter().any(String::is_empty) {
        return Err(refused("is empty, and a path cannot have that"));
    }
    for text in &texts {
        // as a server reads it that decodes twice, takes `\` for `/`, or leaves out what comes after `;`
        let decoded = percent_decode_str(text).decode_utf8_lossy();
        if [text, decoded.as_ref()]
            .iter()
            .flat_map(|text| text.split(['/', '\\']))
            .any(|step| matches!(step.split(';').next(), Some("." | "..")))
        {
            return Err(refused("leads to another path"));
        }
        if text.chars().any(char::is_control) {
            return Err(refused("has control characters"));
        }
    }
    let simple = simple(value, explode, is_json, &encoded);
    Ok(match (style, value) {
        (Style::Label, _) if explode => format!(".{}", simple.replace(',', ".")),
        (Style::Label, _) => format!(".{simple}"),
        (Style::Matrix, Value::Array(_)) if explode => {
            simple.split(',').map(|item| format!(";{}={item}", encoded(name))).collect()
        }
        (Style::Matrix, Value::Object(_)) if explode => format!(";{}", simple.replace(',', ";")),
        (Style::Matrix, _) => format!(";{}={simple}", encoded(name)),
        _ => simple,
    })
}

impl Serialization {
    fn encoded(self, text: &str) -> String {
        utf8_percent_encode(text, if self.keeps_reserved { NOT_RESERVED } else { ENCODED }).to_string()
    }

    /// Adds `name=value` of a query, a form or cookies, encoded.
    fn pairs(self, name: &str, value: &Value, pairs: &mut Vec<String>) {
        let key = encoded(name);
        let separator = match self.style {
            Style::Space => "%20",
            Style::Pipe => "%7C",
            _ => ",",
        };
        match value {
            value if self.is_json => pairs.push(format!("{key}={}", self.encoded(&value.to_string()))),
            Value::Object(_) | Value::Array(_) if self.style == Style::Deep => self.deep(name, value, pairs),
            Value::Array(items) if self.explode => {
                pairs.extend(items.iter().map(|item| format!("{key}={}", self.encoded(&scalar(item)))));
            }
            Value::Object(members) if self.explode => {
                let pair = |(key, value): (&String, &Value)| {
                    format!("{}={}", encoded(key), self.encoded(&scalar(value)))
                };
                pairs.extend(members.iter().filter(|(_, value)| !value.is_null()).map(pair));
            }
            Value::Array(items) if items.is_empty() => {}
            Value::Array(items) => {
                let items: Vec<_> = items.iter().map(|item| self.encoded(&scalar(item))).collect();
                pairs.push(format!("{key}={}", items.join(separator)));
            }
            Value::Object(members) => {
                let members =
                    members.iter().flat_map(|(key, value)| [encoded(key), self.encoded(&scalar(value))]);
                pairs.push(format!("{key}={}", members.collect::<Vec<_>>().join(separator)));
            }
            value => pairs.push(format!("{key}={}", self.encoded(&scalar(value)))),
        }
    }

    /// `name[key]=value`, at any depth; items of lists by their number.
    fn deep(self, name: &str, value: &Value, pairs: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (key, value) in members.iter().filter(|(_, value)| !value.is_null()) {
                    self.deep(&format!("{name}[{key}]"), value, pairs);
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    self.deep(&format!("{name}[{index}]"), value, pairs);
                }
            }
            value => pairs.push(format!("{}={}", encoded(name), self.encoded(&scalar(value)))),
        }
    }
}

/// A member of a body by its name, with what is described of it.
type Member<'a> = (&'a str, &'a Value, Option<&'a Field>);

impl Body {
    /// The content type and the bytes; `None` without a body.
    fn encoded<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
    ) -> Result<Option<(String, Vec<u8>)>, ToolError> {
        let (whole, members): (Option<&Value>, Vec<Member<'_>>) = match &self.arguments {
            BodyArguments::Whole(argument) => {
                let Some(value) = arguments.get(argument) else { return Ok(None) };
                let members = value.as_object().into_iter().flatten();
                (Some(value), members.map(|(name, value)| (name.as_str(), value, None)).collect())
            }
            BodyArguments::Fields { fields, is_required } => {
                let given = |field: &'a Field| {
                    Some((field.name.as_str(), arguments.get(&field.argument)?, Some(field)))
                };
                let members: Vec<_> = fields.iter().filter_map(given).collect();
                if members.is_empty() && !is_required {
                    return Ok(None);
                }
                (None, members)
            }
        };
        let sent = members.iter().filter(|(_, value, _)| !value.is_null());
        Ok(Some(match (&self.format, whole) {
            (BodyFormat::Json(media), Some(value)) => (media.clone(), value.to_string().into_bytes()),
            (BodyFormat::Json(media), None) => {
                let object = members.iter().map(|(name, value, _)| ((*name).to_owned(), (*value).clone()));
                (media.clone(), Value::Object(object.collect()).to_string().into_bytes())
            }
            (BodyFormat::Form, _) => {
                let mut pairs = Vec::new();
                for (name, value, field) in sent {
                    let serialization = field.map_or(FORM, |field| field.serialization);
                    // an object in the style of forms would lose its name
                    let is_json = value.is_object() && serialization.style == Style::Form;
                    Serialization { is_json, ..serialization }.pairs(name, value, &mut pairs);
                }
                ("application/x-www-form-urlencoded".to_owned(), pairs.join("&").into_bytes())
            }
            (BodyFormat::Multipart, _) => {
                let mut parts = Vec::new();
                for (name, value, field) in sent {
                    match field {
                        Some(field) => field.add_parts(value, &mut parts)?,
                        None => parts.push(Part::of_value(name, value, None)),
                    }
                }
                multipart(&parts)
            }
            (BodyFormat::Text(media), value) => {
                (media.clone(), value.map(scalar).unwrap_or_default().into_bytes())
            }
            (BodyFormat::Binary(media), value) => {
                (media.clone(), bytes("body", value.unwrap_or(&Value::Null))?)
            }
        }))
    }
}

fn bytes(argument: &str, value: &Value) -> Result<Vec<u8>, ToolError> {
    let bytes = value.as_str().and_then(|text| STANDARD.decode(text.trim()).ok());
    bytes.ok_or_else(|| ToolError::new(format!("`{argument}` is not base64")))
}

/// A part of a body of several.
struct Part<'a> {
    name: &'a str,
    is_file: bool,
    content_type: Option<String>,
    content: Vec<u8>,
}

impl<'a> Part<'a> {
    fn of_value(name: &'a str, value: &Value, content_type: Option<String>) -> Self {
        let is_json = matches!(value, Value::Object(_) | Value::Array(_))
            || content_type.as_deref().is_some_and(is_json);
        let content = if is_json { value.to_string() } else { scalar(value) };
        let content_type = content_type.or_else(|| is_json.then(|| "application/json".to_owned()));
        Self { name, is_file: false, content_type, content: content.into_bytes() }
    }
}

impl Field {
    fn add_parts<'a>(&'a self, value: &Value, parts: &mut Vec<Part<'a>>) -> Result<(), ToolError> {
        // a wildcard is not the type of anything
        let content_type = self.content_type.clone().filter(|media| !media.contains('*'));
        match value {
            Value::Array(items) => {
                for item in items {
                    self.add_parts(item, parts)?;
                }
            }
            value if self.is_file => parts.push(Part {
                name: &self.name,
                is_file: true,
                content_type: Some(content_type.unwrap_or_else(|| "application/octet-stream".to_owned())),
                content: bytes(&self.argument, value)?,
            }),
            value => parts.push(Part::of_value(&self.name, value, content_type)),
        }
        Ok(())
    }
}

/// A body of several parts, and its content type, which names a boundary that no one can know before.
fn multipart(parts: &[Part<'_>]) -> (String, Vec<u8>) {
    // random, so that no part contains it: searching the parts for it would take time that grows with their number
    let number = || RandomState::new().hash_one(parts.len());
    let boundary = format!("mcp-runtime-{:016x}{:016x}", number(), number());
    let quoted = |name: &str| name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
    let mut body = Vec::new();
    for part in parts {
        let name = quoted(part.name);
        let file = if part.is_file { format!("; filename=\"{name}\"") } else { String::new() };
        let head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n");
        body.extend_from_slice(head.as_bytes());
        if let Some(media) = part.content_type.as_ref().filter(|media| HeaderValue::from_str(media).is_ok()) {
            body.extend_from_slice(format!("Content-Type: {media}\r\n").as_bytes());
        }
        body.extend_from_slice(b"\r\n");
        body.extend_from_slice(&part.content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}
