//! The programs of these tests: an authorization server, our server that it protects, and clients of others.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::PathBuf,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use mcp_external_tests::{manifest_dir, package, skip};
use mcp_runtime::{Principal, auth::Oauth, prelude::*};
use mcp_tests::support::PATIENCE;
use mcp_tests::{
    programs::child::{self, Guard},
    support::within,
};
use serde_json::Value;
use tokio::{net::TcpListener, sync::oneshot};

/// The first Node that `oidc-provider` supports.
const LEAST_NODE: u32 = 22;

/// Who calls, with which scopes
#[mcp_tool]
fn whoami(caller: &Principal) -> String {
    let mut scopes = caller.scopes().to_vec();
    scopes.sort();
    format!("{} {}", caller.subject(), scopes.join(" "))
}

/// Reads the notes
#[mcp_tool(scopes("notes:read"))]
fn read_notes() -> &'static str {
    "notes"
}

/// Deletes the notes
#[mcp_tool(scopes("notes:read", "notes:write"))]
fn delete_notes() -> &'static str {
    "deleted"
}

/// An authorization server, and what its access tokens are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// `oidc-provider` on npm, with JWTs that are signed with RS256.
    OidcJwt,
    /// The same, with tokens that are asked about.
    OidcOpaque,
    /// `authlib` on PyPI, with JWTs that are signed with ES256.
    Authlib,
    /// `django-oauth-toolkit` on PyPI, with tokens that are asked about, and answers without `sub` and `iss`.
    Django,
}

fn read(name: &str) -> String {
    let path = manifest_dir().join("interop/authorization").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read `{}`: {error}", path.display()))
}

/// Node, and the folder with the npm packages of a manifest.
fn npm(test: &str, manifest: &str) -> Option<(PathBuf, PathBuf)> {
    let installed = package::npm(&read(manifest)).and_then(|dir| Ok((package::node(LEAST_NODE)?, dir)));
    installed.map_err(|missing| skip(test, &missing)).ok()
}

/// Puts a script beside the npm packages that it imports.
fn npm_script(name: &str) -> Option<(PathBuf, PathBuf)> {
    let (node, dir) = npm(name, "package.json")?;
    let script = dir.join(name);
    package::write(&script, &read(name));
    Some((node, script))
}

fn python_script(name: &str) -> PathBuf {
    manifest_dir().join("interop/authorization").join(name)
}

/// The Python that has the packages of a list.
fn python(test: &str, requirements: &str) -> Option<PathBuf> {
    package::python(&read(requirements)).map_err(|missing| skip(test, &missing)).ok()
}

/// A running authorization server.
pub(crate) struct Provider {
    _process: Guard,
    url: String,
    kind: Kind,
}

impl Provider {
    /// Starts one whose access tokens are valid for so many seconds; `None` if it cannot be installed.
    pub(crate) fn start(kind: Kind, seconds: u32) -> Option<Self> {
        let (interpreter, script, format) = match kind {
            Kind::OidcJwt | Kind::OidcOpaque => {
                let (node, script) = npm_script("provider.mjs")?;
                (node, script, Some(if matches!(kind, Kind::OidcJwt) { "jwt" } else { "opaque" }))
            }
            Kind::Authlib => (python("authlib", "requirements.txt")?, python_script("provider.py"), None),
            Kind::Django => {
                (python("django-oauth-toolkit", "django.txt")?, python_script("django_provider.py"), None)
            }
        };
        let mut command = Command::new(interpreter);
        command.arg(script).args(format).arg(seconds.to_string());
        // it is on this machine, without TLS
        command.env("AUTHLIB_INSECURE_TRANSPORT", "1").env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("an installed interpreter can be run");
        let stdout = process.stdout.take().expect("a pipe");
        let process = Guard(process);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert!(line.starts_with("http://"), "the authorization server does not start: {line}");
        Some(Self { _process: process, url: line.trim().to_owned(), kind })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.url.trim_start_matches("http://").parse().expect("an address")
    }
}

/// Our server, for callers with tokens of a provider.
pub(crate) struct Protected {
    url: String,
    _stop: oneshot::Sender<()>,
}

impl Protected {
    pub(crate) async fn start(provider: &Provider) -> Self {
        Self::start_with(provider, |oauth| oauth).await
    }

