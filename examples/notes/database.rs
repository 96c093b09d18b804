//! The database, without MCP: each method is one transaction, and blocks.

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use mcp_runtime::prelude::*;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row};

const TABLES: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA foreign_keys = ON;
    CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, text TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS tags (
        note INTEGER NOT NULL REFERENCES notes ON DELETE CASCADE,
        tag TEXT NOT NULL,
        PRIMARY KEY (note, tag)
    );
";

/// The reason why an operation failed.
#[mcp_error]
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotesError {
    // shown to the model, which can act on it
    #[mcp(public)]
    #[error("note {0} does not exist\n`find_notes` returns the ids")]
    NoNote(i64),
    #[mcp(public)]
    #[error("there is a note with the title `{0}`\nchoose another title, or append to it with `merge_notes`")]
    TitleTaken(String),
    // only logged, since it may contain the path of the file, or its contents
    #[error("the database has failed")]
    Database(#[from] rusqlite::Error),
}

type Result<T> = std::result::Result<T, NotesError>;

#[mcp_type]
#[derive(Debug, PartialEq)]
pub(crate) struct Note {
    pub(crate) id: i64,
    pub(crate) title: String,
    pub(crate) text: String,
}

fn note(row: &Row<'_>) -> rusqlite::Result<Note> {
    Ok(Note { id: row.get(0)?, title: row.get(1)?, text: row.get(2)? })
}

/// One shared connection, since SQLite allows one writer at a time anyway.
#[derive(Debug)]
pub(crate) struct Database(Mutex<Connection>);

impl Database {
    pub(crate) fn open(path: impl AsRef<Path>) -> Result<Self> {
        let connection = Connection::open(path)?;
        connection.execute_batch(TABLES)?;
        Ok(Self(Mutex::new(connection)))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // a panic has rolled back its transaction, so the connection can still be used
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a note with its tags, or neither.
    pub(crate) fn add(&self, title: &str, text: &str, tags: &[String]) -> Result<i64> {
        let mut connection = self.connection();
        // rolled back when it is dropped, by a `?` or a panic
        let transaction = connection.transaction()?;
        transaction.execute("INSERT INTO notes (title, text) VALUES (?1, ?2)", (title, text)).map_err(
            |error| match error.sqlite_error_code() {
                Some(ErrorCode::ConstraintViolation) => NotesError::TitleTaken(title.to_owned()),
                _ => error.into(),
            },
        )?;
        let id = transaction.last_insert_rowid();
        for tag in tags {
            transaction.execute("INSERT OR IGNORE INTO tags (note, tag) VALUES (?1, ?2)", (id, tag))?;
        }
        transaction.commit()?;
        Ok(id)
    }

    pub(crate) fn get(&self, id: i64) -> Result<Option<Note>> {
        let connection = self.connection();
        Ok(connection.query_row("SELECT id, title, text FROM notes WHERE id = ?1", [id], note).optional()?)
    }

    pub(crate) fn find(&self, words: &str, limit: u32) -> Result<Vec<Note>> {
        let connection = self.connection();
        let mut found = connection.prepare(
            "SELECT id, title, text FROM notes
             WHERE instr(lower(title || ' ' || text), lower(?1)) > 0 ORDER BY id DESC LIMIT ?2",
        )?;
        Ok(found.query_map((words, limit), note)?.collect::<rusqlite::Result<_>>()?)
    }

    /// Appends `from` to `into`, and deletes it.
    pub(crate) fn merge(&self, from: i64, into: i64) -> Result<()> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        transaction.execute(
            "INSERT OR IGNORE INTO tags (note, tag) SELECT notes.id, tag FROM notes, tags
             WHERE notes.id = ?2 AND tags.note = ?1",
            (from, into),
        )?;
        let text: Option<String> = transaction
            .query_row("DELETE FROM notes WHERE id = ?1 RETURNING text", [from], |row| row.get(0))
            .optional()?;
        let text = text.ok_or(NotesError::NoNote(from))?;
        let appended = "UPDATE notes SET text = text || char(10, 10) || ?2 WHERE id = ?1";
        if transaction.execute(appended, (into, text))? == 0 {
            // rolls back: the note that was deleted above is back
            return Err(NotesError::NoNote(into));
        }
        Ok(transaction.commit()?)
    }

    pub(crate) fn delete(&self, id: i64) -> Result<()> {
        match self.connection().execute("DELETE FROM notes WHERE id = ?1", [id])? {
            0 => Err(NotesError::NoNote(id)),
            _ => Ok(()),
        }
    }

    /// The ids and titles of at most `limit` notes after the one with id `last`.
    pub(crate) fn titles(&self, last: i64, limit: usize) -> Result<Vec<(i64, String)>> {
        let connection = self.connection();
        let mut titles =
            connection.prepare("SELECT id, title FROM notes WHERE id > ?1 ORDER BY id LIMIT ?2")?;
        let rows = titles.query_map((last, limit as i64), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub(crate) fn tagged(&self, tag: &str) -> Result<Vec<Note>> {
        let connection = self.connection();
        let mut tagged = connection
            .prepare("SELECT id, title, text FROM notes JOIN tags ON note = id WHERE tag = ?1 ORDER BY id")?;
        Ok(tagged.query_map([tag], note)?.collect::<rusqlite::Result<_>>()?)
    }

    /// The tags that begin with a text.
    pub(crate) fn tags(&self, start: &str) -> Result<Vec<String>> {
        let connection = self.connection();
        let mut tags = connection.prepare(
            "SELECT DISTINCT tag FROM tags WHERE substr(tag, 1, length(?1)) = ?1 ORDER BY tag LIMIT 100",
        )?;
        Ok(tags.query_map([start], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
    }
}
