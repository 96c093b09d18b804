//! A description as text with the places of its parts. Parts are parsed when they are needed: the whole tree of a large
//! description takes many times the memory of its text.

use std::{borrow::Cow, collections::BTreeMap, collections::HashMap, ops::Range};

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::yaml;

/// The dialect of a description's schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V3_0,
    V3_1,
}

/// How many steps a reference has less than: each reads what is left of the description.
const MAX_STEPS: usize = 100;
/// What `HEAD`, `OPTIONS` and `TRACE` return says nothing to a model.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// A description.
#[derive(Debug)]
pub(crate) struct Document {
    json: String,
    pub(crate) version: Version,
    /// The places of the root, of the members of `components`, and of path items, by JSON pointer.
    places: HashMap<String, Range<usize>>,
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
    pub(crate) shared_parameters: Vec<Range<usize>>,
}

type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

#[derive(Deserialize)]
struct Root<'a> {
    #[serde(borrow, default)]
    openapi: Option<&'a RawValue>,
    #[serde(borrow, default)]
    paths: Option<&'a RawValue>,
    #[serde(borrow, default)]
    components: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "or_default")]
    servers: Vec<Server>,
}

#[derive(Deserialize)]
struct Server {
    #[serde(default)]
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Choosable {
    #[serde(default)]
    operation_id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    tags: Vec<String>,
    #[serde(default)]
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
    /// It is not a description in OpenAPI 3.0 or 3.1.
    pub(crate) fn parse(text: String) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        let json = if text.trim_start().starts_with('{') { text } else { yaml::to_json(&text)? };
        let root: Root<'_> =
            serde_json::from_str(&json).map_err(|error| format!("it is not JSON: {error}"))?;
        let version = root.openapi.map(RawValue::get).unwrap_or_default().trim_matches('"');
        let version = match version.get(..3) {
            Some("3.0") => Version::V3_0,
            Some("3.1") => Version::V3_1,
            _ => {
                return Err(
                    "`openapi` is not 3.0 or 3.1\nconvert descriptions of Swagger 2.0 first".to_owned()
                );
            }
        };
        let mut places = HashMap::from([(String::new(), 0..json.len())]);
        for (kind, components) in members(root.components)? {
            for (name, component) in members(Some(components))? {
                places.insert(format!("/components/{kind}/{}", escaped(&name)), place(&json, component));
            }
        }
        let paths = members_in_order(root.paths)?;
        for (path, item) in &paths {
            places.insert(format!("/paths/{}", escaped(path)), place(&json, item));
        }
        let paths: Vec<_> =
            paths.into_iter().map(|(path, item)| (path.into_owned(), place(&json, item))).collect();
        let servers = root.servers.into_iter().map(|server| server.url).collect();
        let mut document = Self { json, version, places, operations: Vec::new(), servers };
        for (path, item) in paths {
            // members that begin with `x-` are extensions
            if path.starts_with('/') {
                let found = document.operations_of(&path, item)?;
                document.operations.extend(found);
            }
        }
        Ok(document)
    }

    fn operations_of(&self, path: &str, place_of_item: Range<usize>) -> Result<Vec<Operation>, String> {
        let failed = |error: &dyn std::fmt::Display| format!("the path `{}`: {error}", shown(path));
        let item = self.json.get(place_of_item).unwrap_or_default();
        let item = self.followed(item).map_err(|error| failed(&error))?;
        let item: Members<'_> = serde_json::from_str(item).map_err(|error| failed(&error))?;
        let parameters = item.get("parameters").map_or("null", |parameters| parameters.get());
        let parameters: Option<Vec<&RawValue>> =
            serde_json::from_str(parameters).map_err(|error| failed(&error))?;
        let shared: Vec<_> =
            parameters.iter().flatten().map(|parameter| place(&self.json, parameter)).collect();
        let there = METHODS.into_iter().filter_map(|method| {
            let operation = item.get(method.to_ascii_lowercase().as_str())?;
            (operation.get() != "null").then_some((method, *operation))
        });
        let operations = there.map(|(method, operation)| {
            let choosable: Choosable =
                serde_json::from_str(operation.get()).map_err(|error| failed(&error))?;
            Ok(Operation {
                method,
                path: path.to_owned(),
                id: choosable.operation_id.filter(|id| !id.is_empty()),
                tags: choosable.tags,
                is_deprecated: choosable.deprecated,
                place: place(&self.json, operation),
                shared_parameters: shared.clone(),
            })
        });
        operations.collect()
    }

