//! Skills as they are offered: found by URI in what was read when the server was built, never on disk, and their
//! entries in lists.

use std::collections::HashMap;

use crate::{item::Problem, resource::percent_decode};
use crate::{
    jsonrpc::{Object, write_array},
    protocol::normalize_uri,
    skill::{self, File, MANIFEST, Node, Shelf, Skill},
};

/// Every skill of a server, in the order of their paths.
#[derive(Debug, Default)]
pub(crate) struct Skills {
    all: Vec<Skill>,
    /// By what follows `skill://`, with the host in lower case.
    index: HashMap<String, usize>,
}

/// What a URI names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Found<'a> {
    File(&'a Skill, &'a str, &'a File),
    Folder(&'a Skill, &'a str),
}

impl<'a> Found<'a> {
    pub(crate) fn skill(self) -> &'a Skill {
        match self {
            Self::File(skill, ..) | Self::Folder(skill, _) => skill,
        }
    }
}

impl Skills {
    /// The skills of these directories, as their files are now.
    pub(crate) fn read(shelves: &[Shelf], problems: &mut Vec<Problem>) -> Self {
        let (mut found, mut wrong) = (Vec::new(), Vec::new());
        for shelf in shelves {
            skill::read(shelf, &mut found, &mut wrong);
        }
        problems.extend(wrong.into_iter().map(Problem::new));
        Self::new(found, problems)
    }

    /// Skills by their paths; reports those that share one.
    fn new(mut all: Vec<Skill>, problems: &mut Vec<Problem>) -> Self {
        all.sort_by(|a, b| a.path.cmp(&b.path));
        let mut index = HashMap::with_capacity(all.len());
        for (n, skill) in all.iter().enumerate() {
            let (own, folder) = (key(&skill.path), skill.folder.display());
            if let Some(first) = index.insert(own.clone(), n).and_then(|first: usize| all.get(first)) {
                problems.push(Problem::new(format!(
                    "two skills are `skill://{}`\n  --> {}\n  --> {folder}\nrename one of the directories",
                    skill.path,
                    first.folder.display()
                )));
            }
            // sorted, so that the enclosing one came before
            if let Some((prefix, _)) = own.rsplit_once('/')
                && let Some(outer) = index.get(prefix).and_then(|outer| all.get(*outer))
            {
                problems.push(Problem::new(format!(
                    "the skill in `{folder}` is mounted inside the skill in `{}`\nmount it under another prefix",
                    outer.folder.display()
                )));
            }
        }
        Self { all, index }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What is behind a URI; escapes are decoded once, segment by segment.
    pub(crate) fn find(&self, uri: &str) -> Option<Found<'_>> {
        let uri = normalize_uri(uri);
        let rest = uri.strip_prefix("skill://").filter(|rest| !rest.contains(['?', '#']))?;
        // a name, or the prefix of a mount and a name
        let ends = rest.match_indices('/').map(|(at, _)| at).chain([rest.len()]).take(2);
        let (skill, inside) = ends
            .filter_map(|end| rest.split_at_checked(end))
            .find_map(|(path, inside)| Some((self.all.get(*self.index.get(path)?)?, inside)))?;
        let path = match inside.strip_prefix('/') {
            None => String::new(),
            Some(inside) => {
                let segments = inside.split('/').map(percent_decode);
                // an escaped separator is none, and an empty segment names nothing
                let named = segments.map(|s| s.filter(|s| !s.is_empty() && !s.contains('/')));
                named.collect::<Option<Vec<_>>>()?.join("/")
            }
        };
        let (path, node) = skill.nodes.get_key_value(&path)?;
        Some(match node {
            Node::File(file) => Found::File(skill, path, file),
            Node::Folder => Found::Folder(skill, path),
        })
    }

    /// The entries of `skills/list`, each as JSON.
    pub(crate) fn entries(&self) -> Vec<Vec<u8>> {
        self.all.iter().map(|skill| rendered(|entry| write_entry(entry, skill))).collect()
    }

    /// The entries that skills have in `resources/list`: of each its `SKILL.md`.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = Vec<u8>> {
        let manifest = |skill: &Skill| {
            let node = skill.nodes.get(MANIFEST)?;
            Some(rendered(|entry| write_resource(entry, skill, MANIFEST, node)))
        };
        self.all.iter().filter_map(manifest)
    }
}

/// What is directly inside a directory of a skill, each as the JSON of a resource.
pub(crate) fn children(skill: &Skill, folder: &str) -> Vec<Vec<u8>> {
    let child = |(path, node): (&str, &Node)| rendered(|entry| write_resource(entry, skill, path, node));
    skill.children(folder).map(child).collect()
}

/// The members of a skill's entry.
pub(crate) fn write_entry(entry: &mut Object<'_>, skill: &Skill) {
    entry.str("uri", &skill.uri(MANIFEST)).value("frontmatter", &skill.frontmatter);
    write_array(entry.key("resources"), skill.files(), |out, (path, file)| {
        let mut object = Object::new(out);
        object.str("uri", &skill.uri(path)).str("digest", &file.digest).value("size", &file.size);
        object.end();
    });
}

fn write_resource(entry: &mut Object<'_>, skill: &Skill, path: &str, node: &Node) {
    entry.str("uri", &skill.uri(path));
    if path == MANIFEST {
        entry.str("name", &skill.name).str("description", &skill.description);
    } else {
        entry.str("name", path.rsplit('/').next().unwrap_or(path));
    }
    match node {
        Node::File(file) => entry.str("mimeType", file.mime).value("size", &file.size),
        Node::Folder => entry.str("mimeType", "inode/directory"),
    };
}

fn rendered(write: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let mut object = Object::new(&mut out);
    write(&mut object);
    object.end();
    out
}

/// The part of a path that hosts compare ignoring case is its first segment.
fn key(path: &str) -> String {
    let (host, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
    format!("{}{rest}", host.to_ascii_lowercase())
}
