//! The tool that searches lines.

use std::{
    fs::File,
    io::Read as _,
    time::{Duration, Instant},
};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use mcp_runtime::prelude::*;
use regex::bytes::{Regex, RegexBuilder};

use super::{
    Refused,
    root::{Root, is_binary, shortened},
};

/// Bytes of the largest file that is searched.
const MOST: u64 = 4 << 20;
/// Bytes of a line that are searched.
const LINE: usize = 16 << 10;
/// Bytes of the largest compiled expression. Together with `LINE` it bounds the only step that cannot be interrupted:
/// matching a line takes time proportional to both.
const REGEX: usize = 1 << 20;
/// How long a search may run before it returns its hits so far.
const LONGEST: Duration = Duration::from_secs(30);
/// Files between two progress notifications.
const STEP: usize = 500;

/// A matching line.
#[mcp_type]
#[derive(Debug, PartialEq)]
pub(crate) struct Hit {
    pub(crate) path: String,
    /// Counted from 1
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// What a search found.
#[mcp_type]
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// Sorted by path and line
    pub(crate) hits: Vec<Hit>,
    /// How many files were searched
    pub(crate) files: usize,
    /// Whether the search ended early, at its limit of hits or of time
    pub(crate) truncated: bool,
}

/// Finds the lines of the tree that match a regular expression.
///
/// Files that .gitignore excludes, hidden, binary and very large ones are left out, and so are the ends of very long lines.
#[mcp_tool(read_only, blocking, max_concurrency = 4)]
pub(crate) fn search(
    /// Regular expression, matched against each line
    #[mcp(length(1..=1000), example = "fn \\w+_test")]
    pattern: String,
    /// Only in files that match one of these globs, as in .gitignore: `*.rs`, `/src/`
    #[mcp(default, length(..=50))]
    include: Vec<String>,
    /// Not in files that match one of these globs
    #[mcp(default, length(..=50))]
    exclude: Vec<String>,
    /// Whether `a` matches `A`
    #[mcp(default)]
    ignore_case: bool,
    /// The most lines to return
    #[mcp(default = 100, range(1..=1000))]
    limit: usize,
    root: &Root,
    ctx: &Context,
) -> Result<Json<Found>, ToolError> {
    let query = Query::new(&pattern, &include, &exclude, ignore_case, limit).public()?;
    let (end, mut reported) = (Instant::now() + LONGEST, 0);
    Ok(Json(query.run(root, |files| {
        if files >= reported + STEP {
            reported = files;
            ctx.progress(files).message(format!("{files} files searched")).send();
        }
        // a thread cannot be stopped from outside, so it must check that its client is still there
        !ctx.is_cancelled() && Instant::now() < end
    })))
}

/// A search that is ready to run.
pub(crate) struct Query {
    regex: Regex,
    include: Option<Gitignore>,
    exclude: Gitignore,
    limit: usize,
}

impl Query {
    pub(crate) fn new(
        pattern: &str,
        include: &[String],
        exclude: &[String],
        ignore_case: bool,
        limit: usize,
    ) -> Result<Self, Refused> {
        let regex = RegexBuilder::new(pattern).case_insensitive(ignore_case).size_limit(REGEX).build();
        let include = if include.is_empty() { None } else { Some(globs(include)?) };
        Ok(Self { regex: regex.map_err(Refused::Pattern)?, include, exclude: globs(exclude)?, limit })
    }

    /// Searches the tree; calls `proceed` before each file and before each line, with the number of files searched so
    /// far, and ends if that returns false.
    pub(crate) fn run(self, root: &Root, mut proceed: impl FnMut(usize) -> bool) -> Found {
        let Self { regex, include, exclude, limit } = self;
        let mut found = Found::default();
        let mut bytes = Vec::new();
        let base = root.clone();
        let mut walk = root.walk_all();
        walk.filter_entry(move |entry| {
            let folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            entry.depth() == 0 || !exclude.matched(base.relative(entry.path()), folder).is_ignore()
        });
        for entry in walk.build().filter_map(Result::ok) {
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let path = root.relative(entry.path());
            if include
                .as_ref()
                .is_some_and(|globs| !globs.matched_path_or_any_parents(&path, false).is_ignore())
            {
                continue;
            }
            if !proceed(found.files) {
                found.truncated = true;
                break;
            }
            found.files += 1;
            bytes.clear();
            let read = File::open(entry.path()).and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes));
            if read.is_err() || bytes.len() as u64 > MOST || is_binary(&bytes) {
                continue;
            }
            let lines = bytes.strip_suffix(b"\n").unwrap_or(&bytes).split(|byte| *byte == b'\n');
            for (index, line) in lines.enumerate() {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                let matches = proceed(found.files).then(|| regex.is_match(&line[..line.len().min(LINE)]));
                if matches == Some(false) {
                    continue;
                }
                if matches.is_none() || found.hits.len() == limit {
                    found.truncated = true;
                    return found;
                }
                let text = shortened(String::from_utf8_lossy(line).trim_end());
                found.hits.push(Hit { path: path.clone(), line: index + 1, text });
            }
        }
        found
    }
}

/// Globs that are interpreted like a .gitignore file at the root.
fn globs(list: &[String]) -> Result<Gitignore, Refused> {
    let mut globs = GitignoreBuilder::new("");
    for glob in list {
        globs.add_line(None, glob).map_err(Refused::Glob)?;
    }
    globs.build().map_err(Refused::Glob)
}
