//! Guesses: an address may present so many invalid tokens; those behind it whose tokens are valid go on.

use mcp_runtime::auth::ApiKeys;
use tokio::time::{Duration, sleep};

use super::{RESOURCE, bearing, call, items, oauth};
use crate::prelude::*;

const GUESSES: usize = 800;
const RATE: usize = 60;
/// Verified at once, so that as many may be looked at beyond the rate.
const AT_ONCE: usize = 32;

/// Sends requests over one connection, and counts the responses by status.
async fn statuses(at: SocketAddr, requests: impl Iterator<Item = HttpRequest>) -> [usize; 3] {
    let mut connection = HttpConnection::open(at).await;
    let mut counts = [0; 3];
    for request in requests {
        connection.send(&request).await;
        let response = connection.response().await;
        let index = [200, 401, 429].iter().position(|status| *status == response.status);
        counts[index.unwrap_or_else(|| panic!("{}: {}", response.status, response.text()))] += 1;
        if response.status == 429 {
            let wait: u64 = response.header("retry-after").expect("a time").parse().expect("seconds");
            assert!((1..=120).contains(&wait) && response.header("www-authenticate").is_none(), "{wait}");
            assert!(
                response.json()["error"]["message"].as_str().is_some_and(|m| m.contains("invalid tokens"))
            );
        }
    }
    counts
}

fn guess(n: usize) -> HttpRequest {
    bearing(call("whoami"), &format!("guess-{n:060}"))
}

/// Two API keys.
fn keys() -> ServerBuilder {
    let of = |name: &str| (format!("the-secret-key-of-{name}"), Principal::new("https://example.com", name));
    items().auth(ApiKeys::new([of("ada"), of("bob")]))
}

#[tokio::test]
async fn an_address_that_guesses_keys_is_not_looked_at_while_another_client_of_it_goes_on() {
    let server = HttpServer::start(keys()).await;
    let ada = bearing(call("whoami"), "the-secret-key-of-ada");
    assert_eq!(ada.send(server.address).await.status, 200);
    let clients = (0..4).map(|client| {
        let guesses = (0..GUESSES / 4).map(move |n| guess(client * GUESSES + n));
        spawn(statuses(server.address, guesses))
    });
    let clients: Vec<_> = clients.collect();
    // all the time
    assert_eq!(statuses(server.address, (0..200).map(|_| ada.clone())).await, [200, 0, 0]);
    let mut seen = [0; 3];
    for client in clients {
        for (seen, more) in seen.iter_mut().zip(client.await.expect("no panic")) {
            *seen += more;
        }
    }
    // some come back while the test runs
    assert!(seen[1] < 4 * RATE && seen[2] > GUESSES / 2, "{seen:?}");
    // the right one is not found by guessing on
    assert_eq!(
        statuses(server.address, [bearing(call("whoami"), "the-secret-key-of-bob")].into_iter()).await,
        [0, 0, 1]
    );
    assert_eq!(ada.send(server.address).await.status, 200);
}

#[tokio::test]
async fn a_new_token_of_an_address_that_guesses_is_accepted_after_the_time_that_it_was_told() {
    let server = HttpServer::start(keys().limits(|limits| limits.invalid_token_rate("20/10s"))).await;
    let bob = bearing(call("whoami"), "the-secret-key-of-bob");
    assert_eq!(statuses(server.address, (0..40).map(guess)).await[0], 0);
    let refused = bob.send(server.address).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    let wait: u64 = refused.header("retry-after").expect("a time").parse().expect("seconds");
    let guessing = spawn({
        let address = server.address;
        async move {
            for n in 1000.. {
                guess(n).send(address).await;
                // far more often than the rate allows
                sleep(Duration::from_millis(2)).await;
            }
        }
    });
    sleep(Duration::from_secs(wait)).await;
    let reply = bob.send(server.address).await;
    assert_eq!(text_of(&reply.json()), "bob of no client");
    for _ in 0..20 {
        assert_eq!(bob.send(server.address).await.status, 200);
    }
    guessing.abort();
}

