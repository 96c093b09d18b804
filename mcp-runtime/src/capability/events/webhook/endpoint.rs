//! POSTs to endpoints of clients: only `https:`, only to public addresses, which are checked as they are connected to,
//! without redirects and proxies, and with limits on time, size and number. Responses of endpoints are not passed
//! on: clients learn the category of a failure.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use hyper::body::Bytes;
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};
use url::{Position, Url};

use super::secret::Secret;
use crate::{
    core::{
        admission::{Owner, Turns},
        crypto::random_bytes,
        resolver::{Resolver, look_up_for},
        sync::Mutex,
        unix_time::unix_seconds,
    },
    fetch::{ExchangeError, HttpClient, HttpRequest, Network, Reach, tls_config},
};

/// How long an endpoint may take to accept a message.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// How long it may take to open a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Messages that are sent at once.
const MAX_ATTEMPTS: usize = 512;
/// Hosts to which a connection is kept between messages, one each.
const MAX_IDLE: usize = 256;
/// How long it is kept.
const IDLE: Duration = Duration::from_secs(15);
/// How much is read of an answer to a challenge.
const MAX_ANSWER: usize = 4 << 10;

/// Why a message was not accepted, as clients are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum DeliveryFailure {
    Connection,
    Timeout,
    Tls,
    Challenge,
    Status(u16),
}

impl DeliveryFailure {
    /// The wire's category.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Connection => "connection_refused",
            Self::Timeout => "timeout",
            Self::Tls => "tls_error",
            Self::Challenge => "challenge_failed",
            Self::Status(500..) => "http_5xx",
            // a redirect is not followed
            Self::Status(_) => "http_4xx",
        }
    }
}

/// A message to an endpoint.
pub(super) struct Message<'a> {
    /// The header `webhook-id`.
    pub(super) id: &'a str,
    pub(super) subscription: &'a str,
    pub(super) body: &'a [Bytes],
    /// The secret, and the one before while it is replaced.
    pub(super) secrets: [Option<Secret>; 2],
}

/// The client and the limits with which all subscriptions of a server send.
pub(super) struct Endpoints {
    reach: Reach,
    resolver: Resolver,
    /// Authorities that are trusted in addition to those of the operating system.
    roots: Vec<CertificateDer<'static>>,
    clients: OnceLock<Result<Clients, String>>,
    turns: Arc<Turns>,
    /// The hosts to which there may be an idle connection, and until when.
    idle: Mutex<HashMap<Box<str>, Instant>>,
    max_idle: usize,
}

struct Clients {
    /// Keeps a connection to each host for a short time.
    keeping: HttpClient,
    /// Closes connections at once.
    closing: HttpClient,
}

impl Endpoints {
    pub(super) fn new(reach: Reach, roots: Vec<CertificateDer<'static>>) -> Self {
        Self {
            reach,
            resolver: Resolver::system(),
            roots,
            clients: OnceLock::new(),
            turns: Turns::new(MAX_ATTEMPTS, 50),
            idle: Mutex::default(),
            max_idle: MAX_IDLE,
        }
    }

