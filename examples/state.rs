//! Shared state, public and private errors, and a value that is created for each request.
//!
//! ```sh
//! cargo run --example state -- call visit
//! cargo run --example state -- call add_note '{"text": "buy milk"}'
//! cargo run --example state -- call read_note '{"id": 7}'     # an error that the model can act on
//! ```

use std::{
    convert::Infallible,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use mcp_runtime::{FromContext, ServerBuilder, prelude::*};

#[derive(Default)]
struct Counter(AtomicU64);

/// The operations that the tools need from a store.
trait Store: Send + Sync {
    fn add(&self, note: String) -> io::Result<usize>;
    fn get(&self, id: usize) -> Option<String>;
}

struct Memory {
    room: usize,
    notes: Mutex<Vec<String>>,
}

impl Store for Memory {
    fn add(&self, note: String) -> io::Result<usize> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() == self.room {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "segment 0 of /var/notes is full"));
        }
        notes.push(note);
        Ok(notes.len())
    }

    fn get(&self, id: usize) -> Option<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).get(id.checked_sub(1)?).cloned()
    }
}

/// The author, created for each request from the information about its client.
struct Author(String);

impl FromContext for Author {
    type Error = Infallible;

    async fn from_context(ctx: &Context) -> Result<Self, Infallible> {
        Ok(Self(ctx.client().map_or_else(|| "someone".to_owned(), |client| client.name)))
    }
}

/// Counts its calls.
#[mcp_tool]
fn visit(counter: &Counter) -> u64 {
    counter.0.fetch_add(1, Ordering::Relaxed) + 1
}

/// Keeps a note and returns its number.
///
/// A failing store is nothing that a model can fix: the client reads `tool 'add_note' failed`, the log has the cause.
#[mcp_tool]
fn add_note(
    #[mcp(length(1..=200))] text: String,
    #[mcp(inject)] author: Author,
    store: &dyn Store,
) -> io::Result<usize> {
    store.add(format!("{text} ({})", author.0))
}

/// Reads a note.
#[mcp_tool(read_only)]
fn read_note(
    /// The number that `add_note` returned
    id: usize,
    store: &dyn Store,
) -> Result<String, ToolError> {
    // an error made with `new` is shown to the model
    store.get(id).ok_or_else(|| ToolError::new(format!("note {id} does not exist\n`add_note` gives numbers")))
}

pub(crate) fn server() -> ServerBuilder {
    let store: Arc<dyn Store> = Arc::new(Memory { room: 2, notes: Mutex::default() });
    mcp_runtime::server!()
        .info(|info| info.name("state"))
        .state(Counter::default())
        .state(store)
        .tool::<visit>()
        .tool::<add_note>()
        .tool::<read_note>()
}

fn main() -> mcp_runtime::Result<()> {
    server().run()
}
