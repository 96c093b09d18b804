//! Tests that depend on the system or on answers: the places of files, secrets that are asked for, commands of clients. The
//! tests of whole programs are in the workspace's `tests`.

use std::fs;

use serde_json::{Map, Value, json};

use super::{
    document::{Change, Document, Format},
    surroundings::Platform,
    write::{Replaced, TextFile},
    *,
};

const PLANTED: &str = "planted-5ecret";

/// A machine in its own folder.
struct Machine(PathBuf);

impl Machine {
    fn new(name: &str) -> Self {
        let home = std::env::temp_dir().join(format!("mcp-install-{}-{name}", std::process::id()));
        let _result = fs::remove_dir_all(&home);
        fs::create_dir_all(home.join("project")).expect("a folder");
        Self(home)
    }

    fn around(&self, platform: Platform, variables: &[(&str, &str)]) -> Surroundings {
        Surroundings {
            platform,
            home: self.0.clone(),
            variables: variables.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect(),
            folder: self.0.join("project"),
        }
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.0.join(path)).expect("a file")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _result = fs::remove_dir_all(&self.0);
    }
}

pub(super) fn server() -> ToInstall {
    let setting = |variable: &str, given: Option<&str>, is_secret| SettingToInstall {
        variable: variable.to_owned(),
        given: given.map(str::to_owned),
        description: "What it is for".to_owned(),
        is_secret,
        is_required: is_secret,
        is_used: true,
        flag: variable.to_lowercase().replace("ledger_", ""),
    };
    ToInstall {
        program: "ledger".to_owned(),
        name: "ledger".to_owned(),
        command: Some(("/opt/ledger".to_owned(), Vec::new())),
        is_own: true,
        settings: vec![
            setting("LEDGER_TIMEOUT", Some("9s"), false),
            setting("LEDGER_KEY", None, true),
            setting("LEDGER_BASE", None, false),
        ],
    }
}

/// A report, and the texts of all questions.
type Installed = (std::result::Result<String, String>, Vec<String>);

fn install_with(around: &Surroundings, line: &str, answer: Option<&str>) -> Installed {
    install_of(&server(), around, line, answer)
}

/// Installs a server of another program.
fn install_foreign(machine: &Machine, line: &str, command: &[&str]) -> String {
    let (first, rest) = command.split_first().expect("a program");
    let rest = rest.iter().map(|&argument| argument.to_owned()).collect();
    let command = Some(((*first).to_owned(), rest));
    let server =
        ToInstall { name: "other".to_owned(), command, is_own: false, settings: Vec::new(), ..server() };
    let path = machine.0.join("bin");
    let around = machine.around(Platform::Linux, &[("PATH", path.to_str().expect("UTF-8"))]);
    install_of(&server, &around, line, None).0.expect("a report")
}

fn install_of(server: &ToInstall, around: &Surroundings, line: &str, answer: Option<&str>) -> Installed {
    let options = Options::parse(line.split_whitespace().map(str::to_owned)).expect("options");
    let client = Client::named(options.client.as_deref().expect("a client")).expect("a client");
    let mut asked = Vec::new();
    let mut ask = |question: &Question<'_>| {
        asked.push(format!("{} {}", question.text, question.is_secret));
        answer.map(str::to_owned)
    };
    let job = Job { client, server, options: &options, around };
    let report = job.run(&mut Questions::new(&mut ask));
    (report.map_err(|problem| problem.to_string()), asked)
}

