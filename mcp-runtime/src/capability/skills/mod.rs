//! Skills: directories with a `SKILL.md`, read into memory when the server is built, and what their methods answer.

mod capability;
mod catalog;
mod directory;
mod file;
mod frontmatter;
mod skills_dir;

use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf, sync::Arc};

use catalog::{SkillCatalog, SkillResource, directory_entries, write_skill};
use directory::read_skills;
#[cfg(feature = "client")]
pub(crate) use frontmatter::parse_frontmatter;
use serde_json::{Map, Value};
use skills_dir::SkillDirectories;
pub use skills_dir::SkillsDir;

use crate::{
    core::connection::{ItemKind, ItemView},
    resource::ResourceResult,
};

/// The file that makes a directory a skill.
pub(crate) const MANIFEST: &str = "SKILL.md";

/// One skill: the files of its directory when the server was built.
pub(crate) struct Skill {
    /// The part of its URI after `skill://`: `name`, or `prefix/name` under a mount.
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) description: String,
    /// All members of the frontmatter, as JSON.
    pub(crate) frontmatter: Map<String, Value>,
    /// The scopes of its directory.
    pub(crate) scopes: Arc<[String]>,
    /// Its location on disk, for messages.
    pub(crate) directory: PathBuf,
    /// By path inside the skill, with `/` between segments; the skill itself is the empty path.
    pub(crate) nodes: BTreeMap<String, SkillNode>,
}

/// A directory or a file inside a skill.
pub(crate) enum SkillNode {
    Directory,
    File(SkillFile),
}

/// A file: its contents, and the size and digest of exactly these bytes.
pub(crate) struct SkillFile {
    pub(crate) contents: ResourceResult,
    pub(crate) mime: &'static str,
    pub(crate) size: u64,
    /// `sha256:` and 64 hexadecimal digits.
    pub(crate) digest: String,
}

impl Skill {
    /// The part that access decisions use.
    pub(crate) fn view(&self) -> ItemView<'_> {
        ItemView::new(ItemKind::Skill, &self.path, &self.scopes)
    }

    /// The URI of a path inside the skill.
    pub(crate) fn uri(&self, path: &str) -> String {
        let mut uri = format!("skill://{}", self.path);
        for segment in path.split('/').filter(|segment| !segment.is_empty()) {
            uri.push('/');
            for byte in segment.bytes() {
                if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte) {
                    uri.push(char::from(byte));
                } else {
                    // writing to a string cannot fail
                    let _ = write!(uri, "%{byte:02X}");
                }
            }
        }
        uri
    }

    /// Its files, in the order of their paths.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &SkillFile)> {
        self.nodes.iter().filter_map(|(path, node)| match node {
            SkillNode::File(file) => Some((path.as_str(), file)),
            SkillNode::Directory => None,
        })
    }

    /// The direct children of a directory, by path inside the skill.
    pub(crate) fn children(&self, directory: &str) -> impl Iterator<Item = (&str, &SkillNode)> {
        self.nodes.iter().filter_map(move |(path, node)| {
            let name = match directory {
                "" => path.as_str(),
                directory => path.strip_prefix(directory)?.strip_prefix('/')?,
            };
            (!name.is_empty() && !name.contains('/')).then_some((path.as_str(), node))
        })
    }
}
