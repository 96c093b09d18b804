//! A server that records requests, and descriptions in few words.

use std::{
    future::IntoFuture as _,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    http::Response,
};
use mcp_runtime::{
    serde_json::{Value, json},
    testing::TestServer,
};
use mcp_runtime_openapi::OpenApi;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Arrived {
    /// With its query.
    pub(crate) target: String,
    pub(crate) method: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Arrived {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found: Vec<_> = self.headers.iter().filter(|(known, _)| known == name).collect();
        assert!(found.len() <= 1, "{name}: {found:?}");
        found.first().map(|(_, value)| value.as_str())
    }
}

/// A server at a port of its own, until the test ends.
pub(crate) struct Recorder {
    pub(crate) url: String,
    /// What the server serves.
    #[cfg(feature = "routes")]
    pub(crate) routes: Router,
    arrived: Arc<Mutex<Vec<Arrived>>>,
}

impl Recorder {
    /// Answers every request with this.
    pub(crate) async fn answering(
        answer: impl Fn() -> Response<Body> + Clone + Send + Sync + 'static,
    ) -> Self {
        let arrived = Arc::<Mutex<Vec<Arrived>>>::default();
        let record = arrived.clone();
        let routes = Router::new().fallback(move |request: Request| async move {
            let (head, body) = request.into_parts();
            let body = to_bytes(body, 1 << 20).await.expect("a body");
            let headers = head.headers.iter();
            let headers = headers.map(|(name, value)| {
                (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            });
            record.lock().expect("the requests").push(Arrived {
                target: head.uri.to_string(),
                method: head.method.to_string(),
                headers: headers.collect(),
                body: String::from_utf8_lossy(&body).into_owned(),
            });
            answer()
        });
        Self {
            url: listening(routes.clone()).await,
            #[cfg(feature = "routes")]
            routes,
            arrived,
        }
    }

    pub(crate) async fn start() -> Self {
        Self::answering(|| ok_json("{}")).await
    }

    pub(crate) fn count(&self) -> usize {
        self.arrived.lock().expect("the requests").len()
    }

    /// The last request.
    pub(crate) fn last(&self) -> Arrived {
        self.arrived.lock().expect("the requests").last().cloned().expect("a request")
    }

    /// A server with the API of this description.
    pub(crate) fn serve(&self, description: &str) -> TestServer {
        serve(OpenApi::parse(description).expect("a description").server(&self.url))
    }
}

/// The URL of a server of these routes, until the test ends.
pub(crate) async fn listening(routes: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(axum::serve(listener, routes).into_future());
    url
}

pub(crate) fn serve(api: OpenApi) -> TestServer {
    match TestServer::new(mcp_runtime::server!().add(api)) {
        Ok(server) => server,
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn ok_json(body: &'static str) -> Response<Body> {
    response(200, "application/json", body)
}

pub(crate) fn response(status: u16, content_type: &str, body: impl Into<Body>) -> Response<Body> {
    let response = Response::builder().status(status).header("content-type", content_type);
    response.body(body.into()).expect("a response")
}

/// A description of version 3.0 with one operation, `call`, which has these members.
pub(crate) fn one(method_and_path: &str, members: &Value) -> String {
    with_components("3.0.3", method_and_path, members, &Value::Null)
}

pub(crate) fn with_components(
    version: &str,
    method_and_path: &str,
    members: &Value,
    components: &Value,
) -> String {
    let (method, path) = method_and_path.split_once(' ').expect("a method and a path");
    let mut operation = members.clone();
    operation["operationId"] = "call".into();
    let method = method.to_lowercase();
    let paths = json!({ path: { method: operation } });
    let description = json!({ "openapi": version, "paths": paths, "components": components });
    description.to_string().replace("\"components\":null,", "")
}
