//! An authorization server that records what it is asked, a server with a tool that gets a token, and a log.

use std::{
    future::IntoFuture as _,
    io,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use axum::{
    Json, Router,
    body::Bytes,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use mcp_runtime::{
    Principal, ServerBuilder,
    prelude::*,
    serde_json::{Value, json},
    testing::{Reply, TestServer},
};
use mcp_runtime_exchange::TokenExchange;
use tokio::{net::TcpListener, time::sleep};

/// The secret of the program at the authorization server.
pub(crate) const SECRET: &str = "a s&cret-of-the-program";

/// A request to the token endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) authorization: Option<String>,
    pub(crate) body: String,
}

impl Asked {
    /// The fields of the form, in order.
    pub(crate) fn fields(&self) -> Vec<(String, String)> {
        axum::extract::Query::try_from_uri(&format!("/?{}", self.body).parse().unwrap()).unwrap().0
    }

    /// The fields of that name.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        self.fields().into_iter().filter(|(known, _)| known == name).map(|(_, value)| value).collect()
    }
}

type Answer = (StatusCode, String);

struct State {
    url: Mutex<String>,
    asked: Mutex<Vec<Asked>>,
    answer: Mutex<Answer>,
    pause: Mutex<Duration>,
    metadata: Mutex<Value>,
    discoveries: AtomicUsize,
}

/// A running authorization server. Its tokens have a number, unless it answers something else.
#[derive(Clone)]
pub(crate) struct Provider(Arc<State>);

impl Provider {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let metadata = json!({ "issuer": url, "token_endpoint": format!("{url}/token") });
        let this = Self(Arc::new(State {
            url: Mutex::new(url),
            asked: Mutex::default(),
            answer: Mutex::new((StatusCode::OK, String::new())),
            pause: Mutex::default(),
            metadata: Mutex::new(metadata),
            discoveries: AtomicUsize::new(0),
        }));
        let (asked, discovered) = (this.clone(), this.clone());
        let app = Router::new()
            .route("/token", post(move |headers: HeaderMap, body: Bytes| asked.token(headers, body)))
            .route(
                "/.well-known/oauth-authorization-server",
                get(move || async move {
                    discovered.0.discoveries.fetch_add(1, Ordering::SeqCst);
                    Json(discovered.0.metadata.lock().unwrap().clone())
                }),
            );
        tokio::spawn(axum::serve(listener, app).into_future());
        this
    }

    async fn token(self, headers: HeaderMap, body: Bytes) -> Response {
        let authorization = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
        let body = String::from_utf8(body.to_vec()).unwrap();
        let number = {
            let mut asked = self.0.asked.lock().unwrap();
            asked.push(Asked { authorization, body });
            asked.len()
        };
        let pause = *self.0.pause.lock().unwrap();
        sleep(pause).await;
        let (status, answer) = self.0.answer.lock().unwrap().clone();
        let answer = if answer.is_empty() { issued(number).to_string() } else { answer };
        (status, [("content-type", "application/json")], answer).into_response()
    }

    pub(crate) fn url(&self) -> String {
        self.0.url.lock().unwrap().clone()
    }

    /// Answers this from now on; an empty text stands for a new token.
    pub(crate) fn answer(&self, status: u16, body: &impl ToString) {
        *self.0.answer.lock().unwrap() = (StatusCode::from_u16(status).unwrap(), body.to_string());
    }

    pub(crate) fn pause(&self, pause: Duration) {
        *self.0.pause.lock().unwrap() = pause;
    }

    pub(crate) fn set_metadata(&self, name: &str, value: Value) {
        self.0.metadata.lock().unwrap()[name] = value;
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.0.asked.lock().unwrap().clone()
    }

    pub(crate) fn discoveries(&self) -> usize {
        self.0.discoveries.load(Ordering::SeqCst)
    }

    /// An exchange with it, for callers of it.
    pub(crate) fn exchange(&self) -> TokenExchange {
        TokenExchange::at(format!("{}/token", self.url()), "notes app", SECRET).callers_of(self.url())
    }

    /// A caller for whom it vouches.
    pub(crate) fn caller(&self) -> Principal {
        Principal::new(self.url(), "ada").with_expiry(SystemTime::now() + Duration::from_secs(600))
    }
}

/// The answer with the token of that number.
pub(crate) fn issued(number: usize) -> Value {
    json!({
        "access_token": format!("issued-{number}"),
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "token_type": "Bearer",
        "expires_in": 600,
    })
}

/// The errors that the tool got, as a program can see them.
#[derive(Clone, Default)]
pub(crate) struct Errors(Arc<Mutex<Vec<String>>>);

impl Errors {
    pub(crate) fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap()).join("\n")
    }
}

/// Shows the token that the API would get.
#[mcp_tool]
async fn token(ctx: &Context, exchange: &TokenExchange, errors: &Errors) -> Result<String, ToolError> {
    let token = exchange.for_caller(ctx).await.inspect_err(|error| {
        let texts = format!("{error} {error:?} {:?}", error.cause().map(ToString::to_string));
        errors.0.lock().unwrap().push(texts);
    })?;
    Ok(token.expose().clone())
}

pub(crate) fn builder(exchange: TokenExchange) -> ServerBuilder {
    builder_with(exchange, Errors::default())
}

pub(crate) fn builder_with(exchange: TokenExchange, errors: Errors) -> ServerBuilder {
    mcp_runtime::server!().tool::<token>().state(exchange).state(errors)
}

/// Calls the tool as this caller, with this header.
pub(crate) async fn call_as(exchange: &TokenExchange, caller: Option<Principal>, header: &str) -> Reply {
    let server = TestServer::new(builder(exchange.clone())).unwrap().caller(caller);
    let server = if header.is_empty() { server } else { server.header("authorization", header) };
    server.call("token", json!({})).await
}

/// Calls it as a caller of the provider with this token.
pub(crate) async fn call(provider: &Provider, exchange: &TokenExchange, token: &str) -> Reply {
    call_as(exchange, Some(provider.caller()), &format!("Bearer {token}")).await
}

/// What was logged by all tests of the process.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// The log, which begins with the first call.
    pub(crate) fn start() -> Self {
        static LOG: OnceLock<Log> = OnceLock::new();
        let log = LOG.get_or_init(|| {
            let log = Self::default();
            let writer = log.clone();
            let subscriber = tracing_subscriber::fmt()
                .with_max_level(tracing::Level::TRACE)
                .with_ansi(false)
                .with_writer(move || writer.clone())
                .finish();
            tracing::subscriber::set_global_default(subscriber).unwrap();
            log
        });
        log.clone()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
