//! Settings from flags, environment variables, a TOML file and defaults, and state that is made of them.
//!
//! ```sh
//! cargo run --example convert -- --help
//! cargo run --example convert -- config                                   # values, and where each comes from
//! cargo run --example convert -- call convert '{"amount": 5, "to": "CHF"}'  # says what is missing
//! LEDGER_RATES_KEY=sk-demo cargo run --example convert -- --timeout=9s --base EUR call convert '{"amount": 5, "to": "CHF"}'
//! ```

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use mcp_runtime::{ServerBuilder, config::Secret, prelude::*};

/// A currency, by its code.
#[mcp_type]
#[derive(Debug, Clone, Copy, PartialEq)]
#[serde(rename_all = "UPPERCASE")]
enum Currency {
    Chf,
    Eur,
    Usd,
}

#[mcp_config(name = "ledger")]
#[derive(Debug)]
pub(crate) struct Settings {
    /// Where the ledger is kept; without one, nothing is recorded
    database: Option<PathBuf>,
    /// Key of the exchange-rate service
    #[mcp(secret)]
    rates_key: Secret<String>,
    /// How long the exchange-rate service may take
    #[mcp(default = "5s")]
    timeout: Duration,
    /// The currency that amounts are in
    #[mcp(default = Currency::Usd)]
    base: Currency,
    /// What may be converted
    limits: Limits,
}

#[mcp_config]
#[derive(Debug)]
struct Limits {
    /// The largest amount
    #[mcp(default = 10_000, range(1..=1_000_000))]
    max_amount: u64,
}

/// What was converted, one line each.
struct Ledger(Option<Mutex<File>>);

impl Ledger {
    fn open(path: Option<&Path>) -> io::Result<Self> {
        let file = path.map(|path| File::options().create(true).append(true).open(path)).transpose()?;
        Ok(Self(file.map(Mutex::new)))
    }

    fn record(&self, line: &str) -> io::Result<()> {
        match &self.0 {
            Some(file) => writeln!(file.lock().unwrap_or_else(PoisonError::into_inner), "{line}"),
            None => Ok(()),
        }
    }
}

/// Instead of a request to the service, which would send the key and wait for `timeout`.
fn rate(from: Currency, to: Currency, _key: &Secret<String>, _timeout: Duration) -> f64 {
    let in_usd = |currency| match currency {
        Currency::Chf => 1.25,
        Currency::Eur => 1.16,
        Currency::Usd => 1.0,
    };
    in_usd(from) / in_usd(to)
}

/// Converts an amount into another currency.
#[mcp_tool]
fn convert(
    #[mcp(range(0..))] amount: u64,
    to: Currency,
    settings: &Settings,
    ledger: &Ledger,
) -> Result<String, ToolError> {
    let most = settings.limits.max_amount;
    if amount > most {
        return Err(format!("at most {most} can be converted at once").into());
    }
    let rate = rate(settings.base, to, &settings.rates_key, settings.timeout);
    let line = format!("{amount} {:?} = {:.2} {to:?}", settings.base, amount as f64 * rate);
    ledger.record(&line)?;
    Ok(line)
}

/// Which currencies there are: works without settings.
#[mcp_tool(read_only)]
fn currencies() -> &'static str {
    "CHF, EUR, USD"
}

pub(crate) fn server() -> ServerBuilder {
    mcp_runtime::server!()
        .info(|info| info.name("ledger"))
        .config::<Settings>()
        .state_from(|settings: &Settings| Ledger::open(settings.database.as_deref()))
        .tool::<convert>()
        .tool::<currencies>()
}

fn main() -> mcp_runtime::Result<()> {
    server().run()
}
