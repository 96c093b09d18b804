//! The public interface of `mcp-runtime` with all features is what `golden.txt` says, one item a line, so that every change
//! of it is seen and reviewed. `.ci/interface` has rustdoc write the interface as JSON, and runs this; with
//! `INTERFACE=overwrite` it writes the golden anew.

use std::{collections::HashSet, env, fs, path::Path};

use public_api::Builder;

/// What rustdoc writes beside the documentation, in the folder that this test was built in.
fn interface() -> Vec<String> {
    let test = env::current_exe().expect("the path of this test");
    let json = test.ancestors().nth(3).expect("the folder of what is built").join("doc/mcp_runtime.json");
    assert!(json.exists(), "`{}` is missing: run `.ci/interface`", json.display());
    let builder = Builder::from_rustdoc_json(json);
    let builder = builder.omit_blanket_impls(true).omit_auto_trait_impls(true).omit_auto_derived_impls(true);
    let interface = builder.build().expect("an interface");
    interface.items().map(ToString::to_string).collect()
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

/// The lines of `of` that `others` does not have, each after `sign`.
fn without(of: &[String], others: &[String], sign: char) -> Vec<String> {
    let others: HashSet<_> = others.iter().collect();
    of.iter().filter(|line| !others.contains(line)).map(|line| format!("{sign} {line}")).collect()
}

#[test]
fn the_public_interface_is_that_of_the_golden() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden.txt");
    let found = [features(), interface()].concat();
    if env::var("INTERFACE").is_ok_and(|wanted| wanted == "overwrite") {
        fs::write(&path, found.join("\n") + "\n").expect("the golden");
    }
    let golden: Vec<_> = fs::read_to_string(&path).expect("the golden").lines().map(str::to_owned).collect();
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
