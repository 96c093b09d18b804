//! What was made can be read again: blocks, resource contents and results.

use mcp_runtime::{
    content::{Audio, Content, Embedded, Image, ResourceContents, Role, Text},
    context::LogLevel,
};

use crate::prelude::*;

#[test]
fn blocks_and_results_can_be_read() {
    let text = Text::new("a").annotated(|hints| hints.priority(0.5).audience([Role::User])).meta("k", 1);
    let annotations = text.annotations.expect("annotations");
    assert_eq!((annotations.priority, &annotations.audience[..]), (Some(0.5), &[Role::User][..]));
    assert_eq!(text.meta.map(|meta| meta["k"].clone()), Some(json!(1)));
    let (image, audio) = (Image::new([1, 2, 3], "image/png"), Audio::from_base64("AQID", "audio/wav"));
    assert_eq!((&*image.to_base64(), &*audio.to_base64()), ("AQID", "AQID"));
    assert_eq!(image.to_bytes().as_deref(), Some(&[1, 2, 3][..]));
    assert_eq!(image.to_bytes(), audio.to_bytes());
    assert_eq!(Audio::from_base64("?", "audio/wav").to_bytes(), None);
    let Content::Embedded(embedded) = Content::from(Embedded::text("a://b", "text/css", "c")) else {
        panic!("another block")
    };
    assert_eq!((embedded.resource.uri.as_deref(), embedded.resource.as_text()), (Some("a://b"), Some("c")));

    let contents = ResourceContents::blob([1, 2, 3]);
    assert_eq!((contents.as_text(), contents.to_base64().as_deref()), (None, Some("AQID")));
    assert_eq!(contents.to_bytes().as_deref(), Some(&[1, 2, 3][..]));
    let text = ResourceContents::text("t");
    assert_eq!((text.as_text(), text.to_base64(), text.to_bytes()), (Some("t"), None, None));
    let result = ToolResult::text("t").structured(&[1, 2]).expect("JSON").failed();
    assert_eq!((result.structured_content(), result.is_error), (Some(json!([1, 2])), true));
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
