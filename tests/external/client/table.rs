//! Every server of other people that the client is held against, as one table: over stdio and HTTP, with the revision
//! that is negotiated, a legacy one and the modern one. It installs and builds a lot, so it runs when it is asked for:
//!
//! `cargo test -p mcp-external-tests --test external -- --ignored --nocapture the_table_of_foreign_servers`

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use mcp_external_tests::package;
use mcp_runtime::{
    Revision,
    client::{Client, ClientBuilder, Error},
};
use mcp_tests::programs::{cache_dir, child, example, profile_dir, workspace_dir};
use serde_json::{Value, json};
use tokio::time::timeout;

const NPM: &str = r#"{
  "private": true,
  "type": "module",
  "dependencies": {
    "@modelcontextprotocol/node": "2.1.2",
    "@modelcontextprotocol/server": "2.4.0",
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
    "@modelcontextprotocol/server-memory": "2026.8.31",
    "zod": "4.1.13"
  }
}
"#;
const OFFICIAL_PYTHON: &str = "mcp==2.3.0\nmcp-server-git==2026.10.19\nmcp-server-time==2026.10.19\n";
const FASTMCP: &str = "fastmcp==4.1.0\n";

/// How a server is reached.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Stdio,
    Http,
    HttpSse,
}

/// A server, and a call of it whose result is known.
struct Foreign {
    name: &'static str,
    way: Way,
    program: PathBuf,
    /// `{port}` is a free one.
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    tool: &'static str,
    call: Value,
    /// A part of the text.
    expected: String,
}

/// A server over HTTP, which ends with this.
struct Running {
    _process: child::Guard,
    address: SocketAddr,
}

fn start(server: &Foreign) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let port = address.port().to_string();
    let mut command = Command::new(&server.program);
    command.args(server.arguments.iter().map(|argument| argument.replace("{port}", &port)));
    command.envs(server.environment.iter().map(|(name, value)| (name, value.replace("{port}", &port))));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let process = child::Guard(command.spawn().unwrap());
    let begun = Instant::now();
    while TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(30), "`{}` does not listen", server.name);
        std::thread::sleep(Duration::from_millis(50));
    }
    Running { _process: process, address }
}

/// What one connection with these options shows: the revision and the number of tools, or why there is none.
async fn cell(server: &Foreign, running: Option<&Running>, options: ClientBuilder) -> String {
    let attempt = async {
        let client = match (server.way, running) {
            (Way::Http, Some(running)) => options.connect(format!("http://{}/mcp", running.address)).await?,
            (Way::HttpSse, Some(running)) => {
                options.http_sse().connect(format!("http://{}/sse", running.address)).await?
            }
            _ => {
                let mut command = Command::new(&server.program);
                command.args(&server.arguments).envs(server.environment.iter().map(|(n, v)| (n, v)));
                options.connect(command).await?
            }
        };
        let tools = client.tools().await?;
        let result = client.call(server.tool, server.call.clone()).await?.ok()?;
        let text = result.text();
        assert!(text.contains(&server.expected), "`{}`: {text}", server.name);
        // what servers have besides
        for listed in [client.supports("resources"), client.supports("prompts")] {
            if listed {
                client.ping().await?;
            }
        }
        if client.supports("resources") {
            client.resources().await?;
            client.templates().await?;
        }
        if client.supports("prompts") {
            client.prompts().await?;
        }
        let revision = client.revision().map(|revision| revision.to_string()).unwrap_or_default();
        client.close().await;
        Ok::<_, Error>(format!("{revision}, {} tools", tools.len()))
    };
    match timeout(Duration::from_secs(60), attempt).await {
        Ok(Ok(text)) => text,
        Ok(Err(Error::Unsupported { .. })) => "no such revision".to_owned(),
        Ok(Err(error)) => format!("FAILED: {}", error.to_string().lines().next().unwrap_or_default()),
        Err(_) => "FAILED: no end".to_owned(),
    }
}

fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    package::write(&path, text);
    path
}

/// The rmcp server of the benchmarks.
fn rmcp() -> PathBuf {
    let manifest = workspace_dir().join("tests/bench/rmcp/Cargo.toml");
    let target = profile_dir().join("foreign");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--manifest-path"]).arg(manifest).arg("--target-dir").arg(&target);
    let built = child::run(&mut cargo, "", Duration::from_secs(900)).expect("cargo can be run");
    let _ = built.or_panic("building the rmcp server");
    target.join("debug").join(format!("bench-rmcp{}", std::env::consts::EXE_SUFFIX))
}

