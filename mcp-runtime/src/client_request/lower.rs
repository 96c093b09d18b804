//! Writes the params of elicitations, lowered to what the client's revision knows.
//!
//! `elicit` and `url` call it when they are polled first.

use crate::client_request::{
    Refusal,
    field::{Field, Kind, Options, Titles},
    form::Form,
};
use crate::{
    jsonrpc::{Object, write_array, write_string},
    protocol::Revision,
};

/// The params of a form.
///
/// # Errors
/// The revision has no forms, or not this kind of field.
pub(super) fn form(message: &str, form: &Form, revision: Revision) -> Result<Vec<u8>, Refusal> {
    if revision < Revision::V2025_06_18 {
        return Err(Refusal::Revision("elicitation"));
    }
    let rich = revision >= Revision::V2025_11_25;
    if !rich && form.has_several() {
        return Err(Refusal::Revision("fields for several values of a list"));
    }
    let mut out = Vec::with_capacity(256);
    let mut params = Object::new(&mut out);
    if rich {
        params.raw("mode", "\"form\"");
    }
    params.str("message", message).object("requestedSchema", |schema| {
        schema.raw("type", "\"object\"").object("properties", |properties| {
            for field in &form.fields {
                let mut property = Object::new(properties.escaped_key(&field.name));
                write(&mut property, field, rich);
                property.end();
            }
        });
        let required: Vec<&Field> = form.fields.iter().filter(|field| field.required).collect();
        if !required.is_empty() {
            write_array(schema.key("required"), required, |out, field| write_string(out, &field.name));
        }
    });
    params.end();
    Ok(out)
}

/// The params of an elicitation by URL; only 2025-11-25 knows the id.
///
/// # Errors
/// The revision has no such elicitation.
pub(super) fn url(message: &str, url: &str, id: &str, revision: Revision) -> Result<Vec<u8>, Refusal> {
    if revision < Revision::V2025_11_25 {
        return Err(Refusal::Revision("elicitation by URL"));
    }
    let mut out = Vec::with_capacity(192);
    let mut params = Object::new(&mut out);
    params.raw("mode", "\"url\"").str("message", message).str("url", url);
    if !revision.is_modern() {
        params.str("elicitationId", id);
    }
    params.end();
    Ok(out)
}

fn write(property: &mut Object<'_>, field: &Field, rich: bool) {
    let (name, keeps_default) = match &field.kind {
        Kind::Text { .. } | Kind::Choice(_) => ("string", rich),
        Kind::Number { whole: true, .. } => ("integer", rich),
        Kind::Number { whole: false, .. } => ("number", rich),
        Kind::Flag => ("boolean", true),
        Kind::Choices { .. } => ("array", rich),
    };
    property.str("type", name);
    property.opt_str("title", field.title.as_deref()).opt_str("description", field.description.as_deref());
    match &field.kind {
        Kind::Text { least, most, format } => {
            counts(property, [("minLength", *least), ("maxLength", *most)]);
            property.opt_str("format", format.as_deref());
        }
        Kind::Number { least, most, .. } => {
            for (keyword, bound) in [("minimum", least), ("maximum", most)] {
                if let Some(bound) = bound {
                    property.value(keyword, bound);
                }
            }
        }
        Kind::Flag => {}
        Kind::Choice(options) => choice(property, options, "oneOf", rich),
        Kind::Choices { options, least, most } => {
            counts(property, [("minItems", *least), ("maxItems", *most)]);
            property.object("items", |items| {
                if !matches!(options.titles, Titles::Each(_)) {
                    items.raw("type", "\"string\"");
                }
                choice(items, options, "anyOf", rich);
            });
        }
    }
    if let Some(default) = field.default.as_ref().filter(|_| keeps_default) {
        property.value("default", default);
    }
}

fn counts(property: &mut Object<'_>, counts: [(&str, Option<u64>); 2]) {
    for (keyword, count) in counts {
        if let Some(count) = count {
            property.value(keyword, &count);
        }
    }
}

fn choice(schema: &mut Object<'_>, options: &Options, keyword: &str, rich: bool) {
    match &options.titles {
        Titles::Each(titles) if rich => {
            let each = options.values.iter().zip(titles);
            write_array(schema.key(keyword), each, |out, (value, title)| {
                let mut one = Object::new(out);
                one.str("const", value).str("title", title);
                one.end();
            });
        }
        Titles::Each(names) | Titles::Names(names) => {
            schema.value("enum", &options.values).value("enumNames", names);
        }
        Titles::None => {
            schema.value("enum", &options.values);
        }
    }
}
