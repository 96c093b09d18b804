//! One field of a form, read from the schema of a struct's field.
//!
//! `form` reads them, `lower` writes them.

use serde_json::{Map, Value};

/// One field of a form.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) default: Option<Value>,
    pub(super) kind: Kind,
}

/// What a field asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Text {
        least: Option<u64>,
        most: Option<u64>,
        format: Option<String>,
    },
    Number {
        whole: bool,
        least: Option<Value>,
        most: Option<Value>,
    },
    Flag,
    /// One of a list.
    Choice(Options),
    /// Several of a list.
    Choices {
        options: Options,
        least: Option<u64>,
        most: Option<u64>,
    },
}

/// The values that a user chooses from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Options {
    pub(super) values: Vec<String>,
    pub(super) titles: Titles,
}

/// How the values are shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Titles {
    /// As they are.
    None,
    /// Under a title each.
    Each(Vec<String>),
    /// Under the names that the user's schema has in `enumNames`, which older clients know.
    Names(Vec<String>),
}

/// Formats that forms know; the others would mean nothing to a client.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

impl Field {
    /// Reads a property.
    ///
    /// # Errors
    /// What it is instead, as in `a map`.
    pub(super) fn read(name: &str, property: &Value, required: bool) -> Result<Self, String> {
        let Value::Object(property) = property else { return Err("any value".to_owned()) };
        let property = without_null(property);
        let text = |keyword: &str| property.get(keyword).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            name: name.to_owned(),
            required,
            title: text("title"),
            description: text("description"),
            default: property.get("default").filter(|default| !default.is_null()).cloned(),
            kind: kind(&property)?,
        })
    }
}

fn kind(schema: &Map<String, Value>) -> Result<Kind, String> {
    if let Some(options) = options(schema)? {
        return Ok(Kind::Choice(options));
    }
    let count = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
    if schema.contains_key("$ref") {
        return Err("a type that contains itself".to_owned());
    }
    Err(match schema.get("type") {
        Some(Value::String(name)) => match name.as_str() {
            "boolean" => return Ok(Kind::Flag),
            "string" => {
                let format = schema.get("format").and_then(Value::as_str);
                let format = format.filter(|format| FORMATS.contains(format)).map(str::to_owned);
                return Ok(Kind::Text { least: count("minLength"), most: count("maxLength"), format });
            }
            "integer" | "number" => {
                let whole = name == "integer";
                let (least, most) = bounds(schema, whole);
                return Ok(Kind::Number { whole, least, most });
            }
            "array" => return several(schema),
            "object" if schema.contains_key("properties") => "a struct".to_owned(),
            "object" if schema.contains_key("oneOf") => "an enum with data".to_owned(),
            "object" => "a map".to_owned(),
            "null" => "nothing".to_owned(),
            other => format!("a `{other}`"),
        },
        Some(_) => "a value of several types".to_owned(),
        None if ["oneOf", "anyOf"].iter().any(|keyword| schema.contains_key(*keyword)) => {
            "an enum with data".to_owned()
        }
        None => "any value".to_owned(),
    })
}

fn several(schema: &Map<String, Value>) -> Result<Kind, String> {
    if schema.contains_key("prefixItems") {
        return Err("a tuple".to_owned());
    }
    let items = schema.get("items").and_then(Value::as_object);
    let Some(options) = items.map(options).transpose()?.flatten() else {
        return Err("a list whose items are no enum".to_owned());
    };
    let count = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
    Ok(Kind::Choices { options, least: count("minItems"), most: count("maxItems") })
}

/// Forms have inclusive bounds only; an exclusive one of integers is the next inclusive one.
fn bounds(schema: &Map<String, Value>, whole: bool) -> (Option<Value>, Option<Value>) {
    let next = |keyword: &str, step: i64| {
        let bound = schema.get(keyword).filter(|_| whole)?.as_i64()?;
        bound.checked_add(step).map(Value::from)
    };
    let least = schema.get("minimum").cloned().or_else(|| next("exclusiveMinimum", 1));
    let most = schema.get("maximum").cloned().or_else(|| next("exclusiveMaximum", -1));
    (least, most)
}

/// The values of a schema that lists strings; none if it lists nothing.
///
/// # Errors
/// It lists something else.
fn options(schema: &Map<String, Value>) -> Result<Option<Options>, String> {
    let mut values = Vec::new();
    let mut titles: Vec<Option<String>> = Vec::new();
    if let Some(Value::Array(variants)) = schema.get("oneOf") {
        for variant in variants {
            let Some(variant) = variant.as_object() else { return Err("an enum with data".to_owned()) };
            let Some(listed) = listed(variant)? else { return Err("an enum with data".to_owned()) };
            let title = if listed.len() == 1 { shown(variant) } else { None };
            titles.extend(listed.iter().map(|_| title.clone()));
            values.extend(listed);
        }
    } else if let Some(listed) = listed(schema)? {
        titles.resize(listed.len(), None);
        values = listed;
    } else {
        return Ok(None);
    }
    let titles = match schema.get("enumNames").map(names) {
        Some(Some(names)) if names.len() == values.len() => Titles::Names(names),
        Some(_) => {
            return Err(format!("an enum whose `enumNames` are not {} strings, one a value", values.len()));
        }
        None if titles.iter().all(Option::is_none) => Titles::None,
        None => {
            let each = titles.into_iter().zip(&values);
            Titles::Each(each.map(|(title, value)| title.unwrap_or_else(|| value.clone())).collect())
        }
    };
    Ok(Some(Options { values, titles }))
}

fn names(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect()
}

fn listed(schema: &Map<String, Value>) -> Result<Option<Vec<String>>, String> {
    let listed = match (schema.get("const"), schema.get("enum")) {
        (Some(one), _) => std::slice::from_ref(one),
        (None, Some(Value::Array(several))) => several,
        _ => return Ok(None),
    };
    let strings: Option<Vec<String>> = listed.iter().map(|one| one.as_str().map(str::to_owned)).collect();
    strings.map(Some).ok_or_else(|| "an enum whose values are no strings".to_owned())
}

/// What a variant is called: its title, or else the first line of its documentation.
fn shown(variant: &Map<String, Value>) -> Option<String> {
    let text = |keyword: &str| variant.get(keyword).and_then(Value::as_str);
    text("title").map(str::to_owned).or_else(|| {
        let line = text("description")?.lines().next()?.trim();
        Some(line.strip_suffix('.').unwrap_or(line).to_owned()).filter(|line| !line.is_empty())
    })
}

/// The schema of what is there when something is there.
fn without_null(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut schema = schema.clone();
    if let Some(Value::Array(types)) = schema.get("type")
        && let [one] = types.iter().filter(|name| *name != "null").collect::<Vec<_>>()[..]
    {
        let one = one.clone();
        schema.insert("type".to_owned(), one);
    }
    if let Some(Value::Array(choices)) = schema.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    if let Some(Value::Array(branches)) = schema.get("anyOf") {
        let is_null = |one: &Value| one.get("type").and_then(Value::as_str) == Some("null");
        let rest: Vec<&Value> = branches.iter().filter(|one| !is_null(one)).collect();
        if let [Value::Object(one)] = rest[..] {
            let one = one.clone();
            schema.remove("anyOf");
            for (keyword, value) in one {
                schema.entry(keyword).or_insert(value);
            }
        }
    }
    schema
}
