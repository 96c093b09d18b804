//! Icons of tools, resources, prompts, links and of the server itself.

use std::borrow::Cow;

/// The background that an icon is designed for: `theme` on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Theme {
    /// `light`
    Light,
    /// `dark`
    Dark,
}

impl Theme {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// An image that a client may show next to a name; clients before 2025-11-25 do not see it.
///
/// Clients reject URIs other than `https:` and `data:`, and may reject those of another origin than the server's. Every
/// client supports `image/png` and `image/jpeg`. If there are several icons, the client chooses one.
///
/// ```
/// use mcp_runtime::content::{Icon, Theme};
///
/// let small = Icon::new("https://example.com/48.png").mime("image/png").sizes(["48x48"]);
/// let night = Icon::new("https://example.com/night.svg").sizes(["any"]).theme(Theme::Dark);
/// let server = mcp_runtime::server!().info(|info| info.icon(small).icon(night).icon("https://example.com/any.png"));
/// ```
///
/// See [icons](https://modelcontextprotocol.io/specification/2026-07-28/basic#icons).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Icon {
    /// `src` on the wire.
    pub src: Cow<'static, str>,
    /// `mimeType` on the wire.
    pub mime: Option<Cow<'static, str>>,
    /// `sizes` on the wire; empty if the icon suits every size.
    pub sizes: Cow<'static, [Cow<'static, str>]>,
    /// `theme` on the wire; `None` if the icon suits every background.
    pub theme: Option<Theme>,
}

impl Icon {
    /// The icon at an `https:` URL, or in a `data:` URI.
    pub fn new(src: impl Into<Cow<'static, str>>) -> Self {
        Self { src: src.into(), mime: None, sizes: Cow::Borrowed(&[]), theme: None }
    }

    /// Sets `mimeType` on the wire, for a source whose own type is missing or too general.
    #[must_use]
    pub fn mime(mut self, mime: impl Into<Cow<'static, str>>) -> Self {
        self.mime = Some(mime.into());
        self
    }

    /// Sets `sizes` on the wire, in pixels: `48x48`, or `any` for scalable images; by default, the icon suits every size.
    #[must_use]
    pub fn sizes<S: Into<Cow<'static, str>>>(mut self, sizes: impl IntoIterator<Item = S>) -> Self {
        self.sizes = sizes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the background that it is designed for; by default, the icon suits every background.
    #[must_use]
    pub fn theme(mut self, theme: Theme) -> Self {
        self.theme = Some(theme);
        self
    }

    /// Checks what clients reject; the macros check icons in attributes in the same way.
    ///
    /// # Errors
    /// The source is not an `https:` or `data:` URI, or a size is malformed.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if !is_valid_source(&self.src) {
            return Err(format!(
                "icon `{}` is neither an `https:` nor a `data:` URI, and clients reject every other\n\
                 give one, such as `https://example.org/icon.png`",
                self.src
            ));
        }
        let Some(size) = self.sizes.iter().find(|size| !is_valid_size(size)) else { return Ok(()) };
        Err(format!(
            "icon `{}` has `{size}` among its sizes\nwrite width and height in pixels, such as `48x48`, or `any`",
            self.src
        ))
    }
}

impl<T: Into<String>> From<T> for Icon {
    fn from(src: T) -> Self {
        Self::new(src.into())
    }
}

/// An icon that an attribute declares.
#[must_use]
pub const fn icon(
    src: &'static str,
    mime: Option<&'static str>,
    sizes: &'static [Cow<'static, str>],
    theme: Option<Theme>,
) -> Icon {
    let mime = match mime {
        Some(mime) => Some(Cow::Borrowed(mime)),
        None => None,
    };
    Icon { src: Cow::Borrowed(src), mime, sizes: Cow::Borrowed(sizes), theme }
}

fn is_valid_source(src: &str) -> bool {
    let Some((scheme, rest)) = src.split_once(':') else { return false };
    let is_clean = !rest.contains(|c: char| c.is_whitespace() || c.is_control());
    let is_https = || rest.strip_prefix("//").is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
    is_clean
        && (scheme.eq_ignore_ascii_case("https") && is_https()
            || scheme.eq_ignore_ascii_case("data") && rest.contains(','))
}

fn is_valid_size(text: &str) -> bool {
    let is_length = |digits: &str| {
        digits.bytes().next().is_some_and(|first| (b'1'..=b'9').contains(&first))
            && digits.bytes().all(|b| b.is_ascii_digit())
    };
    text == "any" || text.split_once('x').is_some_and(|(width, height)| is_length(width) && is_length(height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icons_that_clients_reject_are_invalid() {
        for src in ["https://a.example/i.png", "HTTPS://a", "data:image/png;base64,AA"] {
            assert_eq!(Icon::new(src).sizes(["any", "48x96"]).validate(), Ok(()), "{src}");
        }
        for src in [
            "",
            "i.png",
            "http://a/i.png",
            "https://",
            "https:///a",
            "https://a b",
            "data:image/png",
            "file:///i",
        ] {
            let error = Icon::from(src).validate().expect_err(src);
            assert!(error.contains("clients reject every other"), "{error}");
        }
        for size in ["", "48", "0x48", "48x", "x", "48X48", "48x48x48", "+4x4"] {
            let error = Icon::new("https://a.example").sizes(["any", size]).validate().expect_err(size);
            assert!(error.contains("among its sizes"), "{error}");
        }
    }
}
