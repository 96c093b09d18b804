//! Elicitation: forms that the user fills in and URLs that the user visits.
//!
//! See [elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation).

mod answer;
mod field;
mod field_order;
mod form;
mod url;
mod url_required;

#[cfg(test)]
mod tests;

pub use answer::Answer;
pub use form::Elicit;
pub use url::ElicitUrl;
pub use url_required::UrlElicitation;
pub(crate) use url_required::require_visits;
