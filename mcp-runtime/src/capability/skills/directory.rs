//! Reads directories of skills: each file once, within limits, and no file outside of the directory.

use std::{
    collections::{BTreeMap, HashSet},
    fmt, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use super::{MANIFEST, Skill, SkillFile, SkillNode, SkillsDir, file, frontmatter};
use crate::core::crypto::hex;

/// The limits of the extension for one skill.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 16 << 20;
const MAX_DIRECTORIES: usize = 512;
const MAX_DEPTH: usize = 16;
/// Errors that are reported for one directory of skills.
const MAX_ERRORS: usize = 20;

/// Appends the skills of a directory, in the order of their names.
pub(super) fn read_skills(dir: &SkillsDir, skills: &mut Vec<Skill>, errors: &mut Vec<String>) {
    let mut dir_errors = Vec::new();
    match names(&dir.path).and_then(|names| Ok((fs::canonicalize(&dir.path)?, names))) {
        Ok((root, names)) => read_each(dir, &root, &names, skills, &mut dir_errors),
        Err(error) => dir_errors.push(unreadable_message(&dir.path, &error)),
    }
    let more = dir_errors.len().saturating_sub(MAX_ERRORS);
    dir_errors.truncate(MAX_ERRORS);
    if more > 0 {
        dir_errors.push(format!("`{}`: {more} more errors", dir.path.display()));
    }
    errors.append(&mut dir_errors);
}

fn unreadable_message(path: &Path, error: &io::Error) -> String {
    format!(
        "`{}` cannot be read as a directory of skills: {error}\na relative path starts at the working directory",
        path.display()
    )
}

fn read_each(
    dir: &SkillsDir,
    root: &Path,
    names: &[Name],
    skills: &mut Vec<Skill>,
    errors: &mut Vec<String>,
) {
    if names.iter().any(|name| name.as_path() == Path::new(MANIFEST)) {
        let path = dir.path.display();
        errors.push(format!("`{path}` is a skill itself\npass the directory that contains it"));
        return;
    }
    let before = (skills.len(), errors.len());
    for name in names {
        let path = dir.path.join(name.as_path());
        let Name::Text(name) = name else {
            // only a directory could be meant as a skill
            if path.is_dir() {
                errors.push(format!("the name `{}` is not UTF-8\nrename it", path.display()));
            }
            continue;
        };
        // hidden directories, such as those of version control, and files beside the skills are ignored
        if name.starts_with('.') || !path.is_dir() {
            continue;
        }
        match read_skill(dir, root, name, &path) {
            Ok(skill) => skills.push(skill),
            Err(skill_errors) => errors.extend(skill_errors),
        }
    }
    if (skills.len(), errors.len()) == before {
        errors.push(format!(
            "`{}` contains no skills\na skill is a directory in it with a `{MANIFEST}`",
            dir.path.display()
        ));
    }
}

fn read_skill(dir: &SkillsDir, root: &Path, name: &str, path: &Path) -> Result<Skill, Vec<String>> {
    let error = |text: &str| vec![format!("`{}`: {text}", path.display())];
    if !is_skill_name(name) {
        return Err(error(
            "a skill's name is 1 to 64 of `a-z 0-9 -`, no `-` at an end and no two in a row\nrename the directory",
        ));
    }
    let real = resolve_inside(root, &root.join(name)).map_err(|text| error(&text))?;
    if fs::symlink_metadata(real.join(MANIFEST)).is_err() {
        return Err(error("it has no `SKILL.md`\nwrite one, or move the directory away"));
    }
    let mut walk = Walk::new(root, path);
    walk.read_directory(&real, "");
    if !walk.errors.is_empty() {
        return Err(walk.errors);
    }
    let manifest = walk.manifest.as_deref().ok_or_else(|| error("`SKILL.md` is not UTF-8 text"))?;
    let frontmatter = frontmatter::read(manifest, name).map_err(|fault| {
        let line = fault.line.map_or(String::new(), |line| format!(":{line}"));
        vec![format!("`{}{line}`: {}", path.join(MANIFEST).display(), fault.text)]
    })?;
    let prefix = &dir.prefix;
    Ok(Skill {
        path: if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") },
        name: name.to_owned(),
        description: frontmatter.description,
        frontmatter: frontmatter.all,
        scopes: dir.scopes.clone(),
        directory: path.to_owned(),
        nodes: walk.nodes,
    })
}

fn is_skill_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// The path with symbolic links resolved, if it is inside the root and not hidden there.
fn resolve_inside(root: &Path, path: &Path) -> Result<PathBuf, String> {
    let real = fs::canonicalize(path).map_err(|error| format!("it cannot be read: {error}"))?;
    let Ok(relative) = real.strip_prefix(root) else {
        return Err("it is a link that leaves the directory of skills\nput the file itself here".into());
    };
    if relative.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.')) {
        return Err("it is a link to a hidden file\nput the file itself here".into());
    }
    Ok(real)
}

/// The name of a directory entry.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Text(String),
    /// Not UTF-8.
    Other(PathBuf),
}

impl Name {
    fn as_path(&self) -> &Path {
        match self {
            Self::Text(name) => Path::new(name),
            Self::Other(name) => name,
        }
    }
}

/// The names in a directory, sorted, since file systems return them in any order.
fn names(path: &Path) -> io::Result<Vec<Name>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.push(match entry?.file_name().into_string() {
            Ok(name) => Name::Text(name),
            Err(name) => Name::Other(name.into()),
        });
    }
    names.sort_unstable();
    Ok(names)
}

