//! What must hold for every file: links resolve, no traces of the machine it was written on, source files state what
//! they guarantee. Run by `cargo test -p mcp-tests --test hygiene`.

mod dependencies;
mod published;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs,
    path::{Component, Path, PathBuf},
    sync::LazyLock,
};

/// Directories that tools generate.
const SKIPPED: [&str; 5] = [".git", "target", "node_modules", ".venv", "__pycache__"];

fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("the workspace").to_owned()
}

/// Every file of the workspace, by its relative path.
fn files() -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name in UTF-8");
            if path.is_symlink() || SKIPPED.contains(&name) {
                continue;
            } else if path.is_dir() {
                folders.push(path);
            } else {
                let inside = path.strip_prefix(root()).expect("inside").to_str().expect("UTF-8");
                found.insert(inside.replace('\\', "/"), path);
            }
        }
    }
    assert!(found.contains_key("README.md") && found.contains_key("docs/README.md"), "{found:?}");
    found
}

/// Every text file, which is read once for all tests.
fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    static TEXTS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
        files().into_iter().filter_map(|(name, path)| Some((name, fs::read_to_string(path).ok()?))).collect()
    });
    TEXTS.iter().map(|(name, text)| (&**name, &**text))
}

/// A file of the workspace.
fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A line of a file, as it is named in what is wrong.
#[derive(Clone, Copy)]
struct Place(&'static str, usize);

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.0, self.1)
    }
}

/// The lines of the text files with such a name, each with its place.
fn lines(is_wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = (Place, &'static str)> {
    texts()
        .filter(move |(name, _)| is_wanted(name))
        .flat_map(|(name, text)| text.lines().enumerate().map(move |(at, line)| (Place(name, at + 1), line)))
}

/// The section of a page below this heading.
fn section(page: &str, heading: &str) -> String {
    let page = read(page);
    let (_, section) = page.split_once(heading).unwrap_or_else(|| panic!("no section `{heading}`"));
    section.split("\n## ").next().unwrap_or_default().to_owned()
}

/// The text of a page between these.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("no `{begin}`"));
    rest.split_once(end).unwrap_or_else(|| panic!("no `{end}` after `{begin}`")).0
}

fn report(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The prose of a page, with code blocks and code spans blanked out.
fn prose(page: &str) -> String {
    let mut fenced = false;
    let mut text = String::new();
    for line in page.lines() {
        let fence = line.trim_start().starts_with("```");
        if !fenced && !fence {
            // a code span may be inside the text of a link, so only its content is removed
            for (index, part) in line.split('`').enumerate() {
                if index % 2 == 0 { text.push_str(part) } else { text.push('x') }
            }
        }
        fenced ^= fence;
        text.push('\n');
    }
    text
}

/// The targets of `[text](target)`.
fn inline_links(page: &str) -> Vec<String> {
    let prose = prose(page);
    let ends = prose.split("](").skip(1);
    ends.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned()).collect()
}

/// The labels and targets of `[label]: target`.
fn definitions(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: "))
}

/// The targets of every link.
fn links(page: &str) -> Vec<String> {
    let mut links = inline_links(page);
    links.extend(definitions(page).map(|(_, target)| target.to_owned()));
    links
}

/// The anchors that a renderer generates from the headings.
fn anchors(page: &str) -> HashSet<String> {
    let mut fenced = false;
    let mut found = HashSet::new();
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        if !fenced && line.starts_with('#') {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            found.insert(kept.collect::<String>().replace(' ', "-"));
        }
    }
    found
}

#[test]
fn links_between_pages_resolve() {
    let files = files();
    let mut checked = 0;
    let mut wrong = Vec::new();
    for (name, path) in files.iter().filter(|(name, _)| name.ends_with(".md")) {
        let page = fs::read_to_string(path).expect("a page");
        for link in links(&page).iter().filter(|link| !link.contains("://")) {
            checked += 1;
            let (target, anchor) = link.split_once('#').map_or((&**link, None), |(t, a)| (t, Some(a)));
            let file = if target.is_empty() { path.clone() } else { path.with_file_name(target) };
            if !file.exists() {
                wrong.push(format!("{name}: `{link}` leads nowhere"));
            } else if let Some(anchor) = anchor
                && !anchors(&fs::read_to_string(&file).expect("a page")).contains(anchor)
            {
                wrong.push(format!("{name}: `{link}` names no heading of `{}`", file.display()));
            }
        }
    }
    report(&wrong);
    assert!(checked > 20, "only {checked} links were found");
}

#[test]
fn every_page_of_the_guide_is_listed_and_its_rust_is_compiled() {
    let index = read("docs/README.md");
    let doctests = read("tests/lib.rs") + &read("tests/external/programs/lib.rs");
    let listed = links(&index);
    let mut wrong = Vec::new();
    for name in files().keys().filter_map(|name| name.strip_prefix("docs/")) {
        if name != "README.md" && !listed.iter().any(|link| link == name) {
            wrong.push(format!("`docs/{name}` is not in `docs/README.md`"));
        }
        // or what `tests/build.rs` makes of the page
        let is_compiled = [format!("../docs/{name}\""), format!("\"/{name}\"")];
        if !is_compiled.iter().any(|path| doctests.contains(path)) {
            wrong.push(format!("`docs/{name}` is not in a `lib.rs` of tests"));
        }
    }
    for name in files().keys().filter_map(|name| name.strip_prefix("mcp-macros/src/examples/")) {
        if !doctests.contains(&format!("include_str!(\"../mcp-macros/src/examples/{name}\")")) {
            wrong.push(format!("`mcp-macros/src/examples/{name}` is not in `tests/lib.rs`"));
        }
    }
    report(&wrong);
}

