//! Compiler output for users of the macros: programs that compile and run (`examples`), and programs with one mistake
//! each (`fail`).
//!
//! Run by `cargo test -p mcp-ui-tests`. The goldens hold the wording of the pinned toolchain; after a change,
//! `TRYBUILD=overwrite` writes them again, and every difference must be reviewed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The files of programs in a folder of this package, sorted.
fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(folder).expect("the folder of programs");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    paths.sort();
    paths
}

/// `cargo test` has built them, with the dependencies of everything else.
#[test]
fn valid_programs_run() {
    let test = std::env::current_exe().expect("the path of this test");
    let folder = test.ancestors().nth(2).expect("the folder of what is built").join("examples");
    let programs = programs("examples");
    for program in &programs {
        let name = program.file_stem().expect("a name");
        let program = folder.join(name).with_extension(std::env::consts::EXE_EXTENSION);
        let ended = Command::new(&program).output();
        let ended = ended.unwrap_or_else(|error| panic!("cannot start `{}`: {error}", program.display()));
        assert!(ended.status.success(), "{}: {}", name.display(), String::from_utf8_lossy(&ended.stderr));
    }
    assert!(programs.len() >= 29, "only {} programs", programs.len());
}

/// All are checked by one call of cargo, since none of them is run.
#[test]
fn programs_with_one_mistake_match_their_golden() {
    trybuild::TestCases::new().compile_fail("fail/*.rs");
}

/// Mistakes that no macro can detect; the number of errors is rustc's.
const MORE_THAN_ONE: [(&str, usize); 2] = [("associated_function", 5), ("type_attribute_above", 2)];

#[test]
fn every_mistake_produces_one_error() {
    let mut wrong = Vec::new();
    let programs = programs("fail");
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
