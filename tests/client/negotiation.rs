//! Which revision is used: servers of both eras, silent ones, ones that end, and ones that contradict themselves.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_runtime::{
    Revision,
    client::{Client, Error},
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use super::within;

/// A server that answers requests by a function of method and params: a result, or an error code.
pub(crate) async fn script(
    stream: DuplexStream,
    mut answer: impl FnMut(&str, &Value) -> Result<Value, i64> + Send,
) {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).expect("a message");
        let Some(method) = message["method"].as_str().filter(|_| message.get("id").is_some()) else {
            continue;
        };
        let id = &message["id"];
        let reply = match answer(method, &message["params"]) {
            // no answer at all
            Err(0) => continue,
            Err(code) => {
                let data = json!({ "supported": ["2026-07-28", "1900-01-01"] });
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": "no", "data": data } })
            }
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        };
        if writer.write_all(format!("{reply}\n").as_bytes()).await.is_err() {
            return;
        }
    }
}

fn initialized(version: &str) -> Value {
    json!({ "protocolVersion": version, "capabilities": { "tools": {} }, "serverInfo": { "name": "old", "version": "1" } })
}

fn discovered(versions: &[&str]) -> Value {
    json!({ "resultType": "complete", "supportedVersions": versions, "capabilities": { "tools": {} } })
}

/// Connects to a scripted server; the methods that it was asked for.
async fn negotiate(
    answer: impl Fn(&str) -> Result<Value, i64> + Send + 'static,
) -> (Result<Client, Error>, Vec<String>) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    tokio::spawn(script(theirs, move |method, _| {
        kept.lock().unwrap().push(method.to_owned());
        answer(method)
    }));
    let client = Client::builder().probe_timeout(Duration::from_millis(50));
    let connected = within(client.connect(tokio::io::split(ours))).await;
    let seen = seen.lock().unwrap().clone();
    (connected, seen)
}

#[tokio::test]
async fn a_legacy_server_is_found_by_whatever_error_it_answers_with() {
    for code in [-32601, -32602, -32600, -32002, -1, 1] {
        let (client, seen) = negotiate(move |method| match method {
            "initialize" => Ok(initialized("2025-06-18")),
            _ => Err(code),
        })
        .await;
        assert_eq!(client.unwrap().revision(), Some(Revision::V2025_06_18), "{code}");
        assert_eq!(seen, ["server/discover", "initialize"]);
    }
}

#[tokio::test]
async fn a_server_that_answers_the_probe_with_anything_else_than_its_description_is_a_legacy_one() {
    for result in [
        json!({}),
        json!(null),
        json!([]),
        json!("hello"),
        json!({ "resultType": "complete", "capabilities": {} }),
        json!({ "supportedVersions": "2026-07-28", "capabilities": {} }),
        json!({ "supportedVersions": null }),
        json!({ "resultType": "dance", "supportedVersions": ["2026-07-28"], "capabilities": {} }),
    ] {
        let answered = result.clone();
        let (client, seen) = negotiate(move |method| match method {
            "initialize" => Ok(initialized("2025-11-25")),
            _ => Ok(answered.clone()),
        })
        .await;
        assert_eq!(client.unwrap().revision(), Some(Revision::V2025_11_25), "{result}");
        assert_eq!(seen, ["server/discover", "initialize"], "{result}");
    }
}

#[tokio::test]
async fn a_silent_server_is_tried_as_a_legacy_one() {
    let (client, seen) = negotiate(|method| match method {
        "initialize" => Ok(initialized("2024-11-05")),
        _ => Err(0),
    })
    .await;
    assert_eq!(client.unwrap().revision(), Some(Revision::V2024_11_05));
    assert_eq!(seen, ["server/discover", "initialize"]);
}

#[tokio::test]
async fn a_modern_server_that_is_slow_to_start_is_used_as_one() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        script(theirs, |method, _| match method {
            "server/discover" => Ok(discovered(&["2026-07-28"])),
            _ => Err(-32601),
        })
        .await;
    });
    let client = Client::builder().probe_timeout(Duration::from_millis(20));
    let client = within(client.connect(tokio::io::split(ours))).await.unwrap();
    assert_eq!(client.revision(), Some(Revision::V2026_07_28));
}

#[tokio::test]
async fn a_server_that_names_only_legacy_revisions_gets_a_handshake() {
    let (client, seen) = negotiate(|method| match method {
        "initialize" => Ok(initialized("2025-11-25")),
        _ => Ok(discovered(&["2025-03-26", "2025-11-25"])),
    })
    .await;
    assert_eq!(client.unwrap().revision(), Some(Revision::V2025_11_25));
    assert_eq!(seen, ["server/discover", "initialize"]);
}

#[tokio::test]
async fn an_unsupported_version_is_asked_for_again_once() {
    let (client, seen) = negotiate(|_| Err(-32022)).await;
    assert!(matches!(client, Err(Error::Unsupported { .. })), "{client:?}");
    assert_eq!(seen, ["server/discover", "server/discover"]);
}

#[tokio::test]
async fn a_server_that_contradicts_itself_is_an_error_and_no_loop() {
    // it names a legacy revision, and refuses the handshake of it
    let (client, seen) = negotiate(|method| match method {
        "initialize" => Err(-32022),
        _ => Ok(discovered(&["2025-11-25"])),
    })
    .await;
    assert!(matches!(client, Err(Error::Unsupported { .. })), "{client:?}");
    assert_eq!(seen, ["server/discover", "initialize"]);

    // it answers a handshake with a revision that has none
    let (client, seen) = negotiate(|method| match method {
        "initialize" => Ok(initialized("2026-07-28")),
        _ => Err(-32601),
    })
    .await;
    assert!(matches!(client, Err(Error::Unsupported { .. })), "{client:?}");
    assert_eq!(seen, ["server/discover", "initialize"]);

    let (client, _) = negotiate(|_| Ok(discovered(&["2099-01-01"]))).await;
    assert!(matches!(client, Err(Error::Unsupported { .. })), "{client:?}");
}

#[tokio::test]
async fn a_pinned_revision_is_the_only_one_that_is_tried() {
    for revision in Revision::ALL {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = asked.clone();
        tokio::spawn(script(theirs, move |method, params| {
            kept.lock().unwrap().push((method.to_owned(), params["protocolVersion"].clone()));
            Err(-32601)
        }));
        let connected = within(Client::builder().revision(*revision).connect(tokio::io::split(ours))).await;
        assert!(connected.is_err());
        let expected = if revision.is_modern() {
            ("server/discover".to_owned(), Value::Null)
        } else {
            ("initialize".to_owned(), json!(revision.as_str()))
        };
        assert_eq!(*asked.lock().unwrap(), [expected]);
    }
}
