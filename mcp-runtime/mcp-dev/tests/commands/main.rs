//! The program against clients' files, and what it makes: what is printed, where, and with which exit code. `tests/scripts` has
//! it with servers.

// of the program, for a test that watches the folder
#[path = "../../src/folder.rs"]
mod folder;
#[path = "../home/mod.rs"]
mod home;
mod product;

use std::{
    fs,
    process::{Command, Stdio},
    sync::atomic::Ordering,
};

use serde_json::{Value, json};

use home::Folder;

#[test]
fn a_server_that_is_not_there_exits_with_1_and_mistakes_of_the_arguments_with_2() {
    let folder = Folder::new();
    for (arguments, code, message) in [
        (&["read", "note://1", "--", "no-such-program"][..], 1, "no-such-program"),
        (&["list", "--http", "http://127.0.0.1:9/mcp"], 1, "error: "),
        (&["list"], 2, "a server is missing"),
        (&["list", "--http", "ftp://planted"], 2, "`--http` needs a URL"),
        (&["list", "--http", "http://a", "--", "b"], 2, "are two servers"),
        (&["list", "--env", "=planted", "--", "b"], 2, "`--env` needs a name and a value"),
        (&["list", "--header", "planted", "--", "b"], 2, "`--header` needs a name and a value"),
        (&["lsit"], 2, "list"),
        (&["--", "http://127.0.0.1:9/planted"], 2, "`mcp-dev list`, `call` and others take a URL"),
        (&["dev", "--http", "3000"], 2, "unexpected argument '--http'"),
        (&["install", "cursor"], 2, "a server is missing"),
        (&["install", "cursor", "--", "npx", "x"], 2, "a name is missing"),
    ] {
        let output = folder.run(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(message) && !text.contains("planted"), "{arguments:?}: {text}");
    }
}

#[test]
fn any_server_is_added_to_a_client_and_removed() {
    let folder = Folder::new();
    let path = folder.0.join(".cursor/mcp.json");
    let line = ["install", "cursor", "--name", "files", "--env", "LEVEL=1", "--", "npx", "-y", "a-server"];
    let output = folder.run(&line);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let written: Value = serde_json::from_str(&fs::read_to_string(&path).expect("a file")).expect("JSON");
    let entry = serde_json::json!({ "command": "npx", "args": ["-y", "a-server"], "env": { "LEVEL": "1" } });
    assert_eq!(written["mcpServers"]["files"], entry);
    assert!(String::from_utf8_lossy(&folder.run(&line).stdout).contains("already"));
    assert!(folder.run(&["install", "cursor", "--name", "files", "--remove"]).status.success());
    assert!(!fs::read_to_string(&path).expect("a file").contains("files"));
    let help = folder.run(&["install", "--help"]);
    assert!(
        String::from_utf8_lossy(&help.stdout)
            .contains("usage: mcp-dev install [CLIENT] [OPTIONS] [-- COMMAND]")
    );
}

#[test]
fn the_help_shows_the_command_that_is_run_without_a_name() {
    let folder = Folder::new();
    let help = |line: &[&str]| String::from_utf8(folder.run(line).stdout).expect("text");
    let usage = "Usage: mcp-dev [OPTIONS] [-- COMMAND..]\n       mcp-dev <COMMAND>\n";
    let own = help(&["--help"]);
    assert!(own.contains(usage) && own.contains("`mcp-dev dev --help` has its options"), "{own}");
    let dev = help(&["dev", "--help"]);
    assert!(dev.contains("Usage: mcp-dev [dev] [OPTIONS] [-- COMMAND..]\n"), "{dev}");
}

#[test]
fn in_the_folder_of_a_crate_a_missing_server_is_named() {
    let folder = Folder::new();
    fs::write(folder.0.join("Cargo.lock"), "").expect("a file");
    let member = folder.0.join("crates/shop");
    fs::create_dir_all(&member).expect("a folder");
    fs::write(member.join("Cargo.toml"), "[package]\nname = \"shop\"\n").expect("a file");
    for command in ["list", "doctor", "lock"] {
        let mut line = Command::new(env!("CARGO_BIN_EXE_mcp-dev"));
        let output =
            line.arg(command).current_dir(&member).stdin(Stdio::null()).output().expect("the program");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            text.contains("a server is missing") && text.contains("`-- ../../target/debug/shop`"),
            "{text}"
        );
    }
}