/// What rustdoc resolves instead of a link to `file` of the guide.
fn guide_item(file: &str) -> String {
    match file {
        "README.md" => "crate::guide".to_owned(),
        _ => format!("crate::guide::{}", file.trim_end_matches(".md").replace('-', "_")),
    }
}

#[test]
fn labels_of_links_lead_to_the_same_page_in_the_repository_and_in_the_documentation_of_the_crate() {
    let labels = read("mcp-runtime/src/guide_links.txt");
    let guide = read("mcp-runtime/src/guide.rs");
    let mut unused: HashSet<&str> = labels.lines().collect();
    let mut wrong = Vec::new();
    for (name, path) in files().iter().filter(|(name, _)| *name == "README.md" || name.starts_with("docs/")) {
        let page = fs::read_to_string(path).expect("a page");
        let defined: BTreeMap<&str, &str> = definitions(&page).collect();
        let prose = prose(&page);
        let used: HashSet<&str> = prose
            .split("][")
            .skip(1)
            .filter_map(|rest| rest.split_once(']'))
            .map(|(label, _)| label)
            .collect();
        for label in used.iter().filter(|label| !defined.contains_key(**label)) {
            wrong.push(format!("{name}: `[{label}]` is not defined"));
        }
        for (label, target) in defined {
            let (file, anchor) = target.split_once('#').map_or((target, ""), |(file, anchor)| (file, anchor));
            let item = guide_item(file.trim_start_matches("docs/"));
            let line = format!("[{label}]: {item}{}{anchor}", if anchor.is_empty() { "" } else { "#" });
            unused.remove(&*line);
            if !labels.lines().any(|label| label == line) {
                wrong.push(format!("{name}: `mcp-runtime/src/guide_links.txt` does not have `{line}`"));
            }
            if !used.contains(label) {
                wrong.push(format!("{name}: `[{label}]` is not used"));
            }
        }
        for target in
            inline_links(&page).iter().filter(|target| !target.contains("://") && !target.starts_with('#'))
        {
            wrong.push(format!("{name}: `({target})` would lead nowhere in the documentation of the crate"));
        }
        if let Some(file) = name.strip_prefix("docs/").filter(|file| *file != "README.md") {
            let module = guide_item(file).replace("crate::guide::", "");
            if !guide.contains(&format!("{module} = \"{file}\";")) {
                wrong.push(format!("`{name}` is not in `mcp-runtime/src/guide.rs`"));
            }
        }
    }
    wrong.extend(
        unused.iter().map(|line| format!("`mcp-runtime/src/guide_links.txt`: no page uses `{line}`")),
    );
    report(&wrong);
}

#[test]
fn code_blocks_name_their_language() {
    let known = ["rust", "rust,ignore", "rust,no_run", "rust,test_harness", "text", "json", "toml", "sh"];
    let mut wrong = Vec::new();
    for (name, page) in texts().filter(|(name, _)| *name == "README.md" || name.starts_with("docs/")) {
        let mut fenced = false;
        for (number, line) in page.lines().enumerate().filter(|(_, line)| line.starts_with("```")) {
            let word = line.trim_start_matches('`');
            fenced = !fenced;
            if fenced && !known.contains(&word) {
                wrong.push(format!("{name}:{}: a block of `{word}`", number + 1));
            }
        }
    }
    report(&wrong);
}

#[test]
fn programs_on_pages_that_other_crates_need_are_those_that_are_compiled_with_them() {
    let programs = [
        ("docs/from-rmcp.md", "tests/bench/rmcp/from_rmcp.rs"),
        ("docs/database.md", "examples/postgres/src/main.rs"),
    ];
    for (page, program) in programs {
        let text = read(page);
        let program = read(program);
        assert_eq!(text.matches("```rust,ignore\n").count(), 1, "{page}");
        assert_eq!(between(&text, "```rust,ignore\n", "```\n"), program, "{page}");
    }
    let is_known = |name: &str| programs.iter().any(|(page, _)| *page == name);
    let others = texts().filter(|(name, text)| !is_known(name) && text.contains("```rust,ignore\n"));
    report(&others.map(|(name, _)| format!("{name}: a block that nothing compiles")).collect::<Vec<_>>());
}

#[test]
fn the_example_hello_is_the_program_of_the_readme() {
    let readme = read("README.md");
    assert_eq!(read("examples/hello/main.rs"), between(&readme, "```rust,no_run\n", "```"));
}

/// The library compiles it for its tests, where it answers a request.
#[test]
fn the_example_of_a_capability_is_the_one_that_is_compiled() {
    let section = section("docs/architecture.md", "## To add a capability");
    let example = between(&section, "```text\n", "```");
    let file = read("mcp-runtime/src/capability/tests/moods.rs");
    assert!(example.lines().count() <= 45, "it is long");
    assert!(file.contains(example), "the page and the file differ");
}

