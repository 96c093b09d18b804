//! The functions by which a model finds and reads a server's resources.

use serde_json::{Map, Value, json};

use crate::client::{ResourceInfo, TemplateInfo, ToolInfo};

pub(super) const RESOURCES_LIST: &str = "resources_list";
pub(super) const RESOURCES_READ: &str = "resources_read";
pub(super) const RESOURCES_TEMPLATES_LIST: &str = "resources_templates_list";

/// Their definitions, as `tools/list` would have them.
pub(super) fn resource_tools() -> impl Iterator<Item = ToolInfo> {
    let offset = json!({
        "type": "object",
        "properties": {
            "offset": { "type": "integer", "minimum": 0, "description": "`next_offset` of the previous part" },
        },
    });
    let uri = json!({
        "type": "object",
        "properties": { "uri": { "type": "string", "description": "The URI of the resource" } },
        "required": ["uri"],
    });
    let definitions = [
        (RESOURCES_LIST, "Lists the server's resources: data that can be read by URI.", offset.clone()),
        (RESOURCES_READ, "Reads a resource of the server.", uri),
        (
            RESOURCES_TEMPLATES_LIST,
            "Lists URI templates: with its variables filled in, each is the URI of a resource.",
            offset,
        ),
    ];
    definitions.into_iter().filter_map(|(name, description, schema)| {
        ToolInfo::new(json!({
            "name": name,
            "description": description,
            "inputSchema": schema,
            "annotations": { "readOnlyHint": true },
        }))
    })
}

/// The members of a resource that a model needs.
pub(super) fn resource_entry(resource: &ResourceInfo) -> Value {
    brief(resource.raw(), &["uri", "name", "title", "description", "mimeType", "size"])
}

pub(super) fn template_entry(template: &TemplateInfo) -> Value {
    brief(template.raw(), &["uriTemplate", "name", "title", "description", "mimeType"])
}

fn brief(entry: &Value, keys: &[&str]) -> Value {
    let member = |key: &&str| Some(((*key).to_owned(), entry.get(*key)?.clone()));
    Value::Object(keys.iter().filter_map(member).collect())
}

/// As many entries from `offset` on as have room in that many characters, at least one, and where the rest begins.
pub(super) fn page(member: &str, entries: &[Value], offset: usize, max_chars: usize) -> Value {
    let mut page = Vec::new();
    let mut chars = 60; // of the object around them
    for entry in entries.iter().skip(offset) {
        chars += entry.to_string().chars().count() + 1;
        if chars > max_chars && !page.is_empty() {
            break;
        }
        page.push(entry.clone());
    }
    let next = offset.saturating_add(page.len());
    let mut result = Map::new();
    result.insert(member.to_owned(), page.into());
    if next < entries.len() {
        result.insert("next_offset".to_owned(), next.into());
    }
    Value::Object(result)
}
