//! The files that one `tools/call` runs through, under callgrind: those whose instructions grow with the number of calls.
//! The architecture page lists them, and they become no more.
//!
//! Only the threads that have run the tool's function count. Others wait for signals and for the end of the process, and how
//! often those wake meanwhile, and poll what they wait for, depends on the load of the machine.
//!
//! ```text
//! cargo test -p hello --test path -- --ignored
//! ```

#![cfg(unix)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};

use mcp_runtime::serde_json::{Value, from_slice, json};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// How many files a call over stdio, and one over HTTP, may run through.
const MOST: [usize; 2] = [22, 31];

/// Instructions for each call from which on a file counts: less is what another read takes, if the calls of a run come in
/// several.
const LEAST: i64 = 3;

/// The function of the tool, as a symbol.
const FUNCTION: &str = "hello::greet";

/// The calls of the two runs that are compared: so many more that a thread which wakes once for another reason, such as the end of
/// the process, does not count.
const CALLS: [u32; 2] = [20, 820];

fn message(id: u32) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "greet", "arguments": { "name": "Ada" }, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

/// The program, which writes a profile of each thread into a folder when it ends.
fn profiled(profiles: &Path, arguments: &[&str]) -> Child {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["-q", "--tool=callgrind", "--separate-threads=yes"]);
    valgrind.arg(format!("--callgrind-out-file={}", profiles.join("thread").display()));
    valgrind.arg(env!("CARGO_BIN_EXE_hello")).args(arguments);
    valgrind.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    valgrind.spawn().expect("`valgrind`, which the package of that name has")
}

fn call_over_stdio(profiles: &Path, calls: u32) {
    let mut server = profiled(profiles, &[]);
    let lines: String = (0..calls).map(|id| message(id) + "\n").collect();
    server.stdin.take().expect("stdin").write_all(lines.as_bytes()).expect("to write");
    let output = server.wait_with_output().expect("its output");
    let replies = String::from_utf8_lossy(&output.stdout);
    assert_eq!(replies.matches("Hello, Ada!").count(), calls as usize, "{replies}");
}

fn call_over_http(profiles: &Path, calls: u32) {
    let mut server = profiled(profiles, &["--http", "127.0.0.1:0"]);
    let mut lines = BufReader::new(server.stderr.take().expect("stderr")).lines().map_while(Result::ok);
    let address = lines.find_map(|line| {
        let (_, rest) = line.split_once("http://")?;
        rest.split_once('/').map(|(address, _)| address.to_owned())
    });
    let address = address.expect("the address that it listens on");
    let mut connection = BufReader::new(TcpStream::connect(&address).expect("to connect"));
    for id in 0..calls {
        let body = message(id);
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: tools/call\r\nMcp-Name: greet\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.get_mut().write_all(request.as_bytes()).expect("to write");
        let headers = connection.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty());
        let length = headers.filter_map(|header| {
            let (name, value) = header.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().expect("a length"))
        });
        let mut reply = vec![0; length.last().expect("the length of the reply")];
        connection.read_exact(&mut reply).expect("a reply");
        let reply: Value = from_slice(&reply).expect("JSON");
        assert_eq!(reply["result"]["content"][0]["text"], "Hello, Ada!", "{reply}");
    }
    drop(connection);
    assert!(Command::new("kill").arg(server.id().to_string()).status().expect("`kill`").success());
    server.wait().expect("its status");
}

