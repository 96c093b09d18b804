//! What additions keep in the store of their server and seal with its keys, and the callers that they authenticate with it.

use axum::http::request::Parts;
use mcp_runtime::{
    addition::{AddedStore, Addition},
    auth::{ApiKeys, Denied, Oauth, Verifier},
    store::{Condition, Memory, Table, Write, Written},
};

use crate::prelude::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn table() -> Table {
    Table::new("values", 100, 10_000, 50)
}

fn write(bytes: &[u8], condition: Condition) -> Write<'_> {
    Write { bytes, owner: "ada", expires_in: DAY, condition }
}

/// A server with these keys, and the store of its addition of this name.
fn build(name: &str, keys: &[u8], memory: Option<&Memory>) -> (Server, AddedStore) {
    let mut found = None;
    let addition = Addition::with_store(name, |store| {
        found = Some(store);
        Addition::new()
    });
    let builder = Server::builder("stores", "1").add(addition);
    let builder = builder.stores(|stores| stores.keys(keys.iter().map(|key| server_key(*key))));
    let builder = match memory {
        Some(memory) => builder.shared(memory.clone()),
        None => builder,
    };
    (builder.build().expect("a server"), found.expect("a store"))
}

async fn value(store: &AddedStore, key: &str) -> Option<(Vec<u8>, u64)> {
    store.get(&table(), key).await.expect("a store").map(|value| (value.bytes, value.version))
}

#[tokio::test(start_paused = true)]
async fn a_value_is_put_under_its_condition_and_kept_until_it_expires() {
    for memory in [None, Some(Memory::default())] {
        let (_server, store) = build("a", &[1], memory.as_ref());
        assert_eq!(store.is_shared(), memory.is_some());
        let put = async |bytes: &'static [u8], condition| {
            store.put(&table(), "key", write(bytes, condition)).await.expect("a store")
        };
        assert_eq!(value(&store, "key").await, None);
        assert_eq!(put(b"0", Condition::Version(1)).await, Written::Conflict);
        assert_eq!(put(b"1", Condition::Absent).await, Written::Stored);
        assert_eq!(put(b"x", Condition::Absent).await, Written::Conflict);
        assert_eq!(put(b"2", Condition::Version(1)).await, Written::Stored);
        assert_eq!(put(b"x", Condition::Version(1)).await, Written::Conflict);
        assert_eq!(value(&store, "key").await, Some((b"2".to_vec(), 2)));
        assert_eq!(put(b"3", Condition::Always).await, Written::Stored);
        assert_eq!(value(&store, "key").await, Some((b"3".to_vec(), 1)));
        store.remove(&table(), "key").await.expect("a store");
        assert_eq!(put(b"4", Condition::Absent).await, Written::Stored);
        tokio::time::advance(DAY).await;
        assert_eq!(value(&store, "key").await, None);
        let longest = Write { expires_in: Duration::MAX, ..write(b"5", Condition::Absent) };
        assert_eq!(store.put(&table(), "key", longest).await.expect("a store"), Written::Stored);
    }
}

#[tokio::test]
async fn no_owner_has_more_than_its_share_whatever_its_name_is() {
    for memory in [None, Some(Memory::default())] {
        let (_server, store) = build("a", &[1], memory.as_ref());
        let table = Table::new("values", 10, 100_000, 50);
        let put = async |owner: &str, key: String| {
            let write = Write { owner, ..write(b"text", Condition::Absent) };
            store.put(&table, &key, write).await.expect("a store")
        };
        for owner in ["local", "ada"] {
            let mut stored = 0;
            while put(owner, format!("{owner} {stored}")).await == Written::Stored {
                stored += 1;
            }
            assert!((1..=5).contains(&stored), "{owner}: {stored}");
        }
    }
}

#[tokio::test]
async fn values_and_sealed_texts_are_those_of_one_addition_purpose_and_owner() {
    let memory = Memory::default();
    let (_one, a) = build("a", &[1], Some(&memory));
    let (_two, b) = build("b", &[1], Some(&memory));
    let (_replica, same) = build("a", &[1], Some(&memory));
    a.put(&table(), "key", write(b"a", Condition::Absent)).await.expect("a store");
    assert_eq!(value(&same, "key").await, Some((b"a".to_vec(), 1)));
    assert_eq!(value(&b, "key").await, None);
    let other = Table::new("others", 100, 10_000, 50);
    assert_eq!(a.get(&other, "key").await.expect("a store"), None);

    let sealed = a.seal("token", "ada", b"secret").expect("keys");
    assert_eq!(same.open("token", "ada", &sealed).as_deref(), Some(&b"secret"[..]));
    assert_ne!(sealed, a.seal("token", "ada", b"secret").expect("keys"));
    assert!(!sealed.contains("secret"));
    assert_eq!(b.open("token", "ada", &sealed), None, "of another addition");
    for (purpose, owner) in
        [("cookie", "ada"), ("token", "bob"), ("tokena", "da"), ("", "tokenada"), ("ada", "token")]
    {
        assert_eq!(a.open(purpose, owner, &sealed), None, "{purpose} {owner}");
    }
    for length in 0..sealed.len() {
        assert_eq!(a.open("token", "ada", &sealed[..length]), None, "{length}");
    }
    for at in 0..sealed.len() {
        let mut bytes = sealed.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).expect("ASCII");
        // the last character may have bits that are not used, which must be zero
        assert_eq!(a.open("token", "ada", &changed), None, "{at}");
    }
    assert_eq!(a.open("token", "ada", &format!("{sealed}A")), None);
    assert_eq!(a.open("token", "ada", ""), None);
}

