//! The packages as the registry gets them: they contain what they need, and a program builds against their contents
//! alone, with the default features and no others.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{stderr}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn cargo(folder: &Path, target: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(folder).env("CARGO_TARGET_DIR", target);
    cargo
}

/// Packages the crates, and unpacks them beside each other.
fn unpack(workspace: &Path, target: &Path, folder: &Path) {
    let arguments = ["package", "--quiet", "--offline", "--no-verify", "--allow-dirty"];
    run(cargo(workspace, target).args(arguments).args([
        "-p",
        "mcp-runtime-macros",
        "-p",
        "mcp-runtime",
        "-p",
        "mcp-dev",
    ]));
    for name in ["mcp-runtime-macros", "mcp-runtime", "mcp-dev"] {
        let file = target.join(format!("package/{name}-{VERSION}.crate"));
        // `m`: all files of an archive have one and the same time, by which cargo would take the build of an earlier archive
        // for this one's
        run(Command::new("tar").arg("-xzmf").arg(file).arg("-C").arg(folder));
    }
}

/// The first Rust block of the README.
fn program(readme: &str) -> &str {
    let (_, block) = readme.split_once("```rust,no_run\n").expect("a block");
    block.split_once("```").expect("its end").0
}

#[test]
fn the_packages_build_from_their_own_contents() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("packages");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory");
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("to remove the previous run");
    }
    let hello = folder.join("hello");
    fs::create_dir_all(hello.join("src")).expect("the folders");
    unpack(workspace, target, &folder);

    for name in ["mcp-runtime-macros", "mcp-runtime", "mcp-dev"] {
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

    let manifest = format!(
        "[package]\nname = \"hello\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nmcp-runtime = {{ path = \"../mcp-runtime-{VERSION}\" }}\n\n\
         [patch.crates-io]\nmcp-runtime-macros = {{ path = \"../mcp-runtime-macros-{VERSION}\" }}\n\n\
         [workspace]\n"
    );
    fs::write(hello.join("Cargo.toml"), manifest).expect("the manifest");
    // the versions that the tests have been built with, which needs no network
    fs::copy(workspace.join("Cargo.lock"), hello.join("Cargo.lock")).expect("the lock file");
    let readme = fs::read_to_string(workspace.join("README.md")).expect("the README");
    fs::write(hello.join("src/main.rs"), program(&readme)).expect("the program");
    let run_hello = |arguments: &[&str]| {
        run(cargo(&hello, target).args(["run", "--quiet", "--offline", "--"]).args(arguments))
    };
    assert_eq!(run_hello(&["call", "greet", r#"{"name": "Ada"}"#]).trim_end(), "Hello, Ada!");
}