/// The state of reading one skill.
struct Walk<'a> {
    root: &'a Path,
    /// The skill's directory, as the user passed it.
    skill: &'a Path,
    /// The directories that enclose the one being read, with links resolved.
    ancestors: Vec<PathBuf>,
    nodes: BTreeMap<String, SkillNode>,
    manifest: Option<String>,
    files: usize,
    directories: usize,
    bytes: u64,
    /// Paths in lower case: some hosts treat URIs that differ only in case as one.
    lowercase_paths: HashSet<String>,
    errors: Vec<String>,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Path, skill: &'a Path) -> Self {
        Self {
            root,
            skill,
            ancestors: Vec::new(),
            nodes: BTreeMap::new(),
            manifest: None,
            files: 0,
            directories: 0,
            bytes: 0,
            lowercase_paths: HashSet::new(),
            errors: Vec::new(),
        }
    }

    fn report(&mut self, path: &str, text: impl fmt::Display) {
        let path = if path.is_empty() { self.skill.to_owned() } else { self.skill.join(path) };
        self.errors.push(format!("`{}`: {text}", path.display()));
    }

    /// Reads a directory; returns whether to continue with the rest of the skill.
    fn read_directory(&mut self, real: &Path, path: &str) -> bool {
        self.directories += 1;
        if self.directories > MAX_DIRECTORIES {
            self.report(
                "",
                format!("it has more than {MAX_DIRECTORIES} directories\nmake it smaller, or several skills"),
            );
            return false;
        }
        if self.ancestors.len() >= MAX_DEPTH {
            self.report(path, format!("it is more than {MAX_DEPTH} directories deep\nmove it further up"));
            return true;
        }
        if self.ancestors.iter().any(|ancestor| ancestor.starts_with(real)) {
            self.report(path, "it is a link to a directory that contains it\nremove the link");
            return true;
        }
        let names = match names(real) {
            Ok(names) => names,
            Err(error) => {
                self.report(path, format!("it cannot be read: {error}"));
                return true;
            }
        };
        self.nodes.insert(path.to_owned(), SkillNode::Directory);
        self.ancestors.push(real.to_owned());
        let proceed = names.iter().all(|name| self.read_entry(real, path, name));
        self.ancestors.pop();
        proceed
    }

    fn read_entry(&mut self, parent: &Path, parent_path: &str, name: &Name) -> bool {
        let Name::Text(name) = name else {
            let name = name.as_path().display();
            self.report(parent_path, format!("the name `{name}` in it is not UTF-8\nrename it"));
            return true;
        };
        let path = if parent_path.is_empty() { name.clone() } else { format!("{parent_path}/{name}") };
        if name.starts_with('.') {
            self.report(&path, "hidden files are not served\nrename it, or move it out of the skill");
            return true;
        }
        if name.contains('\\') || name.contains(char::is_control) {
            self.report(&path, "its name has a `\\` or a control character\nrename it");
            return true;
        }
        if !self.lowercase_paths.insert(path.to_lowercase()) {
            self.report(&path, "another file's name differs from its name only in case\nrename one of them");
            return true;
        }
        let real = parent.join(name);
        let is_link = fs::symlink_metadata(&real).is_ok_and(|meta| meta.is_symlink());
        let real = if is_link { resolve_inside(self.root, &real) } else { Ok(real) };
        let meta = real.and_then(|real| match fs::metadata(&real) {
            Ok(meta) => Ok((real, meta)),
            Err(error) => Err(format!("it cannot be read: {error}")),
        });
        match meta {
            Ok((real, meta)) if meta.is_dir() => self.read_directory(&real, &path),
            Ok((real, meta)) if meta.is_file() => self.read_file(&real, path, name, meta.len()),
            // opening a named pipe would block until its other end is opened
            Ok(_) => {
                self.report(&path, "it is neither a file nor a directory\nremove it");
                true
            }
            Err(text) => {
                self.report(&path, text);
                true
            }
        }
    }

    fn read_file(&mut self, real: &Path, path: String, name: &str, expected: u64) -> bool {
        self.files += 1;
        if self.files > MAX_FILES {
            self.report(
                "",
                format!("it has more than {MAX_FILES} files\nmake it smaller, or several skills"),
            );
            return false;
        }
        let remaining = MAX_BYTES - self.bytes;
        let bytes = if expected > remaining { Ok(None) } else { read_at_most(real, remaining) };
        let bytes = match bytes {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                let text = format!("with this file the skill has more than {} MiB", MAX_BYTES >> 20);
                self.report(&path, format!("{text}\nmake it smaller, or several skills"));
                return false;
            }
            Err(error) => {
                self.report(&path, format!("it cannot be read: {error}"));
                return true;
            }
        };
        let size = bytes.len() as u64;
        self.bytes += size;
        let digest = hex(Sha256::digest(&bytes));
        if path == MANIFEST {
            let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.contains('\0'));
            self.manifest = text.map(str::to_owned);
        }
        let (contents, mime) = file::contents(name, bytes);
        let file = SkillFile { contents, mime, size, digest: format!("sha256:{digest}") };
        self.nodes.insert(path, SkillNode::File(file));
        true
    }
}

/// The bytes of a file, or `None` if it is larger than `limit`.
fn read_at_most(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    // one byte more, to detect a larger file: it may grow while it is read
    fs::File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

#[cfg(test)]
mod tests;