#[test]
fn the_file_of_each_client_is_where_its_system_has_it() {
    let machine = Machine::new("places");
    let [linux, mac, windows] = [Platform::Linux, Platform::Mac, Platform::Windows];
    let support = "Library/Application Support";
    let table = [
        ("claude-desktop", linux, ".config/Claude/claude_desktop_config.json".to_owned()),
        ("claude-desktop", mac, format!("{support}/Claude/claude_desktop_config.json")),
        ("claude-desktop", windows, "AppData/Roaming/Claude/claude_desktop_config.json".to_owned()),
        ("claude-code", linux, ".claude.json".to_owned()),
        ("vscode", linux, ".config/Code/User/mcp.json".to_owned()),
        ("vscode", mac, format!("{support}/Code/User/mcp.json")),
        ("vscode", windows, "AppData/Roaming/Code/User/mcp.json".to_owned()),
        ("cursor", linux, ".cursor/mcp.json".to_owned()),
        ("cursor", windows, ".cursor/mcp.json".to_owned()),
        ("codex", mac, ".codex/config.toml".to_owned()),
        ("zed", linux, ".config/zed/settings.json".to_owned()),
        ("zed", mac, ".config/zed/settings.json".to_owned()),
        ("zed", windows, "AppData/Roaming/Zed/settings.json".to_owned()),
        ("gemini", linux, ".gemini/settings.json".to_owned()),
        ("goose", windows, "AppData/Roaming/Block/goose/config/config.yaml".to_owned()),
    ];
    for (id, platform, path) in table {
        let files = Client::named(id).expect("a client").user_files(&machine.around(platform, &[]));
        assert_eq!(files, [machine.0.join(path)], "{id} {platform:?}");
    }
    // the file that a variable names
    let named = machine.0.join("named");
    let named = named.to_str().expect("UTF-8");
    for (id, platform, variable, path) in [
        ("vscode", linux, "XDG_CONFIG_HOME", "Code/User/mcp.json"),
        ("vscode", windows, "APPDATA", "Code/User/mcp.json"),
        ("codex", linux, "CODEX_HOME", "config.toml"),
        ("claude-code", linux, "CLAUDE_CONFIG_DIR", ".claude.json"),
    ] {
        let around = machine.around(platform, &[(variable, named)]);
        let files = Client::named(id).expect("a client").user_files(&around);
        assert_eq!(files, [Path::new(named).join(path)], "{id}");
    }
    // a file that exists is the one
    machine.file("Library/Application Support/Zed/settings.json", "{}");
    let files = Client::named("zed").expect("a client").user_files(&machine.around(mac, &[]));
    assert_eq!(files, [machine.0.join("Library/Application Support/Zed/settings.json")]);
}

#[test]
fn claude_code_loads_tools_at_once_on_request_and_keeps_what_its_user_has_written() {
    let machine = Machine::new("always-load");
    let install = |line: &str| install_with(&machine.around(Platform::Linux, &[]), line, None).0;
    let loads = || {
        let file: Value = serde_json::from_str(&machine.read(".claude.json")).expect("JSON");
        file["mcpServers"]["ledger"]["alwaysLoad"].clone()
    };
    let shown = install("claude-code --always-load --dry-run").expect("a report");
    assert!(shown.contains("would add") && shown.contains("\"alwaysLoad\": true"), "{shown}");
    install("claude-code").expect("a report");
    assert_eq!(loads(), Value::Null);
    install("claude-code --always-load").expect("a report");
    assert_eq!(loads(), true);
    let again = install("claude-code").expect("a report");
    assert!(again.contains("already") && loads() == true, "{again}");
    let error = install("cursor --always-load").expect_err("another client");
    assert!(error.contains("`--always-load` is for `claude-code`"), "{error}");
}

#[test]
fn claude_desktop_as_a_package_of_windows_gets_the_entry_in_its_own_folder() {
    let machine = Machine::new("msix");
    let packaged = "AppData/Local/Packages/Claude_pzs8/LocalCache/Roaming/Claude/claude_desktop_config.json";
    fs::create_dir_all(machine.0.join("AppData/Local/Packages/Claude_pzs8")).expect("a folder");
    let (report, _) = install_with(&machine.around(Platform::Windows, &[]), "claude-desktop", None);
    assert!(report.expect("a report").contains("Claude_pzs8"));
    assert!(machine.read(packaged).contains("\"ledger\""));
    assert!(!machine.0.join("AppData/Roaming/Claude").exists());
    // with both, in both
    machine.file("AppData/Roaming/Claude/claude_desktop_config.json", "{}");
    let (report, _) = install_with(&machine.around(Platform::Windows, &[]), "claude-desktop", None);
    let report = report.expect("a report");
    assert!(
        report.contains("already") && report.contains("added `ledger` to `~/AppData/Roaming"),
        "{report}"
    );
}

