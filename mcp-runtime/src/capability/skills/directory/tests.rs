//! Which directories are refused, and what is read from the others.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const GOOD: &str = "---\nname: good\ndescription: Good.\n---\n# Good\n";

/// A directory of skills, removed on drop, with one valid skill and a file beside it.
struct Tree(PathBuf);

impl Tree {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let unique = format!("mcp-skills-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let tree = Self(std::env::temp_dir().canonicalize().expect("a directory").join(unique));
        tree.file("skills/good/SKILL.md", GOOD.as_bytes());
        tree.file("skills/README.md", b"not a skill");
        tree.file("outside.txt", b"outside");
        tree
    }

    fn at(&self, path: &str) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        path
    }

    fn file(&self, path: &str, bytes: &[u8]) {
        fs::write(self.at(path), bytes).expect("a file");
    }

    fn read(&self) -> (Vec<Skill>, Vec<String>) {
        let (mut skills, mut errors) = (Vec::new(), Vec::new());
        let dir = SkillsDir::new(self.0.join("skills"));
        read_skills(&dir, &mut skills, &mut errors);
        (skills, errors)
    }

    /// The only error, with paths relative to the tree.
    #[track_caller]
    fn error(&self) -> String {
        match self.read().1.as_slice() {
            [one] => one.replace(&format!("{}/", self.0.display()), ""),
            other => panic!("not exactly one error: {other:#?}"),
        }
    }

    #[track_caller]
    fn paths(&self) -> Vec<String> {
        let (skills, errors) = self.read();
        assert!(errors.is_empty(), "{errors:#?}");
        skills.iter().flat_map(|skill| skill.nodes.keys().map(|path| skill.uri(path))).collect()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn contents_sizes_and_digests_come_from_one_read() {
    let tree = Tree::new();
    tree.file("skills/good/a/b c.bin", b"abc");
    let (skills, _) = tree.read();
    tree.file("skills/good/a/b c.bin", b"changed");
    let files: Vec<_> = skills[0].files().collect();
    assert_eq!(files.len(), 2);
    assert_eq!((files[0].0, files[0].1.size), ("SKILL.md", GOOD.len() as u64));
    let (path, file) = files[1];
    assert_eq!((skills[0].uri(path), file.size), ("skill://good/a/b%20c.bin".to_owned(), 3));
    assert_eq!(file.digest, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

#[test]
fn hidden_entries_and_files_beside_skills_are_ignored() {
    let tree = Tree::new();
    tree.file("skills/.git/config", b"x");
    tree.file("skills/.hidden", b"x");
    assert_eq!(tree.paths(), ["skill://good", "skill://good/SKILL.md"]);
}

#[test]
fn a_directory_without_skills_is_refused() {
    let tree = Tree::new();
    fs::remove_dir_all(tree.0.join("skills/good")).expect("removed");
    assert!(tree.error().contains("`skills` contains no skills\n"), "{}", tree.error());
    tree.file("skills/SKILL.md", GOOD.as_bytes());
    tree.file("skills/references/a.md", b"a");
    assert!(tree.error().starts_with("`skills` is a skill itself\n"), "{}", tree.error());
    fs::remove_dir_all(tree.0.join("skills")).expect("removed");
    assert!(tree.error().contains("cannot be read as a directory of skills"), "{}", tree.error());
}

#[test]
fn names_and_manifests_are_checked() {
    for name in ["Upper", "two--hyphens", "-start", "end-", "under_score", "ümlaut", &"x".repeat(65)] {
        let tree = Tree::new();
        tree.file(&format!("skills/{name}/SKILL.md"), b"");
        let error = tree.error();
        assert!(error.contains("a skill's name is 1 to 64 of"), "{error}");
    }
    let tree = Tree::new();
    tree.file("skills/empty/skill.md", GOOD.as_bytes());
    assert!(tree.error().starts_with("`skills/empty`: it has no `SKILL.md`\n"));
    tree.file("skills/empty/SKILL.md", b"---\nname: other\ndescription: d\n---\n");
    fs::remove_file(tree.at("skills/empty/skill.md")).expect("removed");
    assert!(tree.error().starts_with("`skills/empty/SKILL.md`: `name` is `other`"), "{}", tree.error());
    tree.file("skills/empty/SKILL.md", b"---\nname: empty\ndescription: d\n a: b\n---\n");
    assert!(tree.error().starts_with("`skills/empty/SKILL.md:"), "{}", tree.error());
    tree.file("skills/empty/SKILL.md", b"---\nname: empty\ndescription: caf\xe9\n---\n");
    assert!(tree.error().contains("`SKILL.md` is not UTF-8 text"), "{}", tree.error());
}

#[test]
fn hidden_files_and_names_that_differ_only_in_case_are_refused() {
    for name in [".env", "docs/.git/config"] {
        let tree = Tree::new();
        tree.file(&format!("skills/good/{name}"), b"secret");
        assert!(tree.error().contains("hidden files are not served\n"), "{}", tree.error());
    }
    let tree = Tree::new();
    tree.file("skills/good/A.md", b"");
    tree.file("skills/good/a.md", b"");
    // only on a case-sensitive file system
    if fs::read_dir(tree.0.join("skills/good")).expect("a directory").count() == 3 {
        assert!(tree.error().contains("only in case"), "{}", tree.error());
    }
}

#[test]
fn the_limits_of_the_extension_are_enforced() {
    let tree = Tree::new();
    for n in 0..511 {
        tree.file(&format!("skills/good/f{n}"), b"");
    }
    assert_eq!(tree.paths().len(), 513);
    tree.file("skills/good/g", b"");
    assert!(tree.error().starts_with("`skills/good`: it has more than 512 files\n"));

    let tree = Tree::new();
    let file = fs::File::create(tree.at("skills/good/big")).expect("a file");
    let remaining = MAX_BYTES - GOOD.len() as u64;
    file.set_len(remaining).expect("a length");
    assert_eq!(tree.paths().len(), 3);
    file.set_len(remaining + 1).expect("a length");
    assert!(tree.error().starts_with("`skills/good/big`: with this file"), "{}", tree.error());

    let tree = Tree::new();
    tree.file(&format!("skills/good/{}f", "d/".repeat(MAX_DEPTH - 1)), b"");
    assert_eq!(tree.paths().len(), 2 + MAX_DEPTH);
    tree.file(&format!("skills/good/{}f", "d/".repeat(MAX_DEPTH)), b"");
    assert!(tree.error().contains("more than 16 directories deep"), "{}", tree.error());

    let tree = Tree::new();
    for n in 0..MAX_DIRECTORIES {
        fs::create_dir(tree.at(&format!("skills/good/d{n}"))).expect("a directory");
    }
    assert!(tree.error().contains("more than 512 directories"), "{}", tree.error());
}

#[test]
fn the_number_of_reported_errors_is_limited() {
    let tree = Tree::new();
    for n in 0..30 {
        fs::create_dir(tree.at(&format!("skills/empty-{n}"))).expect("a directory");
    }
    let (skills, errors) = tree.read();
    assert_eq!((skills.len(), errors.len()), (1, 21));
    assert!(errors[20].ends_with("10 more errors"), "{errors:#?}");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::{ffi::OsStringExt, fs::symlink, net::UnixListener};

    use super::*;

    #[test]
    fn links_inside_the_directory_are_followed() {
        let tree = Tree::new();
        tree.file("skills/good/docs/a.md", b"a");
        symlink("docs/a.md", tree.at("skills/good/file.md")).expect("a link");
        symlink("docs", tree.at("skills/good/folder")).expect("a link");
        let inside = ["skill://good", "SKILL.md", "docs", "docs/a.md", "file.md", "folder", "folder/a.md"];
        let uris = tree.paths();
        assert_eq!(
            uris.iter().map(|uri| uri.trim_start_matches("skill://good/")).collect::<Vec<_>>(),
            inside
        );
    }

    #[test]
    fn links_to_hidden_files_out_of_the_directory_or_in_a_loop_are_refused() {
        for (target, link, part) in [
            ("../../outside.txt", "skills/good/out", "leaves the directory of skills"),
            ("../..", "skills/good/out", "leaves the directory of skills"),
            ("../outside", "skills/linked", "leaves the directory of skills"),
            ("../.git/config", "skills/good/config", "link to a hidden file"),
            ("nowhere", "skills/good/dangling", "cannot be read"),
            ("loop", "skills/good/loop", "cannot be read"),
            (".", "skills/good/again", "a link to a directory that contains it"),
            ("../..", "skills/good/deep/down", "a link to a directory that contains it"),
        ] {
            let tree = Tree::new();
            tree.file("skills/.git/config", b"x");
            tree.file("outside/SKILL.md", b"---\nname: linked\ndescription: d\n---\n");
            symlink(target, tree.at(link)).expect("a link");
            let error = tree.error();
            assert!(error.contains(part), "{target} -> {link}: {error}");
        }
    }

    #[test]
    fn special_files_and_names_that_are_not_utf8_are_refused() {
        let tree = Tree::new();
        // a socket, since opening a named pipe would block
        let _listener = UnixListener::bind(tree.at("skills/good/socket")).expect("a socket");
        assert!(tree.error().contains("neither a file nor a directory"), "{}", tree.error());

        let tree = Tree::new();
        let name = std::ffi::OsString::from_vec(b"caf\xe9".to_vec());
        if fs::write(tree.0.join("skills/good").join(name), b"").is_ok() {
            assert!(tree.error().contains("is not UTF-8"), "{}", tree.error());
        }

        let tree = Tree::new();
        tree.file("skills/good/a\\..\\b", b"");
        assert!(tree.error().contains("control character"), "{}", tree.error());
    }
}
