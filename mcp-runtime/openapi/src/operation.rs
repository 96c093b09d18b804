//! One operation as an item of a server: its name, the schema of its arguments, where each of them goes in a request, and
//! the schema of its results.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    ops::RangeInclusive,
};

use http::HeaderName;
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    document::{Operation, Version, or_default, shown},
    reader::{Reader, Trail},
    request::{
        Body, BodyArguments, BodyFormat, Call, Field, Parameter, Place, Serialization, Style, UrlPath,
    },
    schema::{Direction, FreeNames, add_sentence, names, translate},
};

/// The longest name of a tool or an argument that all clients accept.
const MAX_NAME: usize = 63;
/// The most parameters of an operation, and members of a body that are arguments.
const MAX_ARGUMENTS: usize = 1000;
/// The most media types that a request names.
const MAX_ACCEPTED: usize = 50;
/// How much of the name of an argument its description says.
const MAX_SHOWN_NAME: usize = 200;
/// How many lists of each other files are in.
const MAX_LISTS: usize = 4;
/// The largest schema of results, in bytes of JSON, of which all is published.
const MAX_OUTPUT_SCHEMA: usize = 4 << 10;

/// An operation that is ready to become a tool or a resource.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    pub(crate) input: Value,
    /// The names that arguments have in the description, where these are others.
    pub(crate) aliases: Vec<(String, String)>,
    pub(crate) output: Option<Value>,
    pub(crate) call: Call,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Details<'a> {
    #[serde(default)]
    summary: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    parameters: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    request_body: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    responses: BTreeMap<String, &'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct DescribedParameter {
    name: String,
    #[serde(rename = "in")]
    place: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    required: bool,
    #[serde(default, deserialize_with = "or_default")]
    deprecated: bool,
    #[serde(default)]
    style: Option<String>,
    #[serde(default)]
    explode: Option<bool>,
    #[serde(default, deserialize_with = "or_default")]
    allow_reserved: bool,
    #[serde(default)]
    schema: Option<Value>,
    #[serde(default, deserialize_with = "or_default")]
    content: BTreeMap<String, Media>,
}

#[derive(Deserialize)]
struct DescribedBody {
    #[serde(default)]
    description: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    required: bool,
    #[serde(default, deserialize_with = "or_default")]
    content: BTreeMap<String, Media>,
}

#[derive(Deserialize)]
struct DescribedResponse {
    #[serde(default, deserialize_with = "or_default")]
    content: BTreeMap<String, Media>,
}

