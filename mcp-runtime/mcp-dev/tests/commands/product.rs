//! What `mcp-dev` makes: crates, and what is refused of packages and of the file for the registry. How a crate is built, packed
//! and changed is in the tests of the workspace, as `interop/author.rs`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use crate::home::Folder;

const OWNER: &str = "io.github.ada";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_mcp-dev"))
}

/// A crate of `mcp-dev new`.
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
        Self { folder, name }
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

    fn mcp_dev(&self, arguments: &[&str]) -> Output {
        self.run(program(), arguments)
    }
}

/// Beginnings of programs for other machines, each with its target.
const OTHERS: [(&str, &str, &[u8]); 3] = [
    ("aarch64-unknown-linux-gnu", "linux-arm64", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\xb7\0"),
    (
        "universal-apple-darwin",
        "mac",
        b"\xca\xfe\xba\xbe\0\0\0\x02\x01\0\0\x07\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\x0c\x01\0\0\x0c",
    ),
    ("x86_64-pc-windows-msvc", "windows.exe", b"MZ"),
];

/// Writes the programs of other machines; returns the options that name them.
fn other_programs(made: &Made) -> Vec<String> {
    let mut options = Vec::new();
    for (triple, file, start) in OTHERS {
        let mut bytes = start.to_vec();
        if file.ends_with(".exe") {
            bytes.resize(0x3c, 0);
            bytes.extend_from_slice(&[0x40, 0, 0, 0]);
            bytes.extend_from_slice(b"PE\0\0\x64\x86");
        }
        fs::write(made.path(file), bytes).expect("a file");
        options.extend(["--binary".to_owned(), format!("{triple}={file}")]);
    }
    options
}

#[test]
fn the_file_for_the_registry_has_settings_and_packages_and_what_it_refuses_is_said_at_once() {
    let made = Made::new("listed");
    let schema = json!({ "server": { "name": "listed" }, "settings": { "type": "object", "required": ["key"], "properties": {
        "key": { "type": "string", "x-env": "LISTED_KEY", "writeOnly": true, "description": "Of the service" },
        "limit": { "type": "integer", "x-env": "LISTED_LIMIT", "default": 5 },
        "mode": { "type": "string", "x-env": "LISTED_MODE", "enum": ["a", "b"] },
        "notes": { "type": ["string", "null"], "format": "path", "x-flag": "--notes", "x-env": "LISTED_NOTES" },
        "level": { "type": "integer", "x-flag": "--level", "default": 3 },
        "hosts": { "type": "array", "x-env": "LISTED_HOSTS", "items": { "type": "object", "properties": {
            "key": { "type": "string", "writeOnly": true } } } },
        "peers": { "type": "array", "x-env": "LISTED_PEERS", "items": { "$ref": "#/$defs/Peer" } },
    }, "$defs": { "Peer": { "type": "object", "properties": {
        "key": { "type": "string", "writeOnly": true }, "others": { "type": "array", "items": { "$ref": "#/$defs/Peer" } } } } }
    } });
    fs::write(made.path("schema.json"), schema.to_string()).expect("a file");
    let manifest = fs::read_to_string(made.path("Cargo.toml")).expect("a manifest");
    let with_manifest = |manifest: &str, own: &str, package: &str| {
        let text = manifest
            .replace("title = \"Listed\"\n", "")
            .replace("[package.metadata.mcp]", &format!("[package.metadata.mcp]\n{own}"));
        fs::write(made.path("Cargo.toml"), text.replace("[package]", &format!("[package]\n{package}")))
            .expect("a manifest");
    };
    let line = |more: &[&str]| {
        made.mcp_dev(&[&["package", "server-json", "--schema", "schema.json"], more].concat())
    };
    let written = || -> Value {
        serde_json::from_str(&fs::read_to_string(made.path("server.json")).expect("a file")).expect("JSON")
    };
    let missing = line(&["--check"]);
    assert!(text(&missing.stderr).contains("does not exist"), "{missing:?}");
    assert!(line(&[]).status.success());
    let all = written();
    assert_eq!((&all["name"], &all["version"]), (&json!("io.github.ada/listed"), &json!("0.1.0")));
    let package = &all["packages"][0];
    assert_eq!((&package["registryType"], &package["identifier"]), (&json!("cargo"), &json!("listed")));
    assert_eq!(package["transport"], json!({ "type": "stdio" }));
    assert_eq!(
        package["environmentVariables"],
        json!([
            // a part of an item of a list is secret
            { "name": "LISTED_HOSTS", "format": "string", "isSecret": true },
            { "name": "LISTED_KEY", "format": "string", "description": "Of the service", "isRequired": true, "isSecret": true },
            { "name": "LISTED_LIMIT", "format": "number", "default": "5" },
            { "name": "LISTED_MODE", "format": "string", "choices": ["a", "b"] },
            { "name": "LISTED_NOTES", "format": "filepath" },
            { "name": "LISTED_PEERS", "format": "string", "isSecret": true },
        ])
    );
    // a setting without a variable
    let level = json!([{ "type": "named", "name": "--level", "format": "number", "default": "3" }]);
    assert_eq!(package["packageArguments"], level);
    assert_eq!(text(&line(&["--check"]).stdout), "nothing has changed\n");
    // what the author adds is kept, and what has changed is said
    let mut own = all.clone();
    own["icons"] = json!([{ "src": "https://example.com/icon.png" }]);
    own["version"] = json!("0.0.9");
    fs::write(made.path("server.json"), own.to_string()).expect("a file");
    let drifted = line(&["--check"]);
    assert_eq!(
        (drifted.status.code(), &*text(&drifted.stdout)),
        (Some(1), "version: is \"0.0.9\", and would be \"0.1.0\"\n")
    );
    assert_eq!(written()["version"], "0.0.9", "a check writes nothing");
    assert!(line(&[]).status.success());
    assert_eq!((&written()["version"], &written()["icons"]), (&json!("0.1.0"), &own["icons"]));
    // other packages, and remotes
    fs::create_dir_all(made.path("dist")).expect("a folder");
    fs::write(made.path("dist/listed-0.1.0-linux-x64.mcpb"), "abc").expect("a file");
    fs::write(made.path("dist/listed-0.1.01.mcpb"), "another version").expect("a file");
    with_manifest(
        &manifest,
        "packages = [\"npm\", \"mcpb\", \"oci\"]\noci = \"ghcr.io/ada/listed\"\nremotes = [\"https://example.com/mcp\"]",
        "repository = \"https://github.com/ada/listed\"",
    );
    let output = line(&[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let all = written();
    let packages = all["packages"].as_array().expect("a list");
    let identifiers: Vec<&str> = packages.iter().filter_map(|one| one["identifier"].as_str()).collect();
    assert_eq!(
        identifiers,
        [
            "listed",
            "https://github.com/ada/listed/releases/download/v0.1.0/listed-0.1.0-linux-x64.mcpb",
            "ghcr.io/ada/listed:0.1.0"
        ]
    );
    // of the text "abc"
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!((&packages[1]["fileSha256"], packages[2].get("version")), (&json!(digest), None));
    assert_eq!(all["remotes"], json!([{ "type": "streamable-http", "url": "https://example.com/mcp" }]));
    assert_eq!(all["repository"]["source"], "github");
    // everything that is wrong, at once
    let before = written();
    let long = "x".repeat(101);
    let keywords = "keywords = [\"mcp\", \"modelcontextprotocol\"]";
    assert!(manifest.contains(keywords), "{manifest}");
    let too_many = "keywords = [\"model-context-protocol\", \"-mcp\", \"modelcontextprotocol\", \"c++\", \"4\", \"six\"]";
    with_manifest(
        &manifest.replace(keywords, too_many),
        &format!(
            "packages = [\"cargo\", \"mcpb\", \"oci\", \"deb\"]\ntitle = \"{long}\"\nremotes = [\"http://localhost/mcp\"]"
        ),
        "publish = false",
    );
    let readme = fs::read_to_string(made.path("README.md")).expect("a file");
    fs::write(
        made.path("README.md"),
        readme.replace(
            "mcp-name: io.github.ada/listed",
            "<!-- mcp-name: io.github.ada/listed -->\nmcp-name: io.github.ada/listed-too",
        ),
    )
    .expect("a file");
    let refused = line(&["--check"]);
    let found = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    for part in [
        "`publish` of the crate",
        "add the visible line `mcp-name: io.github.ada/listed`",
        "add `repository`",
        "add `oci",
        "`deb` is not a kind",
        "`title` has 101 characters, of at most 100",
        "`http://localhost/mcp` is not a public URL",
        "`keywords` of the crate are 6, and crates.io takes at most 5",
        "the keyword `model-context-protocol`: write at most 20 characters",
        "the keyword `-mcp`",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    for taken in ["`modelcontextprotocol`:", "`c++`:", "`4`:", "`six`:"] {
        assert!(!found.contains(taken), "{taken}: {found}");
    }
    assert_eq!(line(&[]).status.code(), Some(1));
    assert_eq!(written(), before, "nothing was written");
    fs::write(made.path("server.json"), "{").expect("a file");
    assert!(text(&line(&[]).stderr).contains("is not JSON, and is left alone"));
    assert_eq!(fs::read_to_string(made.path("server.json")).expect("a file"), "{");
}

#[test]
fn packages_are_refused_before_anything_is_written() {
    let made = Made::new("refused");
    other_programs(&made);
    fs::write(made.path("schema.json"), r#"{ "server": { "name": "refused" } }"#).expect("a file");
    let arm = "aarch64-unknown-linux-gnu=linux-arm64";
    let (arm_musl, wrong) =
        ("aarch64-unknown-linux-musl=linux-arm64", "x86_64-unknown-linux-gnu=linux-arm64");
    for (line, message) in [
        (&["mcpb"][..], "`cargo build --profile release --target"),
        (&["mcpb", "--profile", "small"], "target/small/refused` cannot be read"),
        (&["mcpb", "--profile", "dev"], "target/debug/refused` cannot be read"),
        (&["mcpb", "--binary", wrong], "is for linux on arm64, not for x86_64-unknown-linux-gnu"),
        (&["mcpb", "--binary", "aarch64-apple-darwin=linux-arm64"], "is for linux on arm64, not for"),
        (&["mcpb", "--binary", "x86_64-pc-windows-gnu=schema.json"], "is not a program for"),
        (&["mcpb", "--target", "riscv64gc-unknown-linux-gnu"], "is not a target that packages are made for"),
        (&["npm", "--binary", arm, "--binary", arm], "two programs for linux-arm64"),
        (&["mcpb", "--binary", "x"], "`--binary` needs a target and a file"),
        (&["npm", "--bin", "other", "--binary", arm], "has no program `other`"),
        (&["npm", "--manifest-path", "none.toml", "--binary", arm], "none.toml"),
        (&["npm", "--schema", "Cargo.toml", "--binary", arm], "is not JSON"),
        (
            &["mcpb", "--schema", "schema.json", "--binary", arm, "--binary", arm_musl],
            "which musl runs on both",
        ),
    ] {
        let output = made.mcp_dev(&[&["package"], line].concat());
        let found = text(&output.stderr);
        assert!(output.status.code() == Some(1) && found.contains(message), "{line:?}: {found}");
    }
    assert!(!made.path("dist").exists());
    // so is a README that is not there
    let readme = fs::read(made.path("README.md")).expect("a file");
    fs::remove_file(made.path("README.md")).expect("a file");
    let output = made.mcp_dev(&["package", "npm", "--schema", "schema.json", "--binary", arm]);
    assert!(
        text(&output.stderr).contains("README.md` cannot be read") && !made.path("dist").exists(),
        "{output:?}"
    );
    fs::write(made.path("README.md"), readme).expect("a file");
    // a folder that is something else's stays
    fs::create_dir_all(made.path("dist/npm/refused")).expect("a folder");
    fs::write(made.path("dist/npm/refused/mine"), "kept").expect("a file");
    let output = made.mcp_dev(&["package", "npm", "--schema", "schema.json", "--binary", arm]);
    assert!(
        text(&output.stderr).contains("is left alone") && made.path("dist/npm/refused/mine").exists(),
        "{output:?}"
    );
    assert!(!made.path("dist/npm/refused-linux-arm64").exists(), "nothing was written");
    let manifest = fs::read_to_string(made.path("Cargo.toml")).expect("a manifest");
    let with_icon = manifest.replace("[package.metadata.mcp]", "[package.metadata.mcp]\nicon = \"icon.png\"");
    fs::write(made.path("Cargo.toml"), with_icon).expect("a manifest");
    for (icon, message) in [
        (&b"GIF89a"[..], "is not a PNG"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x02\0\0\0", "is not a PNG"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x02\0\0\0\x01\0", "is 512 by 256, and an icon is 512 by 512"),
    ] {
        fs::write(made.path("icon.png"), icon).expect("a file");
        let output = made.mcp_dev(&["package", "mcpb", "--schema", "schema.json", "--binary", arm]);
        assert!(text(&output.stderr).contains(message), "{output:?}");
        assert!(!made.path("dist/refused-0.1.0-linux-arm64.mcpb").exists());
    }
    fs::write(made.path("Cargo.toml"), manifest.replace("author = \"Ada Lovelace\"", ""))
        .expect("a manifest");
    let output = made.mcp_dev(&["package", "mcpb", "--schema", "schema.json", "--binary", arm]);
    assert!(text(&output.stderr).contains("has no author\nadd `author"), "{output:?}");
    // all that is missing, at once
    fs::remove_dir_all(made.path("dist")).expect("a folder");
    let bare =
        manifest.replace("author = \"Ada Lovelace\"", "icon = \"none.png\"").replace("description = ", "# ");
    fs::write(made.path("Cargo.toml"), bare).expect("a manifest");
    fs::remove_file(made.path("README.md")).expect("a file");
    let wrong = "x86_64-unknown-linux-gnu=linux-arm64";
    for (kind, own) in [("mcpb", "none.png` cannot be read"), ("npm", "README.md` cannot be read")] {
        let line = [
            "package",
            kind,
            "--schema",
            "none.json",
            "--binary",
            wrong,
            "--binary",
            "x86_64-apple-darwin=none",
        ];
        let output = made.mcp_dev(&line);
        let found = text(&output.stderr);
        for part in [
            "6 things are missing or wrong:\n",
            "has no author\n",
            "has no description\n",
            "is for linux on arm64",
            "`none` cannot be read",
            "`none.json` cannot be read",
            own,
        ] {
            assert!(found.contains(part), "{part}: {found}");
        }
    }
    assert!(!made.path("dist/refused-0.1.0-linux-arm64.mcpb").exists());
}

#[test]
fn a_crate_is_made_whole_or_not_at_all() {
    let folder = Folder::new();
    fs::create_dir_all(folder.0.join("taken/src")).expect("a folder");
    fs::create_dir_all(folder.0.join("nested/empty")).expect("a folder");
    fs::write(folder.0.join("file"), "").expect("a file");
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
        (&["new", "file/x"], 1, ""),
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
    assert_eq!(left, ["file", "nested", "taken"]);
    // an empty folder is used, also inside of others
    assert!(folder.run(&["new", "nested/empty"]).status.success());
    let manifest = fs::read_to_string(folder.0.join("nested/empty/Cargo.toml")).expect("a manifest");
    assert!(
        manifest.contains("mcp-runtime = { version = \"0.1\", features = [")
            && manifest.contains("# license = ")
            && !manifest.contains("{{"),
        "{manifest}"
    );
    // a value with the marks of a template stays as it is
    assert!(folder.run(&["new", "marks", "--author", "{{source}} {{name}}"]).status.success());
    let manifest = fs::read_to_string(folder.0.join("marks/Cargo.toml")).expect("a manifest");
    assert!(manifest.contains("\nauthor = \"{{source}} {{name}}\"\n"), "{manifest}");
    fs::write(folder.0.join("Cargo.toml"), "[workspace]\nmembers = []\n").expect("a file");
    let output = folder.run(&["new", "member"]);
    assert!(text(&output.stderr).contains("add `member` to its members"), "{output:?}");
}