#[test]
fn no_file_contains_a_path_of_the_machine() {
    // written in two parts, since this file is checked too
    let folders = [("/wo", "rk/"), ("/tm", "p/"), ("/ho", "me/"), ("/ro", "ot/"), ("/Us", "ers/")];
    let traces: Vec<String> = folders.iter().map(|(a, b)| format!("{a}{b}")).collect();
    // `up/root/file` is a path inside of something
    let inside = |before: &str| before.ends_with(|c: char| c.is_alphanumeric() || "._-".contains(c));
    let tells = |line: &str, trace: &str| {
        line.match_indices(trace).any(|(at, _)| line.get(..at).is_some_and(|b| !inside(b)))
    };
    let mut wrong = Vec::new();
    for (place, line) in lines(|_| true) {
        wrong.extend(
            traces.iter().find(|trace| tells(line, trace)).map(|trace| format!("{place}: `{trace}`")),
        );
    }
    report(&wrong);
}

#[test]
fn packages_come_from_the_usual_registries() {
    let cargo = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
    let redirects = [("replace", "-with"), ("extra-index", "-url"), ("sparse", "+http"), ("_auth", "Token")];
    let mut locks = 0;
    let mut wrong = Vec::new();
    for (name, text) in texts() {
        let file = name.rsplit('/').next().unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            let fits = match file {
                "Cargo.lock" => {
                    let line = line.split_once(" = ").filter(|(key, _)| *key == "source").map(|_| line);
                    line.is_none_or(|line| line == cargo)
                }
                // packages are installed by name: these files contain no download addresses
                "package-lock.json" => !line.starts_with("\"resolved\""),
                "uv.lock" | "poetry.lock" | "requirements.txt" => !line.contains("://"),
                _ => !redirects.iter().any(|(a, b)| line.contains(&format!("{a}{b}"))),
            };
            if !fits {
                wrong.push(format!("{name}:{}: {line}", number + 1));
            }
        }
        locks += usize::from(file == "Cargo.lock");
    }
    report(&wrong);
    assert!(locks > 0, "no `Cargo.lock` was found");
}

/// A tag can be moved to other code, which would run with the token of the registry. Dependabot raises the commits.
#[test]
fn actions_of_workflows_are_named_by_their_commits() {
    let is_commit = |text: &str| text.len() == 40 && text.chars().all(|c| c.is_ascii_hexdigit());
    let (mut checked, mut wrong) = (0, Vec::new());
    for (place, line) in lines(|name| name.starts_with(".github/workflows/")) {
        let Some((_, action)) = line.split_once("uses: ") else { continue };
        checked += 1;
        let commit = action.split_once('@').map(|(_, rest)| rest.split(' ').next().unwrap_or_default());
        if !commit.is_some_and(is_commit) {
            wrong.push(format!("{place}: `{action}` is not `ACTION@COMMIT # VERSION`"));
        }
    }
    report(&wrong);
    assert!(checked > 5, "only {checked} actions were found");
}

#[test]
fn the_changelog_has_no_history_before_the_first_release() {
    let changelog = read("CHANGELOG.md");
    let released = changelog.lines().any(|line| line.starts_with("## [") && line.contains("] - 20"));
    let kinds = ["- added:", "- changed:", "- fixed:", "- breaking:"];
    let history = changelog.lines().filter(|line| kinds.iter().any(|kind| line.starts_with(kind)));
    let history: Vec<String> =
        history.map(|line| format!("{line}: no one has used a release without it")).collect();
    report(if released { &[] } else { &history });
}

#[test]
fn source_files_open_with_a_module_doc() {
    let sources = || texts().filter(|(name, _)| name.ends_with(".rs") && name.contains("/src/"));
    let is_documented = |text: &str| text.starts_with("//!") || text.starts_with("#![doc = include_str!(");
    let undocumented = sources().filter(|(_, text)| !is_documented(text));
    let wrong: Vec<_> = undocumented.map(|(name, _)| format!("{name}: does not open with `//!`")).collect();
    report(&wrong);
    let checked = sources().count();
    assert!(checked > 50, "only {checked} files were found");
}

/// A package can hold only files of its own folder, and a checkout on Windows may hold a link as a text file: so these
/// are copies.
#[test]
fn files_that_both_crates_compile_are_equal() {
    let mut copies: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (name, text) in texts().filter(|(name, _)| name.ends_with(".rs") && name.contains("/src/")) {
        if text.lines().any(|line| line.starts_with("//! Both crates compile this file")) {
            let file = name.rsplit('/').next().unwrap_or_default();
            copies.entry(file).or_default().push((name, text));
        }
    }
    assert!(copies.len() >= 2, "only {} of these files were found", copies.len());
    let mut wrong = Vec::new();
    for (file, places) in &copies {
        let names: Vec<_> = places.iter().map(|(name, _)| *name).collect();
        if names.len() != 2 {
            wrong.push(format!("{file} is in {}, not in both crates", names.join(", ")));
        } else if places[0].1 != places[1].1 {
            wrong.push(format!("{} differ", names.join(" and ")));
        }
    }
    report(&wrong);
}

/// The files that a source file makes the compiler read, as paths from the root of the repository.
fn included(name: &str, text: &str) -> Vec<PathBuf> {
    let folder = Path::new(name).parent().expect("a folder");
    let mut found = Vec::new();
    for marker in
        ["#[path = \"", "include!(\"", "include_str!(\"", "include_bytes!(\"", "include_str!(concat!(\""]
    {
        for (_, rest) in text.match_indices(marker).map(|(at, _)| text.split_at(at + marker.len())) {
            let mut path = PathBuf::new();
            for part in folder.join(rest.split('"').next().unwrap_or_default()).components() {
                match part {
                    Component::ParentDir => drop(path.pop()),
                    other => path.push(other),
                }
            }
            found.push(path);
        }
    }
    found
}

