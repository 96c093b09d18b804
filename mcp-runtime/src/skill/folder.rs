//! Reads directories of skills: every file once, within bounds, and none from outside. Called by the builder.

use std::{
    collections::{BTreeMap, HashSet},
    fmt, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use super::{File, MANIFEST, Node, Shelf, Skill, frontmatter, kind};

/// What the extension lets a skill have: hosts refuse more.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 16 << 20;
const MAX_FOLDERS: usize = 512;
const MAX_DEPTH: usize = 16;
/// Reports of one directory of skills; more would hide the first.
const MAX_PROBLEMS: usize = 20;

/// Appends the skills of a directory, in the order of their names.
pub(crate) fn read(shelf: &Shelf, skills: &mut Vec<Skill>, problems: &mut Vec<String>) {
    let mut found = Vec::new();
    match names(&shelf.path).and_then(|names| Ok((fs::canonicalize(&shelf.path)?, names))) {
        Ok((root, names)) => read_all(shelf, &root, &names, skills, &mut found),
        Err(error) => found.push(unreadable(&shelf.path, &error)),
    }
    let more = found.len().saturating_sub(MAX_PROBLEMS);
    found.truncate(MAX_PROBLEMS);
    if more > 0 {
        found.push(format!("`{}`: {more} more problems", shelf.path.display()));
    }
    problems.append(&mut found);
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!(
        "`{}` cannot be read as a directory of skills: {error}\na relative path starts at the working directory",
        path.display()
    )
}

fn read_all(shelf: &Shelf, root: &Path, names: &[Name], skills: &mut Vec<Skill>, problems: &mut Vec<String>) {
    if names.iter().any(|name| name.shown() == Path::new(MANIFEST)) {
        let path = shelf.path.display();
        problems.push(format!("`{path}` is a skill itself\npass the directory that holds it"));
        return;
    }
    let before = (skills.len(), problems.len());
    for name in names {
        let shown = shelf.path.join(name.shown());
        let Name::Text(name) = name else {
            // what has no name in a URI may be anything else that lies here, but no skill
            if shown.is_dir() {
                problems.push(format!("`{}` is no name in UTF-8\nrename it", shown.display()));
            }
            continue;
        };
        // what lies beside the skills is nobody's: notes, and what version control keeps
        if name.starts_with('.') || !shown.is_dir() {
            continue;
        }
        match read_skill(shelf, root, name, &shown) {
            Ok(skill) => skills.push(skill),
            Err(found) => problems.extend(found),
        }
    }
    if (skills.len(), problems.len()) == before {
        problems.push(format!(
            "`{}` holds no skill\na skill is a directory in it with a `{MANIFEST}`",
            shelf.path.display()
        ));
    }
}

fn read_skill(shelf: &Shelf, root: &Path, name: &str, shown: &Path) -> Result<Skill, Vec<String>> {
    let problem = |text: &str| vec![format!("`{}`: {text}", shown.display())];
    if !is_name(name) {
        return Err(problem(
            "a skill's name is 1 to 64 of `a-z 0-9 -`, no `-` at an end and no two in a row\nrename the directory",
        ));
    }
    let real = inside(root, &root.join(name)).map_err(|text| problem(&text))?;
    if fs::symlink_metadata(real.join(MANIFEST)).is_err() {
        return Err(problem("there is no `SKILL.md` in it\nwrite one, or move the directory away"));
    }
    let mut walk = Walk { root, shown, walked: Walked::default(), above: Vec::new(), problems: Vec::new() };
    walk.folder(&real, "");
    let Walk { problems, walked, .. } = walk;
    if !problems.is_empty() {
        return Err(problems);
    }
    let manifest = walked.manifest.as_deref().ok_or_else(|| problem("`SKILL.md` is no text in UTF-8"))?;
    let front = frontmatter::read(manifest, name).map_err(|fault| {
        let line = fault.line.map_or(String::new(), |line| format!(":{line}"));
        vec![format!("`{}{line}`: {}", shown.join(MANIFEST).display(), fault.text)]
    })?;
    let prefix = &shelf.prefix;
    Ok(Skill {
        path: if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") },
        name: name.to_owned(),
        description: front.description,
        frontmatter: front.all,
        folder: shown.to_owned(),
        nodes: walked.nodes,
    })
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// The real place of a path, if it is inside the root and not hidden there.
fn inside(root: &Path, path: &Path) -> Result<PathBuf, String> {
    let real = fs::canonicalize(path).map_err(|error| format!("it cannot be read: {error}"))?;
    let Ok(within) = real.strip_prefix(root) else {
        return Err("it is a link that leaves the directory of skills\nput the file itself here".into());
    };
    if within.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.')) {
        return Err("it is a link to a hidden file\nput the file itself here".into());
    }
    Ok(real)
}

/// The name of an entry, as text where it is.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Text(String),
    Other(PathBuf),
}

impl Name {
    fn shown(&self) -> &Path {
        match self {
            Self::Text(name) => Path::new(name),
            Self::Other(name) => name,
        }
    }
}

