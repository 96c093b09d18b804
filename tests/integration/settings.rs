//! Settings of every source as a program reads them: what is used, what is said of mistakes, and that no secret is shown.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

use crate::prelude::*;

/// A secret that must be nowhere.
const PLANTED: &str = "planted-5ecret";

/// The server with settings, in a home of its own.
struct Probe {
    home: TestFolder,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Probe {
    fn new() -> Self {
        Self { home: TestFolder::default(), arguments: Vec::new(), variables: Vec::new() }
    }

    /// One with a token, so that nothing is missing.
    fn complete() -> Self {
        Self::new().set("PROBE_TOKEN", PLANTED)
    }

    fn arg(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes the file of the platform's folder.
    fn file(self, text: &str) -> Self {
        self.home.write("config/probe/config.toml", text);
        self
    }

    /// Writes a file, and returns its path.
    fn other_file(&self, text: &str) -> String {
        self.home.write("other.toml", text).display().to_string()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_settings"));
        command.args(&self.arguments).stdin(Stdio::null());
        command.env("HOME", &*self.home).env("XDG_CONFIG_HOME", self.home.join("config"));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn run(&self) -> Output {
        self.command().output().expect("the program")
    }

    /// The stdout of a command that succeeds.
    fn stdout(self) -> String {
        let output = self.run();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// The stderr of a command that fails with exit code 1.
    fn failure(self) -> String {
        let output = self.run();
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).expect("text")
    }

    fn path(&self) -> &Path {
        &self.home
    }
}

#[test]
fn a_flag_comes_before_a_variable_before_the_file_before_the_default() {
    let shown = |probe: Probe| probe.arg(&["call", "show"]).stdout();
    assert!(shown(Probe::complete()).contains("timeout: 5,"));
    assert!(shown(Probe::complete().file("timeout = 7")).contains("timeout: 7,"));
    let both = || Probe::complete().file("timeout = 7").set("PROBE_TIMEOUT", "8");
    assert!(shown(both()).contains("timeout: 8,"));
    assert!(shown(both().arg(&["--timeout", "9"])).contains("timeout: 9,"));
    assert!(shown(both().arg(&["--timeout=10"])).contains("timeout: 10,"));
    // an empty variable is one that a host did not fill in
    assert!(shown(both().set("PROBE_TIMEOUT", "")).contains("timeout: 7,"));
}

#[test]
fn flags_may_follow_the_command_too() {
    let shown = Probe::complete().arg(&["call", "--timeout", "9", "show", "{}", "--verbose"]).stdout();
    assert!(shown.contains("timeout: 9,") && shown.contains("verbose: true"), "{shown}");
}

#[test]
fn a_file_is_named_by_a_flag_or_a_variable_or_lies_in_the_folder_of_the_platform() {
    let shown = |probe: Probe| probe.arg(&["call", "show"]).stdout();
    let probe = Probe::complete().file("timeout = 7");
    let other = probe.other_file("timeout = 11");
    assert!(shown(probe.set("PROBE_CONFIG", &other)).contains("timeout: 11,"));
    let probe = Probe::complete().file("timeout = 7").set("PROBE_CONFIG", "nowhere.toml");
    let other = probe.other_file("timeout = 12");
    assert!(shown(probe.arg(&["--config", &other])).contains("timeout: 12,"));
    // a tilde is the home directory
    for probe in [
        Probe::complete().set("PROBE_CONFIG", "~/other.toml"),
        Probe::complete().arg(&["--config=~/other.toml"]),
    ] {
        probe.other_file("timeout = 13");
        assert!(shown(probe).contains("timeout: 13,"));
    }
    // one that is named has to be there
    let missing = Probe::complete().set("PROBE_CONFIG", "nowhere.toml").arg(&["config"]).failure();
    assert!(missing.contains("`nowhere.toml` cannot be read"), "{missing}");
}

#[test]
fn text_becomes_values_of_every_type() {
    let flags = [
        "--tags",
        "a,b",
        "--tags=c",
        "--wait-for",
        "1m 30s",
        "--verbose=false",
        "--region",
        "us",
        "--limits-most",
        "4",
        "--proxy-url=http://proxy",
        "--proxy-password",
        "proxy-password",
        "--labels",
        r#"{"a":"b"}"#,
        "--level=high",
        "--hosts",
        r#"[{"name":"h","key":"host-key"}]"#,
    ];
    let by_flags = Probe::complete().arg(&flags).arg(&["call", "show"]).stdout();
    let file = r#"
        tags = ["a", "b", "c"]
        wait = "90s"
        region = "us"
        verbose = false
        level = "high"
        labels = { a = "b" }
        limits.most = 4
        [proxy]
        url = "http://proxy"
        password = "proxy-password"
        [[hosts]]
        name = "h"
        key = "host-key"
    "#;
    let by_file = Probe::complete().file(file).arg(&["call", "show"]).stdout();
    let variables = [
        ("PROBE_TAGS", "a, b,c"),
        ("PROBE_WAIT", "90s"),
        ("PROBE_REGION", "us"),
        ("PROBE_VERBOSE", "0"),
        ("LEVEL_OF_PROBE", "high"),
        ("PROBE_LABELS", r#"{"a":"b"}"#),
        ("PROBE_LIMITS_MOST", "4"),
        ("PROBE_PROXY_URL", "http://proxy"),
        ("PROBE_PROXY_PASSWORD", "proxy-password"),
        ("PROBE_HOSTS", r#"[{"name":"h","key":"host-key"}]"#),
    ];
    let by_variables =
        variables.iter().fold(Probe::complete(), |probe, (name, value)| probe.set(name, value));
    let by_variables = by_variables.arg(&["call", "show"]).stdout();
    for part in [
        r#"tags: Some(["a", "b", "c"])"#,
        "wait: Some(90s)",
        "verbose: false",
        "level: High",
        "most: 4, within: 60s",
        r#"proxy: Some(Proxy { url: "http://proxy", password: Some(****) })"#,
        r#"hosts: [Host { name: "h", key: **** }]"#,
        r#"labels: {"a": "b"}"#,
        r#"region: "us""#,
    ] {
        for shown in [&by_flags, &by_file, &by_variables] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}

#[test]
fn a_tilde_is_the_home_directory_also_in_a_default() {
    for (flag, path) in
        [(None, "probe.db"), (Some("--database=~/there"), "there"), (Some("--database=/a/~"), "/a/~")]
    {
        let probe = Probe::complete().arg(flag.as_slice()).arg(&["call", "place"]);
        let expected = probe.path().join(path).display().to_string();
        assert_eq!(probe.stdout(), format!("{expected} {}\n", expected.len()));
    }
}

#[test]
fn all_mistakes_are_reported_at_once_each_with_its_source_and_the_nearest_name() {
    let probe = Probe::new()
        .file("timeot = 3\nlimits.mst = 3\n[limits]\n")
        .set("PROBE_TIMEOUT", "sixty")
        .set("PROBE_TOKN", PLANTED);
    // the table is there twice
    let text = probe.arg(&["--http", "0"]).failure();
    assert!(text.contains("is not valid TOML: ") && text.contains("(line "), "{text}");

    let probe = Probe::new()
        .file("timeot = 3\nwait = 30\n[limits]\nmst = 3\nmost = 0\n")
        .set("PROBE_TIMEOUT", "600")
        .set("PROBE_TOKN", PLANTED)
        .set("PROBE_UNKNOWN", "1")
        .arg(&["--http", "0", "--regoin", "eu", "--region=asia", "--level", "hihg", "--verbose=perhaps"]);
    let file = probe.path().join("config/probe/config.toml").display().to_string();
    let text = probe.failure();
    for line in [
        "Error: the settings of `probe` are missing or wrong:",
        "- unknown flag `--regoin`; did you mean `--region`?",
        &format!("- unknown key `timeot` in `{file}`; did you mean `timeout`?"),
        &format!("- unknown key `limits.mst` in `{file}`; did you mean `most`?"),
        "- timeout: 600 is greater than the maximum of 60 (from `PROBE_TIMEOUT`)",
        "did you mean \"high\"? (from `--level`)",
        "(from `--verbose`)",
        "(from `--region`)",
        &format!("(from `limits.most` in `{file}`)"),
        "- wait: \"30\" is not a duration; write numbers with units, such as `5s`",
        "- token: is missing",
        "The token of the service",
        &format!("set `PROBE_TOKEN`, or pass `--token TOKEN`, or write `token = ..` in `{file}`"),
        "`PROBE_TOKN` is set; did you mean `PROBE_TOKEN`?",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("PROBE_UNKNOWN") && !text.contains(PLANTED), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("- timeout")).count(), 1, "{text}");
}

#[test]
fn over_http_a_server_with_wrong_settings_does_not_start() {
    let text = Probe::new().arg(&["--http", "127.0.0.1:0"]).failure();
    assert!(text.contains("- token: is missing") && !text.contains("serving"), "{text}");
}

#[tokio::test]
async fn over_stdio_it_starts_and_functions_that_need_them_say_what_is_missing() {
    let probe = Probe::new().arg(&["--timeot", PLANTED]);
    let mut server = LineConnection::spawn(&mut probe.command());
    for tool in ["show", "place"] {
        let reply = server.reply_to(&call(tool, tool, &json!({}))).await;
        assert_eq!(reply["result"]["isError"], true, "{reply}");
        for part in [
            "- unknown flag `--timeot`; did you mean `--timeout`?",
            "- token: is missing",
            "set `PROBE_TOKEN`",
        ] {
            assert!(text_of(&reply).contains(part), "{reply}");
        }
    }
    assert_eq!(text_of(&server.reply_to(&call(3, "free", &json!({}))).await), "free");
    assert_eq!(text_of(&server.reply_to(&call(4, "maybe", &json!({}))).await), "false");
    server.close_input().await;
    let (status, log) = server.exit().await;
    assert!(status.success() && log.contains("- token: is missing") && !log.contains(PLANTED), "{log}");
}

/// One whose options and items depend on its settings.
fn configured(probe: Probe, arguments: &[&str]) -> Probe {
    probe.set("PROBE_CONFIGURES", "1").arg(arguments)
}

#[test]
fn options_and_items_that_depend_on_settings_are_those_of_the_settings_as_they_were_read() {
    let run = |arguments: &[&str]| configured(Probe::complete(), arguments).stdout();
    assert!(run(&["list"]).contains("configured"));
    assert_eq!(run(&["call", "configured"]), "eu\n");
    assert_eq!(run(&["call", "configured", "--region=us"]), "us\n");
    assert!(run(&["schema", "--region=us"]).contains("In us."));
    let text = configured(Probe::complete(), &["list", "--database=/closed"]).failure();
    assert!(text.contains("`.configure(..)` has failed: no entry for ****"), "{text}");
    assert!(text.contains("settings.rs:") && !text.contains(PLANTED), "{text}");
}

#[test]
fn without_its_settings_a_server_is_not_configured_and_says_what_is_missing() {
    let missing = |arguments: &[&str]| configured(Probe::new(), arguments);
    // also if the function would fail, or the settings are wrong
    for other in ["--database=/closed", "--timeout=0"] {
        assert!(missing(&["--help", other]).stdout().contains("--token TOKEN"));
        assert!(missing(&["--version", other]).stdout().starts_with("probe "));
        let shown = missing(&["config", other]).run();
        assert!(String::from_utf8_lossy(&shown.stdout).contains("region"), "{shown:?}");
        assert!(String::from_utf8_lossy(&shown.stderr).contains("- token: is missing"), "{shown:?}");
    }
    for command in [["list"].as_slice(), &["list", "--json"], &["schema"]] {
        let output = missing(command).run();
        let (text, note) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && text.contains("free") && !text.contains("configured"), "{text}");
        let parts = ["items and options that need settings are missing here: ", "- token: is missing"];
        assert!(parts.iter().all(|part| note.contains(part)), "{note}");
        // a note is beside incomplete lists only
        let output = configured(Probe::complete(), command).run();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
    // an option that is not set may be what protects them
    for command in [["call", "free"], ["read", "probe://region"], ["prompt", "ask"]] {
        assert!(missing(&command).failure().contains("- token: is missing"), "{command:?}");
    }
    assert!(missing(&["--http", "127.0.0.1:0"]).failure().contains("- token: is missing"));
}

#[tokio::test]
async fn over_stdio_a_server_that_is_not_configured_calls_nothing() {
    let mut server = LineConnection::spawn(&mut configured(Probe::new(), &[]).command());
    let reply = server.reply_to(&call(1, "free", &json!({}))).await;
    assert_eq!(reply["result"]["isError"], true, "{reply}");
    assert!(text_of(&reply).contains("- token: is missing"), "{reply}");
    server.close_input().await;
    assert!(server.exit().await.0.success());
}

#[test]
fn a_function_that_configures_a_server_has_settings_and_registers_none() {
    #[mcp_config]
    struct Own {
        #[mcp(default = 1)]
        number: u32,
    }
    #[mcp_config]
    struct Other {
        #[mcp(default = 1)]
        other_number: u32,
    }
    let refused = |server: ServerBuilder| server.build().expect_err("an error").to_string();
    let text = refused(mcp_runtime::server!().configure(|server, _: &Own| Ok(server)));
    assert!(
        text.contains("`.configure(..)` takes `&Own`") && text.contains("add `.config::<Own>()`"),
        "{text}"
    );
    let nested = mcp_runtime::server!().config::<Own>();
    let text = refused(nested.configure(|server, own: &Own| {
        assert_eq!(own.number, 1);
        Ok(server.config::<Other>().configure(|server, other: &Other| {
            assert_eq!(other.other_number, 1);
            Ok(server)
        }))
    }));
    assert!(text.contains("call them outside of it"), "{text}");
    let inner = mcp_runtime::server!().state(Own { number: 2 }).configure(|server, _: &Own| Ok(server));
    let text = refused(mcp_runtime::server!().mount("inner", inner));
    assert!(text.contains("the server that is mounted as `inner` has `.configure(..)`"), "{text}");
    // a value that a test gives
    let given = mcp_runtime::server!().config::<Own>().state(Own { number: 3 });
    let given = given
        .configure(|server, own: &Own| Ok(server.info(|info| info.instructions(own.number.to_string()))));
    assert_eq!(given.build().expect("a server").instructions(), Some("3"));
}

#[tokio::test]
async fn a_mounted_builder_has_the_settings_of_the_program_and_no_other_state() {
    #[mcp_config]
    struct Own {
        #[mcp(default = 1)]
        number: u32,
    }
    struct Pool;
    #[mcp_tool]
    fn number(own: &Own) -> u32 {
        own.number
    }
    #[mcp_tool]
    fn found(ctx: &Context) -> String {
        format!("{:?} {}", ctx.state::<Own>().map(|own| own.number), ctx.state::<Pool>().is_some())
    }
    let mount = || mcp_runtime::server!().tool::<found>().tool::<number>();
    let outer = || mcp_runtime::server!().state(Pool).config::<Own>();
    let nested = mcp_runtime::server!().mount("b", mount());
    let with_own = mount().state(Own { number: 3 });
    let configured = move |server: ServerBuilder, own: &Own| {
        assert_eq!(own.number, 1);
        Ok(server.mount("late", mount()))
    };
    let server = serve(outer().mount("a", nested).mount("own", with_own).configure(configured));
    for (prefix, expected) in [("a_b", "Some(1) false"), ("own", "Some(3) false"), ("late", "Some(1) false")]
    {
        server.call(&format!("{prefix}_found"), json!({})).await.expect_text(expected);
        server.call(&format!("{prefix}_number"), json!({})).await.expect_text(&expected[5..6]);
    }
    // a mount does not have settings that are given to the outer builder unless that declares them
    let undeclared = mcp_runtime::server!().state(Own { number: 4 }).mount("a", mount()).build();
    assert!(undeclared.expect_err("an error").to_string().contains("`&Own`"));
    serve(outer().state(Own { number: 4 }).mount("a", mount()))
        .call("a_number", json!({}))
        .await
        .expect_text("4");
}

#[test]
fn resources_and_prompts_say_it_too_and_items_are_listed() {
    for command in [["read", "probe://region"], ["prompt", "ask"]] {
        let text = Probe::new().arg(&command).failure();
        assert!(text.contains("-32603") && text.contains("- token: is missing"), "{text}");
    }
    assert!(Probe::new().arg(&["list"]).stdout().contains("probe://region"));
    assert_eq!(Probe::new().arg(&["call", "free"]).stdout(), "free\n");
    assert_eq!(Probe::complete().arg(&["read", "probe://region"]).stdout(), "eu\n");
    // a wrong flag is that of who typed the command
    assert!(Probe::complete().arg(&["list", "--regoin=us"]).failure().contains("did you mean `--region`?"));
}

#[test]
fn run_ends_with_the_error_of_state_that_cannot_be_made_whatever_it_serves() {
    for (database, line) in [
        ("refused", "the state `Store` cannot be made: cannot log in to refused with ****"),
        ("unreachable", "the state `Connections` cannot be made: no answer to ****"),
    ] {
        for command in [&["call", "place"][..], &["call", "show"], &["stdio"], &[], &["--http", "0"]] {
            let text = Probe::complete().arg(&["--database", database]).arg(command).failure();
            assert!(text.contains(line) && !text.contains("closed"), "{command:?}: {text}");
            assert!(!text.contains(PLANTED), "{text}");
        }
        // commands that call nothing make no state
        for command in
            [&["list"][..], &["schema"], &["config"], &["--help"], &["--version"], &["install", "--help"]]
        {
            Probe::complete().arg(&["--database", database]).arg(command).stdout();
        }
    }
}

#[test]
fn state_is_made_for_a_call_alone_and_its_end_is_awaited() {
    let run = |command: &[&str]| {
        let output = Probe::complete().arg(command).run();
        assert!(output.status.success(), "{command:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let both = "the connections are open\nthe connections are closed: 1\n";
    assert_eq!(run(&["call", "connections"]), both);
    // stdin is at its end
    assert!(run(&["stdio"]).ends_with(both));
    for command in [&["list"][..], &["list", "--json"], &["schema"], &["config"], &["--help"], &["--version"]]
    {
        assert_eq!(run(command), "", "{command:?}");
    }
}

#[test]
fn a_planted_secret_is_in_no_output() {
    let key = PLANTED;
    let file = format!(
        "token = \"{key}\"\n[proxy]\nurl = \"http://proxy\"\npassword = \"{key}\"\n[[hosts]]\nname = \"h\"\nkey = \"{key}\"\n"
    );
    let hosts = format!("[[hosts]]\nname = \"h\"\nkey = \"{key}\"\n");
    let short = &key[..5];
    let probes: Vec<Box<dyn Fn() -> Probe>> = vec![
        Box::new(|| Probe::new().arg(&["--token", PLANTED])),
        Box::new(|| Probe::new().set("PROBE_TOKEN", PLANTED)),
        Box::new(move || Probe::new().file(&file)),
        Box::new(|| Probe::new().arg(&["--token", PLANTED, "--database", "refused"])),
        // keys of a map that is secret
        Box::new(|| Probe::complete().set("PROBE_GRANTS", r#"{"planted-5ecret":1}"#)),
        // from everywhere at once
        Box::new(move || {
            let probe = Probe::new().arg(&["--token", PLANTED]).file(&hosts);
            probe.set("PROBE_GRANTS", r#"{"planted-5ecret":1}"#)
        }),
        // wrong, misplaced and unreadable
        Box::new(|| Probe::new().arg(&["--tokne", PLANTED])),
        Box::new(|| Probe::new().arg(&["--tokne=planted-5ecret"])),
        Box::new(|| Probe::new().arg(&["--token=planted-5ecret", "--token", PLANTED])),
        Box::new(|| Probe::new().arg(&["--token", PLANTED, "--timeout", "0"])),
        Box::new(|| Probe::new().file("token = planted-5ecret")),
        Box::new(|| Probe::new().file("token = [\"planted-5ecret\"]")),
        Box::new(|| Probe::new().file("token = { a = \"planted-5ecret\" }")),
        Box::new(|| Probe::new().file("proxy = \"planted-5ecret\"")),
        Box::new(|| Probe::new().file("proxy = { url = 5, password = \"planted-5ecret\" }")),
        Box::new(|| Probe::new().file("[[hosts]]\nname = 5\nkey = \"planted-5ecret\"")),
        Box::new(|| Probe::new().file("hosts = [\"planted-5ecret\"]")),
        Box::new(|| Probe::new().set("PROBE_HOSTS", "planted-5ecret")),
        Box::new(|| Probe::new().set("PROBE_PROXY_PASSWORD", PLANTED)),
        Box::new(move || Probe::new().set("PROBE_TOKEN", short)),
        Box::new(|| Probe::new().set("PROBE_GRANTS", r#"{"planted-5ecret":"many"}"#)),
        Box::new(|| Probe::new().arg(&["--grants", r#"{"planted-5ecret":{"of":[1]}}"#])),
        Box::new(|| Probe::new().file("grants = { planted-5ecret = -1 }")),
        Box::new(|| Probe::new().file("[grants]\nplanted-5ecret = 1\nplanted-5ecret = 2")),
    ];
    let commands: [&[&str]; 12] = [
        &["config"],
        &["call", "show"],
        &[],
        &["--help"],
        &["list"],
        &["schema", "--json"],
        &["call", "json"],
        &["call", "panics"],
        &["call", "fails"],
        &["call", "place"],
        &["--http", "127.0.0.1:nowhere"],
        &["read", "probe://region"],
    ];
    for (n, probe) in probes.iter().enumerate() {
        // the same values from elsewhere are shown by the same commands, and wrong settings are the same error of each
        let tried = match n {
            0..=4 => 3,
            5 => commands.len(),
            _ => 1,
        };
        for command in &commands[..tried] {
            let probe = probe().arg(command).set("MCP_LOG", "trace");
            let output = probe.run();
            for text in [&output.stdout, &output.stderr] {
                let text = String::from_utf8_lossy(text);
                assert!(!text.contains(PLANTED), "{:?} {:?}: {text}", probe.arguments, probe.variables);
            }
        }
    }
    let grants = Probe::complete().set("PROBE_GRANTS", r#"{"planted-5ecret":"many"}"#).arg(&["config"]);
    let grants = grants.failure();
    assert!(grants.contains("- grants: a value in it, which is secret, is not accepted"), "{grants}");
    let short = Probe::new().set("PROBE_TOKEN", short).arg(&["config"]).failure();
    assert!(
        short.contains("- token: the value, which is secret, is not") && !short.contains("plant"),
        "{short}"
    );
}

#[test]
fn an_error_of_state_made_of_loaded_settings_has_no_secret_alone_and_in_a_server_that_is_mounted() {
    for way in ["alone", "mounted"] {
        let probe = || {
            let given = Probe::complete().set("PROBE_GIVES", way).set("PROBE_DATABASE", "/refused");
            given.arg(&["call", if way == "mounted" { "inner_place" } else { "place" }])
        };
        let text = probe().failure();
        assert!(
            text.contains("cannot log in to /refused with ****") && !text.contains(PLANTED),
            "{way}: {text}"
        );
        let text = probe().set("PROBE_PROXY_PASSWORD", "a1").set("PROBE_PROXY_URL", "u").failure();
        assert!(text.contains("the message is withheld") && !text.contains("cannot log in"), "{way}: {text}");
    }
}

#[test]
fn an_error_of_the_program_is_withheld_if_a_secret_is_too_short_to_be_found_in_it() {
    let probe =
        || Probe::complete().set("PROBE_PROXY_URL", "http://p").arg(&["--database=refused", "call", "place"]);
    for (short, is_withheld) in [("a1", true), ("é", true), ("longer", false)] {
        let text = probe().set("PROBE_PROXY_PASSWORD", short).failure();
        assert_eq!(
            text.contains(
                "the state `Store` cannot be made: the message is withheld: it may contain a secret"
            ),
            is_withheld,
            "{text}"
        );
        assert_eq!(text.contains("cannot log in"), !is_withheld, "{text}");
    }
    assert!(probe().set("PROBE_PROXY_PASSWORD", "").failure().contains("cannot log in"));
}

#[test]
fn the_command_config_prints_values_and_sources_and_fails_if_something_is_wrong() {
    let probe =
        Probe::complete().file("region = \"us\"").set("PROBE_WAIT", "90s").arg(&["config", "--timeout", "9"]);
    let file = probe.path().join("config/probe/config.toml").display().to_string();
    let table = probe.stdout();
    for row in [
        ["token", "****", "PROBE_TOKEN"],
        ["timeout", "9", "--timeout"],
        ["wait", "1m", "30s PROBE_WAIT"],
        ["region", "us", &file],
        ["limits.within", "1m", "default"],
        ["level", "low", "default"],
    ] {
        let found = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ") == row.join(" ");
        assert!(table.lines().any(found), "{row:?}: {table}");
    }
    assert!(table.contains(&format!("file: {file}")), "{table}");
    // one whose name only begins like that of a wrong one is shown as it is used
    let beside =
        Probe::complete().set("PROBE_WAIT", "90s").set("PROBE_WAIT_BETWEEN", "soon").arg(&["config"]).run();
    let table = String::from_utf8_lossy(&beside.stdout);
    let row = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in ["wait 1m 30s PROBE_WAIT", "wait_between soon PROBE_WAIT_BETWEEN"] {
        assert!(table.lines().any(|line| row(line) == expected), "{expected}: {table}");
    }
    let output = Probe::new().arg(&["config"]).run();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("not set"));
}

#[test]
fn help_has_the_settings_and_schema_has_their_schema() {
    let help = Probe::new().arg(&["--help"]).stdout();
    for part in [
        "[SETTINGS] [COMMAND]",
        "--token TOKEN",
        "The token of the service [string 8.. chars; PROBE_TOKEN; required; secret]",
        "--verbose ",
        "LEVEL_OF_PROBE",
        "integer 1..=60; PROBE_TIMEOUT; 5 by default",
        "PROBE_CONFIG",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
    let schema: Value =
        serde_json::from_str(&Probe::new().arg(&["schema", "--json"]).stdout()).expect("JSON");
    let settings = &schema["settings"];
    let timeout = json!({
        "type": "integer", "minimum": 1, "maximum": 60, "default": 5, "description": "Seconds",
        "x-flag": "--timeout", "x-env": "PROBE_TIMEOUT"
    });
    assert_eq!(settings["properties"]["timeout"], timeout);
    assert_eq!(settings["properties"]["token"]["writeOnly"], true);
    assert_eq!(settings["properties"]["limits"]["properties"]["within"]["default"], "1m");
    // by which readers know that no tool has any
    assert_eq!(schema["scopes"], json!({}));
    // a table whose fields all have defaults need not be there
    assert_eq!(settings["required"], json!(["token"]));
    assert_eq!(schema, serde_json::from_str::<Value>(&Probe::new().arg(&["schema"]).stdout()).expect("JSON"));
}

#[test]
fn settings_load_without_a_server() {
    let load = || Probe::complete().set("PROBE_LOADS", "1").arg(&["--timeout", "9"]);
    assert!(load().stdout().contains("timeout: 9,"));
    let text = load().arg(&["--timeot=9"]).failure();
    assert!(text.contains("unknown flag `--timeot`") && !text.contains(PLANTED), "{text}");
}

#[test]
fn a_program_with_options_passes_the_flags_of_settings_on() {
    let run = |arguments: &str| Probe::complete().set("PROBE_ARGUMENTS", arguments).arg(&["--own-option"]);
    assert!(run("call --timeout 9 show").stdout().contains("timeout: 9,"));
    assert!(run("--help").stdout().contains("--timeout TIMEOUT"));
    let text = run("--timeot=9 --http 0").failure();
    assert!(text.contains("unknown flag `--timeot`; did you mean `--timeout`?"), "{text}");
    let lone = Probe::complete().set("PROBE_ARGUMENTS", "nothing").failure();
    assert!(lone.contains("unknown command `nothing`"), "{lone}");
}

#[allow(dead_code, reason = "only declared")]
mod wrong {
    use mcp_runtime::prelude::*;

    #[mcp_config]
    pub(super) struct Outer {
        #[mcp(default = 9, range(..=5))]
        own: u32,
        table: Table,
        maybe: Option<Item>,
        #[mcp(default)]
        list: Vec<Item>,
        #[mcp(flatten)]
        flat: Flat,
    }

    #[mcp_config]
    pub(super) struct Table {
        #[mcp(default = 9, range(..=5))]
        in_table: u32,
        inner: Inner,
    }

    #[mcp_config]
    pub(super) struct Inner {
        #[mcp(default = "abc", length(..=2))]
        in_inner: String,
    }

    #[mcp_config]
    pub(super) struct Item {
        #[mcp(default = 9, range(..=5))]
        in_item: u32,
    }

    #[mcp_config]
    pub(super) struct Flat {
        #[mcp(default = 9, range(..=5))]
        in_flat: u32,
    }
}

#[test]
fn errors_of_declarations_are_reported_together_those_in_tables_lists_and_flat_structs_too() {
    let error = mcp_runtime::server!().config::<wrong::Outer>().build().expect_err("wrong declarations");
    let text = error.to_string();
    for name in
        ["Outer`: `own`", "Table`: `in_table`", "Inner`: `in_inner`", "Item`: `in_item`", "Flat`: `in_flat`"]
    {
        let line = format!("the settings `{name}: its default breaks its rules");
        assert_eq!(text.matches(&line).count(), 1, "{line}: {text}");
    }
}

#[test]
fn flags_that_come_after_the_server_was_built_are_an_error() {
    let run = |arguments: &str| Probe::complete().set("PROBE_LATE_ARGUMENTS", arguments);
    assert_eq!(run("call free").stdout(), "free\n");
    let text = run("call free --timeout=9").failure();
    assert!(
        text.contains("`--timeout` is a setting, and settings were read when the server was built"),
        "{text}"
    );
}

#[test]
fn a_table_is_not_missing_since_a_value_in_it_is_refused() {
    let text = Probe::complete().arg(&["config", "--limits-most", "0"]).failure();
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with("- ")).collect();
    assert_eq!(lines, ["- limits.most: 0 is less than the minimum of 1 (from `--limits-most`)"], "{text}");
}

#[test]
fn a_flag_without_a_value_and_one_that_is_given_twice_are_mistakes() {
    for (arguments, message) in [
        (&["--timeout", "--verbose"][..], "`--timeout` needs a value: `--timeout TIMEOUT`"),
        (&["--timeout=5", "--timeout=6"], "`--timeout` is given twice"),
        (&["--config"], "`--config` needs a file"),
        (
            &["--limits", "{}"],
            "unknown flag `--limits`; those of the table are `--limits-most`, `--limits-within`",
        ),
        (&["--hosts", r#"[{"name":"h"}]"#], "- hosts[0].key: is missing (a string) (from `--hosts`)"),
    ] {
        let text = Probe::complete().arg(&["config"]).arg(arguments).failure();
        assert!(text.contains(message), "{text}");
    }
}

#[test]
fn unknown_keys_in_lists_are_mistakes_wherever_they_come_from() {
    let list = r#"[{"name":"a","key":"planted-5ecret"},{"nmae":"b","key":"planted-5ecret"}]"#;
    let file = "[[hosts]]\nname = \"a\"\nkee = \"planted-5ecret\"\n";
    let probe = Probe::complete().file(file).arg(&["config"]);
    let place = probe.path().join("config/probe/config.toml").display().to_string();
    let by_file = probe.failure();
    let line = format!("- unknown key `hosts[0].kee` in `{place}`; did you mean `key`?");
    assert!(by_file.contains(&line) && !by_file.contains(PLANTED), "{by_file}");
    let by_flag = Probe::complete().arg(&["config", "--hosts", list]).failure();
    let by_variable = Probe::complete().set("PROBE_HOSTS", list).arg(&["config"]).failure();
    for (text, place) in [(by_flag, "--hosts"), (by_variable, "PROBE_HOSTS")] {
        let line = format!("- unknown key `hosts[1].nmae` in `{place}`; did you mean `name`?");
        assert!(text.contains(&line) && !text.contains(PLANTED), "{text}");
    }
}

#[test]
fn a_list_that_is_not_json_is_one_mistake_and_only_the_secret_part_is_hidden() {
    let broken = r#"[{"name":"a","key":planted-5ecret}]"#;
    for probe in [Probe::complete().set("PROBE_HOSTS", broken), Probe::complete().arg(&["--hosts", broken])] {
        let text = probe.arg(&["config"]).failure();
        let lines = text.lines().filter(|line| line.starts_with("- ")).collect::<Vec<_>>();
        assert_eq!(lines.len(), 1, "{text}");
        assert!(lines[0].starts_with("- hosts: is not JSON: ") && lines[0].contains("column 20"), "{text}");
        assert!(lines[0].contains("(from `") && !text.contains(PLANTED), "{text}");
    }
    let wrong = r#"[{"name":"a","key":"planted-5ecret"},{"name":{},"key":["planted-5ecret"]}]"#;
    let text = Probe::complete().set("PROBE_HOSTS", wrong).arg(&["config"]).failure();
    assert!(text.contains("- hosts[1].key: the value, which is secret, is not"), "{text}");
    assert!(text.contains("- hosts[1].name: ") && !text.contains("hosts[1].name: the value"), "{text}");
    assert!(!text.contains(PLANTED), "{text}");
    // one table is a list of one
    let one =
        Probe::complete().arg(&["--hosts", r#"{"name":"a","key":"host-key"}"#, "call", "show"]).stdout();
    assert!(one.contains(r#"hosts: [Host { name: "a", key: **** }]"#), "{one}");
}

#[test]
fn a_secret_that_begins_with_another_is_masked_whole() {
    let probe = Probe::new().set("PROBE_TOKEN", "planted1").set("PROBE_PROXY_URL", "http://p");
    let probe =
        probe.set("PROBE_PROXY_PASSWORD", "planted1-REST").set("PROBE_DATABASE", "/x/planted1-REST/refused");
    let text = probe.arg(&["call", "place"]).failure();
    assert!(text.contains("cannot log in to /x/****/refused with ****"), "{text}");
}

#[test]
fn switches_are_read_in_every_case_also_as_the_next_argument() {
    for (text, is_on) in [("TRUE", true), ("False", false), ("YES", true), ("off", false)] {
        let expected = format!("verbose: {is_on}");
        let by_variable = Probe::complete().set("PROBE_VERBOSE", text).arg(&["call", "show"]).stdout();
        let by_flag = Probe::complete().arg(&["--verbose", text, "call", "show"]).stdout();
        assert!(by_variable.contains(&expected) && by_flag.contains(&expected), "{text}: {by_flag}");
    }
}

#[test]
fn the_command_line_helps_with_its_commands() {
    for line in
        [&["config", "--help"][..], &["list", "--help"], &["call", "--help"], &["call", "show", "--help"]]
    {
        assert!(Probe::new().arg(line).stdout().contains("[SETTINGS] [COMMAND]"), "{line:?}");
    }
    let text = Probe::new().arg(&["cnofig"]).failure();
    assert!(text.contains("did you mean `config`?"), "{text}");
    // an unknown flag takes no command as its value
    let text = Probe::complete().arg(&["--tokn", "events", "foo"]).failure();
    assert!(text.contains("did you mean `--token`?") && !text.contains("unknown command"), "{text}");
}

#[test]
fn a_file_that_is_too_large_is_refused() {
    let probe = Probe::complete();
    let path = probe.other_file(&"#".repeat((1 << 20) + 1));
    let text = probe.arg(&["--config", &path, "config"]).failure();
    assert!(text.contains("cannot be read: it is larger than 1 MiB"), "{text}");
}