#[derive(Deserialize, Default)]
struct Media {
    #[serde(default)]
    schema: Option<Value>,
    #[serde(default, deserialize_with = "or_default")]
    encoding: BTreeMap<String, Encoding>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Encoding {
    #[serde(default)]
    content_type: Option<String>,
    #[serde(default)]
    style: Option<String>,
    #[serde(default)]
    explode: Option<bool>,
    #[serde(default, deserialize_with = "or_default")]
    allow_reserved: bool,
}

/// An argument before it has a name that no other one has.
struct Argument {
    wanted: String,
    place: &'static str,
    schema: Value,
    is_required: bool,
}

/// The name of a tool: the `operationId`, or method and path, in snake case.
pub(crate) fn tool_name(operation: &Operation) -> String {
    let text = match &operation.id {
        Some(id) => id.clone(),
        None => format!("{} {}", operation.method.to_ascii_lowercase(), operation.path),
    };
    let mut name = String::new();
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_start = c.is_ascii_uppercase()
            && (before.is_ascii_lowercase() || before.is_ascii_digit()
                // the last capital of `HTTPServer` begins a word
                || (before.is_ascii_uppercase() && rest.peek().is_some_and(char::is_ascii_lowercase)));
        if (is_start || !c.is_ascii_alphanumeric()) && !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    shortened(name.trim_end_matches('_'))
}

/// A name that is not too long: the end of a longer one is replaced by a number that is made of the whole.
fn shortened(name: &str) -> String {
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    // FNV-1a: a name stays the same when other operations come or go
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let beginning: String = name.chars().take(MAX_NAME - 7).collect();
    format!("{}_{:06x}", beginning.trim_end_matches('_'), hash & 0xff_ffff)
}

/// Reads an operation. Headers of these names, as [`comparable_header`] makes them, are not arguments.
///
/// # Errors
/// It cannot be called as it is described.
pub(crate) fn plan(
    reader: &mut Reader<'_>,
    operation: &Operation,
    name: String,
    own_headers: &[String],
) -> Result<Plan, String> {
    let details: Details<'_> = reader.read(&operation.place)?;
    let path = UrlPath::parse(&operation.path)?;
    let variables: HashSet<&str> = path.variables().collect();
    let fixed: HashSet<&str> = path.fixed.iter().map(String::as_str).collect();
    let mut undescribed = variables.clone();
    let described = parameters(reader, operation, &details.parameters)?;
    let mut arguments = Vec::new();
    let mut parameters = Vec::new();
    for parameter in described {
        if let Some(sent) = sent_parameter(&parameter, (&variables, &fixed), own_headers)? {
            if sent.place == Place::Path {
                undescribed.remove(sent.name.as_str());
            }
            arguments.push(argument_of(parameter, sent.place));
            parameters.push(sent);
        }
    }
    for variable in path.variables().filter(|name| undescribed.remove(name)) {
        let parameter =
            DescribedParameter { name: variable.to_owned(), place: "path".to_owned(), ..Default::default() };
        parameters.extend(sent_parameter(&parameter, (&variables, &fixed), own_headers)?);
        arguments.push(argument_of(parameter, Place::Path));
    }
    let (mut body, of_body) = match details.request_body {
        Some(body) => {
            let body = reader.resolved(body)?;
            request_body(reader, body)?
        }
        None => (None, Vec::new()),
    };
    arguments.extend(of_body);
    let argument_names = free_names(&mut arguments);
    let (of_parameters, of_body) = argument_names.split_at(parameters.len());
    for (parameter, name) in parameters.iter_mut().zip(of_parameters) {
        parameter.argument.clone_from(name);
    }
    if let Some(body) = &mut body {
        body.name_arguments(of_body);
    }
    let wanted = arguments.iter().map(|argument| argument.wanted.clone());
    let aliases =
        wanted.zip(argument_names.iter().cloned()).filter(|(wanted, name)| wanted != name).collect();
    let input = input_schema(reader, arguments, &argument_names)?;
    let (accept, output) = responses(reader, &details.responses)?;
    let title = details.summary.filter(|summary| !summary.trim().is_empty());
    let text = details.description.filter(|text| !text.trim().is_empty());
    // many clients show no titles
    let text = match (&title, text) {
        (Some(title), Some(text)) if !text.trim_start().starts_with(title.trim().trim_end_matches('.')) => {
            Some(format!("{}\n\n{text}", title.trim()))
        }
        (title, text) => text.or_else(|| title.clone()),
    };
    let mut description = text.unwrap_or_else(|| format!("{} {}", operation.method, operation.path));
    if let Some(text) = body.as_ref().and_then(Body::count_rule) {
        description = format!("{}\n\n{text}", description.trim_end());
    }
    Ok(Plan {
        name,
        title,
        description,
        input,
        aliases,
        output,
        call: Call { method: operation.method, path, parameters, body, accept },
    })
}

/// The parameters of the path and of the operation, which replace those of the path.
fn parameters<'d>(
    reader: &mut Reader<'d>,
    operation: &Operation,
    own: &[&'d RawValue],
) -> Result<Vec<DescribedParameter>, String> {
    let shared: Option<Vec<&RawValue>> = match &operation.shared_parameters {
        Some(place) => reader.read(place)?,
        None => None,
    };
    let shared = shared.unwrap_or_default();
    if shared.len() + own.len() > MAX_ARGUMENTS {
        return Err(format!("it has more than {MAX_ARGUMENTS} parameters"));
    }
    let (mut all, mut places) = (Vec::new(), HashMap::new());
    for parameter in shared.iter().chain(own) {
        let parameter: DescribedParameter = reader.resolved(parameter)?;
        let key = (parameter.name.clone(), parameter.place.clone());
        if let Some(replaced) = places.insert(key, all.len()).and_then(|index: usize| all.get_mut(index)) {
            *replaced = None;
        }
        all.push(Some(parameter));
    }
    Ok(all.into_iter().flatten().collect())
}

/// Headers that are part of the connection or the content, say who calls, or make a server believe that the request was
/// another one: none of them is an argument.
fn is_reserved(header: &str) -> bool {
    const NAMES: [&str; 26] = [
        "accept",
        "accept-encoding",
        "authorization",
        "client-ip",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "origin",
        "referer",
        "set-cookie",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "via",
        "x-http-method",
        "x-http-method-override",
        "x-method-override",
        "x-originating-ip",
    ];
    // of proxies that authenticate, and of what tells a server where a request came from
    const BEGINNINGS: [&str; 18] = [
        "cf-access-",
        "proxy-",
        "remote-",
        "sec-",
        "ssl-client-",
        "tailscale-user-",
        "x-amzn-oidc-",
        "x-auth-request-",
        "x-authenticated-",
        "x-envoy-",
        "x-forwarded",
        "x-goog-iap",
        "x-ms-client-principal",
        "x-original-",
        "x-remote-",
        "x-rewrite-",
        "x-ssl-client-",
        "x-webauth-",
    ];
    const ENDINGS: [&str; 3] = ["-client-ip", "-connecting-ip", "-real-ip"];
    let name = comparable_header(header);
    NAMES.contains(&name.as_str())
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || ENDINGS.iter().any(|end| name.ends_with(end))
}

/// A name as those servers read it that take `_` for `-`.
pub(crate) fn comparable_header(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

/// How a parameter is sent; `None` for one that is not an argument.
fn sent_parameter(
    described: &DescribedParameter,
    (variables, fixed): (&HashSet<&str>, &HashSet<&str>),
    own_headers: &[String],
) -> Result<Option<Parameter>, String> {
    let is_own = |header: &str| own_headers.contains(&comparable_header(header));
    let DescribedParameter { name, style, explode, .. } = described;
    let place = match described.place.as_str() {
        "path" if !variables.contains(name.as_str()) => return Ok(None),
        "path" => Place::Path,
        "query" if fixed.contains(name.as_str()) => return Ok(None),
        "query" => Place::Query,
        "header" if is_reserved(name) || is_own(name) => return Ok(None),
        "header" if HeaderName::try_from(name.as_str()).is_err() => {
            return Err(format!("`{}` is not the name of a header", shown(name)));
        }
        "header" => Place::Header,
        "cookie" if is_own("cookie") => return Ok(None),
        "cookie" if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) => {
            return Err(format!("`{}` is not the name of a cookie", shown(name)));
        }
        "cookie" => Place::Cookie,
        other => return Err(format!("a parameter is in `{}`, which is not a place", shown(other))),
    };
    let by_default = if matches!(place, Place::Path | Place::Header) { Style::Simple } else { Style::Form };
    let style = style.as_deref().map_or(Ok(by_default), style_of)?;
    let serialization = Serialization {
        style,
        explode: explode.unwrap_or(style == Style::Form),
        // elsewhere they would begin another part
        keeps_reserved: described.allow_reserved && place == Place::Query,
        is_json: described.schema.is_none() && described.content.keys().any(|media| is_json(media)),
    };
    Ok(Some(Parameter { argument: String::new(), name: name.clone(), place, serialization }))
}

fn style_of(name: &str) -> Result<Style, String> {
    Ok(match name {
        "simple" => Style::Simple,
        "label" => Style::Label,
        "matrix" => Style::Matrix,
        "form" => Style::Form,
        "spaceDelimited" => Style::Space,
        "pipeDelimited" => Style::Pipe,
        "deepObject" => Style::Deep,
        other => return Err(format!("`{}` is not a style", shown(other))),
    })
}

fn argument_of(described: DescribedParameter, place: Place) -> Argument {
    let DescribedParameter { name, description, required, deprecated, schema, content, .. } = described;
    let schema = schema.or_else(|| content.into_values().find_map(|media| media.schema));
    let schema = match schema {
        Some(Value::Object(schema)) => Value::Object(schema),
        Some(_) => json!({}),
        None => json!({ "type": "string" }),
    };
    let schema = described_by(schema, description, deprecated);
    Argument { wanted: name, place: place.name(), schema, is_required: required || place == Place::Path }
}

/// A schema with the description of its parameter, which says more than that of its type.
fn described_by(mut schema: Value, description: Option<String>, deprecated: bool) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.extend(
            description
                .filter(|text| !text.trim().is_empty())
                .map(|text| ("description".to_owned(), text.into())),
        );
        if deprecated {
            schema.insert("deprecated".to_owned(), true.into());
        }
    }
    schema
}

