//! The command `install` in a home of its own: real files of each client before and after, files that cannot be changed,
//! and that no secret is shown.

use std::{
    collections::HashSet,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::prelude::*;

/// A secret that must be nowhere.
const PLANTED: &str = "planted-5ecret";

/// The clients whose files are written: the file in the home directory, and its ending.
const WRITTEN: [(&str, &str, &str); 7] = [
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", "json"),
    ("claude-code", ".claude.json", "json"),
    ("gemini", ".gemini/settings.json", "json"),
    ("vscode", ".config/Code/User/mcp.json", "json"),
    ("cursor", ".cursor/mcp.json", "json"),
    ("codex", ".codex/config.toml", "toml"),
    ("zed", ".config/zed/settings.json", "json"),
];

/// The clients that have a file in projects: the file, and how an entry in it refers to a secret variable.
const OF_PROJECTS: [(&str, &str, &str); 6] = [
    ("claude-code", ".mcp.json", "\"${VARIABLE:-}\""),
    ("vscode", ".vscode/mcp.json", "\"password\": true"),
    ("cursor", ".cursor/mcp.json", "\"${env:VARIABLE}\""),
    ("codex", ".codex/config.toml", "\"VARIABLE\""),
    ("zed", ".zed/settings.json", ""),
    ("gemini", ".gemini/settings.json", "\"${VARIABLE}\""),
];

/// A file with another server of the name, whose environment has this value.
fn with_another(client: &str, value: &str) -> String {
    let table = match client {
        "codex" => {
            return format!("[mcp_servers.probe]\ncommand = \"other\"\nenv = {{ OTHER = \"{value}\" }}\n");
        }
        "zed" => "context_servers",
        "vscode" => "servers",
        _ => "mcpServers",
    };
    json!({ table: { "probe": { "command": "other", "env": { "OTHER": value } } } }).to_string()
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_settings");

struct Home(TestFolder);

impl Home {
    fn new() -> Self {
        let home = TestFolder::default();
        fs::create_dir(home.join("project")).expect("a folder");
        Self(home)
    }

    fn command(&self, program: &str, line: &str) -> Command {
        let mut command = Command::new(program);
        command.args(line.split_whitespace()).stdin(Stdio::null()).current_dir(self.0.join("project"));
        command.env_clear().env("HOME", &*self.0).env("PROBE_TIMEOUT", "9").env("PROBE_TOKEN", PLANTED);
        command.env("PATH", self.0.join("bin"));
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(PROGRAM, &format!("install {line}")).output().expect("the program")
    }

    /// The stdout of a command that succeeds.
    fn stdout(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// The stderr of a command that fails.
    fn failure(&self, line: &str) -> String {
        let output = self.run(line);
        assert_eq!(output.status.code(), Some(1), "{line}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).expect("text")
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    fn write(&self, path: &str, text: &str) {
        self.0.write(path, text);
    }

    /// Who may do what with a file.
    #[cfg(unix)]
    fn mode(&self, path: &str) -> u32 {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(self.path(path)).expect("a file").permissions().mode() & 0o777
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect("a file")
    }

    /// Every file, by its path in the home directory.
    fn files(&self) -> Vec<(String, String)> {
        fn collect(folder: &Path, home: &Path, found: &mut Vec<(String, String)>) {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    collect(&path, home, found);
                } else {
                    let inside = path.strip_prefix(home).expect("inside").display().to_string();
                    found.push((
                        inside,
                        String::from_utf8_lossy(&fs::read(&path).expect("a file")).into_owned(),
                    ));
                }
            }
        }
        let mut found = Vec::new();
        collect(&self.0, &self.0, &mut found);
        found.sort();
        found
    }
}

/// A golden file of a client; `UPDATE_GOLDENS=1` writes those after an operation.
fn golden(name: &str, found: Option<&str>) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("integration/install").join(name);
    if let Some(found) = found.filter(|_| std::env::var_os("UPDATE_GOLDENS").is_some()) {
        fs::write(&path, found.replace(PROGRAM, "{program}")).expect("a golden");
    }
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.replace("{program}", PROGRAM)
}

fn assert_golden(name: &str, found: &str) {
    assert_eq!(found, golden(name, Some(found)), "{name}");
}

#[test]
fn the_file_of_each_client_keeps_its_comments_order_and_formatting() {
    // short ones, and ones as their users have them
    for ((client, path, ending), set) in WRITTEN.into_iter().flat_map(|one| [(one, ""), (one, ".long")]) {
        let is_short = set.is_empty();
        let home = Home::new();
        let before = golden(&format!("{client}{set}.before.{ending}"), None);
        home.write(path, &before);
        if is_short {
            let would = home.stdout(&format!("{client} --dry-run"));
            assert!(would.contains("would add to") && would.contains("probe"), "{would}");
            assert_eq!(
                home.files(),
                [(path.to_owned(), before.clone())],
                "{client}: a dry run writes nothing"
            );
        }

        let report = home.stdout(client);
        assert!(report.contains(&format!("added `probe` to `~/{path}`")), "{report}");
        let after = home.read(path);
        assert_golden(&format!("{client}{set}.after.{ending}"), &after);
        let copy = format!("{path}.before-mcp");
        assert_eq!(home.read(&copy), before);

        // twice is once
        if is_short {
            assert!(home.stdout(client).contains("is in") && home.read(path) == after, "{client}");
        }
        // and the copy is that of the first time
        home.stdout(&format!("{client} --name second"));
        assert_eq!(home.read(&copy), before);
        assert!(home.read(path).contains("second"));
        home.stdout(&format!("{client} --name second --remove"));
        assert_eq!(home.read(path), after, "{client}: removing takes back what adding did");

        let report = home.stdout(&format!("{client} --remove"));
        assert!(report.contains("removed `probe`"), "{report}");
        assert_golden(&format!("{client}{set}.removed.{ending}"), &home.read(path));
        if is_short {
            assert!(home.stdout(&format!("{client} --remove")).contains("nothing to remove"));
        }
    }
}

#[test]
fn the_file_of_a_project_keeps_its_comments_order_and_formatting() {
    for (client, path) in [("claude-code", ".mcp.json"), ("gemini", ".gemini/settings.json")] {
        let home = Home::new();
        let path = format!("project/{path}");
        home.stdout(&format!("{client} --project"));
        assert_golden(&format!("{client}.project.new.json"), &home.read(&path));
        let before = golden(&format!("{client}.long.before.json"), None);
        home.write(&path, &before);
        home.stdout(&format!("{client} --project"));
        let after = home.read(&path);
        assert_golden(&format!("{client}.project.after.json"), &after);
        assert!(home.stdout(&format!("{client} --project")).contains("already") && home.read(&path) == after);
        home.stdout(&format!("{client} --project --remove"));
        assert_golden(&format!("{client}.project.removed.json"), &home.read(&path));
    }
}

#[test]
fn a_secret_that_is_given_as_a_flag_is_in_no_file_of_a_project_and_in_no_output() {
    for arguments in [
        format!("-- --token {PLANTED}"),
        format!("-- stdio --token={PLANTED}"),
        format!("-- --proxy-password {PLANTED}"),
    ] {
        for (client, path, reference) in OF_PROJECTS {
            let variable =
                if arguments.contains("password") { "PROBE_PROXY_PASSWORD" } else { "PROBE_TOKEN" };
            let home = Home::new();
            let report = home.stdout(&format!("{client} --project {arguments}"));
            let file = home.read(&format!("project/{path}"));
            assert!(!file.contains(PLANTED) && !report.contains(PLANTED), "{client}: {file}{report}");
            assert!(file.contains(&reference.replace("VARIABLE", variable)), "{client}: {file}");
            assert!(report.contains(variable) && report.contains("is not written"), "{client}: {report}");
            let ways: &[&str] = match arguments.contains("stdio") {
                true => &["--print", "--dry-run", "--project --print", "--project --dry-run"],
                false => &["--print"],
            };
            for options in ways {
                let home = Home::new();
                let output = home.run(&format!("{client} {options} {arguments}"));
                let shown = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
                assert!(!shown.contains(PLANTED) && shown.contains(variable), "{client} {options}: {shown}");
                assert!(home.files().is_empty(), "{client} {options}");
            }
        }
        // a user's own file has it, as with `--env`
        let home = Home::new();
        let report = home.stdout(&format!("cursor {arguments}"));
        let file = home.read(".cursor/mcp.json");
        assert!(!report.contains(PLANTED) && file.matches(PLANTED).count() == 1, "{report}{file}");
        assert!(file.contains(&format!("\": \"{PLANTED}\"")) && !file.contains("--"), "{file}");
        assert!(home.stdout(&format!("cursor {arguments}")).contains("already"));
    }
    let home = Home::new();
    let line = format!("cursor --project -- --token {PLANTED} --token {PLANTED}");
    let text = home.failure(&line);
    assert!(text.contains("`--token` is given twice") && !text.contains(PLANTED), "{text}");
    assert!(home.files().is_empty());
}

#[test]
fn a_file_that_is_not_there_or_empty_becomes_a_new_one() {
    for (client, path, ending) in WRITTEN {
        for empty in [None, Some(""), Some("\n")] {
            let home = Home::new();
            if let Some(text) = empty {
                home.write(path, text);
            }
            home.stdout(client);
            let written = home.read(path);
            if empty.is_none() {
                assert_golden(&format!("{client}.new.{ending}"), &written);
                #[cfg(unix)]
                assert_eq!(home.mode(path), 0o600, "only its user may read it");
            }
            assert_eq!(written.trim(), golden(&format!("{client}.new.{ending}"), None).trim(), "{client}");
        }
    }
}

#[test]
fn a_url_is_written_in_the_words_of_each_client() {
    for (client, path, expected) in [
        (
            "vscode",
            ".config/Code/User/mcp.json",
            &["\"type\": \"http\"", "\"url\": \"https://example.com/mcp\""][..],
        ),
        ("cursor", ".cursor/mcp.json", &["\"url\": \"https://example.com/mcp\""]),
        ("codex", ".codex/config.toml", &["url = \"https://example.com/mcp\""]),
        ("zed", ".config/zed/settings.json", &["\"source\": \"custom\"", "\"type\": \"http\"", "\"url\""]),
    ] {
        let home = Home::new();
        let line = format!("{client} --http https://example.com/mcp");
        home.stdout(&line);
        let written = home.read(path);
        for part in expected {
            assert!(written.contains(part), "{client}: {written}");
        }
        assert!(!written.contains("command") && !written.contains("PROBE"), "{written}");
        assert!(home.stdout(&line).contains("already"));
    }
    let home = Home::new();
    let text = home.failure("claude-desktop --http https://example.com/mcp");
    assert!(text.contains("the file of Claude Desktop has no URLs"), "{text}");
    assert!(home.files().is_empty());
}

#[test]
fn another_server_of_the_name_stays_unless_it_is_replaced_by_force() {
    for (client, path, _) in WRITTEN {
        let other = with_another(client, "1");
        let home = Home::new();
        home.write(path, &other);
        for line in [
            client.to_owned(),
            format!("{client} --remove"),
            format!("{client} --http https://a.example/mcp"),
        ] {
            if client == "claude-desktop" && line.contains("--http") {
                continue;
            }
            let text = home.failure(&line);
            assert!(text.contains("another server is named `probe`") && text.contains("--force"), "{text}");
            assert_eq!(home.files(), [(path.to_owned(), other.clone())], "{line}");
        }
        home.stdout(&format!("{client} --name mine"));
        assert!(home.read(path).contains("\"other\""));
        home.stdout(&format!("{client} --force"));
        let replaced = home.read(path);
        assert!(!replaced.contains("OTHER") && !replaced.contains("\"other\""), "{replaced}");
    }
}

#[test]
fn a_file_that_cannot_be_read_as_what_it_should_be_is_left_alone() {
    let deep = "[".repeat(100_000);
    let mut first = HashSet::new();
    for (client, path, text, place) in [
        ("cursor", ".cursor/mcp.json", "{\n  \"mcpServers\": {\n    \"a\": }\n}\n", "(line 3, column 10)"),
        ("cursor", ".cursor/mcp.json", "{\"mcpServers\": {}", "(line 1, column"),
        ("cursor", ".cursor/mcp.json", "{\"mcpServers\": {}} x", "(line 1, column"),
        ("cursor", ".cursor/mcp.json", "[]", "it is not an object"),
        ("cursor", ".cursor/mcp.json", "{\"mcpServers\": []}", "`mcpServers` is not a table of servers"),
        (
            "cursor",
            ".cursor/mcp.json",
            "{\"mcpServers\": {}, \"mcpServers\": {}}",
            "`mcpServers` is in it twice",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "{\"mcpServers\": {\"probe\": {}, \"probe\": {}}}",
            "`probe` is in it twice",
        ),
        ("cursor", ".cursor/mcp.json", deep.as_str(), "(line 1, column"),
        (
            "zed",
            ".config/zed/settings.json",
            "// planted-5ecret\n{ \"a\": planted-5ecret }",
            "(line 2, column",
        ),
        ("codex", ".codex/config.toml", "model = \n", "(line 1, column"),
        ("codex", ".codex/config.toml", "a = 1\nkey = planted-5ecret\n", "(line 2, column"),
        ("codex", ".codex/config.toml", "mcp_servers = 1\n", "`mcp_servers` is not a table of servers"),
        ("codex", ".codex/config.toml", "[mcp_servers]\n[mcp_servers]\n", "(line 2, column"),
    ] {
        let home = Home::new();
        home.write(path, text);
        // all of them read the file in one way
        let ways = if first.insert(client) { 4 } else { 2 };
        for options in &["", "--remove", "--force", "--dry-run"][..ways] {
            let line = format!("{client} {options}");
            let said = home.failure(&line);
            assert!(
                said.contains(&format!("`~/{path}` is as it was")) && said.contains(place),
                "{text:.80}: {said}"
            );
            assert!(!said.contains(PLANTED), "{said}");
            assert_eq!(home.files(), [(path.to_owned(), text.to_owned())], "{line}");
        }
    }
    // not even text
    let home = Home::new();
    home.write(".cursor/mcp.json", "");
    fs::write(home.path(".cursor/mcp.json"), b"{\n\xff}").expect("a file");
    assert!(home.failure("cursor").contains("it is not UTF-8 (line 2, column 1)"));
    assert_eq!(fs::read(home.path(".cursor/mcp.json")).expect("a file"), b"{\n\xff}");
}

#[test]
fn line_ends_and_a_byte_order_mark_stay() {
    for (client, path, text) in [
        ("cursor", ".cursor/mcp.json", "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {}\r\n\t}\r\n}\r\n"),
        ("cursor", ".cursor/mcp.json", "{\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}"),
        ("codex", ".codex/config.toml", "\u{feff}# mine\nmodel = \"m\"\n"),
        (
            "codex",
            ".codex/config.toml",
            "\u{feff}# mine\r\nmodel = \"m\"\r\n\r\n[mcp_servers.a]\r\ncommand = \"a\" # its\r\nargs = [\r\n  \"x\",\r\n]\r\n\r\n[tui]\r\ntext = \"\"\"\r\na\r\n\"\"\"\r\n",
        ),
    ] {
        let home = Home::new();
        home.write(path, text);
        home.stdout(client);
        let written = home.read(path);
        assert!(
            written.starts_with('\u{feff}') == text.starts_with('\u{feff}') && written.contains("probe"),
            "{written:?}"
        );
        if text.contains('\r') {
            assert_eq!(written.matches('\n').count(), written.matches("\r\n").count(), "{written:?}");
            let entry = match client {
                "codex" => "\r\n[mcp_servers.probe]\r\ncommand",
                _ => "\r\n\t\t\"probe\": {\r\n\t\t\t\"command\"",
            };
            assert!(written.contains(entry), "{written:?}");
        }
        home.stdout(&format!("{client} --remove"));
        assert_eq!(home.read(path), text);
    }
}

#[cfg(unix)]
#[test]
fn links_and_read_only_files_stay_and_a_file_of_a_user_is_for_no_one_else() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let home = Home::new();
    // a link to a file in a folder for such files, and one that leads to nothing yet
    for (target, is_there) in [("dotfiles/one.json", true), ("dotfiles/two.json", false)] {
        let link = home.path(".cursor/mcp.json");
        fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
        let _result = fs::remove_file(&link);
        if is_there {
            home.write(target, "{}");
            fs::set_permissions(home.path(target), fs::Permissions::from_mode(0o640)).expect("a mode");
        }
        symlink(Path::new("..").join(target), &link).expect("a link");
        home.stdout("cursor");
        assert!(link.is_symlink() && home.read(target).contains("probe"));
        assert_eq!(home.mode(target), 0o600, "it may have secrets of servers");
    }
    // nor is the copy, which has what the file had
    assert_eq!(home.mode("dotfiles/one.json.before-mcp"), 0o600);
    symlink("b", home.path("a")).and_then(|()| symlink("a", home.path("b"))).expect("links in a circle");
    let _result = fs::remove_file(home.path(".cursor/mcp.json"));
    symlink("../a", home.path(".cursor/mcp.json")).expect("a link");
    assert!(home.failure("cursor").contains("too many links"));

    let home = Home::new();
    home.write(".cursor/mcp.json", "{}");
    fs::set_permissions(home.path(".cursor/mcp.json"), fs::Permissions::from_mode(0o444)).expect("a mode");
    assert!(home.failure("cursor").contains("it is read-only"));
    assert_eq!(home.files(), [(".cursor/mcp.json".to_owned(), "{}".to_owned())]);
}

/// The size of files is limited, so that writing fails, or the process is killed, in the middle.
#[cfg(unix)]
#[test]
fn a_full_disk_or_a_kill_leaves_the_old_file() {
    let large = format!("{{ \"mcpServers\": {{}}, \"x\": \"{}\" }}\n", "x".repeat(20_000));
    for (trap, is_killed) in [("trap '' XFSZ;", false), ("", true)] {
        for blocks in ["0", "1", "16"] {
            let home = Home::new();
            home.write(".cursor/mcp.json", &large);
            let script = format!("{trap} ulimit -f {blocks}; exec \"$0\" install cursor");
            let mut command = home.command("/bin/sh", "");
            let output = command.args(["-c", &script, PROGRAM]).output().expect("a shell");
            assert!(!output.status.success());
            assert_eq!(output.status.code().is_none(), is_killed, "{output:?}");
            assert_eq!(home.read(".cursor/mcp.json"), large);
            if !is_killed {
                let left = home.files();
                assert_eq!(left.len(), 1, "nothing else is left: {left:?}");
            }
            // and the next time it works
            home.stdout("cursor");
            assert!(home.read(".cursor/mcp.json").contains("probe"));
        }
    }
}

#[test]
fn installations_at_once_add_each_its_server() {
    for (client, path) in [("cursor", ".cursor/mcp.json"), ("codex", ".codex/config.toml")] {
        let home = Home::new();
        let names: Vec<String> = (1..=8).map(|number| format!("server-{number}-")).collect();
        let start = |name: &String| {
            let mut command = home.command(PROGRAM, &format!("install {client} --name {name}"));
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program")
        };
        let children: Vec<_> = names.iter().map(start).collect();
        for child in children {
            let output = child.wait_with_output().expect("its end");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let written = home.read(path);
        for name in &names {
            assert!(written.contains(name), "{name}: {written}");
        }
        let left: Vec<String> = home.files().into_iter().map(|(path, _)| path).collect();
        assert!(left.iter().all(|left| left.starts_with(path)) && left.len() <= 2, "{left:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_the_file_is_refused() {
    let home = Home::new();
    fs::create_dir_all(home.path(".cursor")).expect("a folder");
    let made = Command::new("mkfifo").arg(home.path(".cursor/mcp.json")).status().expect("mkfifo");
    assert!(made.success());
    let mut command = home.command(PROGRAM, "install cursor");
    let mut child = command.stderr(Stdio::piped()).spawn().expect("the program");
    let end = std::time::Instant::now() + PATIENCE;
    while child.try_wait().expect("a status").is_none() {
        if std::time::Instant::now() > end {
            child.kill().expect("to end it");
            panic!("it waits for the pipe");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().expect("its end");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && text.contains("is not a file"), "{text}");
}

#[test]
fn the_file_of_a_project_has_no_path_of_the_machine_and_no_value() {
    for (client, path, _) in OF_PROJECTS {
        let home = Home::new();
        let report = home.stdout(&format!("{client} --project"));
        let files = home.files();
        let [(file, text)] = &files[..] else { panic!("{files:?}") };
        assert_eq!(*file, format!("project/{path}"));
        let place = home.0.display().to_string();
        for absent in [PROGRAM, place.as_str(), "target", PLANTED, "PROBE_TIMEOUT"] {
            assert!(!text.contains(absent), "{client}: {absent} in {text}");
        }
        assert!(text.contains("settings"), "{text}");
        assert!(
            report.contains("in their `PATH`") && report.contains("`PROBE_TIMEOUT` is set here"),
            "{report}"
        );
        assert_eq!(client == "zed", report.contains("to do: `PROBE_TOKEN` (The token"), "{report}");
        #[cfg(unix)]
        assert_eq!(home.mode(file) & 0o400, 0o400);
    }
    let home = Home::new();
    for (line, part) in [
        ("claude-desktop --project", "Claude Desktop has no file in projects"),
        ("cursor --project --env A=planted-5ecret", "the file of a project is committed"),
        ("cursor --project -- --data=/srv/data", "is a path of this machine: `--data=/srv/data`"),
    ] {
        let text = home.failure(line);
        assert!(text.contains(part) && !text.contains(PLANTED), "{text}");
    }
    assert!(home.files().is_empty());
    // a path in the project is a path of everyone's
    let inside = home.path("project/data").display().to_string();
    home.stdout(&format!("cursor --project -- --data={inside}"));
    assert!(home.read("project/.cursor/mcp.json").contains("[\"--data=data\"]"));
}

#[test]
fn a_planted_secret_is_in_no_output_and_in_no_file_unless_it_is_given_for_it() {
    let clients = "claude-desktop claude-code vscode cursor codex zed gemini copilot windsurf antigravity goose opencode cline kiro lm-studio";
    for client in clients.split(' ') {
        let is_written = WRITTEN.iter().any(|(written, ..)| *written == client);
        // without a file there is nothing to do in other ways
        let (ways, given) = if is_written { (6, 3) } else { (3, 1) };
        for options in &["", "--print", "--project", "--dry-run", "--remove", "--force"][..ways] {
            let home = Home::new();
            let output = home.run(&format!("{client} {options}"));
            for text in [&output.stdout, &output.stderr] {
                let text = String::from_utf8_lossy(text);
                assert!(
                    !text.contains(PLANTED) && !text.contains("cGxhbnRlZC0"),
                    "{client} {options}: {text}"
                );
            }
            assert!(!home.files().iter().any(|(_, text)| text.contains(PLANTED)), "{client} {options}");
            if *options == "--print" {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                assert!(
                    output.status.success() && text.contains("probe") && home.files().is_empty(),
                    "{text}"
                );
            }
        }
        // one that is given is written, and not shown
        for options in &["", "--print", "--dry-run"][..given] {
            let home = Home::new();
            let line = format!("{client} {options} --env PROBE_TOKEN={PLANTED} --env OTHER_KEY={PLANTED}");
            let output = home.run(&line);
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains(PLANTED), "{line}: {text}");
            let is_in_a_file = home.files().iter().any(|(_, text)| text.contains(PLANTED));
            assert_eq!(is_in_a_file, options.is_empty() && is_written, "{line}");
        }
    }
}

/// The arguments of processes can be read by other users. Clients that are told by a command of theirs would be told a secret.
#[cfg(unix)]
#[test]
fn a_secret_is_in_no_argument_of_another_program() {
    use std::os::unix::fs::PermissionsExt as _;
    for (client, path, ending) in WRITTEN {
        let home = Home::new();
        for program in ["claude", "gemini", "code", "cursor", "codex", "zed"] {
            home.write(
                &format!("bin/{program}"),
                "#!/bin/sh\nprintf '%s\\n' \"$0 $@\" >> \"$HOME/called\"\n",
            );
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(home.path(&format!("bin/{program}")), mode).expect("a mode");
        }
        if ending == "json" {
            // kept values of the entry that is there, which may be secret
            home.write(path, &with_another(client, &format!("kept-{PLANTED}")));
            fs::set_permissions(home.path(path), fs::Permissions::from_mode(0o644)).expect("a mode");
        }
        let line = format!("{client} --force --env API_KEY={PLANTED} -- --token {PLANTED}");
        let report = home.stdout(&line);
        assert!(!report.contains(PLANTED) && home.read(path).contains(PLANTED), "{client}: {report}");
        assert!(!home.path("called").exists(), "{client}: {}", home.read("called"));
        for file in [path.to_owned(), format!("{path}.before-mcp")] {
            assert!(!home.path(&file).exists() || home.mode(&file) == 0o600, "{file}");
        }
        home.stdout(&format!("{client} --remove --force"));
        assert!(!home.path("called").exists(), "{client}: {}", home.read("called"));
    }
}

/// A cloned repository may have links that lead out of it.
#[cfg(unix)]
#[test]
fn the_file_of_a_project_is_inside_of_it() {
    use std::os::unix::fs::symlink;
    for (link, to) in [
        (".cursor", "../private"),
        (".cursor/mcp.json", "../../private/settings.json"),
        (".cursor/mcp.json", "../../private/new.json"),
    ] {
        let home = Home::new();
        home.write("private/settings.json", r#"{ "mcpServers": {}, "planted": 1 }"#);
        home.write("private/mcp.json", r#"{ "mcpServers": {}, "planted": 1 }"#);
        let before = home.files();
        let link = home.path(&format!("project/{link}"));
        fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
        symlink(to, &link).expect("a link");
        for options in ["", "--dry-run", "--remove", "--force"] {
            let text = home.failure(&format!("cursor --project {options}"));
            assert!(text.contains("it leads out of") || text.contains("leads nowhere"), "{text}");
        }
        fs::remove_file(&link).expect("the link stays a link");
        assert_eq!(home.files(), before);
    }
}

#[test]
fn without_a_client_those_of_the_machine_are_listed() {
    let home = Home::new();
    assert!(home.failure("").contains("no client is found on this machine"));
    home.write(".config/zed/settings.json", "{}");
    home.write(".codex/config.toml", "");
    let text = home.failure("");
    assert!(text.contains("codex") && text.contains("zed") && !text.contains("cursor"), "{text}");
    assert!(home.failure("cursr").contains("did you mean `cursor`?"));
    assert!(home.failure("claude").contains("`claude-code` and `claude-desktop`"));
    assert!(home.stdout("--help").contains("usage: settings install [CLIENT] [OPTIONS]"));
}

#[test]
fn flags_of_settings_come_before_and_paths_become_absolute() {
    let home = Home::new();
    let line = "--timeout 12 --database data.db --tags a,b install cursor --name other";
    let output = home.command(PROGRAM, line).output().expect("the program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let written = home.read(".cursor/mcp.json");
    let database = format!("\"PROBE_DATABASE\": \"{}\"", home.path("project/data.db").display());
    for part in ["\"PROBE_TIMEOUT\": \"12\"", &database, r#""PROBE_TAGS": "[\"a\",\"b\"]""#, "\"other\""] {
        assert!(written.contains(part), "{part}: {written}");
    }
    let text = home.failure("cursor --timeout 12");
    assert!(text.contains("unknown option `--timeout`") && text.contains("before `install`"), "{text}");
}

#[test]
fn an_invalid_setting_is_not_installed_and_a_missing_one_is() {
    let home = Home::new();
    let run = |line: &str| home.command(PROGRAM, line).output().expect("the program");
    for options in ["", "--print", "--dry-run", "--project"] {
        let output = run(&format!("--timeout 0 install vscode {options}"));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{options}: {text}");
        assert!(text.contains("- timeout: 0 is less than") && text.contains("(from `--timeout`)"), "{text}");
    }
    assert!(home.files().is_empty());
    let url = "--timeout 0 install vscode --http https://example.com/mcp";
    assert!(run(url).status.success(), "the settings are those of another machine");
    let remove = "--timeout 0 install vscode --http https://example.com/mcp --remove";
    assert!(run(remove).status.success());
    let mut without = home.command(PROGRAM, "install cursor");
    assert!(without.env_remove("PROBE_TOKEN").output().expect("the program").status.success());
}

#[test]
fn the_file_of_settings_is_found_from_the_folder_of_the_client() {
    let home = Home::new();
    home.write("other.toml", "");
    let output = home.command(PROGRAM, "--config ~/other.toml install cursor").output().expect("the program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = home.path("other.toml").display().to_string();
    assert!(home.read(".cursor/mcp.json").contains(&format!("\"PROBE_CONFIG\": \"{path}\"")));
}

/// What is written starts: the client's part is played here.
#[test]
fn an_entry_that_was_written_starts_the_server() {
    let home = Home::new();
    home.stdout("cursor");
    let config: Value = serde_json::from_str(&home.read(".cursor/mcp.json")).expect("JSON");
    let entry = &config["mcpServers"]["probe"];
    let mut command = Command::new(entry["command"].as_str().expect("a command"));
    command.env_clear().env("HOME", &*home.0).env("PROBE_TOKEN", PLANTED);
    for (name, value) in entry["env"].as_object().expect("variables") {
        if name != "PROBE_TOKEN" {
            command.env(name, value.as_str().expect("text"));
        }
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server");
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"show","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    writeln!(child.stdin.take().expect("stdin"), "{call}").expect("to write");
    let output = child.wait_with_output().expect("its end");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("timeout: 9,"), "{text}");
}