#[test]
fn a_folder_is_there_at_every_moment_while_it_is_replaced() {
    let parent = Folder::new();
    let folder = parent.0.join("package");
    let write = |text: &str| {
        folder::write(&folder, [("bin/launch.js", text.into(), true)]).expect("a folder");
    };
    write("0");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|threads| {
        let watcher = threads.spawn(|| {
            let (mut looks, mut gaps) = (0_u64, 0_u64);
            while !is_over.load(Ordering::Relaxed) || looks == 0 {
                looks += 1;
                gaps += u64::from(!folder.is_dir());
            }
            gaps
        });
        for round in 1..=300 {
            write(&round.to_string());
        }
        is_over.store(true, Ordering::Relaxed);
        if cfg!(any(target_os = "linux", target_vendor = "apple")) {
            assert_eq!(watcher.join().expect("the watcher"), 0, "moments without a folder");
        }
    });
    assert_eq!(fs::read_to_string(folder.join("bin/launch.js")).expect("a file"), "300");
    let left: Vec<_> =
        fs::read_dir(&parent.0).expect("a folder").flatten().map(|one| one.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".package")), "{left:?}");
}

#[test]
fn install_in_a_crate_registers_the_loop_unless_a_server_is_named() {
    let folder = Folder::new();
    fs::write(folder.0.join("Cargo.toml"), "[package]\nname = \"notes\"\n").expect("a file");
    let entry = |arguments: &[&str], file: &str| -> Value {
        let output = folder.run(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = fs::read_to_string(folder.0.join(file)).expect("a file");
        serde_json::from_str::<Value>(&text).expect("JSON")["mcpServers"].clone()
    };
    let own = entry(&["install", "cursor"], ".cursor/mcp.json");
    let place = folder.0.to_str().expect("a path");
    assert_eq!(own["notes"]["args"], json!(["dev", "--dir", place]));
    assert_eq!(own["notes"]["command"], env!("CARGO_BIN_EXE_mcp-dev"));
    let named = entry(&["install", "cursor", "--name", "other", "--", "npx", "a-server"], ".cursor/mcp.json");
    assert_eq!(named["other"]["args"], json!(["a-server"]));
    // and it is removed as it was added, by its name or without; the server's own entry of that name is not
    let left = entry(&["install", "cursor", "--remove"], ".cursor/mcp.json");
    assert!(left.get("notes").is_none() && left.get("other").is_some(), "{left}");
    let left = entry(&["install", "cursor", "--remove", "--name", "other"], ".cursor/mcp.json");
    assert!(left.get("other").is_none(), "{left}");
    entry(&["install", "cursor", "--name", "notes", "--", "notes"], ".cursor/mcp.json");
    let refused = folder.run(&["install", "cursor", "--remove"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && text.contains("another server is named `notes`"), "{text}");
}

/// Programs in the place of the clients' own, which write down that they are called.
#[cfg(unix)]
#[test]
fn install_registers_the_loop_in_the_file_of_a_client_that_has_a_command() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    fs::write(folder.0.join("Cargo.toml"), "[package]\nname = \"notes\"\n").expect("a file");
    let program = folder.0.join("bin/claude");
    fs::create_dir(folder.0.join("bin")).expect("a folder");
    fs::write(&program, "#!/bin/sh\nprintf '%s\\n' \"$@\" >> \"$HOME/called\"\n").expect("a file");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    let run = |line: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-dev"));
        command.args(line).current_dir(&folder.0).env("HOME", &folder.0);
        command.env("PATH", format!("{}:/usr/bin:/bin", folder.0.join("bin").display()));
        command.env_remove("CLAUDE_CONFIG_DIR").output().expect("the program")
    };
    let state = || -> Value {
        let text = fs::read_to_string(folder.0.join(".claude.json")).expect("a file");
        serde_json::from_str(&text).expect("JSON")
    };
    fs::write(folder.0.join(".claude.json"), "{\n  \"numStartups\": 7\n}\n").expect("a file");
    let output = run(&["install", "claude-code"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("added `notes` to `~/.claude.json`"), "{output:?}");
    let place = folder.0.to_str().expect("a path");
    let entry = json!({ "command": env!("CARGO_BIN_EXE_mcp-dev"), "args": ["dev", "--dir", place] });
    assert_eq!(state(), json!({ "numStartups": 7, "mcpServers": { "notes": entry } }));
    assert!(String::from_utf8_lossy(&run(&["install", "claude-code"]).stdout).contains("already"));
    assert!(run(&["install", "claude-code", "--remove"]).status.success());
    assert!(state()["mcpServers"].get("notes").is_none());
    assert!(!folder.0.join("called").exists(), "the client's own command was run");
}

/// A cloned repository whose files are links to those of its user.
#[cfg(unix)]
#[test]
fn files_of_a_repository_that_lead_out_of_it_are_neither_read_nor_written() {
    use std::os::unix::fs::symlink;
    let home = Folder::new();
    let repository = home.0.join("repository");
    let crate_files = ["Cargo.toml", "src/main.rs", "schema.json"];
    fs::create_dir_all(repository.join("src")).expect("a folder");
    fs::create_dir(home.0.join("private")).expect("a folder");
    let manifest = "[package]\nname = \"notes\"\nversion = \"0.1.0\"\nedition = \"2024\"\ndescription = \"Notes\"\n\
                    README[package.metadata.mcp]\nname = \"io.github.ada/notes\"\nauthor = \"Ada\"\nICON[workspace]\n";
    let with_manifest = |readme: &str, icon: &str| {
        let text = manifest.replace("README", readme).replace("ICON", icon);
        fs::write(repository.join("Cargo.toml"), text).expect("a file");
    };
    with_manifest("", "remotes = [\"https://example.com/mcp\"]\n");
    fs::write(repository.join("src/main.rs"), "fn main() {}\n").expect("a file");
    fs::write(repository.join("schema.json"), r#"{ "server": { "name": "notes" } }"#).expect("a file");
    let planted = "{\"format\": 1, \"planted\": 1}";
    fs::write(home.0.join("private/key"), planted).expect("a file");
    let run = |line: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-dev"));
        command.args(line).stdin(Stdio::null()).current_dir(&repository);
        let output = command.env("HOME", &home.0).output().expect("the program");
        let text = String::from_utf8_lossy(&[&*output.stdout, &output.stderr].concat()).into_owned();
        (output.status.code(), text)
    };
    let server_json = ["package", "server-json", "--schema", "schema.json"];
    let npm = ["package", "npm", "--schema", "schema.json", "--binary", "x86_64-pc-windows-msvc=windows.exe"];
    let mcpb =
        ["package", "mcpb", "--schema", "schema.json", "--binary", "x86_64-pc-windows-msvc=windows.exe"];
    let mut windows = b"MZ".to_vec();
    windows.resize(0x3c, 0);
    windows.extend_from_slice(&[0x40, 0, 0, 0]);
    windows.extend_from_slice(b"PE\0\0\x64\x86");
    fs::write(repository.join("windows.exe"), windows).expect("a file");
    let install = ["install", "cursor", "--project", "--name", "notes", "--", "npx", "notes"];
    let log = ["dev", "--no-page", "--log", "dev.log", "--", "true"];
    for (link, to, line) in [
        ("server.json", "../private/key", &server_json[..]),
        ("server.json", "../private/new", &server_json),
        ("schema.json", "../private/key", &server_json),
        ("dist", "../private", &mcpb),
        ("dist", "../private", &npm),
        ("dist", "../private/new", &npm),
        (".cursor", "../private", &install),
        (".cursor/mcp.json", "../../private/key", &install),
        ("made", "../private/new", &["new", "made"]),
        ("sub", "../private", &["new", "sub/made"]),
        ("dev.log", "../private/key", &log),
    ] {
        let link = repository.join(link);
        let _result = fs::create_dir_all(link.parent().expect("a folder"));
        let saved = fs::read(&link).ok();
        let _result = fs::remove_file(&link);
        symlink(to, &link).expect("a link");
        let (code, text) = run(line);
        assert_eq!(code, Some(1), "{line:?}: {text}");
        assert!(text.contains("it leads out of") || text.contains("leads nowhere"), "{line:?}: {text}");
        assert!(!text.contains("planted"), "{line:?}: {text}");
        fs::remove_file(&link).expect("the link stays a link");
        if let Some(saved) = saved {
            fs::write(&link, saved).expect("a file");
        }
    }
    // what the manifest names is in the project, also in words
    for (readme, icon) in [
        ("readme = \"../private/key\"\n", ""),
        ("readme = \"link\"\n", ""),
        ("", "icon = \"../private/key\"\n"),
        ("", "icon = \"link\"\n"),
    ] {
        let _result = fs::remove_file(repository.join("link"));
        symlink("../private/key", repository.join("link")).expect("a link");
        with_manifest(readme, icon);
        for line in [&npm, &mcpb] {
            let (code, text) = run(line);
            assert!(code == Some(1) && text.contains("it leads out of"), "{line:?}: {text}");
        }
    }
    let left: Vec<_> = fs::read_dir(home.0.join("private")).expect("a folder").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(fs::read_to_string(home.0.join("private/key")).expect("a file"), planted);
    for file in crate_files {
        assert!(repository.join(file).is_file(), "{file}");
    }
}
