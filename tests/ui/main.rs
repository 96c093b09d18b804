//! Compiler output for users of the macros: programs that compile and run (`pass`), and programs with
//! mistakes (`fail`).
//!
//! A mistake is in a module of its own that names it, and has one error, at its place. Those that differ in options or in
//! parameters alone are the lines of a table, which makes the modules. Mistakes of one subject share a program, unless one
//! hides the error of another or changes its words. Types that errors name are unique in a program: rustc would write their
//! modules before them.
//!
//! Run by `cargo test -p mcp-ui-tests`. The goldens hold the wording of the pinned toolchain; after a change,
//! `UI=overwrite` writes them again, and every difference must be reviewed.

mod mistakes;

use std::{
    collections::BTreeSet,
    fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    process::Command,
};

#[test]
fn valid_programs_run() {
    let ended = Command::new(env!("CARGO_BIN_EXE_pass")).output().expect("the program that has them");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let programs = String::from_utf8_lossy(&ended.stdout);
    assert!(programs.trim().parse().is_ok_and(|programs: usize| programs >= 20), "{programs} programs");
}

#[test]
fn programs_with_mistakes_match_their_golden() {
    mistakes::check(mcp_ui_compiler::compiler!(), Path::new(env!("CARGO_MANIFEST_DIR")));
}

/// The programs with mistakes, sorted.
fn programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fail");
    let entries = fs::read_dir(folder).expect("the folder of programs");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    paths.sort();
    paths
}

/// A mistake, and the lines of its program that it has.
struct Mistake {
    name: String,
    lines: RangeInclusive<usize>,
}

/// The outermost modules of a program and the lines of its table, each of which has one mistake. Without any, all of the
/// program is one.
fn mistakes(program: &Path) -> Vec<Mistake> {
    let text = fs::read_to_string(program).expect("a program");
    let mut mistakes = Vec::new();
    let mut module = None;
    let mut is_table = false;
    for (line, number) in text.lines().zip(1..) {
        is_table = line == "mistakes! {" || is_table && line != "}";
        if let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
            module = Some((name.to_owned(), number));
        } else if is_table && let Some((name, _)) = line.trim_start().split_once(": #[") {
            mistakes.push(Mistake { name: name.to_owned(), lines: number..=number });
        } else if line == "}"
            && let Some((name, first)) = module.take()
        {
            mistakes.push(Mistake { name, lines: first..=number });
        }
    }
    if mistakes.is_empty() {
        let name = program.file_stem().and_then(|name| name.to_str()).expect("a name");
        mistakes.push(Mistake { name: name.to_owned(), lines: 1..=text.lines().count() });
    }
    mistakes
}

/// The lines of the program at which the errors of its golden are.
fn places_of_errors(golden: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut lines = golden.lines();
    while let Some(error) = lines.find(|line| line.starts_with("error")) {
        let place = lines.find_map(|line| line.trim_start().strip_prefix("--> fail/"));
        let line = place.and_then(|place| place.split(':').nth(1)?.parse().ok());
        places.push(line.unwrap_or_else(|| panic!("`{error}` is not in the program")));
    }
    places
}

/// Mistakes that no macro can detect; the number of errors is rustc's.
const MORE_THAN_ONE: [(&str, usize); 2] = [("associated_function", 5), ("type_attribute_above", 2)];

#[test]
fn every_mistake_produces_one_error() {
    let mut wrong = Vec::new();
    let mut names = BTreeSet::new();
    for program in programs() {
        let file = program.file_stem().expect("a name").display().to_string();
        let golden = fs::read_to_string(program.with_extension("stderr")).unwrap_or_default();
        if golden.lines().any(|line| line.starts_with("warning")) {
            wrong.push(format!("{file}: a warning besides"));
        }
        let mut places = places_of_errors(&golden);
        for Mistake { name, lines } in mistakes(&program) {
            let expected =
                MORE_THAN_ONE.iter().find(|(other, _)| *other == name).map_or(1, |(_, count)| *count);
            let errors = places.extract_if(.., |place| lines.contains(place)).count();
            if errors != expected {
                wrong.push(format!("{file}: {name}: {errors} instead of {expected}"));
            }
            if !names.insert(name.clone()) {
                wrong.push(format!("{file}: {name} is there twice"));
            }
        }
        for place in places {
            wrong.push(format!("{file}: an error at line {place}, outside of its mistakes"));
        }
    }
    assert!(names.len() >= 300, "only {} mistakes", names.len());
    assert!(wrong.is_empty(), "errors in goldens:\n{}", wrong.join("\n"));
}