#[allow(clippy::too_many_lines)] // a list
fn servers() -> Vec<Foreign> {
    let packages = package::npm(NPM).expect("npm");
    let node = package::node(20).expect("Node");
    let official = package::python(OFFICIAL_PYTHON).expect("Python");
    let fastmcp = package::python(FASTMCP).expect("Python");
    let scripts = cache_dir("foreign-servers");
    std::fs::create_dir_all(&scripts).unwrap();
    let typescript = write(&packages, "add.mjs", include_str!("scripts/add.mjs"));
    let of_mcp = write(&scripts, "add_mcp.py", include_str!("scripts/add_mcp.py"));
    let of_fastmcp = write(&scripts, "add_fastmcp.py", include_str!("scripts/add_fastmcp.py"));
    let repository = scripts.join("repository");
    let git = Command::new("git").arg("init").arg("-q").arg(&repository).status();
    assert!(git.is_ok_and(|status| status.success()), "git");
    let rmcp = rmcp();
    let everything = example::binary("everything");

    let text = |path: &Path| path.display().to_string();
    let module = |server: &str| {
        text(&packages.join("node_modules/@modelcontextprotocol").join(server).join("dist/index.js"))
    };
    let server = |name, way, program: &Path, arguments: &[&str], tool, call, expected: &str| Foreign {
        name,
        way,
        program: program.to_owned(),
        arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        environment: Vec::new(),
        tool,
        call,
        expected: expected.to_owned(),
    };
    let sum = || json!({ "a": 2, "b": 3 });
    let echo = || json!({ "message": "tea" });
    let utc = || json!({ "timezone": "UTC" });
    let of_repository = json!({ "repo_path": repository });
    let (files, graph, all) =
        (module("server-filesystem"), module("server-memory"), module("server-everything"));
    let with_port = |mut server: Foreign| {
        server.environment.push(("PORT", "{port}".to_owned()));
        server
    };
    let memory_file = ("MEMORY_FILE_PATH", text(&scripts.join("memory.jsonl")));
    let mut memory =
        server("server-memory", Way::Stdio, &node, &[&graph], "read_graph", json!({}), "entities");
    memory.environment.push(memory_file);
    vec![
        server("server-everything", Way::Stdio, &node, &[&all, "stdio"], "echo", echo(), "Echo: tea"),
        with_port(server(
            "server-everything",
            Way::Http,
            &node,
            &[&all, "streamableHttp"],
            "echo",
            echo(),
            "Echo: tea",
        )),
        with_port(server(
            "server-everything",
            Way::HttpSse,
            &node,
            &[&all, "sse"],
            "echo",
            echo(),
            "Echo: tea",
        )),
        server(
            "server-filesystem",
            Way::Stdio,
            &node,
            &[&files, &text(&packages)],
            "list_directory",
            json!({ "path": packages }),
            "package.json",
        ),
        memory,
        server(
            "mcp-server-git",
            Way::Stdio,
            &official,
            &["-m", "mcp_server_git"],
            "git_status",
            of_repository,
            "No commits",
        ),
        server(
            "mcp-server-time",
            Way::Stdio,
            &official,
            &["-m", "mcp_server_time"],
            "get_current_time",
            utc(),
            "UTC",
        ),
        server("FastMCP 4.1.0", Way::Stdio, &fastmcp, &[&text(&of_fastmcp)], "add", sum(), "5"),
        server("FastMCP 4.1.0", Way::Http, &fastmcp, &[&text(&of_fastmcp), "{port}"], "add", sum(), "5"),
        server("mcp 2.3.0 (Python)", Way::Stdio, &official, &[&text(&of_mcp)], "add", sum(), "5"),
        server("mcp 2.3.0 (Python)", Way::Http, &official, &[&text(&of_mcp), "{port}"], "add", sum(), "5"),
        server("TypeScript SDK 2.4.0", Way::Stdio, &node, &[&text(&typescript)], "add", sum(), "5"),
        server("TypeScript SDK 2.4.0", Way::Http, &node, &[&text(&typescript), "{port}"], "add", sum(), "5"),
        server("rmcp 3.9.0", Way::Stdio, &rmcp, &["stdio"], "add", sum(), "5"),
        server("rmcp 3.9.0", Way::Http, &rmcp, &["http", "{port}"], "add", sum(), "5"),
        server(
            "our `everything`",
            Way::Stdio,
            &everything,
            &["stdio"],
            "test_simple_text",
            json!({}),
            "simple text",
        ),
        server(
            "our `everything`",
            Way::Http,
            &everything,
            &["--http", "127.0.0.1:{port}"],
            "test_simple_text",
            json!({}),
            "simple text",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "installs packages and builds programs for minutes"]
async fn the_table_of_foreign_servers() {
    let servers = tokio::task::spawn_blocking(servers).await.unwrap();
    let mut table = "| server | over | negotiated | pinned to 2025-11-25 | pinned to 2026-07-28 |\n|---|---|---|---|---|\n".to_owned();
    for server in &servers {
        let running = (server.way != Way::Stdio).then(|| start(server));
        let way = match server.way {
            Way::Stdio => "stdio",
            Way::Http => "HTTP",
            Way::HttpSse => "HTTP+SSE",
        };
        let mut cells = Vec::new();
        for revision in [None, Some(Revision::V2025_11_25), Some(Revision::V2026_07_28)] {
            let options = match revision {
                Some(revision) => Client::builder().revision(revision),
                None => Client::builder(),
            };
            cells.push(cell(server, running.as_ref(), options).await);
        }
        let line = format!("| {} | {way} | {} |\n", server.name, cells.join(" | "));
        eprint!("{line}");
        table.push_str(&line);
        assert!(!cells[0].starts_with("no such"), "{line}");
    }
    eprintln!("\n{table}");
    assert!(!table.contains("FAILED"), "{table}");
}
