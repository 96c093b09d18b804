//! Prompts and completion.

mod completion;
mod get;
