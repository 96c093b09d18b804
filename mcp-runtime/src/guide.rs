//! Explanations with examples, one page for each subject.
//!
#![doc = include_str!("docs/guide.md")]

#[doc = include_str!("docs/tools.md")]
pub mod tools {}

#[doc = include_str!("docs/resources.md")]
pub mod resources {}

#[doc = include_str!("docs/skills.md")]
pub mod skills {}

#[doc = include_str!("docs/prompts.md")]
pub mod prompts {}

#[doc = include_str!("docs/parameters.md")]
pub mod parameters {}

#[doc = include_str!("docs/results-and-errors.md")]
pub mod results_and_errors {}

#[doc = include_str!("docs/client-requests.md")]
pub mod client_requests {}

#[doc = include_str!("docs/tasks.md")]
pub mod tasks {}

#[doc = include_str!("docs/state.md")]
pub mod state {}

#[doc = include_str!("docs/apps.md")]
pub mod apps {}

#[doc = include_str!("docs/context.md")]
pub mod context {}

#[doc = include_str!("docs/transports.md")]
pub mod transports {}

#[doc = include_str!("docs/versions.md")]
pub mod versions {}

#[doc = include_str!("docs/subscriptions.md")]
pub mod subscriptions {}

#[doc = include_str!("docs/sessions.md")]
pub mod sessions {}

#[doc = include_str!("docs/testing.md")]
pub mod testing {}

#[doc = include_str!("docs/conformance.md")]
pub mod conformance {}

#[doc = include_str!("docs/architecture.md")]
pub mod architecture {}
