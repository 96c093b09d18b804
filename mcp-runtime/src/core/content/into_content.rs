//! Conversion of return values into content blocks.

use std::borrow::Cow;

use super::{Audio, Content, Embedded, Image, ResourceLink, Text};

/// Types that convert into one content block.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a content block",
    label = "not a content block",
    note = "blocks are text (`String`, `&'static str`), `Content`, `Image`, `Audio`, `ResourceLink` and `Embedded`"
)]
pub trait IntoContent {
    /// Converts the value into a block.
    fn into_content(self) -> Content;
}

macro_rules! impl_for_blocks {
    ($($t:ty)*) => {$(
        impl IntoContent for $t {
            fn into_content(self) -> Content {
                self.into()
            }
        }
    )*};
}
impl_for_blocks!(Content Text Image Audio ResourceLink Embedded);

macro_rules! impl_for_text {
    ($($t:ty)*) => {$(
        impl IntoContent for $t {
            fn into_content(self) -> Content {
                Content::text(self)
            }
        }
    )*};
}
impl_for_text!(String &'static str Cow<'static, str>);
