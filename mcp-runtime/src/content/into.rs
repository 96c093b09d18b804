//! What becomes a content block by itself. Results and messages take it.

use std::borrow::Cow;

use super::{Audio, Content, Embedded, Image, ResourceLink, Text};

/// Types that are one content block.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a content block",
    label = "not a content block",
    note = "blocks are text (`String`, `&'static str`), `Content`, `Image`, `Audio`, `ResourceLink` and `Embedded`"
)]
pub trait IntoContent {
    /// The block.
    fn into_content(self) -> Content;
}

macro_rules! blocks {
    ($($t:ty)*) => {$(
        impl IntoContent for $t {
            fn into_content(self) -> Content {
                self.into()
            }
        }
    )*};
}
blocks!(Content Text Image Audio ResourceLink Embedded);

macro_rules! texts {
    ($($t:ty)*) => {$(
        impl IntoContent for $t {
            fn into_content(self) -> Content {
                Content::text(self)
            }
        }
    )*};
}
texts!(String &'static str Cow<'static, str>);
