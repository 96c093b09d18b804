//! The envelope of a message: what is read of it is what it says.

use serde_json::{Value, value::RawValue};

use crate::core::jsonrpc::{is_valid_id, parse, parse_batch};

/// Checks that accepted text is JSON, and that any other reader reads it in the same way.
fn fuzz(data: &[u8]) {
    let is_json = std::str::from_utf8(data).is_ok_and(|text| serde_json::from_str::<&RawValue>(text).is_ok());
    if let Some(messages) = parse_batch(data) {
        assert!(is_json, "a batch is JSON");
        assert!(messages.iter().all(|message| serde_json::from_str::<&RawValue>(message.get()).is_ok()));
    }
    let message = match parse(data) {
        Ok(message) => message,
        Err(malformed) => {
            assert_eq!(malformed.error.code == -32700, !is_json, "{:?}", malformed.error);
            // half of a surrogate pair is repeated as it was sent
            let id = malformed.id.as_deref().map(serde_json::from_str::<&RawValue>);
            assert!(id.is_none_or(|id| id.is_ok_and(is_valid_id)));
            return;
        }
    };
    assert!(is_json, "a message is JSON");
    // nested too deeply for a value, which nothing of a message needs
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    let parsed = |raw: &str| serde_json::from_str::<Value>(raw).ok();
    assert_eq!(message.id().and_then(parsed).as_ref(), value.get("id"));
    assert_eq!(message.method(), value.get("method").and_then(Value::as_str));
    assert_eq!(message.is_response(), value.get("method").is_none());
    let params = message.params();
    let read = [
        ("name", params.name),
        ("uri", params.uri),
        ("arguments", params.arguments),
        ("cursor", params.get("cursor")),
        ("requestState", params.get("requestState")),
        ("taskId", params.get("taskId")),
    ];
    for (key, raw) in read {
        let raw = raw.and_then(|raw| parsed(raw.get()));
        let sent = value.get("params").and_then(|params| params.get(key));
        // null is absent
        assert_eq!(raw.as_ref(), sent.filter(|sent| !sent.is_null()), "{key}");
    }
    let meta = params.meta.to_json().and_then(|meta| parsed(&meta));
    let sent = value.get("params").and_then(|params| params.get("_meta"));
    assert_eq!(meta.as_ref(), sent.filter(|sent| sent.as_object().is_some_and(|sent| !sent.is_empty())));
}

inventory::submit!(crate::fuzzing::Target { name: "envelope", run: fuzz });