#[tokio::test]
async fn what_was_sealed_opens_as_long_as_its_key_is_in_the_ring() {
    let old = build("a", &[1], None).1.seal("token", "ada", b"x").expect("keys");
    let (_rotated, rotated) = build("a", &[2, 1], None);
    assert_eq!(rotated.open("token", "ada", &old).as_deref(), Some(&b"x"[..]));
    let new = rotated.seal("token", "ada", b"y").expect("keys");
    let (_later, later) = build("a", &[2], None);
    assert_eq!(later.open("token", "ada", &new).as_deref(), Some(&b"y"[..]));
    assert_eq!(later.open("token", "ada", &old), None);
    assert!(later.has_keys());
}

#[tokio::test]
async fn a_store_is_there_once_its_server_is_built_and_has_a_name_of_its_own() {
    let mut found = None;
    let mut named = |name: &str| {
        Addition::with_store(name, |store| {
            found = Some(store);
            Addition::new()
        })
    };
    let builder = Server::builder("stores", "1").mount("in", Server::builder("in", "1").add(named("a")));
    let text = build_error(builder.add(named("a")));
    assert!(text.contains("`a` cannot be the name of the store"), "{text}");
    for name in ["a/b", "ä"] {
        let text = build_error(Server::builder("stores", "1").add(named(name)));
        assert!(text.contains(&format!("`{name}` cannot be the name of the store")), "{text}");
    }
    let builder = Server::builder("stores", "1").add(named("b"));
    let store = found.take().expect("a store");
    assert!(store.seal("token", "ada", b"x").is_err() && store.open("token", "ada", "x").is_none());
    let error = store.get(&table(), "key").await.unwrap_err().to_string();
    assert_eq!(error, "the server of the addition `b` is not built yet");
    assert!(store.put(&table(), "key", write(b"", Condition::Always)).await.is_err());
    assert!(store.remove(&table(), "key").await.is_err());
    let _server = builder.build().expect("a server");
    assert!(store.seal("token", "ada", b"x").is_ok());
    assert!(!store.has_keys(), "the key is random");
}

/// Tokens that the server has sealed, for users who are in its store.
struct Sealed(AddedStore);

impl Verifier for Sealed {
    async fn verify(&self, token: &str, _: &Parts) -> Result<Principal, Denied> {
        let user = self.0.open("token", "users", token).ok_or_else(|| Denied::invalid_token("unknown"))?;
        let user = String::from_utf8_lossy(&user);
        match self.0.get(&table(), &user).await {
            Ok(Some(_)) => Ok(Principal::new("https://mcp.example.com/mcp", user)),
            Ok(None) => Err(Denied::invalid_token("logged out")),
            Err(error) => Err(Denied::unavailable(error)),
        }
    }
}

fn oauth(store: AddedStore) -> Oauth {
    let issuer = Oauth::issuer("https://mcp.example.com/mcp").resource("https://mcp.example.com/mcp");
    issuer.verifier(Sealed(store))
}

#[tokio::test]
async fn an_addition_authenticates_callers_by_what_it_keeps_and_ends_their_streams() {
    let mut found = None;
    let login = Addition::with_store("login", |store| {
        found = Some(store.clone());
        let tool = ToolDef::builder("tool").handler(|_: ToolCall| async { "done" });
        Addition::auth("login", oauth(store)).and(tool)
    });
    let server = HttpServer::start(Server::builder("login", "1").add(login)).await;
    let store = found.expect("a store");
    let token = store.seal("token", "users", b"ada").expect("keys");
    let bearer =
        |request: HttpRequest, token: &str| request.header("Authorization", &format!("Bearer {token}"));
    let status = async |token: &str| {
        bearer(HttpRequest::modern(1, "tools/list", json!({})), token).send(server.address).await.status
    };
    let metadata = HttpRequest::new("GET").path("/.well-known/oauth-protected-resource/mcp");
    let metadata = metadata.send(server.address).await.json();
    assert_eq!(metadata["authorization_servers"], json!(["https://mcp.example.com/mcp"]));
    store.put(&table(), "ada", write(b"", Condition::Absent)).await.expect("a store");
    assert_eq!(status(&token).await, 200);
    for other in [store.seal("code", "users", b"ada"), store.seal("token", "others", b"ada")] {
        assert_eq!(status(&other.expect("keys")).await, 401);
    }
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let listen = bearer(HttpRequest::modern("s", "subscriptions/listen", filter), &token);
    let mut stream = EventStream::open(&listen, server.address).await.expect("a stream");
    store.remove(&table(), "ada").await.expect("a store");
    store.end_streams_of(&Principal::new("https://mcp.example.com/mcp", "ada"));
    within(async { while stream.next().await.is_some() {} }).await;
    assert_eq!(status(&token).await, 401);
}

#[test]
fn callers_that_are_authenticated_twice_are_an_error_that_names_both() {
    let login = |name: &str| Addition::with_store(name, |store| Addition::auth(name, oauth(store)));
    let builder = || Server::builder("login", "1");
    let text = build_error(builder().add(login("one")).add(login("two")));
    assert!(
        text.contains("callers are authenticated by the addition `one` and by the addition `two`\nkeep one"),
        "{text}"
    );
    let keys = || ApiKeys::new([("0123456789abcdef", Principal::new("i", "ada"))]);
    let text = build_error(builder().auth(keys()).add(login("one")));
    assert!(text.contains("callers are authenticated by `.auth(..)` and by the addition `one`"), "{text}");
    assert!(builder().auth(keys()).auth(keys()).build().is_ok(), "the program's own may be several");
    let inner = builder().add(login("one"));
    assert!(build_error(builder().mount("in", inner)).contains("authenticates its callers"));
}
