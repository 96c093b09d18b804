//! Annotations: the audience, the importance and the age of content.

/// The author or the audience of content: the wire's `user` or `assistant`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `user`
    User,
    /// `assistant`
    Assistant,
}

impl Role {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }

    pub(super) const fn as_json(self) -> &'static str {
        match self {
            Self::User => "\"user\"",
            Self::Assistant => "\"assistant\"",
        }
    }
}

/// Hints about a block or a resource: its audience, its priority, and when it was last modified.
///
/// See [annotations](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#annotations).
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Annotations {
    /// The wire's `audience`.
    pub audience: Vec<Role>,
    /// The wire's `priority`, 0 to 1.
    pub priority: Option<f64>,
    /// The wire's `lastModified`, an ISO 8601 time; clients before 2025-06-18 do not see it.
    pub last_modified: Option<String>,
}

/// Implements the setters of annotations, for types with an `annotations_mut(&mut self) -> &mut Annotations`.
macro_rules! impl_annotation_setters {
    ($($annotated:ident)*) => {$(
        impl $annotated {
            /// The intended audience: the wire's `annotations.audience`.
            #[must_use]
            pub fn audience(mut self, audience: impl IntoIterator<Item = $crate::content::Role>) -> Self {
                self.annotations_mut().audience = audience.into_iter().collect();
                self
            }

            /// The importance, from 0 to 1: the wire's `annotations.priority`.
            #[must_use]
            pub fn priority(mut self, priority: f64) -> Self {
                self.annotations_mut().priority = Some(priority.clamp(0.0, 1.0));
                self
            }

            /// The time of the last change, in ISO 8601: the wire's `annotations.lastModified`; clients before 2025-06-18
            /// do not see it.
            #[must_use]
            pub fn last_modified(mut self, time: impl Into<String>) -> Self {
                self.annotations_mut().last_modified = Some(time.into());
                self
            }
        }
    )*};
}
pub(crate) use impl_annotation_setters;
