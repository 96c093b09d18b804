//! The public interface of `mcp-runtime` with all features, and that of the packages under it, is what the files in `golden` say,
//! one file a module of `mcp-runtime` or a package under it, and one item a line, so that every change of it is seen and reviewed. `.ci/interface` has rustdoc write the interface as JSON, and runs
//! this; with `INTERFACE=overwrite` it writes the files anew, and removes those of modules that are gone.

use std::{
    collections::{BTreeMap, HashSet},
    env, fs,
    path::Path,
};

use public_api::Builder;

/// The packages under `mcp-runtime`.
const PACKAGES: [&str; 6] = ["exchange", "fetch", "openapi", "remote", "schema", "search"];

/// What rustdoc writes beside the documentation, in the folder that this test was built in.
fn interface(krate: &str) -> Vec<String> {
    let test = env::current_exe().expect("the path of this test");
    let documentation = test.ancestors().nth(3).expect("the folder of what is built").join("doc");
    let json = documentation.join(krate).with_extension("json");
    assert!(json.exists(), "`{}` is missing: run `.ci/interface`", json.display());
    let builder = Builder::from_rustdoc_json(json);
    let builder = builder.omit_blanket_impls(true).omit_auto_trait_impls(true).omit_auto_derived_impls(true);
    let interface = builder.build().expect("an interface");
    // the guide is compiled for the documentation only: no program can name its modules
    let is_guide = |line: &String| line.starts_with("pub mod mcp_runtime::guide");
    interface.items().map(ToString::to_string).filter(|line| !is_guide(line)).collect()
}

/// The features that users may name: those of `Cargo.toml` without a leading underscore.
fn features() -> Vec<String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mcp-runtime/Cargo.toml");
    let manifest = fs::read_to_string(manifest).expect("the manifest");
    let (_, table) = manifest.split_once("\n[features]\n").expect("the features");
    let lines = table.lines().take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name);
    let mut features: Vec<_> = names
        .filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase()))
        .map(|name| format!("feature {name}"))
        .collect();
    features.sort_unstable();
    features
}

/// The file of the module, if the line begins an item of one: a module, a type, a trait, a function or a macro, but not a member
/// or an `impl`, which follow their item. Items of the root are in `root`.
fn module(line: &str) -> Option<&str> {
    let (_, item) = line.split_once("pub ")?;
    let (kind, rest) = item.split_once(' ')?;
    if !["mod", "struct", "enum", "union", "trait", "use", "macro", "proc"].contains(&kind) {
        return None;
    }
    let (_, path) = rest.split_once("mcp_runtime")?;
    let first = path.trim_start_matches("::").split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    let is_module = first.starts_with(|c: char| c.is_ascii_lowercase())
        && (kind == "mod" || path.matches("::").count() > 1);
    Some(if is_module { first } else { "root" })
}

#[test]
fn an_item_of_the_root_is_not_in_the_file_of_the_module_before_it() {
    assert_eq!(module("#[non_exhaustive] pub struct mcp_runtime::client::agent::Tool<T>"), Some("client"));
    assert_eq!(module("pub mod mcp_runtime::client"), Some("client"));
    assert_eq!(module("pub use mcp_runtime::mcp_tool"), Some("root"));
    assert_eq!(module("pub struct mcp_runtime::Context(_)"), Some("root"));
    assert_eq!(module("pub fn mcp_runtime::client::Client::close(self)"), None);
    assert_eq!(module("impl core::fmt::Debug for mcp_runtime::Context"), None);
}

/// The lines of each file.
fn by_module(interface: Vec<String>) -> BTreeMap<String, Vec<String>> {
    let mut files = BTreeMap::from([("features".to_owned(), features())]);
    let mut file = "root".to_owned();
    for line in interface {
        if let Some(module) = module(&line) {
            module.clone_into(&mut file);
        }
        files.entry(file.clone()).or_default().push(line);
    }
    files
}

/// The lines of all files, each after the name of its file.
fn lines(files: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    files.iter().flat_map(|(file, lines)| lines.iter().map(move |line| format!("{file}: {line}"))).collect()
}

/// The files in `folder`.
fn read(folder: &Path) -> BTreeMap<String, Vec<String>> {
    let entries = fs::read_dir(folder).expect("the folder");
    let paths = entries.map(|entry| entry.expect("a file").path());
    let name = |path: &Path| path.file_stem().expect("a name").to_str().expect("UTF-8").to_owned();
    let text = |path: &Path| fs::read_to_string(path).expect("text").lines().map(str::to_owned).collect();
    paths.map(|path| (name(&path), text(&path))).collect()
}

/// Writes the files in `folder`, and removes those of modules that are gone.
fn write(folder: &Path, files: &BTreeMap<String, Vec<String>>) {
    let of = |file: &str| folder.join(file).with_extension("txt");
    for gone in read(folder).keys().filter(|file| !files.contains_key(*file)) {
        fs::remove_file(of(gone)).expect("to remove it");
    }
    for (file, lines) in files {
        fs::write(of(file), lines.join("\n") + "\n").expect("to write it");
    }
}

/// The lines of `of` that `others` does not have, each after `sign`.
fn without(of: &[String], others: &[String], sign: char) -> Vec<String> {
    let others: HashSet<_> = others.iter().collect();
    of.iter().filter(|line| !others.contains(line)).map(|line| format!("{sign} {line}")).collect()
}

#[test]
fn the_public_interface_is_that_of_the_golden() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let mut found = by_module(interface("mcp_runtime"));
    found.extend(PACKAGES.map(|package| (package.to_owned(), interface(&format!("mcp_runtime_{package}")))));
    if env::var("INTERFACE").is_ok_and(|wanted| wanted == "overwrite") {
        write(&folder, &found);
    }
    let (golden, found) = (lines(&read(&folder)), lines(&found));
    let (gone, new) = (without(&golden, &found, '-'), without(&found, &golden, '+'));
    assert!(
        gone.is_empty(),
        "programs that use these no longer compile: keep them, or begin a bullet of CHANGELOG.md with `breaking` and run \
         `INTERFACE=overwrite .ci/interface`\n{}\n{}",
        gone.join("\n"),
        new.join("\n")
    );
    assert!(
        new.is_empty(),
        "new in the public interface: begin a bullet of CHANGELOG.md with `added` and run \
         `INTERFACE=overwrite .ci/interface`, or make them private\n{}",
        new.join("\n")
    );
    assert!(found.len() > 1000, "{} items", found.len());
}
