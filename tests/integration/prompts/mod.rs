//! Prompts and completion.

mod completion;
mod getting;