/// The file of the runtime that a function is in, by its name as a symbol; the name of a trait's method contains the type's
/// module.
fn file_of(function: &str) -> Option<String> {
    let (before, path) = function.split_once("mcp_runtime::")?;
    let is_own = ["", "<", "<&", "<&mut ", "<dyn "].contains(&before) || before.ends_with(" as ");
    let modules: Vec<&str> = path
        .split("::")
        .take_while(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        .collect();
    let longest = (1..=modules.len()).rev().map(|count| modules[..count].join("/"));
    let candidates = longest.flat_map(|path| [format!("{path}.rs"), format!("{path}/mod.rs")]);
    let source = Path::new(ROOT).join("mcp-runtime/src");
    candidates.filter(|_| is_own).find(|file| source.join(file).exists())
}

/// The instructions of each file on the threads that have run the function, by the profiles in a folder.
fn instructions(profiles: &Path) -> BTreeMap<String, i64> {
    let mut costs = BTreeMap::new();
    for profile in fs::read_dir(profiles).expect("profiles") {
        let profile = fs::read_to_string(profile.expect("a profile").path()).expect("a profile");
        if profile.contains(FUNCTION) {
            add_instructions(&profile, &mut costs);
        }
    }
    costs
}

fn add_instructions(profile: &str, costs: &mut BTreeMap<String, i64>) {
    let mut names = BTreeMap::new();
    let (mut current, mut is_call) = (None, false);
    for line in profile.lines() {
        if let Some((key, name)) = line.split_once("fn=") {
            // the first time with the name: `fn=(7) name`, then `fn=(7)`
            let (id, name) = name.split_once(' ').map_or((name, None), |(id, name)| (id, Some(name)));
            if let Some(name) = name {
                names.insert(id, file_of(name));
            }
            if key.is_empty() {
                current = names.get(id).cloned().flatten();
            }
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            // the line after `calls=` has what the called function takes
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<i64>().ok());
            if let (Some(file), Some(cost), false) = (&current, cost, is_call) {
                *costs.entry(file.clone()).or_default() += cost;
            }
            is_call = false;
        }
    }
}

/// The files whose instructions grow with the calls.
fn files(name: &str, call: fn(&Path, u32)) -> BTreeSet<String> {
    let [few, many] = CALLS.map(|calls| {
        let profiles = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("profiles-{name}-{calls}"));
        // there is none before the first run
        let _removed = fs::remove_dir_all(&profiles);
        fs::create_dir_all(&profiles).expect("a folder");
        call(&profiles, calls);
        instructions(&profiles)
    });
    let more = i64::from(CALLS[1] - CALLS[0]);
    let grow = |(file, cost): (&String, &i64)| {
        (cost - few.get(file).unwrap_or(&0) >= LEAST * more).then(|| file.clone())
    };
    many.iter().filter_map(grow).collect()
}

#[test]
#[ignore = "needs valgrind, and a program with the default features: `cargo test -p hello`"]
fn a_call_runs_through_the_files_that_the_architecture_page_lists() {
    let page = fs::read_to_string(Path::new(ROOT).join("docs/architecture.md")).expect("the page");
    let listed = |title: &str| -> BTreeSet<String> {
        let (_, rest) = page.split_once(&format!("\n{title}:\n")).unwrap_or_else(|| panic!("`{title}:`"));
        let list = rest.split("\n\n").next().unwrap_or_default();
        list.split_whitespace().filter(|word| *word != "```").map(str::to_owned).collect()
    };
    let both = listed("both");
    let expected = ["only stdio", "only HTTP"].map(|title| both.union(&listed(title)).cloned().collect());
    let found = [files("stdio", call_over_stdio), files("http", call_over_http)];
    let described = |sets: &[BTreeSet<String>; 2]| {
        let [stdio, http] = sets;
        let line = |title: &str, files: Vec<&String>| {
            let files: Vec<&str> = files.into_iter().map(String::as_str).collect();
            format!("{title}:\n{}\n", files.join("\n"))
        };
        [
            line("both", stdio.intersection(http).collect()),
            line("only stdio", stdio.difference(http).collect()),
            line("only HTTP", http.difference(stdio).collect()),
        ]
        .concat()
    };
    assert!(found == expected, "the page lists others; it should say\n\n{}", described(&found));
    for ((files, most), transport) in found.iter().zip(MOST).zip(["stdio", "HTTP"]) {
        assert!(files.len() <= most, "{} files over {transport}, at most {most}", files.len());
    }
}
