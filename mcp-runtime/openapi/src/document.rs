//! A description as text with the places of its parts. Parts are parsed when they are needed: the whole tree of a large
//! description takes many times the memory of its text.

use std::{borrow::Cow, collections::BTreeMap, ops::Range};

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{reader::Reader, yaml};

/// The dialect of a description's schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V3_0,
    V3_1,
}

/// How much longer than the description the path items are that its paths refer to, by a factor and by bytes.
const MAX_GROWTH: (usize, usize) = (4, 1 << 20);
/// What `HEAD`, `OPTIONS` and `TRACE` return says nothing to a model.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// A description.
#[derive(Debug)]
pub(crate) struct Document {
    json: String,
    pub(crate) version: Version,
    /// Of operations, in the order of the description.
    pub(crate) operations: Vec<Operation>,
    /// The URLs of `servers`.
    pub(crate) servers: Vec<String>,
}

/// An operation as far as choosing it needs.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) id: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) is_deprecated: bool,
    pub(crate) place: Range<usize>,
    /// The parameters of its path.
    pub(crate) shared_parameters: Option<Range<usize>>,
}

type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

#[derive(Deserialize)]
struct Root<'a> {
    #[serde(borrow, default)]
    openapi: Option<&'a RawValue>,
    #[serde(borrow, default)]
    paths: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "or_default")]
    servers: Vec<Server>,
}

#[derive(Deserialize)]
struct Server {
    #[serde(default, deserialize_with = "or_default")]
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Choosable {
    #[serde(default)]
    operation_id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    tags: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    deprecated: bool,
}

/// A member that YAML has without a value is as one that is absent.
pub(crate) fn or_default<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl Document {
    /// # Errors
    /// It is not a description in OpenAPI 3.0, 3.1 or 3.2.
    pub(crate) fn parse(text: String) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        let json = if text.trim_start().starts_with('{') { text } else { yaml::to_json(&text)? };
        let root: Root<'_> =
            serde_json::from_str(&json).map_err(|error| format!("it is not JSON: {error}"))?;
        let version = root.openapi.map(RawValue::get).unwrap_or_default().trim_matches('"');
        let version = match version.get(..3) {
            Some("3.0") => Version::V3_0,
            Some("3.1") => Version::V3_1,
            Some("3.2") => {
                tracing::warn!("the OpenAPI description is of version 3.2, and is read as one of 3.1");
                Version::V3_1
            }
            _ => {
                return Err(
                    "`openapi` is not 3.0, 3.1 or 3.2\nconvert descriptions of Swagger 2.0 first".to_owned()
                );
            }
        };
        let paths = members_in_order(root.paths)?;
        let paths: Vec<_> =
            paths.into_iter().map(|(path, item)| (path.into_owned(), place_in(&json, item))).collect();
        let servers = root.servers.into_iter().map(|server| server.url).collect();
        let mut document = Self { json, version, operations: Vec::new(), servers };
        let most = document.json.len().saturating_mul(MAX_GROWTH.0).saturating_add(MAX_GROWTH.1);
        let (mut reader, mut operations) = (Reader::new(&document, most), Vec::new());
        for (path, item) in &paths {
            // members that begin with `x-` are extensions
            if path.starts_with('/') {
                let found = operations_of(&mut reader, path, item);
                operations.extend(found.map_err(|error| format!("the path `{}`: {error}", shown(path)))?);
            }
        }
        document.operations = operations;
        Ok(document)
    }

    /// The JSON at a place.
    pub(crate) fn at(&self, place: &Range<usize>) -> &str {
        self.json.get(place.clone()).unwrap_or_default()
    }

    /// Where a part is.
    pub(crate) fn place(&self, part: &RawValue) -> Range<usize> {
        place_in(&self.json, part)
    }

    /// Where all of it is.
    pub(crate) fn root(&self) -> Range<usize> {
        0..self.json.len()
    }
}

fn operations_of(
    reader: &mut Reader<'_>,
    path: &str,
    place_of_item: &Range<usize>,
) -> Result<Vec<Operation>, String> {
    let place = reader.followed(place_of_item)?;
    let item: Members<'_> = reader.read(&place)?;
    let shared = item.get("parameters").map(|parameters| reader.document.place(parameters));
    let there = METHODS.into_iter().filter_map(|method| {
        let operation = item.get(method.to_ascii_lowercase().as_str())?;
        (operation.get() != "null").then_some((method, *operation))
    });
    let operations = there.map(|(method, operation)| {
        let choosable: Choosable =
            serde_json::from_str(operation.get()).map_err(|error| error.to_string())?;
        Ok(Operation {
            method,
            path: path.to_owned(),
            id: choosable.operation_id.filter(|id| !id.is_empty()),
            tags: choosable.tags,
            is_deprecated: choosable.deprecated,
            place: reader.document.place(operation),
            shared_parameters: shared.clone(),
        })
    });
    operations.collect()
}

/// Where a part is in the whole.
fn place_in(whole: &str, part: &RawValue) -> Range<usize> {
    let start = part.get().as_ptr().addr() - whole.as_ptr().addr();
    start..start + part.get().len()
}

fn members_in_order(object: Option<&RawValue>) -> Result<Vec<(Cow<'_, str>, &RawValue)>, String> {
    let members: Members<'_> = object.map_or_else(
        || Ok(Members::new()),
        |object| {
            serde_json::from_str(object.get()).map_err(|error| format!("a part is not an object: {error}"))
        },
    )?;
    let mut members: Vec<_> = members.into_iter().collect();
    members.sort_by_key(|(_, member)| member.get().as_ptr().addr());
    Ok(members)
}

/// The beginning of a text of a description, as messages show it: without characters that a terminal obeys.
pub(crate) fn shown(text: &str) -> String {
    let beginning: String = text.chars().take(80).collect();
    let end = if beginning.len() < text.len() { "…" } else { "" };
    format!("{}{end}", beginning.escape_debug())
}