/// How the body is sent, and its arguments.
fn request_body(
    reader: &mut Reader<'_>,
    described: DescribedBody,
) -> Result<(Option<Body>, Vec<Argument>), String> {
    let DescribedBody { description, required, content } = described;
    let Some((media_type, media)) = content.into_iter().min_by_key(|(media, _)| preference(media)) else {
        return Ok((None, Vec::new()));
    };
    let format = match preference(&media_type) {
        0 => BodyFormat::Json(if media_type.contains('*') {
            "application/json".to_owned()
        } else {
            media_type
        }),
        1 => BodyFormat::Form,
        2 => BodyFormat::Multipart,
        3 => BodyFormat::Text(media_type),
        _ => BodyFormat::Binary(if media_type.contains('*') {
            "application/octet-stream".to_owned()
        } else {
            media_type
        }),
    };
    let whole = |schema, format| {
        let schema = described_by(schema, description.clone(), false);
        let argument = Argument { wanted: "body".to_owned(), place: "body", schema, is_required: required };
        (Some(Body { format, arguments: BodyArguments::Whole(String::new()) }), vec![argument])
    };
    let schema = media.schema.filter(Value::is_object).unwrap_or_else(|| json!({}));
    match &format {
        BodyFormat::Text(_) => return Ok(whole(json!({ "type": "string" }), format)),
        BodyFormat::Binary(_) => return Ok(whole(file_schema(None), format)),
        _ => {}
    }
    let is_json_body = matches!(format, BodyFormat::Json(_));
    let Some(object) = plain_object(reader, &schema)?
        .filter(|object| !is_json_body || ((required || object.required.is_empty()) && object.has_members))
    else {
        return Ok(whole(schema, format));
    };
    let (mut fields, mut arguments) = (Vec::new(), Vec::new());
    for (name, schema) in object.members {
        let encoding = media.encoding.get(&name);
        let file = if format == BodyFormat::Multipart { file_schema_of(reader, &schema)? } else { None };
        let style =
            encoding.and_then(|encoding| encoding.style.as_deref()).map_or(Ok(Style::Form), style_of)?;
        let serialization = Serialization {
            style,
            explode: encoding.and_then(|encoding| encoding.explode).unwrap_or(style == Style::Form),
            keeps_reserved: encoding.is_some_and(|encoding| encoding.allow_reserved),
            is_json: false,
        };
        let content_type = encoding.and_then(|encoding| encoding.content_type.as_deref());
        fields.push(Field {
            argument: String::new(),
            name: name.clone(),
            serialization,
            is_file: file.is_some(),
            filename: file.as_ref().map(|_| String::new()),
            // the first of several
            content_type: content_type
                .and_then(|types| types.split(',').next())
                .map(|media| media.trim().to_owned()),
        });
        let (is_list, is_file) = (file.as_ref().is_some_and(|file| file["type"] == "array"), file.is_some());
        let filename = format!("{name}_filename");
        let is_required = required && object.required.contains(&name);
        let schema = file.unwrap_or(schema);
        arguments.push(Argument { wanted: name, place: "body", schema, is_required });
        if is_file {
            let schema = match is_list {
                true => {
                    json!({ "type": "array", "items": { "type": "string" }, "description": "The names of the files, in their order." })
                }
                false => json!({ "type": "string", "description": "The name of the file." }),
            };
            arguments.push(Argument { wanted: filename, place: "body", schema, is_required: false });
        }
    }
    let arguments_of_body = BodyArguments::Fields { fields, is_required: required, count: object.count };
    Ok((Some(Body { format, arguments: arguments_of_body }), arguments))
}

