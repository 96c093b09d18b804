//! Prompts and completion: what is written, what a client lists, gets and is offered.

mod completion;
mod getting;