/// A package can hold only files of its own folder: one that includes others does not compile as users get it.
#[test]
fn no_file_of_a_published_package_includes_a_file_outside_of_it() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, text) in texts().filter(|(name, _)| name.ends_with(".rs")) {
        let packages = [
            "mcp-macros",
            "mcp-runtime/exchange",
            "mcp-runtime/fetch",
            "mcp-runtime/mcp-dev",
            "mcp-runtime/openapi",
            "mcp-runtime/remote",
            "mcp-runtime/search",
            "mcp-runtime/schema",
            "mcp-runtime",
        ];
        let Some(package) = packages.into_iter().find(|package| Path::new(name).starts_with(package)) else {
            continue;
        };
        for path in included(name, text) {
            count += 1;
            // a package does not contain the one in a folder of its own
            let is_inside = packages.into_iter().find(|package| path.starts_with(package)) == Some(package);
            if !is_inside {
                wrong.push(format!("{name}: includes {}", path.display()));
            }
        }
    }
    assert!(count > 10, "only {count} includes were found");
    report(&wrong);
    let outside = included("mcp-runtime/src/a.rs", "#[path = \"../../tests/b.rs\"]\nmod b;");
    assert_eq!(outside, [Path::new("tests/b.rs")]);
}

#[test]
fn every_fuzz_target_has_seeds_and_a_program() {
    let names = |folder: &str| {
        let files = fs::read_dir(root().join(folder)).expect("a folder");
        let stem = |path: PathBuf| path.file_stem().expect("a name").to_str().expect("UTF-8").to_owned();
        files.map(|file| stem(file.expect("a file").path())).collect::<BTreeSet<_>>()
    };
    let named = |text: &str, before: &str| {
        let names = text.split(before).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
        names.collect::<BTreeSet<_>>()
    };
    let mut targets = BTreeSet::new();
    for (_, text) in sources("mcp-runtime") {
        targets.extend(named(text, "fuzzing::Target { name: \""));
    }
    // those in folders of tests: of other packages, of messages, and of what builds without fuzzing leave out
    let folders = ["tests/fuzzing/schema", "tests/fuzzing/envelope", "core/admission/tests/rates"];
    for file in folders.into_iter().chain(["transport/http/tests/header_params"]) {
        let file = read(&format!("mcp-runtime/src/{file}.rs"));
        targets.extend(named(&file, "Target { name: \""));
    }
    assert!(targets.len() >= 10, "{targets:?}");
    assert_eq!(names("mcp-runtime/src/tests/fuzzing/seeds"), targets);
    // those that use what is public are not in the crate
    targets.extend(["api_requests", "descriptions", "sessions"].map(str::to_owned));
    assert_eq!(names("tests/fuzz/seeds").len(), 3);
    assert_eq!(names("tests/fuzz/fuzz_targets"), targets);
    let manifest = read("tests/fuzz/Cargo.toml");
    assert_eq!(named(&manifest, "[[bin]]\nname = \""), targets);
    let workflow = read(".github/workflows/fuzz.yml");
    let weekly = between(&workflow, "target: [", "]").split(", ").map(str::to_owned);
    assert_eq!(weekly.collect::<BTreeSet<_>>(), targets, "the targets that are fuzzed every week");
}