/// An object of which nothing is said but its members, which can be arguments beside others.
struct PlainObject {
    members: Map<String, Value>,
    /// Of the members.
    required: HashSet<String>,
    /// How many members it has.
    count: RangeInclusive<usize>,
    /// Whether it has members, or must have none: an object without may be any.
    has_members: bool,
}

/// The object that a schema describes, with those of its `allOf`; `None` for other values, or too many members.
fn plain_object(reader: &mut Reader<'_>, schema: &Value) -> Result<Option<PlainObject>, String> {
    let (mut trail, mut parts) = (Trail::default(), VecDeque::from([schema.clone()]));
    let (mut members, mut required) = (BTreeMap::<String, Vec<Value>>::new(), HashSet::new());
    let (mut known, mut described, mut is_closed) = (HashSet::new(), 0, false);
    let (mut least, mut most) = (0, u64::MAX);
    while let Some(mut part) = parts.pop_front() {
        // in 3.0 they mean nothing
        if part.get("$ref").is_some() && reader.document.version == Version::V3_1 {
            let mut beside = part.clone();
            beside.as_object_mut().and_then(|beside| beside.remove("$ref"));
            parts.push_back(beside);
            part = json!({ "$ref": part["$ref"] });
        }
        let Some(part) = reader.target(&mut trail, &part)? else { continue };
        let Some(part) = part.as_object().filter(|part| is_plain(part)) else { return Ok(None) };
        parts.extend(part.get("allOf").and_then(Value::as_array).into_iter().flatten().cloned());
        least = least.max(part.get("minProperties").and_then(Value::as_u64).unwrap_or_default());
        most = most.min(part.get("maxProperties").and_then(Value::as_u64).unwrap_or(u64::MAX));
        is_closed |= part.get("additionalProperties").is_some();
        required.extend(names(part.get("required")).map(str::to_owned));
        let properties = part.get("properties").and_then(Value::as_object);
        described += usize::from(properties.is_some());
        for (name, schema) in properties.into_iter().flatten() {
            if known.insert((name.clone(), schema.to_string())) {
                members.entry(name.clone()).or_default().push(schema.clone());
            }
        }
    }
    // a closed part refuses the members of the others
    if members.len() > MAX_ARGUMENTS || described == 0 || (is_closed && described > 1) {
        return Ok(None);
    }
    let (has_members, mut shown) = (!members.is_empty() || is_closed, Map::new());
    for (name, mut schemas) in members {
        let schema = if schemas.len() == 1 { schemas.remove(0) } else { json!({ "allOf": schemas }) };
        let target = reader.target(&mut Trail::default(), &schema)?.unwrap_or_default();
        let is_hidden = |schema: &Value| schema.get("readOnly") == Some(&Value::Bool(true));
        let parts = target.get("allOf").and_then(Value::as_array);
        if ![&schema, &target].into_iter().chain(parts.into_iter().flatten()).any(is_hidden) {
            shown.insert(name, schema);
        }
    }
    required.retain(|name| shown.contains_key(name));
    let least = usize::try_from(least).unwrap_or(usize::MAX);
    let count = least..=usize::try_from(most).unwrap_or(usize::MAX);
    Ok(Some(PlainObject { members: shown, required, count, has_members }))
}

