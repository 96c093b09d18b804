//! An existing axum app with several customers, extended by an MCP endpoint: behind the app's sign-in, on the data of the
//! caller's company, under a prefix, and with a graceful shutdown.
//!
//! ```sh
//! cargo run --example gateway -- 127.0.0.1:8080
//! curl -H 'Authorization: Bearer ada-of-acme' http://127.0.0.1:8080/api/orders
//! ```
//!
//! The MCP endpoint is `http://127.0.0.1:8080/api/mcp`, with the same header. `PUBLIC_HOST=shop.example.com` serves it
//! under that name.

mod company;
mod sign_in;

use std::{future::Future, io, time::Duration};

use axum::{Router, middleware, routing::get};
use mcp_runtime::http::HttpService;
use tokio::{net::TcpListener, sync::watch, time::sleep};

pub(crate) use company::Companies;
use company::Company;
use sign_in::{User, Users};

/// The time in which calls may finish after the process is told to stop.
const GRACE: Duration = Duration::from_secs(20);

/// The existing app, without MCP: routes behind a middleware that identifies the user.
fn api() -> Router {
    Router::new().route("/orders", get(company::orders))
}

/// The MCP endpoint.
pub(crate) fn mcp(public_host: Option<&str>) -> mcp_runtime::Result<HttpService> {
    mcp_runtime::server!()
        .info(|info| info.name("gateway"))
        .tool::<company::list_orders>()
        .tool::<company::ship>()
        .resource::<company::order>()
        .http(|http| {
            // sessions and calls belong to the `User` of the request, who needs the `scopes` of an item
            let http = http.caller_from::<User>().from_request::<Company>();
            match public_host {
                Some(host) => http.allowed_hosts([host]),
                // only local names
                None => http,
            }
        })
        .build()?
        .into_service()
}

/// The app with MCP.
pub(crate) fn app(mcp: HttpService, companies: Companies) -> Router {
    let signed_in = api()
        // a service can be mounted at any path
        .nest_service("/mcp", mcp)
        .layer(middleware::from_fn_with_state((Users::default(), companies), sign_in::sign_in));
    Router::new().nest("/api", signed_in).route("/health", get(|| async { "ok" }))
}

/// Serves until `stop` completes, then finishes running calls.
async fn serve(
    listener: TcpListener,
    mcp: HttpService,
    stop: impl Future + Send + 'static,
) -> io::Result<()> {
    let app = app(mcp.clone(), Companies::default());
    let (stopping, mut stopped) = watch::channel(());
    let stop = async move {
        stop.await;
        // ends the streams of clients that listen for changes, which would keep their connections open
        mcp.stop();
        stopping.send_replace(());
    };
    tokio::select! {
        served = async { axum::serve(listener, app).with_graceful_shutdown(stop).await } => served,
        () = async { _ = stopped.changed().await; sleep(GRACE).await } => {
            eprintln!("some calls took longer than {GRACE:?}");
            Ok(())
        }
    }
}

/// Completes when the process is told to stop.
async fn told_to_stop() -> io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let public_host = std::env::var("PUBLIC_HOST").ok();
    let mcp = mcp(public_host.as_deref())?;
    let listener = TcpListener::bind(address).await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    serve(listener, mcp, told_to_stop()).await?;
    Ok(())
}
