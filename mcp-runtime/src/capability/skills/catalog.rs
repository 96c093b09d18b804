//! The skills of a server: looked up by URI in what was read when the server was built, never on disk, and their
//! entries in lists.

use std::collections::HashMap;

use super::{MANIFEST, Skill, SkillFile, SkillNode, read_skills, skills_dir::SkillsDir};
use crate::{
    core::{
        build_error::BuildError,
        connection::{Access, AccessError},
        jsonrpc::{Object, write_array},
        protocol::normalize_uri,
    },
    resource::percent_decode,
    schema::sort_by,
};

/// Every skill of a server, in the order of their paths.
#[derive(Default)]
pub(crate) struct SkillCatalog {
    skills: Vec<Skill>,
    /// By what follows `skill://`, with the host in lower case.
    index: HashMap<String, usize>,
}

/// The target of a `skill://` URI, with its path inside the skill.
#[derive(Clone, Copy)]
pub(crate) enum SkillResource<'a> {
    File(&'a Skill, &'a str, &'a SkillFile),
    Directory(&'a Skill, &'a str),
}

impl<'a> SkillResource<'a> {
    pub(crate) fn skill(self) -> &'a Skill {
        match self {
            Self::File(skill, ..) | Self::Directory(skill, _) => skill,
        }
    }
}

impl SkillCatalog {
    /// Reads the skills of these directories.
    pub(crate) fn read(dirs: &[SkillsDir], errors: &mut Vec<BuildError>) -> Self {
        let (mut skills, mut messages) = (Vec::new(), Vec::new());
        for dir in dirs {
            read_skills(dir, &mut skills, &mut messages);
        }
        errors.extend(messages.into_iter().map(BuildError::new));
        Self::new(skills, errors)
    }

    /// Indexes skills by their paths; reports those that share one.
    fn new(mut skills: Vec<Skill>, errors: &mut Vec<BuildError>) -> Self {
        sort_by(&mut skills, |a, b| a.path.cmp(&b.path));
        let mut index = HashMap::with_capacity(skills.len());
        for (n, skill) in skills.iter().enumerate() {
            let (key, directory) = (lowercase_host(&skill.path), skill.directory.display());
            if let Some(first) = index.insert(key.clone(), n).and_then(|first: usize| skills.get(first)) {
                errors.push(BuildError::new(format!(
                    "two skills are `skill://{}`\n  --> {}\n  --> {directory}\nrename one of the directories",
                    skill.path,
                    first.directory.display()
                )));
            }
            // the enclosing skill is in the index already, since the skills are sorted
            if let Some((prefix, _)) = key.rsplit_once('/')
                && let Some(outer) = index.get(prefix).and_then(|outer| skills.get(*outer))
            {
                errors.push(BuildError::new(format!(
                    "the skill in `{directory}` is mounted inside the skill in `{}`\nmount it under another prefix",
                    outer.directory.display()
                )));
            }
        }
        Self { skills, index }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// Looks up the target of a URI; escapes are decoded once, segment by segment.
    ///
    /// # Errors
    /// The URI has no target, or the target may not be read.
    pub(crate) fn find(&self, uri: &str, access: Access<'_>) -> Result<SkillResource<'_>, AccessError<'_>> {
        let found = self.locate(uri).ok_or(AccessError::Unknown)?;
        access.check(found.skill().view())?;
        Ok(found)
    }

    fn locate(&self, uri: &str) -> Option<SkillResource<'_>> {
        let uri = normalize_uri(uri);
        let rest = uri.strip_prefix("skill://").filter(|rest| !rest.contains(['?', '#']))?;
        // a name, or the prefix of a mount and a name
        let ends = rest.match_indices('/').map(|(at, _)| at).chain([rest.len()]).take(2);
        let (skill, inside) = ends
            .filter_map(|end| rest.split_at_checked(end))
            .find_map(|(path, inside)| Some((self.skills.get(*self.index.get(path)?)?, inside)))?;
        let path = match inside.strip_prefix('/') {
            None => String::new(),
            Some(inside) => {
                let segments = inside.split('/').map(percent_decode);
                // an escaped `/` does not separate segments, and an empty segment is not a name
                let names = segments.map(|s| s.filter(|s| !s.is_empty() && !s.contains('/')));
                names.collect::<Option<Vec<_>>>()?.join("/")
            }
        };
        let (path, node) = skill.nodes.get_key_value(&path)?;
        Some(match node {
            SkillNode::File(file) => SkillResource::File(skill, path, file),
            SkillNode::Directory => SkillResource::Directory(skill, path),
        })
    }

    fn visible(&self, access: Access<'_>) -> impl Iterator<Item = &Skill> {
        self.skills.iter().filter(move |skill| access.sees(skill.view()))
    }

    /// The URIs of the skills with scopes.
    pub(crate) fn scoped(&self) -> impl Iterator<Item = String> {
        self.skills.iter().filter(|skill| !skill.scopes.is_empty()).map(|skill| skill.uri(MANIFEST))
    }

    /// The entries of `skills/list` for a caller, each as JSON.
    pub(crate) fn entries(&self, access: Access<'_>) -> Vec<Vec<u8>> {
        self.visible(access).map(|skill| to_json(|entry| write_skill(entry, skill))).collect()
    }

    /// The entries of skills in `resources/list`: each has its `SKILL.md` there.
    pub(crate) fn manifests(&self, access: Access<'_>) -> impl Iterator<Item = Vec<u8>> {
        let manifest = |skill: &Skill| {
            let node = skill.nodes.get(MANIFEST)?;
            Some(to_json(|entry| write_resource(entry, skill, MANIFEST, node)))
        };
        self.visible(access).filter_map(manifest)
    }
}

/// The direct children of a directory inside a skill, each as the JSON of a resource.
pub(crate) fn directory_entries(skill: &Skill, directory: &str) -> Vec<Vec<u8>> {
    let entry = |(path, node): (&str, &SkillNode)| to_json(|entry| write_resource(entry, skill, path, node));
    skill.children(directory).map(entry).collect()
}

/// Writes the members of a skill's entry in `skills/list`.
pub(crate) fn write_skill(entry: &mut Object<'_>, skill: &Skill) {
    entry.str("uri", &skill.uri(MANIFEST)).value("frontmatter", &skill.frontmatter);
    write_array(entry.key("resources"), skill.files(), |out, (path, file)| {
        let mut object = Object::new(out);
        object.str("uri", &skill.uri(path)).str("digest", &file.digest).value("size", &file.size);
        object.end();
    });
}

fn write_resource(entry: &mut Object<'_>, skill: &Skill, path: &str, node: &SkillNode) {
    entry.str("uri", &skill.uri(path));
    if path == MANIFEST {
        entry.str("name", &skill.name).str("description", &skill.description);
    } else {
        entry.str("name", path.rsplit('/').next().unwrap_or(path));
    }
    match node {
        SkillNode::File(file) => entry.str("mimeType", file.mime).value("size", &file.size),
        SkillNode::Directory => entry.str("mimeType", "inode/directory"),
    };
}

fn to_json(write: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let mut object = Object::new(&mut out);
    write(&mut object);
    object.end();
    out
}

/// Lowercases the first segment of a path, which is the host of the URI: hosts match ignoring case.
fn lowercase_host(path: &str) -> String {
    let (host, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
    format!("{}{rest}", host.to_ascii_lowercase())
}
