//! What needs other programs than Rust, git and a C compiler. One binary, to link once; the official suite is another one, since
//! some of its scenarios measure milliseconds.
//!
//! | module | needs |
//! |---|---|
//! | `apps` | Node 22, for its Chromium |
//! | `client` | Node, Python |
//! | `examples` | the programs of `examples`; SQLite and `regex`, which take long to compile |
//! | `instrument` | the attributes of `tracing`, which take long to compile |
//! | `interop` | Node, Python |
//! | `licences` | Python |
//! | `nginx` | nginx |
//! | `openapi` | npm |
//! | `packages` | tar |
//! | `postgres` | PostgreSQL |
//! | `prometheus` | promtool; Prometheus, if asked for |
//! | `redis`, `shared` | Redis; Valkey, if there is one |
//! | `routes` | the crate `utoipa`, which takes long to compile |
//! | `search` | npm |
//! | `schema_oracle` | the crates `jsonschema` and `proptest`, which take long to compile |
//! | `telemetry` | the SDK of OpenTelemetry, which takes long to compile |
//! | `tls` | aws-lc, which takes long to compile |

mod apps;
mod client;
mod examples;
mod instrument;
mod interop;
mod licences;
#[cfg(unix)]
mod nginx;
mod openapi;
mod packages;
#[cfg(unix)]
mod postgres;
mod prometheus;
#[cfg(unix)]
mod redis;
mod routes;
mod schema_oracle;
mod search;
#[cfg(unix)]
#[path = "../shared/mod.rs"]
mod shared;
#[cfg(unix)]
mod stores;
mod telemetry;
mod tls;

#[cfg(unix)]
use stores::stores;