#[test]
fn one_of_two_files_that_cannot_be_changed_leaves_the_other_as_it_was() {
    let packaged = "AppData/Local/Packages/Claude_pzs8/LocalCache/Roaming/Claude/claude_desktop_config.json";
    let usual = "AppData/Roaming/Claude/claude_desktop_config.json";
    let other = r#"{ "mcpServers": { "ledger": { "command": "other" } } }"#;
    for (text, problem) in [("{", "it is not valid JSON"), (other, "another server is named `ledger`")] {
        let machine = Machine::new("two-files");
        machine.file(usual, "{}");
        machine.file(packaged, text);
        for line in ["claude-desktop", "claude-desktop --remove"] {
            let (report, _) = install_with(&machine.around(Platform::Windows, &[]), line, None);
            let report = report.expect_err("the second file");
            assert!(report.contains(problem) && report.contains("Claude_pzs8"), "{report}");
            assert_eq!((machine.read(usual).as_str(), machine.read(packaged).as_str()), ("{}", text));
        }
    }
    // and what only writing shows does not hide what was done
    let machine = Machine::new("two-files-late");
    machine.file(usual, "{}");
    machine.file("AppData/Local/Packages/Claude_pzs8/LocalCache", "a file where a folder belongs");
    let (report, _) = install_with(&machine.around(Platform::Windows, &[]), "claude-desktop", None);
    let report = report.expect_err("the second file");
    let is_changed = machine.read(usual).contains("ledger");
    assert_eq!(report.contains("added `ledger` to `~/AppData/Roaming"), is_changed, "{report}");
}

#[test]
fn clients_that_are_printed_have_what_they_read() {
    let machine = Machine::new("printed");
    let print = |line: &str| {
        let (report, _) = install_with(&machine.around(Platform::Linux, &[]), line, None);
        report.expect("a report")
    };
    let (user, project) = (print("copilot"), print("copilot --project"));
    assert!(user.contains("\"type\": \"stdio\"") && user.contains("\"tools\": ["), "{user}");
    assert!(project.contains("\"type\": \"stdio\"") && !project.contains("tools"), "{project}");
    assert!(project.contains(".github/mcp.json"), "{project}");
    machine.file("project/.mcp.json", "{}");
    assert!(print("copilot --project").contains("`~/project/.mcp.json`"));
    let goose = print("goose");
    let entry = "\n\nextensions:\n  \"ledger\":\n    name: \"ledger\"\n    description: \"ledger\"\n    \
                 type: \"stdio\"\n    cmd: \"/opt/ledger\"\n    args: []\n    enabled: true\n    timeout: 300\n    \
                 envs: {\"LEDGER_KEY\":\"<LEDGER_KEY>\",\"LEDGER_TIMEOUT\":\"9s\"}\n";
    assert!(goose.contains(entry), "{goose}");
    let goose = print("goose --http https://example.com/mcp");
    assert!(
        goose.contains("    type: \"streamable_http\"\n    uri: \"https://example.com/mcp\"\n"),
        "{goose}"
    );
    assert!(print("opencode").contains("opencode.json`"));
    machine.file(".config/opencode/opencode.jsonc", "{}");
    machine.file("project/opencode.jsonc", "{}");
    assert!(print("opencode").contains("opencode.jsonc`"));
    assert!(print("opencode --project").contains("project/opencode.jsonc`"));
    let code = print("vscode --print");
    assert!(
        code.contains("https://insiders.vscode.dev/redirect?url=vscode%3Amcp%2Finstall%3F%257B"),
        "{code}"
    );
    let entry = code.split_once("or run code --add-mcp '").and_then(|(_, rest)| rest.split_once("'\n"));
    let entry: Value = serde_json::from_str(entry.expect("a command").0).expect("JSON");
    // VS Code takes inputs from both, and asks
    let input = json!({
        "type": "promptString", "id": "ledger-ledger-key", "description": "What it is for", "password": true
    });
    let expected = json!({
        "name": "ledger", "type": "stdio", "command": "/opt/ledger", "args": [],
        "env": { "LEDGER_TIMEOUT": "9s", "LEDGER_KEY": "${input:ledger-ledger-key}" }, "inputs": [input]
    });
    assert_eq!(entry, expected);
    let link = format!("\nor open {}\n", link::vscode("ledger", &expected));
    assert!(code.contains(&link), "{code}");
}

