//! What was made can be read again: blocks, resource contents and results.

use mcp_runtime::{
    content::{
        Audio, Content, Embedded, Icon, Image, Message, ResourceContents, ResourceLink, Role, Text, Theme,
    },
    context::LogLevel,
    prompt::PromptResult,
    resource::ResourceResult,
};

use crate::prelude::*;

#[test]
fn blocks_can_be_read() {
    let text = Text::new("a").annotated(|hints| hints.priority(0.5).audience([Role::User])).meta("k", 1);
    assert_eq!(text.text, "a");
    let annotations = text.annotations.expect("annotations");
    assert_eq!((annotations.priority, &annotations.audience[..]), (Some(0.5), &[Role::User][..]));
    assert_eq!(text.meta.map(|meta| meta["k"].clone()), Some(json!(1)));
    assert_eq!((Text::new("a").annotations, Text::new("a").meta), (None, None));

    let image = Image::new([1, 2, 3], "image/png");
    assert_eq!((&*image.mime, &*image.to_base64()), ("image/png", "AQID"));
    assert_eq!(image.to_bytes().as_deref(), Some(&[1, 2, 3][..]));
    let audio = Audio::from_base64("AQID", "audio/wav");
    assert_eq!((&*audio.mime, &*audio.to_base64()), ("audio/wav", "AQID"));
    assert_eq!(audio.to_bytes().as_deref(), Some(&[1, 2, 3][..]));
    assert_eq!(Audio::from_base64("?", "audio/wav").to_bytes(), None);

    let icon = Icon::new("https://example.org/i.png").mime("image/png").sizes(["any"]).theme(Theme::Dark);
    let link =
        ResourceLink::new("a://b", "b").title("t").description("d").mime("m/n").size(3).icon(icon.clone());
    assert_eq!((&*link.uri, &*link.name, link.size), ("a://b", "b", Some(3)));
    assert_eq!(
        [&link.title, &link.description, &link.mime].map(Option::as_deref),
        [Some("t"), Some("d"), Some("m/n")]
    );
    assert_eq!(link.icons, std::slice::from_ref(&icon));
    assert_eq!(
        (&*icon.src, icon.mime.as_deref(), icon.theme),
        ("https://example.org/i.png", Some("image/png"), Some(Theme::Dark))
    );
    assert_eq!(*icon.sizes, ["any"]);

    let embedded = Embedded::text("a://b", "text/css", "c");
    assert_eq!(embedded.resource.as_text(), Some("c"));
    let Content::Embedded(embedded) = Content::from(embedded) else { panic!("another block") };
    assert_eq!(embedded.resource.uri.as_deref(), Some("a://b"));
}

#[test]
fn results_can_be_read() {
    let contents = ResourceContents::blob([1, 2, 3]).uri("a://b").mime("m/n").meta("k", 1);
    assert_eq!((contents.uri.as_deref(), contents.mime.as_deref()), (Some("a://b"), Some("m/n")));
    assert_eq!((contents.as_text(), contents.to_base64().as_deref()), (None, Some("AQID")));
    assert_eq!(contents.to_bytes().as_deref(), Some(&[1, 2, 3][..]));
    assert_eq!(contents.meta.as_ref().map(|meta| meta["k"].clone()), Some(json!(1)));
    let text = ResourceContents::text("t");
    assert_eq!((text.as_text(), text.to_base64(), text.to_bytes()), (Some("t"), None, None));

    let result = ResourceResult::new([text]).meta("k", 2);
    assert_eq!(result.contents.len(), 1);
    assert_eq!(result.meta.as_ref().map(|meta| meta["k"].clone()), Some(json!(2)));
    let result = PromptResult::new([Message::user("u")]).description("d").meta("k", 3);
    assert_eq!((result.messages[0].role, result.messages[0].content.as_text()), (Role::User, Some("u")));
    assert_eq!(result.meta.as_ref().map(|meta| meta["k"].clone()), Some(json!(3)));
    let result = ToolResult::text("t").structured(&[1, 2]).expect("JSON").meta("k", 4).failed();
    assert_eq!(result.structured_content(), Some(json!([1, 2])));
    assert_eq!(result.meta.as_ref().map(|meta| meta["k"].clone()), Some(json!(4)));
    assert!(result.is_error);
    assert_eq!(ToolResult::text("t").structured_content(), None);
}

#[test]
fn wire_names_are_parsed() {
    for &revision in Revision::ALL {
        assert_eq!(revision.as_str().parse(), Ok(revision));
    }
    for level in LogLevel::ALL {
        assert_eq!(level.as_str().parse(), Ok(level));
    }
    let error = "2020-01-01".parse::<Revision>().unwrap_err();
    assert_eq!(error.to_string(), "`2020-01-01` is not a supported revision");
    let error = "WARNING".parse::<LogLevel>().unwrap_err();
    assert_eq!(error.to_string(), "`WARNING` is not a log level");
}
