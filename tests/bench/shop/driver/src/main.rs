//! What drives the shop benchmark: `shop-driver api PORT` is the HTTP service behind the servers, `seed URL` fills Redis,
//! and `load` calls the tools of a server and checks each answer, and prints a line of JSON.
//!
//!     shop-driver load PORT sessions|modern SERVER_TYPE --seconds S --warmup S --connections N [--rate CALLS_PER_SECOND]
//!
//! `sessions` opens a session of 2025-11-25 for each call and ends it; `modern` calls as 2026-07-28 does. With a rate, calls
//! begin at constant intervals, and the time of each counts from when it was due; without, each connection calls again at
//! once.

mod api;
mod load;
mod seed;

use std::{env, error::Error};

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["api", port] => api::serve(port.parse()?).await,
        ["seed", url] => seed::seed(url).await,
        ["load", port, mode, server_type, ref options @ ..] => {
            load::run(load::Options::new(port.parse()?, mode, server_type, options)?).await
        }
        _ => Err("usage: api PORT | seed URL | load PORT sessions|modern SERVER_TYPE OPTIONS".into()),
    }
}
