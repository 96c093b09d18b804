//! Real authorization servers, whose only user is signed in and consents to everything, and the browser that a user
//! would have.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use super::{Missing, child::Guard, manifest_dir, package};
use crate::support::{HttpRequest, HttpResponse};

const START: Duration = Duration::from_secs(60);

/// The first Node that `oidc-provider` works with.
const LEAST_NODE: u32 = 20;

/// Where to redirect a user of [`sign_in`] to; nothing listens there.
pub const CALLBACK: &str = "http://localhost:1/callback";

/// An authorization server that people use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Software {
    /// `oidc-provider` on npm.
    OidcProvider,
    /// `authlib` on PyPI.
    Authlib,
}

/// A running authorization server. Access tokens are JWTs (ES256, RFC 9068) for the resource that a client names, refresh
/// tokens rotate, and a client registers itself.
#[derive(Debug)]
pub struct AuthorizationServer {
    /// Its URL, which is the `iss` of its tokens.
    pub issuer: String,
    _process: Guard,
}

impl AuthorizationServer {
    /// Installs it if necessary, and starts it on a free port. Access tokens live for `lifetime`.
    ///
    /// # Errors
    ///
    /// If Node or Python is missing.
    ///
    /// # Panics
    ///
    /// If it cannot be installed or does not start.
    pub fn start(software: Software, lifetime: Duration) -> Result<Self, Missing> {
        let (interpreter, script) = software.install()?;
        let mut command = Command::new(interpreter);
        command.arg(script).arg(lifetime.as_secs().to_string()).env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Guard(command.spawn().expect("an installed interpreter can be run"));
        let stdout = process.0.stdout.take().expect("stdout is a pipe");
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(BufReader::new(stdout).lines().next()));
        let line = receiver.recv_timeout(START).ok().flatten().and_then(Result::ok);
        let issuer = line.unwrap_or_else(|| panic!("{software:?} did not start"));
        Ok(Self { issuer, _process: process })
    }
}

impl Software {
    /// Every authorization server.
    pub const ALL: [Self; 2] = [Self::OidcProvider, Self::Authlib];

    /// The interpreter and the script.
    fn install(self) -> Result<(PathBuf, PathBuf), Missing> {
        let folder = manifest_dir().join("external/authorization_server");
        let read = |name: &str| {
            fs::read_to_string(folder.join(name))
                .unwrap_or_else(|error| panic!("cannot read `{name}`: {error}"))
        };
        match self {
            Self::OidcProvider => {
                // Node resolves packages relative to the importing file
                let script = package::npm(&read("package.json"))?.join("oidc_provider.mjs");
                package::write(&script, &read("oidc_provider.mjs"));
                Ok((package::node(LEAST_NODE)?, script))
            }
            Self::Authlib => {
                Ok((package::python(&read("requirements.txt"))?, folder.join("authlib_server.py")))
            }
        }
    }
}

/// What a browser does with the URL of an authorization request: follows redirects, with cookies, until one leaves for a
/// URL that starts with `callback`. Returns that URL, with the code or the error in its query.
///
/// # Panics
///
/// If a page comes instead, which would ask a user.
pub async fn sign_in(url: &str, callback: &str) -> String {
    let mut url = url.to_owned();
    let mut cookies: BTreeMap<String, String> = BTreeMap::new();
    for _ in 0..16 {
        if url.starts_with(callback) {
            return url;
        }
        let sent: Vec<String> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let (host, response) = get(&url, &sent.join("; ")).await;
        for cookie in response.headers("set-cookie") {
            let pair = cookie.split(';').next().unwrap_or_default();
            let (name, value) = pair.split_once('=').expect("a cookie");
            cookies.insert(name.to_owned(), value.to_owned());
        }
        let location = response.header("location");
        let location =
            location.unwrap_or_else(|| panic!("{} from `{url}`: {}", response.status, response.text()));
        url =
            if location.starts_with('/') { format!("http://{host}{location}") } else { location.to_owned() };
    }
    panic!("redirected in a circle: `{url}`")
}

/// Shows a page of this machine.
pub async fn visit(url: &str) {
    let _ = get(&url.replacen("localhost", "127.0.0.1", 1), "").await;
}

/// The host of a URL of this machine, and the response to a GET.
async fn get(url: &str, cookies: &str) -> (String, HttpResponse) {
    let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("`{url}` is not on this machine"));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let request = HttpRequest::new("GET")
        .path(&format!("/{path}"))
        .with("Host", host)
        .header("Cookie", cookies)
        .header("Connection", "close");
    (host.to_owned(), request.send(host.parse().expect("an address")).await)
}