#[tokio::test]
async fn opaque_tokens_that_are_guessed_are_few_questions_to_the_authorization_server() {
    let issuer = Issuer::start().await;
    let server = HttpServer::start(items().auth(oauth(&issuer).introspection("mcp", "s&cret"))).await;
    let mut claims = issuer.claims("ada", RESOURCE, "notes:read");
    claims["active"] = json!(true);
    issuer.set_token("adas-token", claims);
    let ada = bearing(call("whoami"), "adas-token");
    assert_eq!(ada.send(server.address).await.status, 200);
    let clients: Vec<_> = (0..50)
        .map(|client| {
            let guesses = (0..20).map(move |n| guess(client * 20 + n));
            spawn(statuses(server.address, guesses))
        })
        .collect();
    assert_eq!(statuses(server.address, (0..50).map(|_| ada.clone())).await, [50, 0, 0]);
    for client in clients {
        assert_eq!(client.await.expect("no panic")[0], 0);
    }
    let asked = issuer.introspections();
    assert!(asked <= 1 + 2 * RATE + AT_ONCE, "{asked}");
    // the same token again asks nothing
    assert_eq!(statuses(server.address, (0..50).map(|_| ada.clone())).await, [50, 0, 0]);
    assert!(issuer.introspections() <= asked + 1);
}

#[tokio::test]
async fn tokens_of_the_authorization_server_that_are_not_valid_any_more_do_not_count_as_guesses() {
    let issuer = Issuer::start().await;
    let server = HttpServer::start(items().auth(oauth(&issuer))).await;
    let expired = (0..2 * RATE).map(|n| {
        let mut claims = issuer.claims("ada", RESOURCE, "notes:read");
        (claims["exp"], claims["jti"]) = (json!(1000), json!(n));
        bearing(call("whoami"), &issuer.key().sign(&claims))
    });
    assert_eq!(statuses(server.address, expired).await, [0, 2 * RATE, 0]);
    let forged = (0..2 * RATE).map(|n| {
        let token = issuer.token(&format!("ada {n}"), RESOURCE, "");
        let (signed, _) = token.rsplit_once('.').expect("a signature");
        bearing(call("whoami"), &format!("{signed}.{}", "A".repeat(86)))
    });
    let [_, looked_at, refused] = statuses(server.address, forged).await;
    assert!(looked_at < 2 * RATE && refused > 0, "{looked_at} and {refused}");
}

#[tokio::test]
async fn refused_proofs_of_a_genuine_token_do_not_count_and_bound_tokens_that_are_guessed_do() {
    let issuer = Issuer::start().await;
    let server = HttpServer::start(items().auth(oauth(&issuer).dpop())).await;
    let (key, thief) = (TestKey::new("client"), TestKey::new("thief"));
    let mut claims = issuer.claims("ada", RESOURCE, "notes:read");
    claims["cnf"] = json!({ "jkt": key.thumbprint() });
    let token = issuer.key().sign(&claims);
    let with = |token: &str, proof: &str| {
        call("whoami").header("Authorization", &format!("DPoP {token}")).header("DPoP", proof)
    };
    let ada = |n: usize| with(&token, &key.proof("POST", RESOURCE, &token, &format!("ada {n}")));
    // a thief has the token and not the key
    let stolen = (0..2 * RATE).map(|n| match n % 3 {
        0 => with(&token, &thief.proof("POST", RESOURCE, &token, &n.to_string())),
        1 => with(&token, &key.proof("GET", RESOURCE, &token, &n.to_string())),
        _ => with(&token, "x"),
    });
    assert_eq!(statuses(server.address, stolen).await, [0, 2 * RATE, 0]);
    assert_eq!(statuses(server.address, (0..3).map(ada)).await, [3, 0, 0]);
    let guessed = (0..4 * RATE).map(|n| {
        let guess = format!("guess-{n:060}");
        with(&guess, &thief.proof("POST", RESOURCE, &guess, &format!("guess {n}")))
    });
    let [_, looked_at, refused] = statuses(server.address, guessed).await;
    assert!(looked_at < 4 * RATE && refused > 0, "{looked_at} and {refused}");
    // who was known before goes on from the same address
    assert_eq!(statuses(server.address, (3..40).map(ada)).await, [37, 0, 0]);
}

#[test]
fn a_rate_of_invalid_tokens_that_is_none_is_an_error_of_build() {
    let error = keys().limits(|limits| limits.invalid_token_rate("often")).build().unwrap_err();
    assert!(error.to_string().contains("`often` is not a rate"), "{error}");
}