/// The names in a directory, sorted; file systems give them in any order.
fn names(path: &Path) -> io::Result<Vec<Name>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.push(match entry?.file_name().into_string() {
            Ok(name) => Name::Text(name),
            Err(name) => Name::Other(name.into()),
        });
    }
    names.sort();
    Ok(names)
}

/// A skill's directory on the way through it.
struct Walk<'a> {
    root: &'a Path,
    /// The skill's directory as the user knows it.
    shown: &'a Path,
    walked: Walked,
    /// Real directories that hold the one being read.
    above: Vec<PathBuf>,
    problems: Vec<String>,
}

#[derive(Default)]
struct Walked {
    nodes: BTreeMap<String, Node>,
    manifest: Option<String>,
    files: usize,
    folders: usize,
    bytes: u64,
    /// Paths in lower case: URIs that differ only in case are one for some hosts.
    taken: HashSet<String>,
}

impl Walk<'_> {
    fn problem(&mut self, path: &str, text: impl fmt::Display) {
        let at = if path.is_empty() { self.shown.to_owned() } else { self.shown.join(path) };
        self.problems.push(format!("`{}`: {text}", at.display()));
    }

    /// Reads a directory; whether to go on with the rest of the skill.
    fn folder(&mut self, real: &Path, path: &str) -> bool {
        self.walked.folders += 1;
        if self.walked.folders > MAX_FOLDERS {
            self.problem(
                "",
                format!("it has more than {MAX_FOLDERS} directories\nmake it smaller, or several skills"),
            );
            return false;
        }
        if self.above.len() >= MAX_DEPTH {
            self.problem(path, format!("it is more than {MAX_DEPTH} directories deep\nmove it further up"));
            return true;
        }
        if self.above.iter().any(|above| above.starts_with(real)) {
            self.problem(path, "it is a link to a directory that holds it\nremove the link");
            return true;
        }
        let names = match names(real) {
            Ok(names) => names,
            Err(error) => {
                self.problem(path, format!("it cannot be read: {error}"));
                return true;
            }
        };
        self.walked.nodes.insert(path.to_owned(), Node::Folder);
        self.above.push(real.to_owned());
        let all = names.iter().all(|name| self.entry(real, path, name));
        self.above.pop();
        all
    }

    fn entry(&mut self, above: &Path, folder: &str, name: &Name) -> bool {
        let Name::Text(name) = name else {
            let name = name.shown().display();
            self.problem(folder, format!("`{name}` in it is no name in UTF-8\nrename it"));
            return true;
        };
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if name.starts_with('.') {
            self.problem(&path, "hidden files are not served\nrename it, or move it out of the skill");
            return true;
        }
        if name.contains('\\') || name.contains(char::is_control) {
            self.problem(&path, "its name has a `\\` or a control character\nrename it");
            return true;
        }
        if !self.walked.taken.insert(path.to_lowercase()) {
            self.problem(&path, "another file's name differs from its name only in case\nrename one of them");
            return true;
        }
        let place = above.join(name);
        let linked = fs::symlink_metadata(&place).is_ok_and(|meta| meta.is_symlink());
        let real = if linked { inside(self.root, &place) } else { Ok(place) };
        let meta = real.and_then(|real| match fs::metadata(&real) {
            Ok(meta) => Ok((real, meta)),
            Err(error) => Err(format!("it cannot be read: {error}")),
        });
        match meta {
            Ok((real, meta)) if meta.is_dir() => self.folder(&real, &path),
            Ok((real, meta)) if meta.is_file() => self.file(&real, path, name, meta.len()),
            // opening a pipe would wait for its other end
            Ok(_) => {
                self.problem(&path, "it is neither a file nor a directory\nremove it");
                true
            }
            Err(text) => {
                self.problem(&path, text);
                true
            }
        }
    }

    fn file(&mut self, real: &Path, path: String, name: &str, expected: u64) -> bool {
        self.walked.files += 1;
        if self.walked.files > MAX_FILES {
            self.problem(
                "",
                format!("it has more than {MAX_FILES} files\nmake it smaller, or several skills"),
            );
            return false;
        }
        let left = MAX_BYTES - self.walked.bytes;
        let bytes = if expected > left { Ok(None) } else { within(real, left) };
        let bytes = match bytes {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                let text = format!("with this file the skill has more than {} MiB", MAX_BYTES >> 20);
                self.problem(&path, format!("{text}\nmake it smaller, or several skills"));
                return false;
            }
            Err(error) => {
                self.problem(&path, format!("it cannot be read: {error}"));
                return true;
            }
        };
        let size = bytes.len() as u64;
        self.walked.bytes += size;
        let digest = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        if path == MANIFEST {
            let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.contains('\0'));
            self.walked.manifest = text.map(str::to_owned);
        }
        let (contents, mime) = kind::contents(name, bytes);
        let file = File { contents, mime, size, digest: format!("sha256:{digest}") };
        self.walked.nodes.insert(path, Node::File(file));
        true
    }
}

/// The bytes of a file, unless they are more than that.
fn within(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    // one more, to see that there is more: a file may grow while it is read
    fs::File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

#[cfg(test)]
mod tests;