#[test]
fn a_link_has_references_and_what_it_has_not_is_said() {
    let machine = Machine::new("links");
    let print = |line: &str| {
        let (report, _) = install_with(&machine.around(Platform::Linux, &[]), line, None);
        report.expect("a report")
    };
    let with_key = |reference: &str| json!({ "command": "/opt/ledger", "args": [], "env": { "LEDGER_TIMEOUT": "9s", "LEDGER_KEY": reference } });
    let (cursor, kiro) = (print("cursor --print"), print("kiro"));
    assert!(cursor.contains(&link::cursor("ledger", &with_key("${env:LEDGER_KEY}"))), "{cursor}");
    assert!(kiro.contains(&link::kiro("ledger", &with_key("${LEDGER_KEY}"))), "{kiro}");
    for report in [cursor, kiro] {
        assert!(
            report.contains("to do: set `LEDGER_KEY`") && !report.contains("the link has no"),
            "{report}"
        );
    }
    assert!(print("vscode --print").contains("VS Code asks for `LEDGER_KEY`"));
    let studio = print("lm-studio");
    for line in [
        "to do: write the value of `LEDGER_KEY` (What it is for) in place of `<LEDGER_KEY>`\n",
        "note: the link has no `LEDGER_KEY`: add it to the entry afterwards\n",
    ] {
        assert!(studio.contains(line), "{studio}");
    }
    assert!(print("goose").contains("note: the link has no `LEDGER_TIMEOUT`, `LEDGER_KEY`: add"));
    let given = print("cursor --print --env OTHER_KEY=planted-5ecret");
    assert!(given.contains("in place of `<OTHER_KEY>`") && !given.contains(PLANTED), "{given}");
}

#[test]
fn clients_that_can_refer_to_a_variable_do() {
    let machine = Machine::new("references");
    for (line, reference) in [
        ("copilot", "\"LEDGER_KEY\": \"${LEDGER_KEY}\""),
        ("kiro", "\"LEDGER_KEY\": \"${LEDGER_KEY}\""),
        ("windsurf", "\"LEDGER_KEY\": \"${env:LEDGER_KEY}\""),
        ("opencode", "\"LEDGER_KEY\": \"{env:LEDGER_KEY}\""),
        ("antigravity", "\"LEDGER_KEY\": \"<LEDGER_KEY>\""),
    ] {
        let (report, _) = install_with(&machine.around(Platform::Linux, &[]), line, None);
        let report = report.expect("a report");
        assert!(report.contains(reference), "{line}: {report}");
    }
}

#[test]
fn a_file_that_another_program_has_changed_stays_and_the_change_is_begun_again() {
    let machine = Machine::new("changed");
    machine.file("a.json", "1");
    let path = machine.0.join("a.json");
    let read = || TextFile::read(&path, None).expect("a file");
    let (one, other) = (read(), read());
    assert!(matches!(one.replace("2"), Ok(Replaced::Done(Some(_)))));
    assert_eq!(other.replace("3"), Ok(Replaced::Changed));
    assert_eq!(machine.read("a.json"), "2");
    assert_eq!(read().replace("3"), Ok(Replaced::Done(None)));
    let new = machine.0.join("b.json");
    let (one, other) = (TextFile::read(&new, None), TextFile::read(&new, None));
    assert_eq!(one.expect("none").replace("1"), Ok(Replaced::Done(None)));
    assert_eq!(other.expect("none").replace("2"), Ok(Replaced::Changed));
}

#[test]
fn a_secret_is_asked_for_once_for_two_files() {
    let machine = Machine::new("asked-once");
    let packaged = "AppData/Local/Packages/Claude_pzs8/LocalCache/Roaming/Claude/claude_desktop_config.json";
    for path in [packaged, "AppData/Roaming/Claude/claude_desktop_config.json"] {
        machine.file(path, "{}");
    }
    let around = machine.around(Platform::Windows, &[]);
    let (report, asked) = install_with(&around, "claude-desktop", Some(PLANTED));
    assert_eq!((report.is_ok(), asked.len()), (true, 1), "{asked:?}");
    assert!(machine.read(packaged).contains(PLANTED));
}

