//! Compiles programs with mistakes against the dependencies of the test, and compares what the compiler says with the goldens
//! beside them. In a golden, paths have no part of this machine, and what is in other files has no line numbers.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
    thread,
};

/// Checks the programs in the folder `fail` of the package, whose goldens have the extension `stderr`. `compiler` is the macro's.
/// With `UI=overwrite`, goldens are written instead.
///
/// # Panics
///
/// If the compiler accepts a program, or a golden differs.
pub(crate) fn check(compiler: &[&str], package: &Path) {
    let entries = fs::read_dir(package.join("fail")).expect("the folder of programs");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let paths = Mutex::new(paths.into_iter());
    let differences = Mutex::new(Vec::new());
    let next = || paths.lock().expect("no thread has panicked").next();
    thread::scope(|threads| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            threads.spawn(|| {
                while let Some(path) = next() {
                    if let Err(difference) = compare(compiler, &path) {
                        let difference = format!("{}: {difference}", path.display());
                        differences.lock().expect("no thread has panicked").push(difference);
                    }
                }
            });
        }
    });
    let differences = differences.into_inner().expect("no thread has panicked");
    assert!(differences.is_empty(), "{}\n`UI=overwrite` writes the goldens", differences.join("\n"));
}

fn compare(compiler: &[&str], path: &Path) -> Result<(), String> {
    let said = compile(compiler, path)?;
    let golden = path.with_extension("stderr");
    if env::var("UI").is_ok_and(|action| action == "overwrite") {
        fs::write(&golden, said).expect("a golden");
        return Ok(());
    }
    let golden = fs::read_to_string(&golden).unwrap_or_default();
    if said == golden {
        return Ok(());
    }
    let same = said.lines().zip(golden.lines()).take_while(|(said, golden)| said == golden).count();
    let rest = |text: &str| {
        let lines = text.lines().skip(same).take(20).map(|line| format!("  {line}\n"));
        lines.collect::<String>()
    };
    Err(format!("line {} differs\nexpected:\n{}found:\n{}", same + 1, rest(&golden), rest(&said)))
}

/// What the compiler says about the program, as goldens have it.
fn compile(compiler: &[&str], path: &Path) -> Result<String, String> {
    let [compiler, dependencies @ ..] = compiler else { panic!("a compiler") };
    // from the folder in which cargo compiles the runtime, so that its source is found
    let workspace = path.ancestors().find(|folder| folder.join("Cargo.lock").exists());
    let workspace = workspace.expect("the folder of the workspace");
    let path = path.strip_prefix(workspace).expect("it is in the workspace");
    let mut command = Command::new(compiler);
    command.args(dependencies).args(["--edition", "2024", "--crate-name", "program", "--emit", "metadata"]);
    command.args(["--out-dir", env!("CARGO_TARGET_TMPDIR")]).arg(path).current_dir(workspace);
    // as cargo does, by which the compiler words its advice
    command.env("CARGO_CRATE_NAME", "program");
    let output = command.output().map_err(|error| format!("the compiler does not start: {error}"))?;
    if output.status.success() {
        return Err("it has no mistake".to_owned());
    }
    let said = String::from_utf8(output.stderr).map_err(|error| error.to_string())?;
    Ok(normalize(&said, path))
}

/// Lines about the compiler, and not about the program.
const LEFT_OUT: [&str; 5] = [
    "error: aborting due to ",
    "For more information about ",
    "Some errors have detailed explanations: ",
    "= note: the full name for the type has been written to ",
    "= note: consider using `--verbose` to print the full type name to the console",
];

/// What the compiler says on every machine, whatever the lines of other files are.
fn normalize(said: &str, program: &Path) -> String {
    let mut text = String::new();
    let mut diagnostic = Vec::new();
    for line in said.lines().map(str::trim_end).chain(["error"]) {
        if line.starts_with("error") || line.starts_with("warning") {
            for line in unindent(without_places(diagnostic, program)) {
                text.extend([line.as_str(), "\n"]);
            }
            diagnostic = Vec::new();
        }
        if !LEFT_OUT.iter().any(|start| line.trim_start().starts_with(start)) {
            diagnostic.push(line);
        }
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// Names the program by its folder and its name, and removes the numbers of lines in other files, of how many other types
/// implement a trait, and what rustc writes of types only next to some other crates.
fn without_places(lines: Vec<&str>, program: &Path) -> Vec<String> {
    let path = program.to_str().expect("a path in Unicode");
    let name = format!("fail/{}", program.file_name().expect("a name").display());
    let mut is_elsewhere = false;
    let replace = |line: &str| {
        let line = line
            .replace(path, &name)
            .replace("for<'a> fn(&'a ", "fn(&")
            .replace("std::string::String", "String");
        let start = line.trim_start();
        let indent = &line[..line.len() - start.len()];
        if let Some((mark, place)) =
            start.split_at_checked(4).filter(|(mark, _)| ["--> ", "::: "].contains(mark))
        {
            is_elsewhere = !place.starts_with(&name);
            let place = place.rsplitn(3, ':').last().filter(|_| is_elsewhere);
            return place.map_or_else(|| line.clone(), |place| format!("{indent}{mark}$WORKSPACE/{place}"));
        }
        match margin(&line) {
            Some((_, rest)) if is_elsewhere => format!("{}{rest}", " ".repeat(line.len() - rest.len())),
            None if start.starts_with("and ") && start.ends_with(" others") => {
                format!("{indent}and $N others")
            }
            margin => {
                is_elsewhere &= margin.is_some() || start.starts_with("...");
                line
            }
        }
    };
    lines.into_iter().map(replace).collect()
}

/// Makes the margin as wide as the numbers that are left need.
fn unindent(mut lines: Vec<String>) -> Vec<String> {
    let place = lines.iter().position(|line| line.trim_start().starts_with("--> "));
    let Some(place) = place else { return lines };
    let widths = lines.iter().filter_map(|line| Some(margin(line)?.0.len()));
    let old = lines[place].len() - lines[place].trim_start().len();
    let surplus = " ".repeat(old - widths.max().unwrap_or(old));
    let mut is_text = false;
    for line in &mut lines[place..] {
        is_text = line.starts_with("help:") || line.starts_with("note:") || is_text && margin(line).is_none();
        let start = if line.starts_with("...") { "..." } else { "" };
        if !is_text && let Some(rest) = line[start.len()..].strip_prefix(&surplus) {
            *line = format!("{start}{rest}");
        }
    }
    lines
}

/// A line at the margin of a snippet: the number of its line, and what follows the number.
fn margin(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches(' ');
    let (number, rest) = line.split_at(line.bytes().take_while(u8::is_ascii_digit).count());
    let mark = rest.trim_start_matches(' ');
    let is_margin = ["|", "--> ", "::: ", "= "].iter().any(|start| mark.starts_with(start));
    let is_suggestion = !number.is_empty() && ["+", "-", "~"].iter().any(|start| mark.starts_with(start));
    (is_margin || is_suggestion).then_some((number, mark))
}
