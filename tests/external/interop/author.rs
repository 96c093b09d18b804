//! The way of a crate from `mcp-dev new` to its users and back to its author: it builds, its tests pass, its settings are read,
//! it is added to clients, locked and packed. It takes longer than the other tests, which start in the order of their names: its
//! own is the first.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use mcp_tests::{
    programs::{cargo, profile_dir, workspace_dir},
    support::TestFolder,
};
use serde_json::{Value, json};

use crate::interop::swaps::mcp_dev;

const NAME: &str = "product-walk";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The folder of builds that this test was built in: what the crate needs is there already, for the most part.
fn target() -> PathBuf {
    profile_dir().parent().expect("a target directory").to_owned()
}

/// A crate of `mcp-dev new` in a folder that is also its author's home.
struct Made {
    home: TestFolder,
    dev: PathBuf,
}

impl Made {
    fn new() -> Self {
        let made = Self { home: TestFolder::default(), dev: mcp_dev() };
        let workspace = workspace_dir();
        let runtime = workspace.join("mcp-runtime");
        let runtime = runtime.to_str().expect("UTF-8");
        let line = ["new", NAME, "--path", runtime, "--owner", "io.github.ada", "--author", "Ada Lovelace"];
        let output = Command::new(&made.dev).args(line).current_dir(&*made.home).output().expect("the tool");
        assert!(output.status.success(), "{}", text(&output.stderr));
        // the versions that the tests have been built with, which needs no network
        fs::copy(workspace.join("Cargo.lock"), made.path("Cargo.lock")).expect("the lock file");
        made
    }

    fn path(&self, file: &str) -> PathBuf {
        self.home.join(NAME).join(file)
    }

    /// A program in the folder of the crate, without an environment of the user.
    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.path("")).stdin(Stdio::null());
        command.env("HOME", &*self.home).env_remove("XDG_CONFIG_HOME").env_remove("CODEX_HOME");
        command
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> Output {
        self.command(program, arguments).output().expect("the program")
    }

    fn cargo(&self, arguments: &[&str]) -> String {
        let mut command = cargo();
        command.args(arguments).arg("--offline").current_dir(self.path("")).env("CARGO_TARGET_DIR", target());
        let output = command.stdin(Stdio::null()).output().expect("cargo");
        assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    fn server(&self) -> PathBuf {
        target().join("debug").join(NAME)
    }

    fn mcp_dev(&self, arguments: &[&str]) -> Output {
        self.run(&self.dev, arguments)
    }
}

#[test]
fn a_new_crate_goes_the_whole_way_to_its_users() {
    let made = Made::new();
    let tested = made.cargo(&["test", "--quiet"]);
    assert!(tested.contains("2 passed"), "{tested}");
    let server = made.server();
    let server_text = server.to_str().expect("UTF-8").to_owned();
    has_settings(&made, &server);
    let added = made.run(&server, &["install", "cursor", "--project"]);
    assert!(text(&added.stdout).contains("added"), "{added:?}");
    let written = fs::read_to_string(made.path(".cursor/mcp.json")).expect("a file");
    assert!(written.contains("\"product-walk\""), "{written}");
    let output = made.mcp_dev(&["doctor", "--strict", "--budget", "200", "--", &server_text]);
    assert!(output.status.success() && text(&output.stdout).starts_with("nothing to mend"), "{output:?}");
    is_locked(&made, &server_text);
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    is_packaged(&made, &server_text);
}

