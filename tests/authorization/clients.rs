//! The clients that sign in.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_runtime::client::{Client, OAuth};
use mcp_tests::external::{
    Missing,
    authorization_server::{CALLBACK, sign_in},
    child, manifest_dir, package,
};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(90);

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
    /// `mcp-remote` on npm, between a client of stdio and the server.
    McpRemote,
}

impl AuthorizedClient {
    pub(crate) const ALL: [Self; 5] =
        [Self::Own, Self::Python, Self::TypeScript, Self::FastMcp, Self::McpRemote];

    /// Signs in, lists, reads, writes, waits until the token has expired, and reads again.
    pub(crate) async fn run(self, url: &str, wait: Duration) -> Result<Value, Missing> {
        match self {
            Self::Own => return Ok(run_own(url, wait).await),
            Self::McpRemote => return run_mcp_remote(url, wait).await,
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
            Self::Own | Self::McpRemote => unreachable!("it is used by this process"),
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

/// A client of stdio behind `mcp-remote`, which signs in and opens its user's browser.
async fn run_mcp_remote(url: &str, wait: Duration) -> Result<Value, Missing> {
    let folder = install_scripts(&read("authorization/typescript/mcp_remote.json"), &["browse.mjs"])?;
    let node = package::node(LEAST_NODE)?;
    let run = folder.join(format!("run-{}", std::process::id()));
    fs::create_dir_all(&run).expect("a folder can be made");
    let browser = run.join("xdg-open");
    let script =
        format!("#!/bin/sh\nexec {} {} \"$1\"\n", node.display(), folder.join("browse.mjs").display());
    package::write(&browser, &script);
    make_executable(&browser);
    let path = format!("{}:{}", run.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(node);
    command
        .arg(folder.join("node_modules/mcp-remote/dist/proxy.js"))
        .arg(url)
        .env("PATH", path)
        .env("MCP_REMOTE_CONFIG_DIR", run.join("tokens"));
    let client = Client::connect(command).await.expect("it signs in");
    let mut report = use_client(&client, wait).await;
    // it asks for every scope at once, and does not say how often
    report["visits"] = 2.into();
    client.close().await;
    let _ = fs::remove_dir_all(run);
    Ok(report)
}

#[cfg(unix)]
fn make_executable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("the file is this test's");
}

#[cfg(not(unix))]
fn make_executable(_: &std::path::Path) {}

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