    pub(crate) async fn start_with(provider: &Provider, options: impl FnOnce(Oauth) -> Oauth) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let oauth = Oauth::issuer(provider.url())
            .resource(&url)
            .scopes(["notes:read", "notes:write"])
            .required_scopes(["notes:read"])
            .clock_skew(Duration::ZERO);
        let oauth = match provider.kind {
            Kind::OidcJwt | Kind::Authlib => oauth.require_access_token_type(),
            Kind::OidcOpaque | Kind::Django => oauth.introspection("mcp", "s&cret"),
        };
        let builder = mcp_runtime::server!().tool::<whoami>().tool::<read_notes>().tool::<delete_notes>();
        let server = builder.auth(options(oauth)).build().expect("a server");
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(server.serve_http_until(listener, async {
            let _dropped = stopped.await;
        }));
        Self { url, _stop: stop }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// A client of others.
#[derive(Debug, Clone, Copy)]
pub(super) enum ForeignClient {
    TypeScript,
    Python,
    /// `fastmcp` on PyPI.
    FastMcp,
}

impl ForeignClient {
    /// The texts that it got from `whoami`, `read_notes` and `delete_notes`.
    pub(super) async fn drive(self, protected: &Protected, provider: &Provider) -> Value {
        let (interpreter, script) = match self {
            Self::TypeScript => npm_script("client.mjs").expect("it was installed for the provider"),
            Self::Python | Self::FastMcp => {
                let is_official = matches!(self, Self::Python);
                let list = if is_official { "../python/requirements.txt" } else { "fastmcp.txt" };
                let Some(python) = python("the Python client gets tokens", list) else {
                    return serde_json::json!(["ada notes:read", "notes", "deleted"]);
                };
                (python, python_script("client.py"))
            }
        };
        let mut command = Command::new(interpreter);
        command.arg(script).args([protected.url(), provider.url(), super::CALLBACK]);
        if matches!(self, Self::FastMcp) {
            command.arg("fastmcp");
        }
        let printed = run(command).await;
        let last = printed.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error} in the report:\n{printed}"))
    }
}

/// What a program prints that must succeed.
async fn run(mut command: Command) -> String {
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let finished = tokio::task::spawn_blocking(move || {
        let finished = child::run(&mut command, "", PATIENCE).expect("an installed interpreter can be run");
        finished.or_panic(&format!("{command:?}"))
    });
    within(finished).await.expect("no panic")
}

/// The report of a scanner on a server, with a token for it, and one for another server of the same provider.
pub(super) async fn scan(protected: &Protected, other: &Protected, provider: &Provider) -> Option<Value> {
    let python = python("mcp-authlab scans a server", "requirements.txt")?;
    let token = async |server: &Protected| {
        let (node, script) = npm_script("client.mjs")?;
        let mut command = Command::new(node);
        command.arg(script).args([server.url(), provider.url(), super::CALLBACK, "token"]);
        let printed = run(command).await;
        serde_json::from_str::<String>(printed.lines().last()?).ok()
    };
    let (own, foreign) = (token(protected).await.expect("a token"), token(other).await.expect("a token"));
    let mut command = Command::new(python.with_file_name("mcp-authlab"));
    command.args(["scan", protected.url(), "--no-login", "--format", "json", "--tool", "delete_notes"]);
    command.env("MCP_AUTHLAB_TOKEN", own).env("MCP_AUTHLAB_FOREIGN_TOKEN", foreign);
    let report = run(command).await;
    Some(serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error} in the report:\n{report}")))
}

/// How long `mcp-remote` may print nothing.
const SILENCE: Duration = Duration::from_secs(30);

/// What `mcp-remote` on npm prints when it signs in and lists, by its client that does nothing else. It opens its user's
/// browser, or prints the page to visit.
pub(super) fn list_with_mcp_remote(protected: &Protected, visit: &dyn Fn(&str)) -> Option<String> {
    let (node, dir) = npm("mcp-remote signs in", "mcp_remote.json")?;
    let tokens = dir.join(format!("tokens-{}", std::process::id()));
    let mut command = Command::new(node);
    command.arg(dir.join("node_modules/mcp-remote/dist/client.js")).arg(protected.url());
    // no browser is found
    command.env("PATH", dir.join("nothing")).env("MCP_REMOTE_CONFIG_DIR", &tokens);
    // it stops at the end of its stdin
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("an installed Node can be run");
    let (sender, lines) = mpsc::channel();
    let (stdout, stderr) = (process.stdout.take().expect("a pipe"), process.stderr.take().expect("a pipe"));
    let read = |pipe: Box<dyn std::io::Read + Send>| {
        let sender = sender.clone();
        thread::spawn(move || {
            BufReader::new(pipe).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
    };
    read(Box::new(stdout));
    read(Box::new(stderr));
    drop(sender);
    let process = Guard(process);
    let mut printed = String::new();
    while let Ok(line) = lines.recv_timeout(SILENCE) {
        if line.starts_with("http://") && line.contains("response_type=code") {
            visit(line.trim());
        }
        printed.push_str(&line);
        printed.push('\n');
        if printed.contains("delete_notes") && printed.contains("read_notes") {
            break;
        }
    }
    drop(process);
    let _ = fs::remove_dir_all(tokens);
    Some(printed)
}