/// Whether a schema says nothing of an object but its members.
fn is_plain(schema: &Map<String, Value>) -> bool {
    const KNOWN: [&str; 17] = [
        "type",
        "properties",
        "required",
        "allOf",
        "minProperties",
        "maxProperties",
        "title",
        "description",
        "$comment",
        "example",
        "examples",
        "deprecated",
        "default",
        "discriminator",
        "xml",
        "externalDocs",
        "additionalProperties",
    ];
    let is_known = |(keyword, value): (&String, &Value)| {
        let is_off =
            || matches!(keyword.as_str(), "nullable" | "readOnly" | "writeOnly" | "unevaluatedProperties");
        KNOWN.contains(&keyword.as_str())
            || keyword.starts_with("x-")
            || (*value == Value::Bool(false) && is_off())
    };
    schema.iter().all(is_known)
        && schema.get("type").is_none_or(|name| name == "object")
        && schema.get("additionalProperties").is_none_or(|more| *more == Value::Bool(false))
}

/// The schema of bytes.
fn file_schema(description: Option<&str>) -> Value {
    let description = description.map(|text| format!("{} ", text.trim_end())).unwrap_or_default();
    json!({ "type": "string", "contentEncoding": "base64", "description": format!("{description}In base64.") })
}

/// The schema of the bytes of a file, or of a list of files; `None` for other values.
fn file_schema_of(reader: &mut Reader<'_>, schema: &Value) -> Result<Option<Value>, String> {
    let (mut trail, mut lists, mut schema) = (Trail::default(), Vec::new(), schema.clone());
    while let (Some(target), true) = (reader.target(&mut trail, &schema)?, lists.len() <= MAX_LISTS) {
        // the last is the `Vec<u8>` of Rust
        let is_bytes = target.get("format").is_some_and(|format| format == "binary")
            || target.pointer("/items/format").is_some_and(|format| format == "uint8")
            || (target.get("contentMediaType").is_some() && target.get("contentEncoding").is_none());
        let description = target.get("description").and_then(Value::as_str).map(str::to_owned);
        match target.get("items") {
            _ if is_bytes => {
                let file = file_schema(description.as_deref());
                let list = |items, description: Option<String>| {
                    let description = description.unwrap_or_else(|| "Files.".to_owned());
                    json!({ "type": "array", "items": items, "description": description })
                };
                return Ok(Some(lists.into_iter().rev().fold(file, list)));
            }
            Some(items) => {
                lists.push(description);
                schema = items.clone();
            }
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// Which media type of a body is sent: the smallest one.
fn preference(media_type: &str) -> usize {
    match essence(media_type).as_str() {
        media if is_json(media) || media == "*/*" => 0,
        "application/x-www-form-urlencoded" => 1,
        "multipart/form-data" => 2,
        media if media.starts_with("text/") => 3,
        _ => 4,
    }
}

/// A media type without parameters.
pub(crate) fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

pub(crate) fn is_json(media_type: &str) -> bool {
    let media_type = essence(media_type);
    matches!(media_type.as_str(), "application/json" | "application/*" | "text/json")
        || media_type.ends_with("+json")
}

/// The names of arguments: clashing ones get their place as a suffix, and characters that some models do not accept are
/// replaced. Where that leaves a doubt which one it is, its description says the name.
fn free_names(arguments: &mut [Argument]) -> Vec<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let plain = |text: &str| {
        if text.len() <= MAX_NAME && text.chars().all(is_plain) && !text.is_empty() {
            return text.to_owned();
        }
        let name: String = text.chars().map(|c| if is_plain(c) { c } else { '_' }).take(MAX_NAME).collect();
        Some(name.trim_matches('_')).filter(|name| !name.is_empty()).unwrap_or("argument").to_owned()
    };
    let wanted: Vec<String> = arguments.iter().map(|argument| plain(&argument.wanted)).collect();
    let mut uses: HashMap<&str, usize> = HashMap::new();
    wanted.iter().for_each(|name| *uses.entry(name).or_default() += 1);
    let mut free = FreeNames::default();
    uses.keys().for_each(|name| drop(free.take((*name).to_owned())));
    let named = arguments.iter_mut().zip(&wanted).map(|(argument, name)| {
        let is_alone = uses.get(name.as_str()) == Some(&1);
        let is_like_it = name.chars().any(|c| c.is_ascii_alphanumeric()) && argument.wanted.is_ascii();
        if *name != argument.wanted
            && (!is_alone || !is_like_it || argument.wanted.len() > MAX_NAME)
            && let Some(schema) = argument.schema.as_object_mut()
        {
            let wanted: String = argument.wanted.chars().take(MAX_SHOWN_NAME).collect();
            add_sentence(schema, &format!("Sent as {}.", Value::from(wanted)));
        }
        if is_alone { name.clone() } else { free.take(format!("{name}_{}", argument.place)) }
    });
    named.collect()
}

fn input_schema(
    reader: &mut Reader<'_>,
    arguments: Vec<Argument>,
    names: &[String],
) -> Result<Value, String> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (argument, name) in arguments.into_iter().zip(names) {
        if argument.is_required {
            required.push(name.clone());
        }
        properties.insert(name.clone(), argument.schema);
    }
    // an unknown name would be left out, and with it a filter that is misspelled
    let schema = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    let (mut schema, _) = translate(reader, Direction::Request, &schema)?;
    if let Some(schema) = schema.as_object_mut() {
        // clients expect it
        schema.entry("properties").or_insert_with(|| json!({}));
    }
    Ok(schema)
}

/// What a request accepts, and the schema of structured results: every response of success must be JSON for one.
fn responses<'d>(
    reader: &mut Reader<'d>,
    responses: &BTreeMap<String, &'d RawValue>,
) -> Result<(String, Option<Value>), String> {
    let mut accepted: Vec<String> = Vec::new();
    let (mut schemas, mut known): (Vec<Value>, _) = (Vec::new(), HashSet::new());
    let mut all_are_json = true;
    for (_, response) in responses.iter().filter(|(status, _)| status.len() == 3 && status.starts_with('2')) {
        let DescribedResponse { content } = reader.resolved(response)?;
        let json = content.iter().find(|(media, _)| is_json(media)).map(|(_, media)| media.schema.clone());
        match json.flatten() {
            Some(schema) if known.insert(schema.to_string()) => schemas.push(schema),
            Some(_) => {}
            None => all_are_json = false,
        }
        for media in content
            .into_keys()
            .map(|media| if media == "*/*" { "application/json".to_owned() } else { media })
        {
            if accepted.len() < MAX_ACCEPTED && !accepted.contains(&media) {
                accepted.push(media);
            }
        }
    }
    accepted.sort_by_key(|media| !is_json(media));
    let accept = match accepted.is_empty() {
        true => "application/json, */*;q=0.5".to_owned(),
        false => accepted.join(", "),
    };
    let schema = match schemas.len() {
        _ if !all_are_json => return Ok((accept, None)),
        0 => return Ok((accept, None)),
        1 => schemas.swap_remove(0),
        _ => json!({ "anyOf": schemas }),
    };
    let (schema, is_whole) = translate(reader, Direction::Response, &schema)?;
    if is_whole && schema.to_string().len() <= MAX_OUTPUT_SCHEMA {
        return Ok((accept, Some(schema)));
    }
    // of a larger one, no more than what kind of value it is
    let kind = schema.get("type").map(|kind| json!({ "type": kind }));
    Ok((accept, kind))
}
