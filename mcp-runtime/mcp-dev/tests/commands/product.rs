//! The way of a crate from `mcp-dev new` to its users: it builds, its tests pass, its settings are read, it is added to
//! clients, and each change of it has a class.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use super::Folder;

const OWNER: &str = "io.github.ada";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_mcp-dev"))
}

/// The folder of builds that this test was built in: what the crate needs is there already, for the most part.
fn target() -> &'static Path {
    program().parent().and_then(Path::parent).expect("a target directory")
}

/// A crate of `mcp-dev new`, built.
pub(super) struct Made {
    folder: Folder,
    name: &'static str,
}

impl Made {
    fn new(name: &'static str) -> Self {
        let folder = Folder::new();
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let runtime = workspace.join("mcp-runtime");
        let runtime = runtime.to_str().expect("UTF-8");
        let line = ["new", name, "--path", runtime, "--owner", OWNER, "--author", "Ada Lovelace"];
        let output = folder.run(&line);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let made = Self { folder, name };
        // the versions that the tests have been built with, which needs no network
        fs::copy(workspace.join("Cargo.lock"), made.path("Cargo.lock")).expect("the lock file");
        made
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.0.join(self.name).join(file)
    }

    /// Runs a program in the folder of the crate, without an environment of the user.
    fn run(&self, program: &Path, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.path("")).stdin(Stdio::null());
        command.env("HOME", &self.folder.0).env_remove("XDG_CONFIG_HOME").output().expect("the program")
    }

    fn cargo(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO"));
        command.args(arguments).arg("--offline").current_dir(self.path("")).env("CARGO_TARGET_DIR", target());
        let output = command.stdin(Stdio::null()).output().expect("cargo");
        assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    fn server(&self) -> PathBuf {
        target().join("debug").join(self.name)
    }

    fn mcp_dev(&self, arguments: &[&str]) -> Output {
        self.run(program(), arguments)
    }
}

