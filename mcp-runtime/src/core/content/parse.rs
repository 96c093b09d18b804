//! Content as clients receive it: blocks of unknown kinds, and known ones without what they must have, are kept as they
//! are.

use serde_json::{Map, Value};

use super::{
    Annotations, Audio, Content, Embedded, Icon, Image, Message, ResourceContents, ResourceLink, Role, Text,
    Theme,
};

/// Parses a block of a tool's result or of a prompt's message.
pub(crate) fn parse_content(mut block: Value) -> Content {
    match plain_text(&mut block) {
        Some(text) => Content::Text(Text::new(text)),
        None => parse_known(&block).unwrap_or(Content::Unknown(block)),
    }
}

/// Takes the text out of a text block that has nothing else: most have not, and the text may be large.
pub(super) fn plain_text(block: &mut Value) -> Option<String> {
    let members = block.as_object_mut().filter(|members| members.len() == 2)?;
    if members.get("type")? != "text" {
        return None;
    }
    match members.get_mut("text")? {
        Value::String(text) => Some(std::mem::take(text)),
        _ => None,
    }
}

/// `None` for a block of another kind, or one that lacks a member.
pub(super) fn parse_known(block: &Value) -> Option<Content> {
    let text = |key: &str| block.get(key)?.as_str().map(str::to_owned);
    let annotations = block.get("annotations").and_then(parse_annotations).map(Box::new);
    let meta = parse_meta(block);
    Some(match block.get("type")?.as_str()? {
        "text" => Content::Text(Text { annotations, meta, ..Text::new(text("text")?) }),
        "image" => Content::Image(Image {
            annotations,
            meta,
            ..Image::from_base64(text("data")?, text("mimeType")?)
        }),
        "audio" => Content::Audio(Audio {
            annotations,
            meta,
            ..Audio::from_base64(text("data")?, text("mimeType")?)
        }),
        "resource_link" => Content::ResourceLink(ResourceLink {
            title: text("title"),
            description: text("description"),
            mime: text("mimeType"),
            size: block.get("size").and_then(Value::as_u64),
            icons: block.get("icons").map(parse_icons).unwrap_or_default(),
            annotations,
            meta,
            ..ResourceLink::new(text("uri")?, text("name")?)
        }),
        "resource" => Content::Embedded(Embedded {
            annotations,
            meta,
            ..Embedded::new(ResourceContents::from_json_exactly(block.get("resource")?)?)
        }),
        _ => return None,
    })
}

impl ResourceContents {
    /// One item of `contents`; `None` if it has neither text nor a blob.
    pub(crate) fn from_json(item: &Value) -> Option<Self> {
        let text = |key: &str| item.get(key)?.as_str().map(str::to_owned);
        let contents = match text("text") {
            Some(text) => Self::text(text),
            None => Self::blob_from_base64(text("blob")?),
        };
        let meta = item.get("_meta").and_then(Value::as_object).cloned().map(Box::new);
        Some(Self { uri: text("uri"), mime: text("mimeType"), meta, ..contents })
    }
}

/// Parses a prompt's message; `None` if its role is unknown.
pub(crate) fn parse_message(message: &Value) -> Option<Message> {
    let role = parse_role(message.get("role")?)?;
    Some(Message { role, content: parse_content(message.get("content")?.clone()) })
}

fn parse_role(role: &Value) -> Option<Role> {
    match role.as_str()? {
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        _ => None,
    }
}

fn parse_annotations(annotations: &Value) -> Option<Annotations> {
    let annotations = annotations.as_object()?;
    let audience = annotations.get("audience").and_then(Value::as_array);
    Some(Annotations {
        audience: audience.into_iter().flatten().filter_map(parse_role).collect(),
        priority: annotations.get("priority").and_then(Value::as_f64),
        last_modified: annotations.get("lastModified").and_then(Value::as_str).map(str::to_owned),
    })
}

fn parse_meta(object: &Value) -> Option<Box<Map<String, Value>>> {
    object.get("_meta")?.as_object().cloned().map(Box::new)
}

fn parse_icons(icons: &Value) -> Vec<Icon> {
    let icons = icons.as_array().map(Vec::as_slice).unwrap_or_default();
    let parse = |icon: &Value| {
        let sizes = icon.get("sizes").and_then(Value::as_array);
        Some(Icon {
            mime: icon.get("mimeType").and_then(Value::as_str).map(|mime| mime.to_owned().into()),
            sizes: sizes
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(|s| s.to_owned().into())
                .collect(),
            theme: match icon.get("theme").and_then(Value::as_str) {
                Some("light") => Some(Theme::Light),
                Some("dark") => Some(Theme::Dark),
                _ => None,
            },
            ..Icon::new(icon.get("src")?.as_str()?.to_owned())
        })
    };
    icons.iter().filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::{content::ContentWriter, protocol::Revision};

    #[test]
    fn what_the_server_writes_is_read_back() {
        let link = ResourceLink::new("file:///a", "a").title("A").size(3).icon("https://example.com/a.png");
        let blocks: [Content; 6] = [
            Text::new("t")
                .annotated(|hints| hints.priority(0.5).audience([Role::User]).last_modified("2026-01-01"))
                .into(),
            Image::new([1, 2, 3], "image/png").meta("k", 1).into(),
            Audio::new([4], "audio/wav").into(),
            link.into(),
            Embedded::text("file:///b", "text/plain", "b").into(),
            Embedded::blob("file:///c", "image/png", [9]).into(),
        ];
        for block in blocks {
            let write = |block: &Content| {
                let mut out = Vec::new();
                ContentWriter(Revision::LATEST).write_content(&mut out, block);
                serde_json::from_slice::<Value>(&out).unwrap()
            };
            let written = write(&block);
            let read = parse_content(written.clone());
            assert!(!matches!(read, Content::Unknown(_)), "{written}");
            assert_eq!(write(&read), written);
        }
    }

    #[test]
    fn a_link_without_a_name_is_named_by_its_uri() {
        for (revision, member, text) in
            [(Revision::LATEST, "name", "file:///a"), (Revision::V2024_11_05, "text", "file:///a: file:///a")]
        {
            let mut out = Vec::new();
            ContentWriter(revision).write_content(&mut out, &ResourceLink::from("file:///a").into());
            assert_eq!(serde_json::from_slice::<Value>(&out).unwrap()[member], text);
        }
    }

    #[test]
    fn blocks_of_other_kinds_are_kept() {
        for block in [json!({ "type": "video", "x": 1 }), json!({ "type": "image" }), json!(3), json!({})] {
            assert_eq!(parse_content(block.clone()), Content::Unknown(block.clone()));
            let mut out = Vec::new();
            ContentWriter(Revision::LATEST).write_content(&mut out, &Content::Unknown(block.clone()));
            assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), block);
        }
    }
}
