//! One field of a form: read from the schema of a struct's field, written as the client's revision knows it.

use serde_json::{Map, Value};

use crate::core::jsonrpc::{Object, write_array};

/// One field of a form.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FormField {
    pub(super) name: String,
    pub(super) required: bool,
    title: Option<String>,
    description: Option<String>,
    default: Option<Value>,
    pub(super) kind: FieldKind,
}

/// The values that a field takes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FieldKind {
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
    Choice(FieldOptions),
    /// Several of a list.
    Choices {
        options: FieldOptions,
        least: Option<u64>,
        most: Option<u64>,
    },
}

/// The values that a user chooses from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FieldOptions {
    values: Vec<String>,
    titles: OptionTitles,
}

/// The labels of the values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OptionTitles {
    /// The values themselves.
    None,
    /// A title for each.
    Each(Vec<String>),
    /// The schema's `enumNames`, which older clients know.
    Names(Vec<String>),
}

/// The formats that forms define; others are omitted.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

impl FormField {
    /// Reads a property.
    ///
    /// # Errors
    /// The kind of value that it has instead, as in `a map`.
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
            kind: read_kind(&property)?,
        })
    }

    /// Writes the members of the property; `rich` from 2025-11-25 on.
    pub(super) fn write(&self, property: &mut Object<'_>, rich: bool) {
        let (name, keeps_default) = match &self.kind {
            FieldKind::Text { .. } | FieldKind::Choice(_) => ("string", rich),
            FieldKind::Number { whole: true, .. } => ("integer", rich),
            FieldKind::Number { whole: false, .. } => ("number", rich),
            FieldKind::Flag => ("boolean", true),
            FieldKind::Choices { .. } => ("array", rich),
        };
        property.str("type", name);
        property.opt_str("title", self.title.as_deref()).opt_str("description", self.description.as_deref());
        match &self.kind {
            FieldKind::Text { least, most, format } => {
                write_counts(property, [("minLength", *least), ("maxLength", *most)]);
                property.opt_str("format", format.as_deref());
            }
            FieldKind::Number { least, most, .. } => {
                for (keyword, bound) in [("minimum", least), ("maximum", most)] {
                    if let Some(bound) = bound {
                        property.value(keyword, bound);
                    }
                }
            }
            FieldKind::Flag => {}
            FieldKind::Choice(options) => options.write(property, "oneOf", rich),
            FieldKind::Choices { options, least, most } => {
                write_counts(property, [("minItems", *least), ("maxItems", *most)]);
                property.object("items", |items| {
                    if !matches!(options.titles, OptionTitles::Each(_)) {
                        items.raw("type", "\"string\"");
                    }
                    options.write(items, "anyOf", rich);
                });
            }
        }
        if let Some(default) = self.default.as_ref().filter(|_| keeps_default) {
            property.value("default", default);
        }
    }
}

fn write_counts(property: &mut Object<'_>, counts: [(&str, Option<u64>); 2]) {
    for (keyword, count) in counts {
        if let Some(count) = count {
            property.value(keyword, &count);
        }
    }
}

impl FieldOptions {
    fn write(&self, schema: &mut Object<'_>, keyword: &str, rich: bool) {
        match &self.titles {
            OptionTitles::Each(titles) if rich => {
                let each = self.values.iter().zip(titles);
                write_array(schema.key(keyword), each, |out, (value, title)| {
                    let mut one = Object::new(out);
                    one.str("const", value).str("title", title);
                    one.end();
                });
            }
            OptionTitles::Each(names) | OptionTitles::Names(names) => {
                schema.value("enum", &self.values).value("enumNames", names);
            }
            OptionTitles::None => {
                schema.value("enum", &self.values);
            }
        }
    }
}