    /// The URL of an endpoint, if it may be one as far as its text says.
    ///
    /// # Errors
    /// Why it may not.
    pub(super) fn parse_url(&self, text: &str) -> Result<Url, &'static str> {
        let url: Url = text.parse().map_err(|_| "is not a URL")?;
        match self.reach.refusal(&url) {
            Some(why) => Err(why),
            None if url.fragment().is_some() => Err("has a fragment"),
            None => Ok(url),
        }
    }

    /// Sends a message once.
    ///
    /// # Errors
    /// It was not accepted.
    pub(super) async fn send(
        &self,
        url: &Url,
        owner: &Owner,
        message: Message<'_>,
    ) -> Result<(), DeliveryFailure> {
        self.exchange(url, owner, message, 0).await.map(drop)
    }

    /// Sends a challenge, and checks that the endpoint repeats it.
    ///
    /// # Errors
    /// It does not.
    pub(super) async fn challenge(
        &self,
        url: &Url,
        owner: &Owner,
        message: Message<'_>,
        challenge: &str,
    ) -> Result<(), DeliveryFailure> {
        let answer =
            self.exchange(url, owner, message, MAX_ANSWER).await.map_err(|failure| match failure {
                DeliveryFailure::Status(_) => DeliveryFailure::Challenge,
                other => other,
            })?;
        let answer: serde_json::Value =
            serde_json::from_slice(&answer).map_err(|_| DeliveryFailure::Challenge)?;
        let repeated = answer.get("challenge").and_then(serde_json::Value::as_str).unwrap_or_default();
        // digests take the same time to compare, however much of the challenge is right
        let digest = |text: &str| ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let is_same = digest(repeated).as_ref() == digest(challenge).as_ref();
        is_same.then_some(()).ok_or(DeliveryFailure::Challenge)
    }

    async fn exchange(
        &self,
        url: &Url,
        owner: &Owner,
        message: Message<'_>,
        read: usize,
    ) -> Result<Vec<u8>, DeliveryFailure> {
        let host = host_of(url);
        let _turn = self.turns.wait(owner, host).await;
        let clients = || {
            let network = Network {
                reach: self.reach,
                look_up: self.resolver.clone().into_function(),
                tls: tls_config(&self.roots)?,
                uses_proxies: false,
            };
            let client = |per_host| HttpClient::with_idle(network.clone(), CONNECT_LIMIT, per_host, IDLE);
            Ok(Clients { keeping: client(1), closing: client(0) })
        };
        let clients = self.clients.get_or_init(clients).as_ref().map_err(|error| {
            tracing::error!(%error, "webhooks cannot be sent");
            DeliveryFailure::Tls
        })?;
        let client = if self.keeps_connection(host) { &clients.keeping } else { &clients.closing };
        // of this attempt: receivers refuse old ones
        let headers = headers(&message, unix_seconds(SystemTime::now()));
        let request = HttpRequest::of_parts(Method::POST, url.clone(), headers, message.body.to_vec());
        let exchanged = async {
            let mut response =
                look_up_for(owner, client.send(request)).await.map_err(|error| match error {
                    ExchangeError::Tls(_) => DeliveryFailure::Tls,
                    ExchangeError::Timeout(_) => DeliveryFailure::Timeout,
                    ExchangeError::Other(_) => DeliveryFailure::Connection,
                })?;
            let status = response.status();
            if !status.is_success() {
                return Err(DeliveryFailure::Status(status.as_u16()));
            }
            let mut body = Vec::new();
            while body.len() < read {
                match response.chunk().await {
                    Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                    Ok(None) => break,
                    Err(_) => return Err(DeliveryFailure::Connection),
                }
            }
            body.truncate(read);
            Ok(body)
        };
        timeout(TIME_LIMIT, exchanged).await.unwrap_or(Err(DeliveryFailure::Timeout))
    }

    /// Whether the connection to a host may be kept after a message; if too many are, it is closed.
    fn keeps_connection(&self, host: &str) -> bool {
        // the pool looks for connections to close as often as they may be idle
        let until = Instant::now() + TIME_LIMIT + IDLE * 2;
        let mut idle = self.idle.lock();
        if let Some(known) = idle.get_mut(host) {
            *known = until;
            return true;
        }
        if idle.len() >= self.max_idle {
            let now = Instant::now();
            idle.retain(|_, until| now < *until);
        }
        let has_room = idle.len() < self.max_idle;
        if has_room {
            idle.insert(host.into(), until);
        }
        has_room
    }
}

/// The host of an endpoint, and its port.
pub(super) fn host_of(url: &Url) -> &str {
    &url[Position::BeforeHost..Position::AfterPort]
}

