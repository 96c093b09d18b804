//! Compiler output for users of the macros: programs that compile and run, and programs with one mistake each.
//!
//! Run by `cargo test -p mcp-ui-tests`. The goldens hold the wording of the pinned toolchain; after a change,
//! `TRYBUILD=overwrite` writes them again, and every difference must be reviewed.

use std::{
    fs,
    path::{Path, PathBuf},
};

#[test]
fn valid_programs_run_and_programs_with_one_mistake_match_their_golden() {
    // together, since both then use one build of the dependencies
    let programs = trybuild::TestCases::new();
    programs.pass("pass/*.rs");
    programs.compile_fail("fail/*.rs");
}

/// Mistakes that no macro can detect; the number of errors is rustc's.
const MORE_THAN_ONE: [(&str, usize); 2] = [("associated_function", 5), ("type_attribute_above", 2)];

fn failing() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fail");
    let entries = fs::read_dir(folder).expect("the folder of failing programs");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    paths.sort();
    paths
}

#[test]
fn every_mistake_produces_one_error() {
    let mut wrong = Vec::new();
    let programs = failing();
    for program in &programs {
        let name = program.file_stem().and_then(|name| name.to_str()).expect("a name");
        let golden = fs::read_to_string(program.with_extension("stderr")).unwrap_or_default();
        let errors = golden.lines().filter(|line| line.starts_with("error")).count();
        let expected = MORE_THAN_ONE.iter().find(|(other, _)| *other == name).map_or(1, |(_, count)| *count);
        if errors != expected {
            wrong.push(format!("{name}: {errors} instead of {expected}"));
        }
        if golden.lines().any(|line| line.starts_with("warning")) {
            wrong.push(format!("{name}: a warning besides"));
        }
    }
    assert!(programs.len() >= 60, "only {} programs", programs.len());
    assert!(wrong.is_empty(), "errors in goldens:\n{}", wrong.join("\n"));
}
