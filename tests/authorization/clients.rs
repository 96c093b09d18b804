//! The clients that sign in.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use mcp_runtime::client::{Client, OAuth};
use mcp_tests::external::{
    Missing,
    authorization_server::{CALLBACK, sign_in, visit},
    child, manifest_dir, package,
};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(90);

/// How long a client may print nothing.
const STEP: Duration = Duration::from_secs(30);

/// The first Node that the TypeScript SDK supports.
const LEAST_NODE: u32 = 20;

#[derive(Debug, Clone, Copy)]
pub(crate) enum AuthorizedClient {
    /// That of this crate.
    Own,
    /// `mcp` on PyPI.
    Python,
    /// `@modelcontextprotocol/client` on npm.
    TypeScript,
    /// `fastmcp` on PyPI.
    FastMcp,
    /// `mcp-remote` on npm, its client that connects and lists.
    McpRemote,
}

impl AuthorizedClient {
    pub(crate) const ALL: [Self; 5] =
        [Self::Own, Self::Python, Self::TypeScript, Self::FastMcp, Self::McpRemote];

    /// Signs in, lists, reads, writes, waits until the token has expired, and reads again.
    pub(crate) async fn run(self, url: &str, wait: Duration) -> Result<Value, Missing> {
        match self {
            Self::Own => return Ok(run_own(url, wait).await),
            Self::McpRemote => {
                let url = url.to_owned();
                let run = tokio::task::spawn_blocking(move || run_mcp_remote(&url));
                return run.await.expect("the client runs to its end");
            }
            Self::Python | Self::TypeScript | Self::FastMcp => {}
        }
        let url = url.to_owned();
        let run = move || {
            let mut command = self.command()?;
            command.args([&url, CALLBACK, &wait.as_secs().to_string()]).env("PYTHONDONTWRITEBYTECODE", "1");
            let finished = child::run(&mut command, "", LIMIT).expect("an installed interpreter can be run");
            let printed = finished.or_panic(&format!("{command:?}"));
            Ok(serde_json::from_str(&printed)
                .unwrap_or_else(|error| panic!("{error} in the report:\n{printed}")))
        };
        tokio::task::spawn_blocking(run).await.expect("the client runs to its end")
    }

    fn command(self) -> Result<Command, Missing> {
        let mut command;
        match self {
            Self::Own | Self::McpRemote => unreachable!("they need more than a command"),
            Self::TypeScript => {
                let scripts = install_scripts(
                    &read("interop/typescript/package.json"),
                    &["authorize.mjs", "browse.mjs"],
                )?;
                command = Command::new(package::node(LEAST_NODE)?);
                command.arg(scripts.join("authorize.mjs"));
            }
            Self::Python | Self::FastMcp => {
                let is_fastmcp = matches!(self, Self::FastMcp);
                let requirements = if is_fastmcp {
                    "authorization/python/fastmcp.txt"
                } else {
                    "interop/python/requirements.txt"
                };
                command = Command::new(package::python(&read(requirements))?);
                command.arg(manifest_dir().join("authorization/python/authorize.py"));
                command.arg(if is_fastmcp { "fastmcp" } else { "sdk" });
            }
        }
        Ok(command)
    }
}

fn read(name: &str) -> String {
    fs::read_to_string(manifest_dir().join(name))
        .unwrap_or_else(|error| panic!("cannot read `{name}`: {error}"))
}

/// Installs npm packages, with these scripts of `typescript/` beside them, where Node finds what they import.
fn install_scripts(manifest: &str, scripts: &[&str]) -> Result<PathBuf, Missing> {
    let folder = package::npm(manifest)?;
    for name in scripts {
        package::write(&folder.join(name), &read(&format!("authorization/typescript/{name}")));
    }
    Ok(folder)
}

/// The client of `mcp-remote` signs in and lists what there is; it calls nothing, and asks for all scopes at once.
fn run_mcp_remote(url: &str) -> Result<Value, Missing> {
    let folder = package::npm(&read("authorization/typescript/mcp_remote.json"))?;
    let tokens = folder.join(format!("tokens-{}", std::process::id()));
    let mut command = Command::new(package::node(LEAST_NODE)?);
    command
        .arg(folder.join("node_modules/mcp-remote/dist/client.js"))
        .arg(url)
        // no browser is found
        .env("PATH", folder.join("nothing"))
        .env("MCP_REMOTE_CONFIG_DIR", &tokens)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut process = child::Guard(command.spawn().expect("an installed interpreter can be run"));
    let stderr = process.0.stderr.take().expect("stderr is a pipe");
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        BufReader::new(stderr).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    let (mut printed, mut tools) = (String::new(), Vec::new());
    while let Ok(line) = lines.recv_timeout(STEP) {
        if line.trim_start().starts_with("http://") && line.contains("response_type=code") {
            let runtime = tokio::runtime::Handle::current();
            let answer = runtime.block_on(sign_in(line.trim(), "http://localhost:"));
            runtime.block_on(visit(&answer));
        }
        tools.extend(
            ["read_note", "write_note"].into_iter().filter(|tool| line.contains(&format!("\"{tool}\""))),
        );
        printed.push_str(&line);
        printed.push('\n');
        if tools.len() == 2 {
            break;
        }
    }
    drop(process);
    let _ = fs::remove_dir_all(tokens);
    assert_eq!(tools.len(), 2, "{printed}");
    tools.sort_unstable();
    Ok(json!({ "tools": tools }))
}

async fn run_own(url: &str, wait: Duration) -> Value {
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = visits.clone();
    let oauth = OAuth::authorization_code(CALLBACK, move |url: String| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { Ok(sign_in(&url, CALLBACK).await) }
    });
    let client = Client::builder().oauth(oauth).connect(url).await.expect("it signs in");
    let mut report = use_client(&client, wait).await;
    report["visits"] = visits.load(Ordering::Relaxed).into();
    report
}

/// Lists, reads, writes, waits, and reads again.
async fn use_client(client: &Client, wait: Duration) -> Value {
    let mut tools: Vec<String> =
        client.tools().await.expect("tools").iter().map(|tool| tool.name().to_owned()).collect();
    tools.sort();
    let call = async |name: &str| {
        let result = client.call(name, json!({})).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        result.text()
    };
    let (read, written) = (call("read_note").await, call("write_note").await);
    tokio::time::sleep(wait).await;
    let again = call("read_note").await;
    json!({ "tools": tools, "read": read, "written": written, "again": again })
}