#[test]
fn a_new_crate_goes_the_whole_way_to_its_users() {
    let made = Made::new("product-walk");
    let tested = made.cargo(&["test", "--quiet"]);
    assert!(tested.contains("2 passed"), "{tested}");
    let server = made.server();
    let server_text = server.to_str().expect("UTF-8").to_owned();
    has_settings(&made, &server);
    is_added_to_clients(&made, &server);
    let output = made.mcp_dev(&["doctor", "--strict", "--budget", "200", "--", &server_text]);
    assert!(output.status.success() && text(&output.stdout).starts_with("nothing to mend"), "{output:?}");
    has_classes_of_changes(&made, &server_text);
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

fn is_added_to_clients(made: &Made, server: &Path) {
    for (client, file) in
        [("cursor", ".cursor/mcp.json"), ("vscode", ".vscode/mcp.json"), ("zed", ".zed/settings.json")]
    {
        for report in ["added", "already"] {
            let output = made.run(server, &["install", client, "--project"]);
            assert!(text(&output.stdout).contains(report), "{client}: {output:?}");
        }
        let written = fs::read_to_string(made.path(file)).expect("a file");
        assert!(written.contains("\"product-walk\""), "{written}");
        assert!(
            !written.contains(made.folder.0.to_str().expect("UTF-8")),
            "{client}: a path of this machine: {written}"
        );
    }
}

/// Each change of the server, as a change of the lock in the other direction, and its class.
fn has_classes_of_changes(made: &Made, server: &str) {
    let lock = made.path("mcp.lock.json");
    let check = || {
        let output = made.mcp_dev(&["lock", "--check", "--", server]);
        (output.status.code(), text(&output.stdout))
    };
    assert_eq!(check(), (Some(0), "nothing has changed\n".to_owned()));
    let original = fs::read_to_string(&lock).expect("the lock");
    let tool = "/tools/greet";
    let name = "/tools/greet/inputSchema/properties/name";
    let output = "/tools/greet/outputSchema";
    let changes = [
        // what the older contract had, and what the server of now is to it
        (format!("{tool}/description"), json!("Greets."), "routing", 3),
        (format!("{name}/description"), json!("Who"), "routing", 3),
        (format!("{tool}/title"), json!("Greet"), "cosmetic", 3),
        (format!("{name}/format"), json!("name"), "cosmetic", 3),
        ("/server/name".to_owned(), json!("older"), "cosmetic", 3),
        ("/instructions".to_owned(), json!("Greet all."), "routing", 3),
        (format!("{name}/maxLength"), json!(200), "breaking", 1),
        (format!("{name}/maxLength"), json!(50), "additive", 3),
        (format!("{name}/minLength"), json!(0), "breaking", 1),
        (format!("{name}/type"), json!("integer"), "breaking", 1),
        (format!("{name}/type"), json!(["string", "null"]), "breaking", 1),
        ("/tools/greet/inputSchema/required".to_owned(), json!([]), "breaking", 1),
        ("/tools/greet/inputSchema/properties/times".to_owned(), json!({ "type": "integer" }), "breaking", 1),
        ("/tools/greet/inputSchema/properties/name".to_owned(), Value::Null, "breaking", 1),
        ("/tools/gone".to_owned(), json!({ "inputSchema": {} }), "breaking", 1),
        ("/tools/greet".to_owned(), Value::Null, "additive", 3),
        (format!("{tool}/annotations/readOnlyHint"), json!(false), "additive", 3),
        (format!("{tool}/annotations/openWorldHint"), json!(false), "breaking", 1),
        (format!("{output}/required"), json!([]), "additive", 3),
        (format!("{output}/properties/more"), json!({ "type": "string" }), "breaking", 1),
        (output.to_owned(), Value::Null, "additive", 3),
        ("/capabilities/prompts".to_owned(), json!({}), "breaking", 1),
        ("/capabilities/tools".to_owned(), Value::Null, "additive", 3),
    ];
    assert!(changes.len() >= 20);
    for (pointer, value, class, code) in changes {
        let mut older: Value = serde_json::from_str(&original).expect("JSON");
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        let members = older.pointer_mut(parent).and_then(Value::as_object_mut).expect("a place");
        match &value {
            Value::Null => members.remove(key).map(|_| ()).expect("a member"),
            value => drop(members.insert(key.to_owned(), value.clone())),
        }
        fs::write(&lock, older.to_string()).expect("the lock");
        let (found, report) = check();
        assert!(report.starts_with(class) && found == Some(code), "{pointer} = {value}: {found:?} {report}");
    }
    // and it is written as the tests write it
    let output = made.mcp_dev(&["lock", "--", server]);
    assert!(
        output.status.success() && fs::read_to_string(&lock).expect("the lock") == original,
        "{output:?}"
    );
}

#[test]
fn a_crate_is_made_whole_or_not_at_all() {
    let folder = Folder::new();
    fs::create_dir_all(folder.0.join("taken/src")).expect("a folder");
    fs::create_dir_all(folder.0.join("nested/empty")).expect("a folder");
    for (line, code, message) in [
        (&["new", "taken"][..], 1, "`taken` is not empty"),
        (&["new", "Upper"], 2, "a name has up to 63"),
        (&["new", "1st"], 2, "a name has up to 63"),
        (&["new", "mcp-runtime"], 2, "a crate cannot be named"),
        (&["new", "match"], 2, "a crate cannot be named"),
        (&["new", ".."], 2, "a name has up to 63"),
        (&["new", "x", "--owner", "a\"b"], 2, "`--owner` is a name"),
        (&["new", "x", "--author", "a\"b"], 2, "`--author` is a name"),
        (&["new", "x", "--path", "nested"], 1, "cannot be read"),
        (&["new", "server.py/x"], 1, ""),
    ] {
        let output = folder.run(line);
        let found = text(&output.stderr);
        assert!(output.status.code() == Some(code) && found.contains(message), "{line:?}: {found}");
    }
    let mut left: Vec<_> = fs::read_dir(&folder.0)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    left.sort();
    assert_eq!(left, ["nested", "server.py", "taken"]);
    // an empty folder is used, also inside of others
    assert!(folder.run(&["new", "nested/empty"]).status.success());
    let manifest = fs::read_to_string(folder.0.join("nested/empty/Cargo.toml")).expect("a manifest");
    assert!(
        manifest.contains("mcp-runtime = { version = \"0.1\", features = [") && !manifest.contains("{{"),
        "{manifest}"
    );
    fs::write(folder.0.join("Cargo.toml"), "[workspace]\nmembers = []\n").expect("a file");
    let output = folder.run(&["new", "member"]);
    assert!(text(&output.stderr).contains("add `member` to its members"), "{output:?}");
}