/// What `cargo test` builds has no functions of fuzzers in it, and a member that is forgotten is not tested. `.ci/run` runs the
/// tests that need other programs and the examples as programs, `.ci/interface` the test of the public interface, which rustdoc
/// writes, and `.ci/features` the programs with few features.
#[test]
fn cargo_test_runs_the_tests_of_every_member_but_those_with_programs_or_features_of_their_own() {
    let manifest = read("Cargo.toml");
    let members = |key: &str| {
        let line = manifest.lines().find_map(|line| line.strip_prefix(key)).expect("a list");
        line.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut all = members("members = ");
    all.retain(|member| {
        !["examples", "tests/external", "tests/features/*", "tests/fuzz", "tests/interface"]
            .contains(&&**member)
    });
    assert_eq!(all, members("default-members = "));
}

/// The options that code spans of `text` name: `x` of `x`, `x = …` and `x(..)`, and not `x` of "(feature `x`)".
fn named_options(text: &str) -> Vec<&str> {
    let mut spans = Vec::new();
    for (index, part) in text.split('`').enumerate() {
        let names_feature =
            || text.split('`').nth(index - 1).is_some_and(|before| before.ends_with("(feature "));
        if index % 2 == 1 && !names_feature() {
            spans.extend(part.split([' ', '=', '(']).next());
        }
    }
    spans
}

#[test]
fn the_tables_of_the_readme_and_of_the_guide_have_every_option_and_no_other() {
    let (readme, source) = (read("README.md"), read("mcp-macros/src/options/known.rs"));
    let options = |list: &&str| -> Vec<&str> {
        let (_, list) = source.split_once(&format!("const {list}: &[&str] =")).expect("the options");
        list.split("];").next().unwrap_or("").split('"').skip(1).step_by(2).collect()
    };
    for (attribute, page, lists) in [
        ("mcp_tool", "docs/tools.md", &["ITEM", "TOOL"][..]),
        ("mcp_resource", "docs/resources.md", &["ITEM", "RESOURCE"]),
        ("mcp_prompt", "docs/prompts.md", &["ITEM"]),
        ("mcp_event", "docs/events.md", &["EVENT"]),
    ] {
        let known: Vec<_> = lists.iter().flat_map(options).collect();
        assert!(known.len() >= 10, "{known:?}");
        let row =
            readme.lines().find(|line| line.starts_with(&format!("| [`#[{attribute}]`]"))).expect("a row");
        let row = named_options(row.splitn(4, '|').nth(3).unwrap_or(""));
        let guide = read(page);
        let (_, table) = guide.split_once("\n## Options\n").expect("the section");
        let rows = table.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
        let cells: Vec<_> = rows
            .take_while(|line| line.starts_with('|'))
            .flat_map(|line| named_options(line.split('|').nth(1).unwrap_or("")))
            .filter(|option| !option.starts_with('.'))
            .collect();
        for (place, named) in [("README.md", row), (page, cells)] {
            for option in &known {
                assert!(named.contains(option), "{place} does not have `{option}` of `#[{attribute}]`");
            }
            for option in named {
                assert!(known.contains(&option), "`#[{attribute}]` does not have `{option}` of {place}");
            }
        }
    }
}

#[test]
fn the_table_of_features_has_every_feature_of_the_manifest_and_no_other() {
    let section = section("docs/transports.md", "\n## Features\n");
    let listed = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    let listed: BTreeSet<String> = section.lines().filter_map(listed).collect();
    let named = features("mcp-runtime");
    assert!(named.len() > 15, "{named:?}");
    assert_eq!(listed, named);
}

/// The features of a package that users may name, without `default`.
fn features(package: &str) -> BTreeSet<String> {
    let manifest = read(&format!("{package}/Cargo.toml"));
    let (_, table) = manifest.split_once("\n[features]\n").expect("the features");
    let table = table.split("\n[").next().unwrap_or_default();
    let named = table.lines().filter_map(|line| line.split_once(" = [")).map(|(name, _)| name);
    let named = named.filter(|name| *name != "default" && !name.starts_with(['_', '#', ' ']));
    named.map(str::to_owned).collect()
}

#[test]
fn the_program_that_uses_each_feature_has_a_part_for_every_feature() {
    let package = "tests/features/each";
    assert_eq!(features(package), features("mcp-runtime"));
    let program = read(&format!("{package}/main.rs"));
    let (_, parts) = program.split_once("async fn main() {").expect("its parts");
    for feature in features(package) {
        assert!(parts.contains(&format!("feature = \"{feature}\"")), "no part for `{feature}`");
    }
}

/// A file without its modules of unit tests: those with a body, which ends at the first `}` in the first column. A module in
/// a file of its own is a line, and what follows it counts.
fn without_unit_tests(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some((before, module)) = rest.split_once("#[cfg(test)]\nmod ") {
        code.push_str(before);
        let (head, _) = module.split_once('\n').unwrap_or((module, ""));
        let end = if head.ends_with('{') { "\n}\n" } else { "\n" };
        rest = module.split_once(end).map_or("", |(_, after)| after);
    }
    code + rest
}

#[test]
fn unit_tests_end_where_their_module_ends() {
    let text = "a\n#[cfg(test)]\nmod tests;\nb\n#[cfg(test)]\nmod more {\n    c\n    }\n}\nd\n";
    assert_eq!(without_unit_tests(text), "a\nb\nd\n");
}

#[test]
fn libraries_that_are_not_compiled_for_unit_tests_have_none() {
    let is_left_out = |manifest: &str| {
        let library = manifest.split("\n[").find(|section| section.starts_with("lib]"));
        library.is_some_and(|library| library.lines().any(|line| line == "test = false"))
    };
    let mut wrong = Vec::new();
    for (name, manifest) in texts().filter(|(name, _)| name.ends_with("/Cargo.toml")) {
        let source = name.replace("Cargo.toml", "src/");
        let is_wrong =
            |(path, text): &(&str, &str)| path.starts_with(&source) && text.contains("#[cfg(test)]");
        if is_left_out(manifest) {
            wrong.extend(texts().filter(is_wrong).map(|(path, _)| format!("{path}: a test that is not run")));
        }
    }
    report(&wrong);
}

/// The source of a crate's files without comments and unit tests, by path below `src`.
fn sources(krate: &str) -> Vec<(&'static str, &'static str)> {
    static SOURCES: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| {
        let files = texts().filter(|(name, _)| name.ends_with(".rs") && name.contains("/src/"));
        let products =
            files.filter(|(name, _)| !name.split('/').any(|part| part == "tests" || part == "tests.rs"));
        let code = |text: &str| {
            let code = without_unit_tests(text);
            let lines: Vec<_> =
                code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
            lines.join("\n")
        };
        products.map(|(name, text)| (name, code(text))).collect()
    });
    let prefix = format!("{krate}/src/");
    let found: Vec<_> = SOURCES
        .iter()
        .filter_map(|(name, code)| Some((name.strip_prefix(&*prefix)?, code.as_str())))
        .collect();
    assert!(found.len() > 10, "only {} files of `{krate}` were found", found.len());
    found
}

