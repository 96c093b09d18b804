//! The `settings` server of the tests: settings of every kind, and functions that show them in every way that they can.

use std::{
    collections::HashMap,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use mcp_runtime::{
    config::{Config as _, Secret},
    prelude::*,
    tool::{ToolCall, ToolDef},
};
use tokio::runtime::Handle;

/// How much is logged.
#[mcp_type]
#[derive(Debug, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Level {
    Low,
    High,
}

#[mcp_config(name = "probe")]
#[derive(Debug)]
struct Settings {
    /// Where things are
    #[mcp(default = "~/probe.db")]
    database: PathBuf,
    /// The token of the service
    #[mcp(secret, length(8..))]
    token: Secret<String>,
    /// Seconds
    #[mcp(default = 5, range(1..=60))]
    timeout: u64,
    #[mcp(env = "LEVEL_OF_PROBE", default = Level::Low)]
    level: Level,
    tags: Option<Vec<String>>,
    #[mcp(flag = "wait-for")]
    wait: Option<Duration>,
    /// Between two attempts
    wait_between: Option<Duration>,
    #[mcp(default)]
    verbose: bool,
    limits: Limits,
    proxy: Option<Proxy>,
    #[mcp(default)]
    hosts: Vec<Host>,
    #[mcp(default)]
    labels: HashMap<String, String>,
    /// What each key is worth
    #[mcp(secret, default)]
    grants: Option<Secret<HashMap<String, u32>>>,
    #[serde(flatten)]
    common: Common,
}

/// What is bounded
#[mcp_config]
#[derive(Debug)]
struct Limits {
    /// How many at once
    #[mcp(default = 3, range(1..))]
    most: u32,
    #[mcp(default = "1m")]
    within: Duration,
}

#[mcp_type]
#[derive(Debug)]
struct Proxy {
    url: String,
    #[serde(default)]
    password: Option<Secret<String>>,
}

#[mcp_config]
#[derive(Debug)]
#[allow(dead_code, reason = "only shown")]
struct Host {
    name: String,
    #[mcp(secret)]
    key: Secret<String>,
}

#[mcp_config]
#[derive(Debug)]
struct Common {
    /// Which data centre
    #[mcp(default = "eu", one_of("eu", "us"))]
    region: String,
}

/// State that is made of the settings.
struct Store(String);

impl Store {
    fn open(path: &Path, token: &Secret<String>) -> Result<Self, String> {
        if path.ends_with("refused") {
            // a mistake that libraries make
            return Err(format!("cannot log in to {} with {}", path.display(), token.expose()));
        }
        Ok(Self(path.display().to_string()))
    }
}

/// State that is made of state.
struct Index(usize);

/// State that is made in the runtime.
struct Connections(usize);

impl Connections {
    async fn open(settings: &Settings) -> Result<Self, io::Error> {
        tokio::task::yield_now().await;
        if settings.database.ends_with("unreachable") {
            return Err(io::Error::other(format!("no answer to {}", settings.token.expose())));
        }
        writeln!(io::stderr(), "the connections are open")?;
        Ok(Self(1))
    }
}

/// Shows everything.
#[mcp_tool]
fn show(settings: &Settings) -> String {
    let grants = settings.grants.as_ref().map_or(0, |grants| grants.expose().len());
    format!("{settings:?} {} {} {grants}", settings.token, settings.token.expose().len())
}

/// Shows everything as JSON.
#[mcp_tool]
fn json(settings: &Settings) -> String {
    serde_json::to_string(settings).unwrap_or_default()
}

/// Panics with everything.
#[mcp_tool]
fn panics(settings: &Settings) -> String {
    panic!("{settings:?}")
}

/// Fails with everything.
#[mcp_tool]
fn fails(settings: &Settings) -> Result<String, io::Error> {
    Err(io::Error::other(format!("{settings:?}")))
}

/// Uses what is made of the settings.
#[mcp_tool]
fn place(store: &Store, index: &Index) -> String {
    format!("{} {}", store.0, index.0)
}

/// Uses what was made in the runtime.
#[mcp_tool]
fn connections(open: &Connections) -> usize {
    open.0
}

/// Does without settings.
#[mcp_tool]
fn free() -> &'static str {
    "free"
}

/// Says whether there are settings.
#[mcp_tool]
fn maybe(settings: Option<&Settings>) -> bool {
    settings.is_some()
}

/// A resource of the settings.
#[mcp_resource(uri = "probe://region")]
fn region(settings: &Settings) -> String {
    settings.common.region.clone()
}

/// A prompt of the settings.
#[mcp_prompt]
fn ask(settings: &Settings) -> String {
    format!("Ask {}.", settings.common.region)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::var_os("PROBE_LOADS").is_some() {
        let settings = Settings::load()?;
        return Ok(writeln!(io::stdout(), "{settings:?}")?);
    }
    let made = |server: mcp_runtime::ServerBuilder| {
        server
            .state_from(|settings: &Settings| Store::open(&settings.database, &settings.token))
            // what many libraries need
            .state_from(|store: &Store| Handle::try_current().map(|_| Index(store.0.len())))
            .state_async(Connections::open)
            .end_state(async |open: &Connections| {
                tokio::task::yield_now().await;
                let _written = writeln!(io::stderr(), "the connections are closed: {}", open.0);
            })
            .discover()
    };
    let named = mcp_runtime::server!().info(|info| info.name("probe"));
    if let Some(way) = std::env::var_os("PROBE_GIVES") {
        let given = mcp_runtime::server!().state(Settings::load()?);
        let server = if way == "mounted" { named.mount("inner", made(given)) } else { made(given) };
        return Ok(server.run()?);
    }
    let mut server = made(named.config::<Settings>());
    if std::env::var_os("PROBE_CONFIGURES").is_some() {
        server = server.configure(|server, settings: &Settings| {
            if settings.database.ends_with("closed") {
                return Err(format!("no entry for {}", settings.token.expose()).into());
            }
            let region = settings.common.region.clone();
            let tool = ToolDef::builder("configured").description("Which data centre.");
            let server = server.info(|info| info.instructions(format!("In {region}.")));
            Ok(server.add(tool.handler(move |_: ToolCall| std::future::ready(region.clone()))))
        });
    }
    let listed = |name| {
        let text = std::env::var_os(name)?.to_string_lossy().into_owned();
        Some(text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    };
    if let Some(arguments) = listed("PROBE_ARGUMENTS") {
        return Ok(server.run_with_args(arguments)?);
    }
    if let Some(arguments) = listed("PROBE_LATE_ARGUMENTS") {
        return Ok(server.build()?.run_with_args(arguments)?);
    }
    debug_assert!(Settings::DESCRIPTOR.name.is_some());
    Ok(server.run()?)
}