fn read_kind(schema: &Map<String, Value>) -> Result<FieldKind, String> {
    if let Some(options) = read_options(schema)? {
        return Ok(FieldKind::Choice(options));
    }
    let count = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
    if schema.contains_key("$ref") {
        return Err("a type that contains itself".to_owned());
    }
    Err(match schema.get("type") {
        Some(Value::String(name)) => match name.as_str() {
            "boolean" => return Ok(FieldKind::Flag),
            "string" => {
                let format = schema.get("format").and_then(Value::as_str);
                let format = format.filter(|format| FORMATS.contains(format)).map(str::to_owned);
                return Ok(FieldKind::Text { least: count("minLength"), most: count("maxLength"), format });
            }
            "integer" | "number" => {
                let whole = name == "integer";
                let (least, most) = read_bounds(schema, whole);
                return Ok(FieldKind::Number { whole, least, most });
            }
            "array" => return read_choices(schema),
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

fn read_choices(schema: &Map<String, Value>) -> Result<FieldKind, String> {
    if schema.contains_key("prefixItems") {
        return Err("a tuple".to_owned());
    }
    let items = schema.get("items").and_then(Value::as_object);
    let Some(options) = items.map(read_options).transpose()?.flatten() else {
        return Err("a list whose items are not an enum".to_owned());
    };
    let count = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
    Ok(FieldKind::Choices { options, least: count("minItems"), most: count("maxItems") })
}

/// Forms have inclusive bounds only; an exclusive one of integers is the next inclusive one.
fn read_bounds(schema: &Map<String, Value>, whole: bool) -> (Option<Value>, Option<Value>) {
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
fn read_options(schema: &Map<String, Value>) -> Result<Option<FieldOptions>, String> {
    let mut values = Vec::new();
    let mut titles: Vec<Option<String>> = Vec::new();
    if let Some(Value::Array(variants)) = schema.get("oneOf") {
        for variant in variants {
            let Some(variant) = variant.as_object() else { return Err("an enum with data".to_owned()) };
            let Some(listed) = list_values(variant)? else { return Err("an enum with data".to_owned()) };
            let title = if listed.len() == 1 { variant_title(variant) } else { None };
            titles.extend(listed.iter().map(|_| title.clone()));
            values.extend(listed);
        }
    } else if let Some(listed) = list_values(schema)? {
        titles.resize(listed.len(), None);
        values = listed;
    } else {
        return Ok(None);
    }
    let titles = match schema.get("enumNames").map(read_names) {
        Some(Some(names)) if names.len() == values.len() => OptionTitles::Names(names),
        Some(_) => {
            return Err(format!("an enum whose `enumNames` are not {} strings, one a value", values.len()));
        }
        None if titles.iter().all(Option::is_none) => OptionTitles::None,
        None => {
            let each = titles.into_iter().zip(&values);
            OptionTitles::Each(each.map(|(title, value)| title.unwrap_or_else(|| value.clone())).collect())
        }
    };
    Ok(Some(FieldOptions { values, titles }))
}

fn read_names(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect()
}

fn list_values(schema: &Map<String, Value>) -> Result<Option<Vec<String>>, String> {
    let listed = match (schema.get("const"), schema.get("enum")) {
        (Some(one), _) => std::slice::from_ref(one),
        (None, Some(Value::Array(several))) => several,
        _ => return Ok(None),
    };
    let strings: Option<Vec<String>> = listed.iter().map(|one| one.as_str().map(str::to_owned)).collect();
    strings.map(Some).ok_or_else(|| "an enum whose values are not strings".to_owned())
}

/// The title of a variant, or else the first line of its documentation.
fn variant_title(variant: &Map<String, Value>) -> Option<String> {
    let text = |keyword: &str| variant.get(keyword).and_then(Value::as_str);
    text("title").map(str::to_owned).or_else(|| {
        let line = text("description")?.lines().next()?.trim();
        Some(line.strip_suffix('.').unwrap_or(line).to_owned()).filter(|line| !line.is_empty())
    })
}

/// The schema of the values other than `null`.
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