    /// The value at a place.
    pub(crate) fn at<'d, T: Deserialize<'d>>(&'d self, place: &Range<usize>) -> Result<T, String> {
        serde_json::from_str(self.json.get(place.clone()).unwrap_or_default())
            .map_err(|error| error.to_string())
    }

    /// The JSON that a reference leads to, through other references, and where it is.
    pub(crate) fn resolve(&self, reference: &str) -> Result<(usize, &str), String> {
        let mut found = self.find(reference)?;
        // a cycle of references has no value
        for _ in 0..16 {
            match reference_in(found) {
                None => return Ok((found.as_ptr().addr() - self.json.as_ptr().addr(), found)),
                Some(next) => found = self.find(&next)?,
            }
        }
        Err(format!("the reference `{}` leads to references without an end", shown(reference)))
    }

    /// The JSON that a reference names.
    fn find(&self, reference: &str) -> Result<&str, String> {
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(format!(
                "the reference `{}` leads to another document\nbundle the description into one file",
                shown(reference)
            ));
        };
        let missing = || format!("the reference `{}` leads to nothing", shown(reference));
        let pointer = percent_decode_str(pointer).decode_utf8_lossy();
        let ends: Vec<usize> =
            pointer.match_indices('/').map(|(at, _)| at).chain([pointer.len()]).take(MAX_STEPS).collect();
        // the longest part of it whose place is known: that of a component has three steps
        let place = |end: &usize| Some((*end, self.places.get(pointer.get(..*end)?)?.clone()));
        let known = ends.iter().take(4).rev().find_map(place).filter(|_| ends.len() < MAX_STEPS);
        let (end, known) = known.ok_or_else(missing)?;
        let mut json = self.json.get(known).unwrap_or_default();
        for step in pointer.get(end..).unwrap_or_default().split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let child = match serde_json::from_str::<Members<'_>>(json) {
                Ok(members) => members.get(step.as_str()).copied(),
                Err(_) => {
                    let items: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| missing())?;
                    step.parse().ok().and_then(|index: usize| items.get(index).copied())
                }
            };
            json = child.ok_or_else(missing)?.get();
        }
        Ok(json)
    }

    /// The JSON of a value that may be a reference to one.
    fn followed<'d>(&'d self, json: &'d str) -> Result<&'d str, String> {
        reference_in(json).map_or(Ok(json), |reference| Ok(self.resolve(&reference)?.1))
    }

    /// A value that may be a reference to one.
    pub(crate) fn resolved<T: DeserializeOwned>(&self, json: &RawValue) -> Result<T, String> {
        serde_json::from_str(self.followed(json.get())?).map_err(|error| error.to_string())
    }
}

/// The reference that a value is.
fn reference_in(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Reference {
        #[serde(rename = "$ref")]
        reference: String,
    }
    serde_json::from_str(json).ok().map(|Reference { reference }| reference)
}

/// Where a part is in the whole.
fn place(whole: &str, part: &RawValue) -> Range<usize> {
    let start = part.get().as_ptr().addr() - whole.as_ptr().addr();
    start..start + part.get().len()
}

fn members(object: Option<&RawValue>) -> Result<Members<'_>, String> {
    object.map_or_else(
        || Ok(Members::new()),
        |object| {
            serde_json::from_str(object.get()).map_err(|error| format!("a part is not an object: {error}"))
        },
    )
}

/// As [`members`], in the order of the text.
fn members_in_order(object: Option<&RawValue>) -> Result<Vec<(Cow<'_, str>, &RawValue)>, String> {
    let mut members: Vec<_> = members(object)?.into_iter().collect();
    members.sort_by_key(|(_, member)| member.get().as_ptr().addr());
    Ok(members)
}

/// A step of a JSON pointer.
fn escaped(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

/// The beginning of a text of a description, as messages show it: without characters that a terminal obeys.
pub(crate) fn shown(text: &str) -> String {
    let beginning: String = text.chars().take(80).collect();
    let end = if beginning.len() < text.len() { "…" } else { "" };
    format!("{}{end}", beginning.escape_debug())
}