fn has_settings(made: &Made, server: &Path) {
    let call = ["call", "greet", r#"{"name": "Ada"}"#];
    let greeted = |output: &Output| text(&output.stdout);
    assert!(greeted(&made.run(server, &call)).contains("Hello, Ada!"));
    assert!(greeted(&made.run(server, &[&["--greeting", "Hi"], &call[..]].concat())).contains("Hi, Ada!"));
    let wrong = made.run(server, &["--greting", "Hi", "config"]);
    assert!(
        !wrong.status.success() && text(&wrong.stderr).contains("did you mean `--greeting`"),
        "{wrong:?}"
    );
}

/// The contract that its tests have locked is the one of its program, and changes of it are told by their class; the classes are
/// those of the unit tests of the contract.
fn is_locked(made: &Made, server: &str) {
    let lock = made.path("mcp.lock.json");
    let check = || {
        let output = made.mcp_dev(&["lock", "--check", "--", server]);
        (output.status.code(), text(&output.stdout))
    };
    assert_eq!(check(), (Some(0), "nothing has changed\n".to_owned()));
    let original = fs::read_to_string(&lock).expect("the lock");
    let (tool, setting) =
        ("/tools/greet/inputSchema/properties/name/maxLength", "/settings/greeting/schema/x-env");
    for (pointer, value, class, code) in [
        (tool, json!(200), "breaking", 1),
        (tool, json!(50), "additive", 3),
        (setting, json!("OLDER"), "breaking", 1),
    ] {
        let mut older: Value = serde_json::from_str(&original).expect("JSON");
        *older.pointer_mut(pointer).expect("a place") = value;
        fs::write(&lock, older.to_string()).expect("the lock");
        let (found, report) = check();
        assert!(report.starts_with(class) && found == Some(code), "{pointer}: {found:?} {report}");
    }
    // a file of another time, without what only the program knows, is out of date
    let mut listed: Value = serde_json::from_str(&original).expect("JSON");
    let members = listed.as_object_mut().expect("an object");
    members.remove("source").and(members.remove("settings")).expect("settings of the program");
    fs::write(&lock, listed.to_string()).expect("the lock");
    let (code, report) = check();
    assert!(code == Some(3) && report.contains("the file has none"), "{code:?} {report}");
    // and it is written as the tests write it
    let output = made.mcp_dev(&["lock", "--", server]);
    assert!(
        output.status.success() && fs::read_to_string(&lock).expect("the lock") == original,
        "{output:?}"
    );
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn is_packaged(made: &Made, server: &str) {
    let own = format!("x86_64-unknown-linux-gnu={server}");
    let mut options: Vec<String> = vec!["--binary".to_owned(), own];
    options.extend(crate::interop::bundle::other_programs(&made.path("")));
    let package = |kind: &str| {
        let mut line = vec!["package", kind];
        line.extend(options.iter().map(String::as_str));
        let output = made.mcp_dev(&line);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let left = "not started here, only known by their headers: darwin-universal, linux-arm64, win32-x64";
        assert!(text(&output.stderr).contains(left), "{output:?}");
    };
    is_built_by_its_workflow(made);
    package("mcpb");
    // modes are those of the archive
    let unpack = "import os, sys, zipfile\n\
        for entry in zipfile.ZipFile(sys.argv[1]).infolist():\n    \
        path = zipfile.ZipFile(sys.argv[1]).extract(entry, 'bundle')\n    \
        os.chmod(path, entry.external_attr >> 16)\n";
    let output = made.run(Path::new("python3"), &["-c", unpack, "dist/product-walk-0.1.0.mcpb"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let manifest = fs::read_to_string(made.path("bundle/manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    assert_eq!(manifest["tools"], json!([{ "name": "greet", "description": "Greet someone." }]));
    let launch = &manifest["server"]["mcp_config"];
    assert_eq!(launch["command"], "${__dirname}/server/product-walk");
    assert_eq!(launch["env"]["PRODUCT_WALK_GREETING"], "${user_config.greeting}");
    let asked = json!({ "type": "string", "title": "Greeting", "description": "The word that greets", "default": "Hello" });
    assert_eq!(manifest["user_config"]["greeting"], asked);
    // through the script that chooses
    let launcher = made.path("bundle/server/product-walk");
    let call = ["call", "greet", r#"{"name": "Ada"}"#];
    let started = made.run(&launcher, &call);
    assert!(text(&started.stdout).contains("Hello, Ada!"), "{started:?}");
    // as a client starts it whose user has filled in nothing
    let mut command = Command::new(&launcher);
    let started = command
        .args(call)
        .env("PRODUCT_WALK_GREETING", "${user_config.greeting}")
        .output()
        .expect("a program");
    assert!(text(&started.stdout).contains("Hello, Ada!"), "{started:?}");

    // twice: what was made before is replaced
    package("npm");
    package("npm");
    // without room, and killed, it is what it was
    let bundle = made.path("dist/product-walk-0.1.0.mcpb");
    let launch = made.path("dist/npm/product-walk-linux-x64/bin/product-walk");
    let whole = || (fs::read(&bundle).expect("a bundle"), fs::read(&launch).expect("a program"));
    let before = whole();
    for (kind, start, reports) in [
        ("mcpb", "trap '' XFSZ; ", true),
        ("npm", "trap '' XFSZ; ", true),
        ("mcpb", "", false),
        ("npm", "", false),
    ] {
        let dev = made.dev.display();
        let line = format!("{start}ulimit -f 64; exec '{dev}' package {kind} {}", options.join(" "));
        let output = made.run(Path::new("sh"), &["-c", &line]);
        assert_eq!(output.status.code(), reports.then_some(1), "{kind}: {output:?}");
        assert!(!reports || text(&output.stderr).contains("cannot be written"), "{kind}: {output:?}");
        assert!(whole() == before, "{kind}: another file");
    }
    for folder in [made.path("dist"), made.path("dist/npm")] {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // of the runs that were killed
            if name.contains(".new") || name.contains(".tmp") {
                fs::remove_dir_all(entry.path())
                    .or_else(|_| fs::remove_file(entry.path()))
                    .expect("a folder");
            }
        }
    }
    let read = |file: &str| -> Value {
        let text = fs::read_to_string(made.path(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        serde_json::from_str(&text).expect("JSON")
    };
    let main = read("dist/npm/product-walk/package.json");
    assert_eq!(main["mcpName"], "io.github.ada/product-walk");
    assert_eq!(main["optionalDependencies"].as_object().map(serde_json::Map::len), Some(4));
    assert!(main.get("scripts").is_none());
    let linux = read("dist/npm/product-walk-linux-x64/package.json");
    assert_eq!(
        (&linux["os"], &linux["cpu"], &linux["libc"]),
        (&json!(["linux"]), &json!(["x64"]), &json!(["glibc"]))
    );
    // Windows on Arm runs the program for x64
    assert_eq!(read("dist/npm/product-walk-win32-x64/package.json")["cpu"], json!(["x64", "arm64"]));
    let launcher = fs::read_to_string(made.path("dist/npm/product-walk/bin/launch.js")).expect("a launcher");
    let table = launcher.split_once("const PROGRAMS = ").and_then(|(_, rest)| rest.split_once(";\n"));
    let table: Value = serde_json::from_str(table.expect("a table").0).expect("JSON");
    assert_eq!(table["win32-arm64"], table["win32-x64"]);
    assert_eq!(table["win32-arm64"][0]["name"], "product-walk-win32-x64");
    assert_eq!(read("dist/npm/product-walk-darwin-universal/package.json")["cpu"], json!(["arm64", "x64"]));
    let line = [&["--offline", "--yes", "./dist/npm/product-walk"], &call[..]].concat();
    let started = made.run(Path::new("npx"), &line);
    assert!(text(&started.stdout).contains("Hello, Ada!"), "{started:?}");
    assert_eq!(fs::read_dir(made.path("dist/npm")).expect("a folder").count(), 5);
}

/// The step of the workflow that builds a program is run, for this target.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn is_built_by_its_workflow(made: &Made) {
    let written = made.mcp_dev(&["package", "workflow"]);
    assert_eq!(text(&written.stdout), ".github/workflows/bundles.yml\n", "{written:?}");
    let workflow = fs::read_to_string(made.path(".github/workflows/bundles.yml")).expect("a workflow");
    let step = workflow.split("- name: Build\n        run: |\n").nth(1).expect("the step");
    let script: String = step
        .lines()
        .take_while(|line| line.starts_with("          "))
        .map(|line| format!("{}\n", line.trim()))
        .collect();
    let triple = "x86_64-unknown-linux-gnu";
    let mut command = made.command(Path::new("bash"), &["-e", "-c", &script]);
    command.env("TARGET", triple).env("SUFFIX", "").env("CARGO_NET_OFFLINE", "true");
    // those of rustup are in the home of who runs the tests
    for name in ["CARGO_HOME", "RUSTUP_HOME"] {
        let folder = format!(".{}", name.split('_').next().unwrap_or_default().to_lowercase());
        let own = std::env::var_os(name).map(PathBuf::from);
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        command.env(name, own.unwrap_or_else(|| home.join(folder)));
    }
    let built = command.env("CARGO_TARGET_DIR", target()).output().expect("bash");
    assert!(built.status.success(), "{}", text(&built.stderr));
    let program = made.path(&format!("programs/{triple}/{NAME}"));
    assert!(
        text(&made.run(&program, &["call", "greet", r#"{"name": "Ada"}"#]).stdout).contains("Hello, Ada!")
    );
    // the five targets are those that a bundle may have
    for triple in [
        "x86_64-unknown-linux-musl",
        "aarch64-unknown-linux-musl",
        "x86_64-apple-darwin",
        "aarch64-apple-darwin",
        "x86_64-pc-windows-msvc",
    ] {
        assert!(workflow.contains(&format!("target: {triple},")), "{triple}");
    }
    // what its author has changed stays
    let again = made.mcp_dev(&["package", "workflow"]);
    assert!(
        !again.status.success() && text(&again.stderr).contains("exists, and is left alone"),
        "{again:?}"
    );
}