#[test]
fn inputs_that_are_not_a_list_are_left_alone() {
    let machine = Machine::new("inputs");
    let path = ".config/Code/User/mcp.json";
    for (text, problem) in [
        (r#"{"inputs": {"a": 1}, "servers": {}}"#, "`inputs` is not a list"),
        (r#"{"inputs": [], "servers": {}, "inputs": []}"#, "`inputs` is in it twice"),
    ] {
        machine.file(path, text);
        for line in ["vscode", "vscode --dry-run", "vscode --force"] {
            let (report, _) = install_with(&machine.around(Platform::Linux, &[]), line, None);
            let report = report.expect_err("no list");
            assert!(report.contains("is as it was") && report.contains(problem), "{report}");
            assert_eq!(machine.read(path), text);
        }
    }
}

#[test]
fn paths_among_the_arguments_of_another_program_become_absolute() {
    let machine = Machine::new("relative");
    for file in ["project/server.py", "project/sub/main.js", "project/plain", "project/v1.2/x", "beside.py"] {
        machine.file(file, "");
    }
    let folder = machine.0.join("project").display().to_string();
    let report = install_foreign(
        &machine,
        "cursor",
        &[
            "python3",
            "server.py",
            "./sub/main.js",
            "--file=server.py",
            "--x",
            ".",
            "../beside.py",
            "plain",
            "v1.2",
            "missing.py",
            "https://a.example/server.py",
        ],
    );
    let written: Value = serde_json::from_str(&machine.read(".cursor/mcp.json")).expect("JSON");
    let inside = |path: &str| format!("{folder}/{path}");
    let beside = machine.0.join("beside.py").display().to_string();
    assert_eq!(
        written["mcpServers"]["other"]["args"],
        json!([
            inside("server.py"),
            inside("sub/main.js"),
            format!("--file={folder}/server.py"),
            "--x",
            folder,
            beside,
            "plain",
            "v1.2",
            "missing.py",
            "https://a.example/server.py"
        ])
    );
    for note in [
        "note: `python3` is not in `PATH` here\n",
        "note: `plain` is written as it is: if the file of that name in this folder is meant, write `./plain`\n",
        "`./v1.2`",
    ] {
        assert!(report.contains(note), "{note}: {report}");
    }
    assert!(
        install_foreign(&machine, "cursor --force", &["./missing"])
            .contains("note: `./missing` does not exist\n")
    );
    let there = install_foreign(&machine, "cursor --force", &["./plain"]);
    assert!(!there.contains("note: "), "{there}");
    // the folder of a project is that of everyone's client
    install_foreign(&machine, "cursor --project", &["python3", "server.py"]);
    assert!(machine.read("project/.cursor/mcp.json").contains("[\"server.py\"]"));
}

#[test]
fn values_that_are_probably_secret_are_named_before_they_are_committed() {
    let machine = Machine::new("committed");
    for (arguments, part) in [
        (&["--api-key", PLANTED][..], Some("the value of `--api-key`")),
        (&["https://u:planted-5ecret@h.example/x"], Some("the password in the URL of `h.example`")),
        (&["--db=postgres://u:planted-5ecret@h.example/x"], Some("the password in the URL of `h.example`")),
        (&["https://planted-5ecret@h.example/x"], Some("the user name in the URL of `h.example`")),
        (&["https://h.example/?a=1&api-key=planted-5ecret#x"], Some("the value of `api-key` in the URL")),
        (&["-e", "API_KEY=planted-5ecret"], Some("the value of `API_KEY`")),
        (
            &[
                "postgres://u@h.example/x?sslmode=require",
                "https://h.example/?token=",
                "A=1",
                "-e",
                "API_KEY",
            ],
            None,
        ),
    ] {
        let command = [&["npx"], arguments].concat();
        let report = install_foreign(&machine, "cursor --project --force", &command);
        let note = "note: the file of a project is committed: if ";
        assert_eq!(part.is_some(), report.contains(note), "{arguments:?}: {report}");
        let line = format!("{note}{} is secret, remove it\n", part.unwrap_or_default());
        assert!(part.is_none() || report.contains(&line), "{line}: {report}");
        assert!(!report.contains(PLANTED), "{report}");
        assert!(!install_foreign(&machine, "cursor --force", &command).contains(note));
    }
    let line = "vscode --project --http https://h.example/mcp?api_key=planted-5ecret";
    let report = install_foreign(&machine, line, &["x"]);
    assert!(
        report.contains("if the value of `api_key` in the URL is secret") && !report.contains(PLANTED),
        "{report}"
    );
}

#[test]
fn a_secret_is_not_to_be_written_into_a_file_that_is_committed() {
    let machine = Machine::new("zed-project");
    for options in ["", "--dry-run", "--print"] {
        let line = format!("zed --project {options}");
        let (report, _) = install_with(&machine.around(Platform::Linux, &[]), &line, None);
        let report = report.expect("a report");
        assert!(report.contains("to do: `LEDGER_KEY` (What it is for) is secret"), "{report}");
        assert!(!report.contains("add `LEDGER_KEY`") && !report.contains("<LEDGER_KEY>"), "{report}");
    }
    assert!(!machine.read("project/.zed/settings.json").contains("LEDGER_KEY"));
}

#[test]
fn comments_that_a_client_may_refuse_are_named() {
    let machine = Machine::new("comments");
    let path = ".config/Claude/claude_desktop_config.json";
    for (text, is_named) in [("{ // mine\n}", true), ("{ \"a\": [1,] }", true), ("{}", false)] {
        machine.file(path, text);
        let (report, _) = install_with(&machine.around(Platform::Linux, &[]), "claude-desktop", None);
        let report = report.expect("a report");
        assert_eq!(
            report.contains("comments or trailing commas, which Claude Desktop may refuse"),
            is_named,
            "{report}"
        );
    }
    machine.file(".cursor/mcp.json", "{ // mine\n}");
    let (report, _) = install_with(&machine.around(Platform::Linux, &[]), "cursor", None);
    assert!(!report.expect("a report").contains("comments"));
}

#[test]
fn a_secret_is_referred_to_or_asked_for_or_left_to_its_user() {
    for (id, path, reference) in [
        ("vscode", ".config/Code/User/mcp.json", "\"LEDGER_KEY\": \"${input:ledger-ledger-key}\""),
        ("cursor", ".cursor/mcp.json", "\"LEDGER_KEY\": \"${env:LEDGER_KEY}\""),
        ("codex", ".codex/config.toml", "env_vars = [\"LEDGER_KEY\"]"),
    ] {
        let machine = Machine::new(id);
        let around = machine.around(Platform::Linux, &[("LEDGER_KEY", PLANTED)]);
        let (report, asked) = install_with(&around, id, Some(PLANTED));
        let (report, file) = (report.expect("a report"), machine.read(path));
        assert!(file.contains(reference) && file.contains("9s"), "{file}");
        assert!(asked.is_empty() && !file.contains(PLANTED) && !report.contains(PLANTED), "{report}");
        assert!(report.contains("LEDGER_KEY"), "{report}");
    }
    for id in ["claude-desktop", "zed"] {
        let machine = Machine::new(&format!("{id}-asked"));
        let around = || machine.around(Platform::Linux, &[("LEDGER_KEY", "not-asked-for")]);
        let path = Client::named(id).expect("a client").user_files(&around()).remove(0);
        // without a terminal
        let (report, asked) = install_with(&around(), id, None);
        let report = report.expect("a report");
        assert!(report.contains("to do: add `LEDGER_KEY` (What it is for) to `env` of `ledger`"), "{report}");
        assert!(!fs::read_to_string(&path).expect("a file").contains("LEDGER_KEY"));
        assert_eq!(asked, ["LEDGER_KEY (What it is for), or nothing to add it later true"]);
        // in one
        let (report, _) = install_with(&around(), id, Some(PLANTED));
        assert!(!report.expect("a report").contains(PLANTED));
        let file = fs::read_to_string(&path).expect("a file");
        assert!(file.contains(&format!("\"LEDGER_KEY\": \"{PLANTED}\"")), "{file}");
        // an existing value is not asked for again, and stays
        let (report, asked) = install_with(&around(), id, Some("another"));
        assert!(asked.is_empty() && report.expect("a report").contains("already"));
        assert_eq!(fs::read_to_string(&path).expect("a file"), file);
    }
}

#[test]
fn what_a_user_has_added_to_an_entry_stays() {
    let machine = Machine::new("kept");
    let before = "{\n  \"mcpServers\": {\n    \"ledger\": {\n      \"command\": \"/opt/ledger\", // mine\n      \"disabled\": true,\n      \"env\": { \"MINE\": \"1\", \"LEDGER_TIMEOUT\": \"5s\" }\n    }\n  }\n}\n";
    machine.file(".cursor/mcp.json", before);
    let (report, _) = install_with(&machine.around(Platform::Linux, &[]), "cursor", None);
    assert!(report.expect("a report").contains("added `ledger`"));
    let after = machine.read(".cursor/mcp.json");
    for part in
        ["// mine", "\"disabled\": true", "\"MINE\": \"1\"", "\"LEDGER_TIMEOUT\": \"9s\"", "\"args\": []"]
    {
        assert!(after.contains(part), "{part}: {after}");
    }
    assert_eq!(machine.read(".cursor/mcp.json.before-mcp"), before);
    machine.file(
        ".codex/config.toml",
        "[mcp_servers.ledger]\ncommand = \"/opt/ledger\" # mine\nenv_vars = [\"MINE\"]\n",
    );
    let (report, _) = install_with(&machine.around(Platform::Linux, &[]), "codex", None);
    report.expect("a report");
    let after = machine.read(".codex/config.toml");
    for part in [
        "# mine",
        "env_vars = [\"MINE\", \"LEDGER_KEY\"]",
        "[mcp_servers.ledger.env]\nLEDGER_TIMEOUT = \"9s\"",
    ] {
        assert!(after.contains(part), "{part}: {after}");
    }
}

#[test]
fn commands_of_servers_have_names_and_absolute_programs() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(name_of_command(&words("./bin/my.server --x")), Ok("my".to_owned()));
    assert_eq!(name_of_command(&words(r"C:\tools\notes.exe")), Ok("notes".to_owned()));
    assert!(name_of_command(&words("npx -y server")).is_err());
    let machine = Machine::new("programs");
    machine.file("project/bin/server", "");
    let folder = machine.0.join("project");
    assert_eq!(absolute_program("./bin/server", &folder), folder.join("bin/server").display().to_string());
    assert_eq!(absolute_program("npx", &folder), "npx");
    assert_eq!(to_name("@scope/my server"), "my-server");
    for text in ["", "-x", "@scope/--help"] {
        assert_eq!(to_name(text), "server");
    }
}

#[test]
fn an_entry_of_a_file_on_one_line_leaves_the_others_as_they_are() {
    let machine = Machine::new("one-line");
    for before in [
        r#"{"mcpServers":{"a":{"command":"a"},"b":{"command":"b"}},"x":1}"#,
        r#"{ "mcpServers": { "a": { "command": "a" } } }"#,
        r#"{"x":{"y":1}}"#,
    ] {
        machine.file(".cursor/mcp.json", before);
        let install = |line: &str| install_with(&machine.around(Platform::Linux, &[]), line, None).0;
        assert!(install("cursor").expect("a report").contains("added"));
        let after = machine.read(".cursor/mcp.json");
        assert!(!after.contains('\n'), "{after}");
        let read: Value = serde_json::from_str(&after).expect("JSON");
        assert_eq!(read["mcpServers"]["ledger"]["command"], "/opt/ledger");
        assert!(install("cursor").expect("a report").contains("already"));
        install("cursor --remove").expect("a report");
        let left = machine.read(".cursor/mcp.json");
        assert_eq!(left.replacen("\"mcpServers\": {},", "", 1), before);
    }
    // a member that an entry on one line lacks, and inputs of a file on one line
    machine.file(
        ".config/Code/User/mcp.json",
        r#"{"servers":{"ledger":{"type":"stdio","command":"/opt/ledger"}},"x":1}"#,
    );
    install_with(&machine.around(Platform::Linux, &[]), "vscode", None).0.expect("a report");
    let written = machine.read(".config/Code/User/mcp.json");
    let read: Value = serde_json::from_str(&written).expect("JSON");
    let entry = json!({
        "type": "stdio", "command": "/opt/ledger", "args": [],
        "env": { "LEDGER_TIMEOUT": "9s", "LEDGER_KEY": "${input:ledger-ledger-key}" }
    });
    assert_eq!((&read["servers"]["ledger"], &read["inputs"][0]["id"]), (&entry, &json!("ledger-ledger-key")));
    assert_eq!(written.matches("\"command\"").count(), 1, "{written}");
}

/// An entry of each of many servers: what takes a time that grows with the square of their number does not end here.
#[test]
fn a_server_is_added_to_and_removed_from_a_file_of_thousands_on_one_line() {
    let servers: Map<String, Value> =
        (0..8_000).map(|n| (format!("s{n}"), json!({ "command": "x", "args": [n.to_string()] }))).collect();
    let before = json!({ "mcpServers": servers }).to_string();
    let mut document = Document::parse(Format::Json, &before).expect("a document");
    let members = vec![("command", json!("y"))];
    document.set("mcpServers", "a", &members, Change::Replace);
    let after = document.text();
    assert_eq!(after.len(), before.len() + r#""a": { "command": "y" },"#.len());
    let mut document = Document::parse(Format::Json, &after).expect("a document");
    document.remove("mcpServers", "a");
    assert_eq!(document.text(), before);
}
