//! The programs of these tests: an authorization server, our server that it protects, and clients of others.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Command, Stdio},
    time::Duration,
};

use mcp_runtime::{Principal, auth::Oauth, prelude::*};
use mcp_tests::{
    external::{
        child::{self, Guard},
        manifest_dir, package, skip,
    },
    support::within,
};
use serde_json::Value;
use tokio::{net::TcpListener, sync::oneshot};

/// The first Node that `oidc-provider` supports.
const LEAST_NODE: u32 = 22;

const LIMIT: Duration = Duration::from_secs(60);

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

/// What access tokens are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Format {
    Jwt,
    Opaque,
}

fn read(name: &str) -> String {
    let path = manifest_dir().join("interop/authorization").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read `{}`: {error}", path.display()))
}

/// Puts a script beside the npm packages that it imports.
fn npm_script(name: &str) -> Option<(std::path::PathBuf, std::path::PathBuf)> {
    let installed = package::npm(&read("package.json")).and_then(|dir| Ok((package::node(LEAST_NODE)?, dir)));
    match installed {
        Ok((node, dir)) => {
            let script = dir.join(name);
            package::write(&script, &read(name));
            Some((node, script))
        }
        Err(missing) => {
            skip(name, &missing);
            None
        }
    }
}

/// A running `oidc-provider`.
pub(super) struct Provider {
    _process: Guard,
    url: String,
}

impl Provider {
    /// Starts one whose access tokens are valid for so many seconds; `None` if it cannot be installed.
    pub(super) fn start(format: Format, seconds: u32) -> Option<Self> {
        let (node, script) = npm_script("provider.mjs")?;
        let format = match format {
            Format::Jwt => "jwt",
            Format::Opaque => "opaque",
        };
        let mut command = Command::new(node);
        command.arg(script).args([format, &seconds.to_string()]).stdin(Stdio::null());
        let mut process = command.stdout(Stdio::piped()).spawn().expect("an installed Node can be run");
        let stdout = process.stdout.take().expect("a pipe");
        let process = Guard(process);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert!(line.starts_with("http://"), "the authorization server does not start: {line}");
        Some(Self { _process: process, url: line.trim().to_owned() })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.url.trim_start_matches("http://").parse().expect("an address")
    }
}

/// Our server, for callers with tokens of a provider.
pub(super) struct Protected {
    url: String,
    _stop: oneshot::Sender<()>,
}

impl Protected {
    pub(super) async fn start(provider: &Provider, format: Format) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let oauth = Oauth::issuer(provider.url())
            .resource(&url)
            .scopes(["notes:read", "notes:write"])
            .required_scopes(["notes:read"])
            .clock_skew(Duration::ZERO);
        let oauth = match format {
            Format::Jwt => oauth.require_access_token_type(),
            Format::Opaque => oauth.introspection("mcp", "s&cret"),
        };
        let builder = mcp_runtime::server!().tool::<whoami>().tool::<read_notes>().tool::<delete_notes>();
        let server = builder.auth(oauth).build().expect("a server");
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(server.serve_http_until(listener, async {
            let _dropped = stopped.await;
        }));
        Self { url, _stop: stop }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

/// A client of others.
#[derive(Debug, Clone, Copy)]
pub(super) enum ForeignClient {
    TypeScript,
    Python,
}

impl ForeignClient {
    /// The texts that it got from `whoami`, `read_notes` and `delete_notes`.
    pub(super) async fn drive(self, protected: &Protected, provider: &Provider) -> Value {
        let (interpreter, script) = match self {
            Self::TypeScript => npm_script("client.mjs").expect("it was installed for the provider"),
            Self::Python => {
                let path = manifest_dir().join("interop/python/requirements.txt");
                let requirements = fs::read_to_string(path).expect("the packages");
                match package::python(&requirements) {
                    Ok(python) => (python, manifest_dir().join("interop/authorization/client.py")),
                    Err(missing) => {
                        skip("the Python client gets tokens", &missing);
                        return serde_json::json!(["ada notes:read", "notes", "deleted"]);
                    }
                }
            }
        };
        let mut command = Command::new(interpreter);
        command.arg(script).args([protected.url(), provider.url(), super::CALLBACK]);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let printed = within(tokio::task::spawn_blocking(move || {
            let finished = child::run(&mut command, "", LIMIT).expect("an installed interpreter can be run");
            finished.or_panic(&format!("{command:?}"))
        }));
        let printed = printed.await.expect("no panic");
        let last = printed.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error} in the report:\n{printed}"))
    }
}
