//! Files of a project. A repository that someone else has written may have links that lead out of it: such a file is neither
//! read nor written, whichever link of its path it is.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use super::whole_file;

/// Where a path of a project leads, without any links, also if nothing is there yet.
///
/// # Errors
/// It leads out of the project, or nowhere.
pub fn resolve_in(project: &Path, path: &Path) -> io::Result<PathBuf> {
    let found = without_links(&project.join(path))?;
    if found.starts_with(without_links(project)?) {
        return Ok(found);
    }
    Err(io::Error::other(format!("it leads out of `{}`", project.display())))
}

/// Where a path leads that a user has named: out of the current folder only by the words of the user, and not by a link.
///
/// # Errors
/// As of [`resolve_in`].
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    let here = std::env::current_dir()?;
    let is_up = |part: Component<'_>| matches!(part, Component::ParentDir);
    let inside = here.join(path);
    let project = match inside.starts_with(&here) && !path.components().any(is_up) {
        true => &here,
        false => inside.parent().unwrap_or(&here),
    };
    resolve_in(project, path)
}

/// The bytes of a file at the path that a user has named.
///
/// # Errors
/// As of [`resolve`], or it cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let path = resolve(path)?;
    // reading a pipe would wait for its writer
    if !fs::metadata(&path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    fs::read(path)
}

/// Writes a file at the path that a user has named, or replaces it: after a failure or a kill, it is the old one or the new one.
///
/// # Errors
/// As of [`resolve`], or it cannot be written.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    whole_file::replace(&resolve(path)?, bytes, true)
}

/// The same path without links: of the part of it that is there, and the rest as it is.
fn without_links(path: &Path) -> io::Result<PathBuf> {
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let (mut present, mut missing) = (path, Vec::new());
    while fs::symlink_metadata(present).is_err_and(|error| is_missing(&error)) {
        let (Some(name), Some(folder)) = (present.file_name(), present.parent()) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        missing.push(name);
        // of a relative path
        present = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    }
    let mut found = present.canonicalize().map_err(|error| match is_missing(&error) {
        true => io::Error::other(format!("`{}` is a link that leads nowhere", present.display())),
        false => error,
    })?;
    found.extend(missing.iter().rev());
    Ok(found)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_of_a_project_stays_in_it_whichever_part_of_it_is_a_link() {
        let folder = std::env::temp_dir().join(format!("mcp-project-{}", std::process::id()));
        let _result = fs::remove_dir_all(&folder);
        for inside in ["project/sub", "secret"] {
            fs::create_dir_all(folder.join(inside)).expect("a folder");
        }
        let folder = folder.canonicalize().expect("a path");
        let project = folder.join("project");
        fs::write(folder.join("secret/key"), "planted").expect("a file");
        for (to, link) in [
            ("../secret/key", "file"),
            ("../secret", "folder"),
            ("../secret/none", "nothing"),
            ("file", "twice"),
            ("sub", "inside"),
            ("../../secret", "sub/up"),
            ("circle", "circle"),
        ] {
            symlink(to, project.join(link)).expect("a link");
        }
        symlink(folder.join("secret"), project.join("absolute")).expect("a link");
        for path in [
            "file",
            "folder/key",
            "folder/new",
            "folder/new/newer",
            "nothing",
            "twice",
            "sub/up/key",
            "absolute/key",
            "circle",
            "../secret/key",
            "sub/../../secret/key",
            "new/../../secret/key",
        ] {
            let found = resolve_in(&project, Path::new(path));
            assert!(found.is_err(), "{path}: {found:?}");
            let named = project.join(path);
            // the folders that the user spells out are meant
            if !path.contains('/') {
                assert!(replace(&named, b"x").is_err() && read(&named).is_err(), "{path}");
            }
        }
        assert_eq!(fs::read(folder.join("secret/key")).expect("a file"), b"planted");
        assert_eq!(fs::read_dir(folder.join("secret")).expect("a folder").count(), 1);
        for (path, leads_to) in [("a", "a"), ("inside/b/c", "sub/b/c"), ("sub/../d", "d"), ("", "")] {
            let found = resolve_in(&project, Path::new(path)).expect("a path");
            assert_eq!(found, project.join(leads_to), "{path}");
        }
        replace(&project.join("inside/e"), b"x").expect("a link inside is followed");
        assert_eq!(read(&project.join("sub/e")).expect("a file"), b"x");
        assert_eq!(read(&folder.join("project/../secret/key")).expect("a file"), b"planted");
        assert!(read(&project.join("sub")).is_err());
        fs::remove_dir_all(&folder).expect("the folder");
    }
}
