//! The parts of the protocol that every client writes and reads on any transport: the params of requests, rounds of input,
//! and pages of lists. The module needs no crate; the command line and the test kit use it with a server in memory.

mod input_rounds;
mod list_pages;
#[cfg(any(feature = "cli", feature = "testing", test))]
mod memory_client;
mod request_params;
#[cfg(all(feature = "tasks", any(feature = "cli", feature = "testing", test)))]
mod task_end;

pub use self::list_pages::ListedKind;
#[cfg(any(feature = "cli", feature = "testing", test))]
pub(crate) use self::memory_client::{MemoryClient, MemoryReply};
pub(crate) use self::request_params::prompt_arguments;
pub(crate) use self::{
    input_rounds::{InputRounds, RoundOutcome},
    list_pages::{ListBounds, ListPages, PageError},
    request_params::{RequestParams, initialize_params},
};