fn headers(message: &Message<'_>, timestamp: u64) -> HeaderMap {
    let signatures: Vec<_> = message
        .secrets
        .iter()
        .flatten()
        .map(|secret| secret.sign(message.id, timestamp, message.body))
        .collect();
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in [
        ("webhook-id", message.id),
        ("webhook-timestamp", &timestamp.to_string()),
        ("webhook-signature", &signatures.join(" ")),
        ("x-mcp-subscription-id", message.subscription),
    ] {
        // ids of events are visible ASCII
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers
}

/// The time, a fifth shorter or longer, so that many do not come at once.
pub(super) fn jittered(time: Duration) -> Duration {
    let random = random_bytes().map_or(1 << 15, u16::from_ne_bytes);
    time.mul_f64(0.8 + 0.4 * f64::from(random) / f64::from(u16::MAX))
}

/// Whether a failure is final for a message, so that it is not sent again.
pub(super) fn is_final(failure: DeliveryFailure) -> bool {
    let refused = [StatusCode::GONE, StatusCode::PAYLOAD_TOO_LARGE].map(|status| status.as_u16());
    matches!(failure, DeliveryFailure::Status(status) if refused.contains(&status))
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpStream},
        runtime::Builder,
        task::yield_now,
        time::sleep,
    };

    use super::*;
    use crate::core::blocking;

    /// Answers every message, and counts connections that were opened and those that are open.
    async fn endpoint(opened: Arc<AtomicUsize>, open: Arc<AtomicUsize>) -> Url {
        async fn answer(mut stream: TcpStream) -> Option<()> {
            let mut read = Vec::new();
            loop {
                let bytes = stream.read_buf(&mut read).await.ok()?;
                if bytes == 0 {
                    return None;
                }
                if read.ends_with(b"{}") {
                    read.clear();
                    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.ok()?;
                }
            }
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                opened.fetch_add(1, Ordering::SeqCst);
                open.fetch_add(1, Ordering::SeqCst);
                let open = open.clone();
                tokio::spawn(async move {
                    let _closed = answer(stream).await;
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        url.parse().expect("a URL")
    }

    #[tokio::test]
    async fn a_connection_each_is_kept_to_so_many_hosts_and_those_to_others_are_closed() {
        let endpoints = Endpoints { max_idle: 2, ..Endpoints::new(Reach::Loopback, Vec::new()) };
        let (opened, open) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let owner = Owner::principal("ada".into());
        let send = async |url: &Url| {
            let body = [Bytes::from("{}")];
            let message = Message { id: "1", subscription: "sub", body: &body, secrets: [None, None] };
            endpoints.send(url, &owner, message).await.expect("it is accepted");
        };
        let until_open = async |count: usize| {
            for _ in 0..3000 {
                if open.load(Ordering::SeqCst) == count {
                    return;
                }
                sleep(Duration::from_millis(10)).await;
            }
            panic!("{} connections are open", open.load(Ordering::SeqCst));
        };
        let mut urls = Vec::new();
        for _ in 0..4 {
            urls.push(endpoint(opened.clone(), open.clone()).await);
        }
        for url in &urls {
            send(url).await;
        }
        until_open(2).await;
        assert_eq!(opened.load(Ordering::SeqCst), 4);
        // several at once, of which one connection stays
        tokio::join!(send(&urls[0]), send(&urls[0]), send(&urls[0]), send(&urls[3]));
        until_open(2).await;
    }

    #[test]
    fn names_that_never_resolve_hold_up_neither_blocking_functions_nor_the_messages_of_others() {
        let hold = Arc::new(Mutex::new(()));
        let (held, asked) = (hold.clone(), Arc::<AtomicUsize>::default());
        let count = asked.clone();
        let resolver = Resolver::new(move |name| {
            if name != "localhost" {
                count.fetch_add(1, Ordering::SeqCst);
                drop(held.lock());
            }
            Ok(vec![([127, 0, 0, 1], 0).into()])
        });
        let endpoints = Endpoints { resolver, ..Endpoints::new(Reach::Loopback, Vec::new()) };
        let (endpoints, guard) = (Arc::new(endpoints), hold.lock());
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            static BODY: [Bytes; 1] = [Bytes::from_static(b"{}")];
            let message = || Message { id: "1", subscription: "sub", body: &BODY, secrets: [None, None] };
            let mut url = endpoint(Arc::default(), Arc::default()).await;
            url.set_host(Some("localhost")).unwrap();
            for round in 0..2 {
                let of_ada: Vec<_> = (0..300)
                    .map(|number| {
                        let url = format!("http://host-{number}.example/").parse().unwrap();
                        let (endpoints, ada) = (endpoints.clone(), Owner::principal("ada".into()));
                        tokio::spawn(async move { endpoints.challenge(&url, &ada, message(), "").await })
                    })
                    .collect();
                while asked.load(Ordering::SeqCst) < 8 {
                    yield_now().await;
                }
                assert_eq!(blocking::run(|| "it has run").await.unwrap(), "it has run");
                endpoints.send(&url, &Owner::principal("bob".into()), message()).await.unwrap();
                // those that do not wait any more have their turns until their threads return
                of_ada.iter().for_each(tokio::task::JoinHandle::abort);
                assert_eq!(asked.load(Ordering::SeqCst), 8, "half of those at once, in round {round}");
            }
        });
        drop(guard);
    }
}
