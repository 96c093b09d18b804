//! The change of one file of a client. It is known before anything is written, the text is read again as the client will,
//! and what other programs write meanwhile is kept.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{
    Job,
    client::{Client, Reference},
    document::{Change, Document, Members},
    plan::{Plan, to_object},
    problem::Problem,
    questions::Questions,
    write::{Replaced, TextFile},
};

/// How often a file that other programs change meanwhile is edited again.
const MAX_ATTEMPTS: usize = 64;

/// What becomes of a file.
pub(super) struct Edit<'e> {
    plan: &'e Plan<'e>,
    file: TextFile,
    /// The path as the user reads it.
    shown: String,
    outcome: Outcome,
    /// The text of the file afterwards; `None` if it stays.
    text: Option<String>,
    /// What is left for the user.
    notes: String,
}

enum Outcome {
    /// With the entry as it is shown.
    Added(String),
    Present,
    Removed,
    Absent,
}

impl<'e> Edit<'e> {
    /// Makes the change of a plan, and writes it unless it is a dry run; returns what was done, or would be.
    ///
    /// # Errors
    /// Why the file is as it was.
    pub(super) fn carry_out(
        plan: &'e Plan<'e>,
        path: &Path,
        questions: &mut Questions<'_>,
    ) -> Result<String, Problem> {
        let Job { options, around, .. } = plan.job();
        let is_dry = options.dry_run;
        for _ in 0..MAX_ATTEMPTS {
            let edit = Self::new(plan, path, Some(&mut *questions).filter(|_| !is_dry))?;
            let written = match edit.text.as_ref().filter(|_| !is_dry) {
                Some(text) => edit.file.replace(text).map_err(|text| unchanged(&edit.shown, text.into()))?,
                None => Replaced::Done(None),
            };
            if let Replaced::Done(copy) = written {
                return Ok(edit.report(copy));
            }
        }
        Err(unchanged(&around.shown(path), Problem::Busy))
    }

    /// Checks that the change can be made and written.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn check(plan: &'e Plan<'e>, path: &Path) -> Result<(), Problem> {
        let edit = Self::new(plan, path, None)?;
        edit.file.check_writable().map_err(|text| unchanged(&edit.shown, text.into()))
    }

    /// Reads a file of the project in this folder, or of the user, and decides what is to become of it.
    ///
    /// # Errors
    /// It cannot be read, has another server of that name, or cannot have this one.
    fn new(plan: &'e Plan<'e>, path: &Path, questions: Option<&mut Questions<'_>>) -> Result<Self, Problem> {
        let Job { options, around, .. } = plan.job();
        let file = TextFile::read(path, options.project.then_some(&*around.folder))?;
        let (shown, notes) = (around.shown(path), String::new());
        let mut edit = Self { plan, file, shown, outcome: Outcome::Absent, text: None, notes };
        match edit.decide(questions) {
            Ok(()) => Ok(edit),
            Err(problem) => Err(unchanged(&edit.shown, problem)),
        }
    }

    fn decide(&mut self, questions: Option<&mut Questions<'_>>) -> Result<(), Problem> {
        let Job { client, server, options, .. } = self.plan.job();
        let mut document = Document::parse(client.format, self.file.text()?)?;
        let present = document.get(client.table, &server.name)?;
        let is_same = present.as_ref().map_or(Ok(true), |present| self.plan.is_of(present))?;
        if !is_same && !options.force {
            return Err(Problem::Another(server.name.clone()));
        }
        if options.remove {
            let Some(present) = present else { return Ok(()) };
            document.remove(client.table, &server.name);
            document.remove_inputs(&server.name, &present);
            self.outcome = Outcome::Removed;
            return self.verify(document.text(), None);
        }
        let change = if is_same && present.is_some() { Change::Merge } else { Change::Replace };
        let kept = present.filter(|_| is_same).unwrap_or_default();
        let mut plan = self.plan.resolved(&kept, questions);
        let (mut members, inputs) = plan.entry()?;
        keep_forwarded(client, &mut members, &kept);
        let before = document.text();
        document.set(client.table, &server.name, &members, change);
        document.add_inputs(&inputs)?;
        let mut text = document.text();
        // a new file ends with a line end, and one that is there as it did
        if before.trim().is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if client.reads_plain_json() && serde_json::from_str::<Value>(&text).is_err() {
            plan.note(format!(
                "`{}` has comments or trailing commas, which {} may refuse: remove them",
                self.shown, client.title
            ));
        }
        self.notes = plan.notes(&self.shown, false);
        if text == before && self.file.exists() {
            self.outcome = Outcome::Present;
            return Ok(());
        }
        self.verify(text, Some(&members))?;
        self.outcome = Outcome::Added(plan.shown()?);
        Ok(())
    }

    /// Takes a changed text, which is read again as the client will.
    ///
    /// # Errors
    /// The change did not do what it should.
    fn verify(&mut self, text: String, members: Option<&Members>) -> Result<(), Problem> {
        let Job { client, server, .. } = self.plan.job();
        let present = Document::parse(client.format, &text)
            .and_then(|document| document.get(client.table, &server.name))
            .map_err(|_| Problem::NotEditable)?;
        let is_right = match (present, members) {
            (None, None) => true,
            (Some(present), Some(members)) => contains(&present, &to_object(members)),
            _ => false,
        };
        if !is_right {
            return Err(Problem::NotEditable);
        }
        self.text = Some(text);
        Ok(())
    }

    /// What was done, or would be; `copy` is that of the file as it was, if one was made.
    fn report(&self, copy: Option<PathBuf>) -> String {
        let Job { server, options, around, .. } = self.plan.job();
        let (name, file) = (&server.name, &self.shown);
        let copied =
            copy.map_or(String::new(), |copy| format!("; the file as it was is `{}`", around.shown(&copy)));
        let done = match &self.outcome {
            Outcome::Added(entry) if options.dry_run => {
                format!("would add to `{file}`:\n\n{}", entry.trim_end())
            }
            Outcome::Added(_) => format!("added `{name}` to `{file}`{copied}"),
            Outcome::Present => format!("`{name}` is in `{file}` already"),
            Outcome::Removed if options.dry_run => format!("would remove `{name}` from `{file}`"),
            Outcome::Removed => format!("removed `{name}` from `{file}`{copied}"),
            Outcome::Absent => format!("`{name}` is not in `{file}`: nothing to remove"),
        };
        format!("{done}\n{}", self.notes)
    }
}

/// The problem with a file, which was not changed.
fn unchanged(file: &str, problem: Problem) -> Problem {
    Problem::Unchanged(file.to_owned(), Box::new(problem))
}

/// Whether a value has everything that another one has.
fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(value), Value::Object(part)) => {
            part.iter().all(|(key, part)| value.get(key).is_some_and(|value| contains(value, part)))
        }
        _ => value == part,
    }
}

/// Keeps the variables that an entry passes on already.
fn keep_forwarded(client: &Client, members: &mut Members, kept: &Value) {
    let Reference::Forwarded(key) = client.reference else { return };
    let Some((_, Value::Array(own))) = members.iter_mut().find(|(own, _)| *own == key) else { return };
    let old: Vec<Value> = kept[key].as_array().cloned().unwrap_or_default();
    let new: Vec<Value> = own.iter().filter(|name| !old.contains(name)).cloned().collect();
    *own = old.into_iter().chain(new).collect();
}
