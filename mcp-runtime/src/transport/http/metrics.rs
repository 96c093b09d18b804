//! Serves the metrics of a server as text for Prometheus: beside the endpoint, or on an address of their own.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    http_error::HttpError,
    response_body::{ResponseBody, empty_response},
};
use crate::core::server::{Error, Result, Server};

/// Connections to the address of the metrics, at most.
const MAX_CONNECTIONS: usize = 16;
/// How long one may stay open.
const MAX_AGE: Duration = Duration::from_secs(60);
/// The path on an address that serves nothing else.
const PATH: &str = "/metrics";

/// The metrics, if they are collected.
pub(super) fn metrics_response(server: &Server, method: &Method) -> Response<ResponseBody> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return HttpError::method_not_allowed("GET, HEAD").into();
    }
    let Some(text) = server.metrics() else { return empty_response(StatusCode::NOT_FOUND) };
    let mut response = Response::new(ResponseBody::complete(text.into_bytes()));
    let headers = response.headers_mut();
    let format = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, format);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The listener of the metrics; they are served until it is dropped.
#[derive(Debug)]
pub(crate) struct MetricsListener(JoinHandle<()>);

impl Drop for MetricsListener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Server {
    /// A warning for an endpoint that other machines reach, if the metrics are beside it.
    pub(super) fn warning_of_metrics(&self) -> Option<&'static str> {
        let is_beside = self.options().telemetry.metrics_path.is_some();
        is_beside.then_some(
            "serving metrics to other machines: every client that reaches the path may read them\n\
             serve them on an address of their own with `.telemetry(|telemetry| telemetry.metrics_address(..))`, \
             or keep the path inside with a rule of the proxy",
        )
    }

    /// Serves the metrics on their own address, if the options name one.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub(crate) async fn serve_metrics(&self) -> Result<Option<MetricsListener>> {
        let Some(address) = self.options().telemetry.metrics_address else { return Ok(None) };
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Error::serve(format!("cannot listen on `{address}`, the address of the metrics")).caused_by(error)
        })?;
        let address: SocketAddr = listener.local_addr()?;
        if !address.ip().is_loopback() {
            tracing::warn!(
                %address,
                "serving metrics to other machines: everyone who reaches the address may read them\n\
                 listen on a loopback address, or let only the collector reach it"
            );
        }
        tracing::info!(%address, path = PATH, "serving metrics");
        let server = self.clone();
        Ok(Some(MetricsListener(tokio::spawn(accept(server, listener)))))
    }
}

async fn accept(server: Server, listener: TcpListener) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // ends the connections with the listener
    let mut connections = tokio::task::JoinSet::new();
    loop {
        // the semaphore is never closed
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        let Ok((socket, _)) = listener.accept().await else {
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let server = server.clone();
        connections.spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let response = match request.uri().path() {
                    PATH => metrics_response(&server, request.method()),
                    _ => empty_response(StatusCode::NOT_FOUND),
                };
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(10))
                .serve_connection(TokioIo::new(socket), service);
            // an error means that the reader has disconnected
            let _closed = timeout(MAX_AGE, connection).await;
            drop(permit);
        });
    }
}
