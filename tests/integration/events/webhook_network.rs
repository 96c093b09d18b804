//! Webhooks on the way: over TLS, to endpoints that are away for a while, and to endpoints that lead elsewhere.

use std::collections::BTreeSet;

use mcp_runtime::event;
use rcgen::KeyPair;
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::oneshot,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::rustls::{ServerConfig, crypto::ring};

use super::{
    tls_listener::{TestCertificate, TlsListener},
    webhook::{Endpoint, note_added, running, secret, start},
};
use crate::prelude::*;

/// An endpoint over TLS.
async fn start_tls(certificate: &TestCertificate) -> Endpoint {
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let listener =
        TlsListener::bind(certificate, config.with_safe_default_protocol_versions().unwrap()).await;
    let url = format!("https://localhost:{}/hook", listener.port());
    let endpoint = Endpoint { url, ..Endpoint::default() };
    let app = endpoint.router();
    spawn(async move { axum::serve(listener, app).await });
    endpoint
}

fn trusting(authorities: &[&str]) -> ServerBuilder {
    let builder = Server::builder("notes", "1").add(event::of::<note_added>());
    builder.http(|http| http.caller(|_| None)).limits(|limits| {
        limits.events(|events| {
            let events = events.webhooks_on_loopback();
            authorities.iter().fold(events, |events, pem| events.webhook_root_certificates(pem))
        })
    })
}

#[tokio::test]
async fn a_hundred_events_come_over_tls_from_an_authority_that_the_server_trusts_and_none_from_another() {
    let [own, second, unknown] = [(); 3].map(|()| TestCertificate::new(&KeyPair::generate().unwrap()));
    // each call adds its authorities
    let server = start(trusting(&[&second.authority, &own.authority])).await;
    let endpoint = start_tls(&own).await;
    let reply = server.subscribe("ada", &endpoint.url).await;
    assert!(reply["result"]["id"].is_string(), "{reply}");
    let sent: BTreeSet<String> = (0..100).map(|number| number.to_string()).collect();
    for number in &sent {
        server.emit(number, "tea").await;
    }
    assert!(soon(|| endpoint.events().len() >= 100).await, "{:?}", endpoint.events());
    assert_eq!(endpoint.events().into_iter().collect::<BTreeSet<_>>(), sent);
    assert!(endpoint.messages().iter().all(|message| message.is_signed_by(&secret(1))));
    let reply = server.subscribe("bob", &start_tls(&second).await.url).await;
    assert!(reply["result"]["id"].is_string(), "{reply}");

    // of an authority that no server trusts, and of one that only the other server trusts
    let trusts_none = start(trusting(&[])).await;
    for (server, endpoint) in [(&server, start_tls(&unknown).await), (&trusts_none, endpoint)] {
        let before = endpoint.messages().len();
        let refused = server.subscribe("eve", &endpoint.url).await;
        let error = &refused["error"];
        assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32027), &json!("tls_error")));
        assert_eq!(endpoint.messages().len(), before, "nothing was sent");
    }
}

#[test]
fn root_certificates_of_webhooks_that_are_not_in_pem_are_an_error_of_build() {
    let own = TestCertificate::new(&KeyPair::generate().unwrap());
    for bad in ["", "no certificate", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
        for all in [[bad, &own.authority], [&own.authority, bad]] {
            let error = trusting(&all).build().expect_err("it is not PEM").to_string();
            assert!(error.contains("the root certificates for webhooks are not in PEM"), "{bad}: {error}");
        }
    }
}

/// Listens on an address again that has been listened on.
fn listen(address: SocketAddr) -> TcpListener {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("an option");
    socket.bind(address).expect("the same port");
    socket.listen(64).expect("a listener")
}

/// Serves an endpoint until it is told to stop, which also ends its connections.
async fn serve_until(listener: TcpListener, endpoint: &Endpoint, stop: oneshot::Receiver<()>) {
    let app = endpoint.router();
    let served = axum::serve(listener, app);
    tokio::select! {
        served = served.into_future() => served.expect("it serves"),
        _stop = stop => {}
    }
}

