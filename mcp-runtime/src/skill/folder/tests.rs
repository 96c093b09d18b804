//! Directories that are refused, and what is read of those that are not; run with the unit tests.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const GOOD: &str = "---\nname: good\ndescription: Good.\n---\n# Good\n";

/// A directory of skills that goes when it is dropped, with one good skill and a file beside it.
struct Tree(PathBuf);

impl Tree {
    fn new() -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let unique = format!("mcp-skills-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let tree = Self(std::env::temp_dir().canonicalize().expect("a folder").join(unique));
        tree.file("skills/good/SKILL.md", GOOD.as_bytes());
        tree.file("skills/README.md", b"no skill");
        tree.file("outside.txt", b"outside");
        tree
    }

    fn at(&self, path: &str) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        path
    }

    fn file(&self, path: &str, bytes: &[u8]) {
        fs::write(self.at(path), bytes).expect("a file");
    }

    fn read(&self) -> (Vec<Skill>, Vec<String>) {
        let (mut skills, mut problems) = (Vec::new(), Vec::new());
        let shelf = Shelf { path: self.0.join("skills"), prefix: String::new() };
        read(&shelf, &mut skills, &mut problems);
        (skills, problems)
    }

    /// The only problem there is, without where the tree is.
    #[track_caller]
    fn problem(&self) -> String {
        match self.read().1.as_slice() {
            [one] => one.replace(&format!("{}/", self.0.display()), ""),
            other => panic!("not one problem: {other:#?}"),
        }
    }

    #[track_caller]
    fn paths(&self) -> Vec<String> {
        let (skills, problems) = self.read();
        assert!(problems.is_empty(), "{problems:#?}");
        skills.iter().flat_map(|skill| skill.nodes.keys().map(|path| skill.uri(path))).collect()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn bytes_sizes_and_digests_are_of_one_reading() {
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
fn what_lies_beside_skills_is_left_alone() {
    let tree = Tree::new();
    tree.file("skills/.git/config", b"x");
    tree.file("skills/.hidden", b"x");
    assert_eq!(tree.paths(), ["skill://good", "skill://good/SKILL.md"]);
}

#[test]
fn a_directory_that_is_none_of_skills_is_refused() {
    let tree = Tree::new();
    fs::remove_dir_all(tree.0.join("skills/good")).expect("removed");
    assert!(tree.problem().contains("`skills` holds no skill\n"), "{}", tree.problem());
    tree.file("skills/SKILL.md", GOOD.as_bytes());
    tree.file("skills/references/a.md", b"a");
    assert!(tree.problem().starts_with("`skills` is a skill itself\n"), "{}", tree.problem());
    fs::remove_dir_all(tree.0.join("skills")).expect("removed");
    assert!(tree.problem().contains("cannot be read as a directory of skills"), "{}", tree.problem());
}

#[test]
fn names_and_manifests_are_checked() {
    for name in ["Upper", "two--hyphens", "-start", "end-", "under_score", "ümlaut", &"x".repeat(65)] {
        let tree = Tree::new();
        tree.file(&format!("skills/{name}/SKILL.md"), b"");
        let problem = tree.problem();
        assert!(problem.contains("a skill's name is 1 to 64 of"), "{problem}");
    }
    let tree = Tree::new();
    tree.file("skills/empty/skill.md", GOOD.as_bytes());
    assert!(tree.problem().starts_with("`skills/empty`: there is no `SKILL.md` in it\n"));
    tree.file("skills/empty/SKILL.md", b"---\nname: other\ndescription: d\n---\n");
    fs::remove_file(tree.at("skills/empty/skill.md")).expect("removed");
    assert!(tree.problem().starts_with("`skills/empty/SKILL.md`: `name` is `other`"), "{}", tree.problem());
    tree.file("skills/empty/SKILL.md", b"---\nname: empty\ndescription: d\n a: b\n---\n");
    assert!(tree.problem().starts_with("`skills/empty/SKILL.md:"), "{}", tree.problem());
    tree.file("skills/empty/SKILL.md", b"---\nname: empty\ndescription: caf\xe9\n---\n");
    assert!(tree.problem().contains("`SKILL.md` is no text in UTF-8"), "{}", tree.problem());
}

#[test]
fn dotfiles_and_awkward_names_are_refused() {
    for name in [".env", "docs/.git/config"] {
        let tree = Tree::new();
        tree.file(&format!("skills/good/{name}"), b"secret");
        assert!(tree.problem().contains("hidden files are not served\n"), "{}", tree.problem());
    }
    let tree = Tree::new();
    tree.file("skills/good/A.md", b"");
    tree.file("skills/good/a.md", b"");
    // where the file system tells them apart
    if fs::read_dir(tree.0.join("skills/good")).expect("a folder").count() == 3 {
        assert!(tree.problem().contains("only in case"), "{}", tree.problem());
    }
}

#[test]
fn limits_are_those_of_the_extension() {
    let tree = Tree::new();
    for n in 0..511 {
        tree.file(&format!("skills/good/f{n}"), b"");
    }
    assert_eq!(tree.paths().len(), 513);
    tree.file("skills/good/g", b"");
    assert!(tree.problem().starts_with("`skills/good`: it has more than 512 files\n"));

    let tree = Tree::new();
    let file = fs::File::create(tree.at("skills/good/big")).expect("a file");
    let left = MAX_BYTES - GOOD.len() as u64;
    file.set_len(left).expect("a length");
    assert_eq!(tree.paths().len(), 3);
    file.set_len(left + 1).expect("a length");
    assert!(tree.problem().starts_with("`skills/good/big`: with this file"), "{}", tree.problem());

    let tree = Tree::new();
    tree.file(&format!("skills/good/{}f", "d/".repeat(MAX_DEPTH - 1)), b"");
    assert_eq!(tree.paths().len(), 2 + MAX_DEPTH);
    tree.file(&format!("skills/good/{}f", "d/".repeat(MAX_DEPTH)), b"");
    assert!(tree.problem().contains("more than 16 directories deep"), "{}", tree.problem());

    let tree = Tree::new();
    for n in 0..MAX_FOLDERS {
        fs::create_dir(tree.at(&format!("skills/good/d{n}"))).expect("a folder");
    }
    assert!(tree.problem().contains("more than 512 directories"), "{}", tree.problem());
}

#[test]
fn reports_are_bounded() {
    let tree = Tree::new();
    for n in 0..30 {
        fs::create_dir(tree.at(&format!("skills/empty-{n}"))).expect("a folder");
    }
    let (skills, problems) = tree.read();
    assert_eq!((skills.len(), problems.len()), (1, 21));
    assert!(problems[20].ends_with("10 more problems"), "{problems:#?}");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::{ffi::OsStringExt, fs::symlink, net::UnixListener};

    use super::*;

    #[test]
    fn links_stay_inside() {
        let tree = Tree::new();
        tree.file("skills/good/docs/a.md", b"a");
        symlink("docs/a.md", tree.at("skills/good/file.md")).expect("a link");
        symlink("docs", tree.at("skills/good/folder")).expect("a link");
        let inside = ["skill://good", "SKILL.md", "docs", "docs/a.md", "file.md", "folder", "folder/a.md"];
        let found = tree.paths();
        assert_eq!(
            found.iter().map(|uri| uri.trim_start_matches("skill://good/")).collect::<Vec<_>>(),
            inside
        );
    }

    #[test]
    fn links_that_leave_hide_or_loop_are_refused() {
        for (target, link, part) in [
            ("../../outside.txt", "skills/good/out", "leaves the directory of skills"),
            ("../..", "skills/good/out", "leaves the directory of skills"),
            ("../outside", "skills/linked", "leaves the directory of skills"),
            ("../.git/config", "skills/good/config", "link to a hidden file"),
            ("nowhere", "skills/good/dangling", "cannot be read"),
            ("loop", "skills/good/loop", "cannot be read"),
            (".", "skills/good/again", "a link to a directory that holds it"),
            ("../..", "skills/good/deep/down", "a link to a directory that holds it"),
        ] {
            let tree = Tree::new();
            tree.file("skills/.git/config", b"x");
            tree.file("outside/SKILL.md", b"---\nname: linked\ndescription: d\n---\n");
            symlink(target, tree.at(link)).expect("a link");
            let problem = tree.problem();
            assert!(problem.contains(part), "{target} -> {link}: {problem}");
        }
    }

    #[test]
    fn what_is_no_file_and_names_that_are_no_text_are_refused() {
        let tree = Tree::new();
        // a socket: opening it would fail, and opening a pipe would wait
        let _listener = UnixListener::bind(tree.at("skills/good/socket")).expect("a socket");
        assert!(tree.problem().contains("neither a file nor a directory"), "{}", tree.problem());

        let tree = Tree::new();
        let name = std::ffi::OsString::from_vec(b"caf\xe9".to_vec());
        if fs::write(tree.0.join("skills/good").join(name), b"").is_ok() {
            assert!(tree.problem().contains("no name in UTF-8"), "{}", tree.problem());
        }

        let tree = Tree::new();
        tree.file("skills/good/a\\..\\b", b"");
        assert!(tree.problem().contains("control character"), "{}", tree.problem());
    }
}
