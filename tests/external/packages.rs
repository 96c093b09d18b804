//! The packages as the registry gets them contain what they need. `.ci/publish` builds each from its contents alone.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use mcp_tests::programs::{self, PUBLISHED};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{stderr}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn cargo(folder: &Path, target: &Path) -> Command {
    let mut cargo = programs::cargo();
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
    let workspace = programs::workspace_dir();
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
