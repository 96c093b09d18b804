//! Rules that choose operations.

use crate::document::Operation;

/// A rule that matches operations of a description.
///
/// ```
/// use mcp_runtime_openapi::Route;
///
/// let rules = [
///     Route::tag("orders"),
///     Route::get("/orders/{id}"),
///     Route::path("/orders/*"),
///     Route::method("DELETE"),
///     Route::operation("getOrder"),
///     Route::deprecated(),
/// ];
/// ```
#[derive(Debug, Clone)]
pub struct Route(Rule);

#[derive(Debug, Clone)]
enum Rule {
    Tag(String),
    Method(String),
    /// With or without a method.
    Path(Option<&'static str>, String),
    Operation(String),
    Deprecated,
}

impl Route {
    /// Operations with this tag.
    pub fn tag(name: impl Into<String>) -> Self {
        Self(Rule::Tag(name.into()))
    }

    /// Operations of this method, as in `DELETE`.
    pub fn method(method: impl AsRef<str>) -> Self {
        Self(Rule::Method(method.as_ref().to_ascii_uppercase()))
    }

    /// All operations of a path, as the description writes it: `/orders/{id}`. With `*` at the end, those of all paths that
    /// begin like this.
    pub fn path(path: impl Into<String>) -> Self {
        Self(Rule::Path(None, path.into()))
    }

    /// As [`path`](Self::path), `GET` only.
    pub fn get(path: impl Into<String>) -> Self {
        Self(Rule::Path(Some("GET"), path.into()))
    }

    /// As [`path`](Self::path), `POST` only.
    pub fn post(path: impl Into<String>) -> Self {
        Self(Rule::Path(Some("POST"), path.into()))
    }

    /// As [`path`](Self::path), `PUT` only.
    pub fn put(path: impl Into<String>) -> Self {
        Self(Rule::Path(Some("PUT"), path.into()))
    }

    /// As [`path`](Self::path), `PATCH` only.
    pub fn patch(path: impl Into<String>) -> Self {
        Self(Rule::Path(Some("PATCH"), path.into()))
    }

    /// As [`path`](Self::path), `DELETE` only.
    pub fn delete(path: impl Into<String>) -> Self {
        Self(Rule::Path(Some("DELETE"), path.into()))
    }

    /// The operation with this `operationId`.
    pub fn operation(id: impl Into<String>) -> Self {
        Self(Rule::Operation(id.into()))
    }

    /// Operations that the description calls deprecated.
    #[must_use]
    pub fn deprecated() -> Self {
        Self(Rule::Deprecated)
    }

    /// The rule that matches an operation, and no other if its path does not end with `*`.
    pub(crate) fn of(operation: &Operation) -> Self {
        Self(Rule::Path(Some(operation.method), operation.path.clone()))
    }

    pub(crate) fn matches(&self, operation: &Operation) -> bool {
        match &self.0 {
            Rule::Tag(tag) => operation.tags.contains(tag),
            Rule::Method(method) => operation.method == method,
            Rule::Path(method, path) => {
                let is_path = match path.strip_suffix('*') {
                    Some(beginning) => operation.path.starts_with(beginning),
                    None => operation.path == *path,
                };
                is_path && method.is_none_or(|method| operation.method == method)
            }
            Rule::Operation(id) => operation.id.as_ref() == Some(id),
            Rule::Deprecated => operation.is_deprecated,
        }
    }

    /// As the program wrote it.
    pub(crate) fn written(&self) -> String {
        match &self.0 {
            Rule::Tag(tag) => format!("Route::tag({tag:?})"),
            Rule::Method(method) => format!("Route::method({method:?})"),
            Rule::Path(None, path) => format!("Route::path({path:?})"),
            Rule::Path(Some(method), path) => format!("Route::{}({path:?})", method.to_ascii_lowercase()),
            Rule::Operation(id) => format!("Route::operation({id:?})"),
            Rule::Deprecated => "Route::deprecated()".to_owned(),
        }
    }

    pub(crate) fn is_tag(&self) -> bool {
        matches!(self.0, Rule::Tag(_))
    }
}
