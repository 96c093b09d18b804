//! A directory of skills, as a builder takes it.

use std::{path::PathBuf, sync::Arc};

use super::capability::open_skills;
use crate::core::{
    bound::Texts,
    config::Options,
    server::{Addition, IntoAddition, Named},
};

/// A directory of skills: each directory in it that holds a `SKILL.md`, and the files of each.
///
/// The files are read once, by [`build`](crate::ServerBuilder::build), which refuses what the
/// [extension](https://github.com/modelcontextprotocol/ext-skills) does not allow; what changes later is not seen. Clients
/// of 2026-07-28 find the skills with `skills/list`, and read `skill://<name>/<path>`.
///
/// ```
/// use mcp_runtime::skill::SkillsDir;
///
/// # fn main() {
/// let builder = mcp_runtime::server!()
///     .add(SkillsDir::new("skills"))
///     .add(SkillsDir::new("internal-skills").scopes(["staff"]));
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct SkillsDir {
    pub(crate) path: PathBuf,
    /// The prefix of its mount; may be empty.
    pub(crate) prefix: String,
    pub(crate) scopes: Arc<[String]>,
}

impl SkillsDir {
    /// A directory; a relative path starts at the working directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), prefix: String::new(), scopes: Arc::from([]) }
    }

    /// Hides the skills and their files from callers without all of these scopes, as `scopes(..)` of a tool does.
    pub fn scopes(mut self, scopes: impl Texts) -> Self {
        self.scopes = scopes.into_texts().into();
        self
    }
}

/// The directories that a builder takes.
#[derive(Clone, Default)]
pub(super) struct SkillDirectories(pub(super) Vec<SkillsDir>);

fn add(options: &mut Options, directories: impl IntoIterator<Item = SkillsDir>) {
    let mut all = options.of_capabilities.get::<SkillDirectories>().cloned().unwrap_or_default();
    all.0.extend(directories);
    options.of_capabilities.insert(all);
}

/// Adds the directories of a builder that is mounted.
fn mount(outer: &mut Options, prefix: &str, mounted: &Options) {
    let directories = mounted.of_capabilities.get::<SkillDirectories>().cloned().unwrap_or_default();
    let joined = |directory: SkillsDir| SkillsDir {
        prefix: match (prefix.is_empty(), directory.prefix.is_empty()) {
            (true, _) => directory.prefix,
            (_, true) => prefix.to_owned(),
            _ => format!("{prefix}_{}", directory.prefix),
        },
        ..directory
    };
    add(outer, directories.0.into_iter().map(joined));
}

impl IntoAddition for SkillsDir {
    fn into_addition(self) -> Addition {
        let named = Named { key: "skills", open: open_skills, mount };
        Addition::of(move |builder| {
            add(&mut builder.options, [self]);
            builder.open_on_build(named);
        })
    }
}