/// The top-level modules that a file names: what follows each `crate::`.
fn imported_modules(code: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    let name = |text: &str| {
        text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned()
    };
    for (at, path) in code.match_indices("crate::") {
        if code[..at].ends_with('$') {
            continue;
        }
        let rest = &code[at + path.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.insert(name(rest));
            continue;
        };
        let (mut depth, mut start) = (0, 0);
        for (index, c) in group.char_indices() {
            match c {
                '}' if depth == 0 => {
                    found.insert(name(group[start..index].trim_start()));
                    break;
                }
                ',' if depth == 0 => {
                    found.insert(name(group[start..index].trim_start()));
                    start = index + 1;
                }
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
        }
    }
    found.remove("");
    found
}

/// The modules of a crate in the order of its table in the architecture page: each uses only those above it.
fn module_order(krate: &str) -> Vec<String> {
    let section = section("docs/architecture.md", &format!("## Modules of `{krate}`"));
    let first_cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    let names = first_cells.flat_map(|cell| cell.split('`').map(str::to_owned).collect::<Vec<_>>());
    names.filter(|name| name.chars().any(char::is_alphanumeric)).collect()
}

#[test]
fn modules_of_the_macros_import_only_modules_above_them_in_the_architecture_page() {
    let mut wrong = Vec::new();
    let krate = "mcp-macros";
    let order = module_order(krate);
    let rank = |module: &str| order.iter().position(|name| name == module);
    for (path, code) in sources(krate) {
        let module = path.split(['/', '.']).next().unwrap_or_default();
        if module == "lib" {
            continue;
        }
        let Some(own) = rank(module) else {
            wrong.push(format!("{krate}: `{module}` is not in the table"));
            continue;
        };
        for imported in imported_modules(code) {
            if rank(&imported).is_none_or(|other| other > own) {
                wrong.push(format!("{krate}/src/{path}: imports `{imported}`, which is below `{module}`"));
            }
        }
    }
    report(&wrong);
}

/// The folders of `mcp-runtime` around its core, and which of each other they import. All import `core`.
const AROUND_THE_CORE: [(&str, &[&str]); 10] = [
    ("capability", &["observers"]),
    ("observers", &[]),
    ("transport", &["auth"]),
    ("auth", &[]),
    ("client", &["capability", "transport"]),
    ("testing", &["capability", "client", "transport"]),
    ("cli", &["client", "install", "redis"]),
    ("redis", &[]),
    ("settings", &[]),
    ("install", &[]),
];

/// What modules of the core import from around it nevertheless: each needs a reason.
const IMPORTS_OF_THE_CORE: [(&str, &str, &str); 7] = [
    ("server", "capability", "a tool with `task` opens the tasks of its server"),
    ("server", "settings", "the builder's method `config`"),
    ("server", "auth", "the builder's method `auth`"),
    ("config", "auth", "the options of HTTP hold what authenticates"),
    ("dispatch", "observers", "the trace of a span in OpenTelemetry"),
    ("item_output", "capability", "what resources and prompts return"),
    ("layer", "capability", "the output of a call, by the kind of its item"),
];

/// What capabilities import of each other.
const IMPORTS_OF_CAPABILITIES: [(&str, &[&str]); 5] = [
    ("events", &["open_for_handle"]),
    ("prompts", &["completion", "open_for_handle"]),
    ("resources", &["completion", "open_for_handle"]),
    ("skills", &["resources"]),
    ("subscriptions", &["resources"]),
];

/// The public names of capabilities, which are theirs in the crate too.
fn capability_of(module: &str) -> Option<&'static str> {
    [("event", "events"), ("prompt", "prompts"), ("resource", "resources"), ("skill", "skills")]
        .into_iter()
        .find_map(|(public, folder)| (public == module).then_some(folder))
}

#[test]
fn the_core_imports_nothing_from_around_it_and_nothing_imports_the_command_line() {
    let (mut wrong, mut needed) = (Vec::new(), HashSet::new());
    let around = |module: &str| AROUND_THE_CORE.iter().find(|(name, _)| *name == module);
    for (path, code) in sources("mcp-runtime") {
        let mut parts = path.split(['/', '.']);
        let folder = parts.next().unwrap_or_default();
        let module = if folder == "core" { parts.next().unwrap_or_default() } else { folder };
        // the root re-exports everything, and the guide contains no code
        if ["lib", "prelude", "macro_support", "guide", "missing_features"].contains(&folder) {
            continue;
        }
        for imported in imported_modules(code) {
            let imported = match &*imported {
                "audit" => "observers",
                public if capability_of(public).is_some() => "capability",
                other => other,
            };
            if imported == folder || around(imported).is_none() {
                continue;
            }
            let may = match around(folder) {
                Some((_, may)) => may.contains(&imported),
                None => IMPORTS_OF_THE_CORE.iter().any(|(by, of, _)| *by == module && *of == imported),
            };
            if may {
                needed.insert((module.to_owned(), imported.to_owned()));
            } else {
                wrong.push(format!("mcp-runtime/src/{path}: `{module}` imports `{imported}`"));
            }
        }
    }
    let allowed = AROUND_THE_CORE.iter().flat_map(|(by, list)| list.iter().map(move |of| (*by, *of)));
    for (by, of) in allowed.chain(IMPORTS_OF_THE_CORE.iter().map(|(by, of, _)| (*by, *of))) {
        if !needed.contains(&(by.to_owned(), of.to_owned())) {
            wrong.push(format!("`{by}` may import `{of}`, but does not"));
        }
    }
    wrong.sort();
    wrong.dedup();
    report(&wrong);
}

#[test]
fn what_a_capability_answers_is_in_the_file_of_that_name_in_its_folder() {
    let mut wrong = Vec::new();
    let capabilities = sources("mcp-runtime").into_iter().filter(|(path, _)| path.starts_with("capability/"));
    let mut found = 0;
    for (path, _) in capabilities.filter(|(_, code)| code.contains("\nimpl Capability for ")) {
        found += 1;
        if !path.ends_with("/capability.rs") && !path.ends_with("/mod.rs") {
            wrong.push(format!(
                "mcp-runtime/src/{path}: `impl Capability` belongs into `capability.rs`, or `mod.rs`"
            ));
        }
    }
    assert!(found >= 8, "{found} files have one");
    report(&wrong);
}

