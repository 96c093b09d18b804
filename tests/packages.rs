//! The packages as the registry gets them contain what they need. `.ci/publish` builds each from its contents alone.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use mcp_runtime::serde_json::{Value, from_str};
use mcp_tests::external;

/// In the order in which they are published: each depends on those before it.
const PUBLISHED: [&str; 3] = ["mcp-runtime-macros", "mcp-runtime", "mcp-dev"];

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{stderr}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn cargo(folder: &Path, target: &Path) -> Command {
    let mut cargo = external::cargo();
    cargo.current_dir(folder).env("CARGO_TARGET_DIR", target);
    cargo
}

/// Packages the crates, and unpacks them beside each other.
fn unpack(workspace: &Path, target: &Path, folder: &Path) {
    let arguments = ["package", "--quiet", "--offline", "--no-verify", "--allow-dirty"];
    run(cargo(workspace, target).args(arguments).args(PUBLISHED.into_iter().flat_map(|name| ["-p", name])));
    for name in PUBLISHED {
        let file = target.join(format!("package/{name}-{VERSION}.crate"));
        // `m`: all files of an archive have one and the same time, by which cargo would take the build of an earlier archive
        // for this one's
        run(Command::new("tar").arg("-xzmf").arg(file).arg("-C").arg(folder));
    }
}

#[test]
fn the_packages_contain_what_the_registry_shows_and_the_tests_of_the_macros_pass_in_theirs() {
    let workspace = external::workspace_dir();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("packages");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory");
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("to remove the previous run");
    }
    fs::create_dir_all(&folder).expect("the folder");
    unpack(workspace, target, &folder);

    for name in PUBLISHED {
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            let path = folder.join(format!("{name}-{VERSION}/{file}"));
            assert!(path.is_file(), "`{name}` does not contain `{file}`");
        }
    }
    for page in fs::read_dir(workspace.join("docs")).expect("the guide") {
        let page = page.expect("an entry").file_name();
        let path = folder.join(format!("mcp-runtime-{VERSION}/docs")).join(&page);
        assert!(path.is_file(), "the package does not contain the page {}", page.display());
    }

    // nothing of the repository is beside it; it is in the folder of builds, and no member of the workspace around that
    let macros = folder.join(format!("mcp-runtime-macros-{VERSION}"));
    let manifest = macros.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).expect("the manifest");
    fs::write(&manifest, text + "\n[workspace]\n").expect("the manifest");
    let tested = run(cargo(&macros, target).args(["test", "--quiet", "--offline", "--lib"]));
    assert!(tested.contains("test result: ok") && !tested.contains("running 0 tests"), "{tested}");
}

/// Whether crates.io takes a keyword; `cargo publish --dry-run` does not ask it.
fn is_keyword(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-+".contains(c);
    text.len() <= 20 && text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_allowed)
}

#[test]
fn keywords_of_crates_are_those_that_the_registry_takes() {
    for taken in ["mcp", "modelcontextprotocol", "c++", "a_b-c"] {
        assert!(is_keyword(taken), "{taken}");
    }
    for refused in ["", "model-context-protocol", "-mcp", "4", "two words", "clé"] {
        assert!(!is_keyword(refused), "{refused}");
    }
    let workspace = external::workspace_dir();
    let template = fs::read_to_string(workspace.join("mcp-runtime/mcp-dev/template/Cargo.toml.txt"));
    let template = template.expect("the template of `mcp-dev new`");
    let line = template.lines().find_map(|line| line.strip_prefix("keywords = ")).expect("its keywords");
    let keywords: Vec<String> = from_str(line).expect("a list of texts");
    assert!((1..=5).contains(&keywords.len()), "{line}");
    for keyword in keywords {
        assert!(is_keyword(&keyword), "`mcp-dev new`: the registry refuses the keyword `{keyword}`");
    }
}

#[test]
fn three_packages_are_published_and_each_has_what_the_registry_shows_of_it() {
    let workspace = external::workspace_dir();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory");
    let metadata =
        run(cargo(workspace, target).args(["metadata", "--no-deps", "--offline", "--format-version", "1"]));
    let metadata: Value = from_str(&metadata).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let published: Vec<&Value> = packages.iter().filter(|package| package["publish"].is_null()).collect();
    let mut names: Vec<_> = published.iter().filter_map(|package| package["name"].as_str()).collect();
    names.sort_unstable();
    let mut expected = PUBLISHED;
    expected.sort_unstable();
    assert_eq!(names, expected, "others have `publish = false`");
    for package in &published {
        for member in ["description", "documentation", "license", "readme", "rust_version"] {
            assert!(package[member].is_string(), "{}: `{member}` is missing", package["name"]);
        }
        let count = |member: &str| package[member].as_array().map_or(0, Vec::len);
        assert!((1..=5).contains(&count("keywords")), "{}", package["name"]);
        assert!((1..=5).contains(&count("categories")), "{}", package["name"]);
        for keyword in package["keywords"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            assert!(is_keyword(keyword), "{}: the registry refuses the keyword `{keyword}`", package["name"]);
        }
        assert_eq!(package["version"], VERSION, "{}", package["name"]);
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            // what is not in the registry at this version cannot be published
            let is_ours = dependency["path"].is_string();
            assert!(
                !is_ours || dependency["req"].as_str().is_some_and(|req| req.ends_with(VERSION)),
                "{dependency}"
            );
        }
    }
}