/// No listener is there for some seconds, while events are emitted.
#[tokio::test]
async fn an_endpoint_that_is_away_for_seconds_gets_all_events_when_it_is_back() {
    let (away, patience) = (Duration::from_secs(4), Duration::from_secs(120));
    let server = running().await;
    let listener = listen("127.0.0.1:0".parse().unwrap());
    let address = listener.local_addr().expect("an address");
    let endpoint = Endpoint { url: format!("http://{address}/hook"), ..Endpoint::default() };
    let (stop, stopped) = oneshot::channel();
    let (first, listener) = (endpoint.clone(), listener.into_std().expect("a listener"));
    // in a runtime of its own, with which its connections end
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).expect("a listener");
            serve_until(listener, &first, stopped).await;
        });
    });
    let reply = server.subscribe("ada", &endpoint.url).await;
    assert!(reply["result"]["id"].is_string(), "{reply}");
    server.emit("before", "tea").await;
    assert!(soon(|| endpoint.events() == ["before"]).await);

    stop.send(()).expect("it listens");
    thread.join().expect("it has stopped");
    let down = Instant::now();
    // more than are tried at once
    let sent: BTreeSet<String> = (0..50).map(|number| number.to_string()).collect();
    for number in &sent {
        server.emit(number, "tea").await;
    }
    let mut failure = Value::Null;
    while down.elapsed() < away || failure != json!("connection_refused") {
        sleep(Duration::from_millis(100)).await;
        assert!(down.elapsed() < patience, "no attempt has failed: {failure}");
        failure =
            server.subscribe("ada", &endpoint.url).await["result"]["deliveryStatus"]["lastError"].clone();
    }
    assert_eq!(endpoint.events(), ["before"]);

    let (_stop, stopped) = oneshot::channel();
    let again = endpoint.clone();
    spawn(async move { serve_until(listen(address), &again, stopped).await });
    let arrived = || endpoint.events().into_iter().filter(|id| id != "before").collect::<BTreeSet<_>>();
    let all = async {
        while arrived() != sent {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(patience, all).await.unwrap_or_else(|_| panic!("{:?} of {:?}", arrived(), sent));
    assert!(endpoint.controls().iter().all(|control| control["type"] == "verification"), "nothing is a gap");
    let renewed = server.subscribe("ada", &endpoint.url).await;
    assert_eq!(renewed["result"]["truncated"], false, "{renewed}");
}

#[tokio::test]
async fn an_event_does_not_follow_a_redirect() {
    let (server, elsewhere) = (running().await, Endpoint::start().await);
    let (requests, target) = (Arc::new(Mutex::new(Vec::new())), elsewhere.url.clone());
    let seen = requests.clone();
    let app = axum::Router::new().fallback(move |uri: axum::http::Uri, body: axum::body::Bytes| {
        let message: Value = serde_json::from_slice(&body).expect("JSON");
        let challenge = message.get("challenge").cloned();
        let event = message["eventId"].clone();
        let mut seen = seen.lock().unwrap();
        let is_redirected = challenge.is_none() && seen.iter().all(|(_, known)| *known != event);
        // to another endpoint, and to another path of this one
        let target = if event == "1" { target.clone() } else { "/elsewhere".to_owned() };
        seen.push((uri.path().to_owned(), event));
        async move {
            let response = axum::http::Response::builder();
            let response = match is_redirected {
                true => response.status(307).header("location", target),
                false => response,
            };
            let answer = challenge.map(|challenge| json!({ "challenge": challenge }).to_string());
            response.body(axum::body::Body::from(answer.unwrap_or_default())).unwrap()
        }
    });
    let url = format!("http://{}/hook", serve_router(app).await);
    let reply = server.subscribe("ada", &url).await;
    assert!(reply["result"]["id"].is_string(), "{reply}");
    for event in ["1", "2"] {
        server.emit(event, "tea").await;
    }
    // it is a failure like others: each comes again
    assert!(soon(|| requests.lock().unwrap().len() == 5).await, "{:?}", requests.lock().unwrap());
    let requests = requests.lock().unwrap().clone();
    assert!(requests.iter().all(|(path, _)| path == "/hook"), "{requests:?}");
    for event in ["1", "2"] {
        assert_eq!(requests.iter().filter(|(_, id)| id == event).count(), 2, "{requests:?}");
    }
    assert!(elsewhere.messages().is_empty());
}