#[test]
fn the_architecture_page_names_every_module() {
    let section = section("docs/architecture.md", "## Modules of `mcp-runtime`");
    let named: HashSet<&str> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(name, _)| name)
        .collect();
    let modules: HashSet<String> = sources("mcp-runtime")
        .iter()
        .flat_map(|(path, _)| {
            let mut parts = path.split(['/', '.']).map(str::to_owned);
            let folder = parts.next();
            let module = folder.as_deref().filter(|folder| *folder == "core").and_then(|_| parts.next());
            folder.into_iter().chain(module)
        })
        .filter(|module| !["lib", "prelude", "macro_support", "guide", "mod"].contains(&module.as_str()))
        .collect();
    let mut wrong: Vec<_> = modules.iter().filter(|module| !named.contains(module.as_str())).collect();
    wrong.sort();
    assert!(wrong.is_empty(), "not on the page: {wrong:?}");
    let gone: Vec<_> = named.iter().filter(|module| !modules.contains(**module)).collect();
    assert!(gone.is_empty(), "not in the crate: {gone:?}");
}

#[test]
fn a_capability_imports_the_core_and_few_others() {
    let mut wrong = Vec::new();
    for (path, code) in sources("mcp-runtime") {
        let mut parts = path.split('/');
        let (Some("capability"), Some(own), Some(_)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let public = imported_modules(code).into_iter().filter_map(|module| capability_of(&module));
        // a capability's own file of that name is not another capability
        let code = code.replace("use capability::", "use own::").replace("super::capability::", "super::");
        let code = code.replace("capability::", "crate::");
        let inside = imported_modules(&code).into_iter().filter(|module| {
            root().join("mcp-runtime/src/capability").join(module).is_dir() || module.starts_with("open_")
        });
        for imported in inside.chain(public.map(str::to_owned)).filter(|module| *module != own) {
            let may = IMPORTS_OF_CAPABILITIES.iter().any(|(by, of)| *by == own && of.contains(&&*imported));
            if !may {
                wrong.push(format!("mcp-runtime/src/{path}: imports the capability `{imported}`"));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    report(&wrong);
}

/// The folder that a file below `src` belongs to as a reader sees it: a capability, and a module of the core, is one.
fn module_folder(path: &str) -> String {
    let mut parts = path.split('/');
    let first = parts.next().unwrap_or_default();
    match (first, parts.next(), parts.next()) {
        ("capability" | "core" | "observers", Some(module), Some(_)) => format!("{first}/{module}"),
        (_, Some(_), _) => first.to_owned(),
        _ => String::new(),
    }
}

/// The files that a module has in place of its own where a feature is off: they declare the same names.
fn stand_ins(path: &str, code: &str) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let off = code.lines().filter(|line| line.contains("#[cfg_attr(not(feature = "));
    let names = off.filter_map(|line| line.split_once("path = \"")?.1.split('"').next());
    names.map(|name| format!("{folder}/{name}")).collect()
}

/// Two capabilities may each have a `Record`; within a folder a name is one type.
#[test]
fn a_type_name_has_one_meaning_in_a_folder() {
    let mut wrong = Vec::new();
    for krate in ["mcp-runtime", "mcp-runtime/fetch", "mcp-runtime/schema", "mcp-macros"] {
        let mut declared: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
        let sources = sources(krate);
        let stand_ins: Vec<String> = sources.iter().flat_map(|(path, code)| stand_ins(path, code)).collect();
        for (path, code) in sources.into_iter().filter(|(path, _)| !stand_ins.iter().any(|name| name == path))
        {
            let mut in_file = HashSet::new();
            for line in code.lines() {
                let item = line.trim_start();
                let item = item.strip_prefix("pub").map_or(item, |rest| match rest.split_once(") ") {
                    Some((visibility, rest)) if visibility.starts_with('(') => rest,
                    _ => rest.trim_start(),
                });
                // associated types are indented, and named by their trait
                let keywords = ["struct ", "enum ", "union ", "trait "];
                let keyword = keywords.iter().find_map(|keyword| item.strip_prefix(keyword));
                let alias = || item.strip_prefix("type ").filter(|_| !line.starts_with(' '));
                let Some(rest) = keyword.or_else(alias) else { continue };
                let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
                // two declarations in one file are of two platforms or features; in a macro the name is a variable
                if !name.is_empty() && in_file.insert(name.to_owned()) {
                    let key = (module_folder(path), name.to_owned());
                    declared.entry(key).or_default().push(path);
                }
            }
        }
        assert!(declared.len() > 30, "only {} types of `{krate}` were found", declared.len());
        for ((_, name), paths) in declared.iter().filter(|(_, paths)| paths.len() > 1) {
            wrong.push(format!("{krate}: `{name}` is declared in {}", paths.join(", ")));
        }
    }
    report(&wrong);
}

#[test]
fn texts_use_the_words_of_the_field() {
    // each phrase backwards, since this file is read too
    let phrases = [
        "on si",
        "on era",
        "reveohw",
        "ydobon",
        "ydobemos",
        "eciwt dnats",
        "eciwt sdnats",
        "fo dlot si",
        "sruo fo",
    ];
    let phrases: Vec<String> =
        phrases.iter().map(|phrase| format!(" {} ", phrase.chars().rev().collect::<String>())).collect();
    // most lines have none of these words, and are not looked at further
    let last_words: HashSet<_> = phrases.iter().filter_map(|phrase| phrase.split(' ').rev().nth(1)).collect();
    let mut wrong = Vec::new();
    for (place, line) in lines(|name| name.ends_with(".rs") || name.ends_with(".md")) {
        let line = line.to_lowercase();
        if !last_words.iter().any(|word| line.contains(word)) {
            continue;
        }
        let words: Vec<_> =
            line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let words = format!(" {} ", words.join(" "));
        if let Some(phrase) = phrases.iter().find(|phrase| words.contains(*phrase)) {
            wrong.push(format!("{place}: \"{}\"", phrase.trim()));
        }
    }
    report(&wrong);
}

#[test]
fn everything_that_blocks_is_in_the_list_of_one_file() {
    let mut wrong = Vec::new();
    for (path, code) in sources("mcp-runtime") {
        let blocks = ["spawn_blocking", "block_in_place", "tokio::fs", "lookup_host", "GaiResolver"];
        let found = blocks.into_iter().filter(|name| code.contains(name) && path != "core/blocking.rs");
        let resolves = code.contains("to_socket_addrs") && path != "core/resolver.rs";
        wrong
            .extend(found.chain(resolves.then_some("to_socket_addrs")).map(|name| format!("{path}: {name}")));
    }
    report(&wrong);
}

/// A line of an example that compares a secret by a way that takes longer the more of a guess is right.
fn compares_a_secret(line: &str) -> bool {
    let line = line.to_lowercase();
    let about_a_secret = ["secret", "token", "password", "bearer", "api_key", "apikey"];
    // a pattern of `match` compares like `==`
    let compares = [" == ", " != ", ".eq(", ") =>", ") if "].iter().any(|way| line.contains(way));
    compares && !line.contains("assert") && about_a_secret.iter().any(|word| line.contains(word))
}

#[test]
fn examples_compare_secrets_in_constant_time() {
    assert!(compares_a_secret("Some(sent) if *sent == *secret => {"));
    assert!(compares_a_secret("Some(\"ada-secret\") => User,"));
    assert!(!compares_a_secret("let known = sent.ct_eq(secret.as_bytes());"));
    let is_example = |name: &str| {
        name == "README.md"
            || ["docs/", "examples/", "mcp-macros/src/examples/"].iter().any(|at| name.starts_with(at))
    };
    let wrong = lines(is_example).filter(|(_, line)| compares_a_secret(line));
    report(&wrong.map(|(place, line)| format!("{place}: {}", line.trim())).collect::<Vec<_>>());
}

/// The names that the `pub use` lines outside of the modules in a file export.
fn exported(code: &str) -> Vec<&str> {
    let public = code.match_indices("\npub use ").map(|(at, _)| &code[at..]);
    let lists = public.filter_map(|rest| rest.split_once(';')).map(|(statement, _)| statement);
    lists
        .flat_map(|list| {
            let names = list.rsplit_once('{').map_or_else(
                || list.rsplit(':').next().unwrap_or_default(),
                |(_, names)| names.trim_end_matches('}'),
            );
            // modules are not counted, under another name or their own
            let modules = ["audit", "layer", "client_request", "content", "context", "store", "tool"];
            names
                .split(',')
                .map(str::trim)
                .filter(move |name| !name.is_empty() && !name.contains(" as ") && !modules.contains(name))
        })
        .collect()
}

/// How many public methods the inherent `impl` blocks of a type have in a file, without hidden ones.
fn public_methods(code: &str, of: &str) -> usize {
    let mut methods = 0;
    for block in code.split("\nimpl").skip(1) {
        let (header, body) = block.split_once('{').unwrap_or_default();
        // `Type`, `<T> Type` or `path::Type`; what implements a trait for it is written ` for Type`
        let subject = header.split(" where").next().unwrap_or_default().trim();
        if subject.contains(" for ") || subject.rsplit([' ', '>', ':']).next() != Some(of) {
            continue;
        }
        let lines: Vec<_> = body.split("\n}").next().unwrap_or_default().lines().collect();
        let is_method = |line: &str| line.starts_with("    pub ") && line.contains("fn ");
        let shown =
            lines.windows(2).filter(|lines| is_method(lines[1]) && lines[0].trim() != "#[doc(hidden)]");
        methods += shown.count();
    }
    methods
}

#[test]
fn the_public_face_stays_small() {
    let lib = read("mcp-runtime/src/lib.rs");
    let root_names = exported(&lib).len() + lib.matches("#[macro_export]").count();
    let prelude = exported(&read("mcp-runtime/src/prelude.rs")).len();
    let sources = sources("mcp-runtime");
    let methods: usize = sources.iter().map(|(_, code)| public_methods(code, "ServerBuilder")).sum();
    let examples = "\nimpl S {\n    #[doc(hidden)]\n    pub fn new() {}\n    pub async fn a() {}\n}\n\
         \nimpl<T: A<B>> crate::S {\n    pub fn b() {}\n    fn c() {}\n}\n\
         \nimpl T for S {\n    pub fn d() {}\n}\n";
    assert_eq!(public_methods(examples, "S"), 2);
    assert!((15..=27).contains(&root_names), "{root_names} names in the root");
    // one is hidden: it says what to write instead of a derive
    assert!((8..=14).contains(&prelude), "{prelude} names in the prelude");
    // two of them run a program, `run` and `run_with_args`, and two are for settings, `config` and `configure`
    assert!((20..=38).contains(&methods), "{methods} methods of the builder");
}
