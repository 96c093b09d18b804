//! Notes in an SQLite database: functions that block, transactions, a custom error type, a question before data is lost,
//! and settings. `mcp.lock.json` is the contract that models and clients depend on, checked by a test.
//!
//! ```sh
//! export NOTES_DB=notes.sqlite                       # or --database notes.sqlite
//! cargo run --example notes -- call add_note '{"title": "Tea", "text": "Sencha is empty", "tags": ["home"]}'
//! cargo run --example notes -- call find_notes '{"words": "sencha"}'
//! cargo run --example notes -- read note://1
//! ```

mod database;

use std::{path::PathBuf, sync::Arc};

use mcp_runtime::{
    ServerBuilder, ServerHandle,
    prelude::*,
    resource::{ListedPage, ListedResource, PageRequest},
};

pub(crate) use database::Database;
use database::{Note, NotesError};

#[mcp_config(name = "notes")]
pub(crate) struct Settings {
    /// Where the notes are kept; by default in the folder for temporary files
    #[mcp(env = "NOTES_DB")]
    database: Option<PathBuf>,
}

impl Settings {
    fn open(&self) -> Result<Arc<Database>, Box<dyn std::error::Error + Send + Sync>> {
        let path = self.database.clone().unwrap_or_else(|| std::env::temp_dir().join("notes.sqlite"));
        Ok(Arc::new(Database::open(path)?))
    }
}

/// Create a note, and return its id.
#[mcp_tool(blocking, destructive = false)]
fn add_note(
    /// Title of the note, such as "Shopping"
    #[mcp(length(1..=100))]
    title: String,
    /// Text of the note, as Markdown
    #[mcp(length(1..=10_000))]
    text: String,
    /// Tags by which the note is found
    #[mcp(default, length(..=10))]
    tags: Vec<String>,
    notes: &Database,
    server: &ServerHandle,
) -> Result<i64, NotesError> {
    let id = notes.add(&title, &text, &tags)?;
    server.resources_changed();
    Ok(id)
}

/// Find notes by words in their title or text. Returns the notes, with their ids.
#[mcp_tool(blocking, read_only)]
fn find_notes(
    /// Words that the title or the text contains
    #[mcp(length(1..=100))]
    words: String,
    /// Number of notes that are returned at most
    #[mcp(default = 10, range(1..=50))]
    limit: u32,
    notes: &Database,
) -> Result<Json<Vec<Note>>, NotesError> {
    Ok(Json(notes.find(&words, limit)?))
}

/// Append one note to another, which also gets its tags, and delete it. Returns nothing.
#[mcp_tool(blocking, destructive)]
fn merge_notes(
    /// Id of the note that is appended, and is gone afterwards
    from: i64,
    /// Id of the note that stays
    into: i64,
    notes: &Database,
    server: &ServerHandle,
) -> Result<(), NotesError> {
    notes.merge(from, into)?;
    server.resource_updated(&format!("note://{into}"));
    server.resources_changed();
    Ok(())
}

/// Delete a note, once the user has agreed. Returns a message with its title.
#[mcp_tool(destructive, requires(elicitation))]
async fn delete_note(
    /// Id of the note, as `find_notes` returns it
    id: i64,
    notes: &Arc<Database>,
    server: &ServerHandle,
    ctx: &Context,
) -> Result<String, ToolError> {
    // an async function must block on another thread, which needs an owned database: the `Arc`
    let database = notes.clone();
    let note = tokio::task::spawn_blocking(move || database.get(id)).await??.ok_or(NotesError::NoNote(id))?;
    let agreed: bool = ctx.elicit("delete", format!("Delete the note `{}`?", note.title)).await?;
    if !agreed {
        return Err("the user wants to keep the note".into());
    }
    // the answer is valid for one deletion, since a later note may get the same id
    ctx.consume_once().await?;
    let database = notes.clone();
    tokio::task::spawn_blocking(move || database.delete(id)).await??;
    server.resources_changed();
    Ok(format!("`{}` is deleted", note.title))
}

/// A note.
#[mcp_resource(uri = "note://{id}", mime = "text/markdown", blocking, list = all_notes)]
fn note(id: i64, notes: &Database) -> Result<Option<String>, NotesError> {
    let markdown = |note: Note| format!("# {}\n\n{}\n", note.title, note.text);
    Ok(notes.get(id)?.map(markdown))
}

/// One page of the notes: a database reads only the rows of that page.
fn all_notes(page: &PageRequest, notes: &Database) -> Result<ListedPage, NotesError> {
    let last = page.cursor.as_deref().and_then(|id| id.parse().ok()).unwrap_or(0);
    let titles = notes.titles(last, page.limit)?;
    let next = titles.last().filter(|_| titles.len() == page.limit).map(|(id, _)| id.to_string());
    let listed = titles.iter().map(|(id, title)| ListedResource::new(format!("note://{id}"), title));
    Ok(ListedPage::new(listed).next_cursor(next))
}

/// The notes with a tag.
#[mcp_resource(uri = "notes://tagged/{tag}", blocking)]
fn tagged(#[mcp(complete = tags)] tag: String, notes: &Database) -> Result<Json<Vec<Note>>, NotesError> {
    Ok(Json(notes.tagged(&tag)?))
}

fn tags(typed: &mcp_runtime::Completion, notes: &Database) -> Result<Vec<String>, NotesError> {
    notes.tags(&typed.value)
}

/// The state, which functions take as `&Database` and as `&Arc<Database>`, is built from the settings or passed in.
pub(crate) fn server() -> ServerBuilder {
    mcp_runtime::server!()
        .info(|info| info.name("notes"))
        .tool::<add_note>()
        .tool::<find_notes>()
        .tool::<merge_notes>()
        .tool::<delete_note>()
        .resource::<note>()
        .resource::<tagged>()
}

fn main() -> mcp_runtime::Result<()> {
    server().config::<Settings>().state_from(Settings::open).run()
}
