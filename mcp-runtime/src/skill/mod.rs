//! Skills: directories with a `SKILL.md`, read once into memory. The builder reads them, the registry finds files in
//! them.

mod catalog;
#[cfg(feature = "skills")]
mod folder;
#[cfg(feature = "skills")]
mod frontmatter;
#[cfg(feature = "skills")]
mod kind;

use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf};

pub(crate) use catalog::{Found, Skills, children as skill_children, write_entry as write_skill};
#[cfg(feature = "skills")]
pub(crate) use folder::read;
use serde_json::{Map, Value};

use crate::resource::ResourceResult;

/// The file that makes a directory a skill.
pub(crate) const MANIFEST: &str = "SKILL.md";

/// A directory of skills, as a builder was told of it.
#[derive(Debug, Clone)]
pub(crate) struct Shelf {
    pub(crate) path: PathBuf,
    /// Of the mount that it came with; empty for none.
    pub(crate) prefix: String,
}

/// One skill: what its directory held when the server was built.
#[derive(Debug)]
pub(crate) struct Skill {
    /// `name`, or `prefix/name` under a mount: what follows `skill://`.
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) description: String,
    /// Everything that the author wrote there.
    pub(crate) frontmatter: Map<String, Value>,
    /// Where it was read, for reports.
    pub(crate) folder: PathBuf,
    /// By path inside the skill, with `/` between segments; the skill itself is the empty path.
    pub(crate) nodes: BTreeMap<String, Node>,
}

/// What a path inside a skill is.
#[derive(Debug)]
pub(crate) enum Node {
    Folder,
    File(File),
}

/// One file: its content, and what was found out about exactly these bytes.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) contents: ResourceResult,
    pub(crate) mime: &'static str,
    pub(crate) size: u64,
    /// `sha256:` and 64 digits.
    pub(crate) digest: String,
}

impl Skill {
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
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &File)> {
        self.nodes.iter().filter_map(|(path, node)| match node {
            Node::File(file) => Some((path.as_str(), file)),
            Node::Folder => None,
        })
    }

    /// What is directly inside a directory, by path inside the skill.
    pub(crate) fn children(&self, folder: &str) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().filter_map(move |(path, node)| {
            let inside = match folder {
                "" => path.as_str(),
                folder => path.strip_prefix(folder)?.strip_prefix('/')?,
            };
            (!inside.is_empty() && !inside.contains('/')).then_some((path.as_str(), node))
        })
    }
}

/// Without the feature no directory is ever added.
#[cfg(not(feature = "skills"))]
pub(crate) fn read(_: &Shelf, _: &mut Vec<Skill>, _: &mut Vec<String>) {}
