//! The `catalog` server over real pipes: exact lines of JSON, as clients write them.

use std::process::Command;

use crate::prelude::*;

/// The server, for a client of that revision.
async fn catalog(revision: Revision) -> LineConnection {
    let mut server = LineConnection::spawn(&mut Command::new(env!("CARGO_BIN_EXE_catalog")));
    if !revision.is_modern() {
        let hello = server.initialize(revision.as_str()).await;
        assert_eq!(hello["serverInfo"], json!({ "name": "catalog", "version": "1.0.0" }));
    }
    server
}

/// Calls a tool with params of this text, which a JSON library might never write.
async fn call(server: &mut LineConnection, revision: Revision, params: &str) -> Value {
    let meta = if revision.is_modern() { format!(",\"_meta\":{}", meta()) } else { String::new() };
    let line = format!(r#"{{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{{{params}{meta}}}}}"#);
    server.write((line + "\n").as_bytes()).await;
    let reply = server.message().await;
    assert_eq!(reply["id"], "q", "{reply}");
    reply
}

#[tokio::test]
async fn every_character_survives_on_one_line() {
    let mut server = catalog(Revision::LATEST).await;
    let odd: String =
        (0..0x250).chain([0x2028, 0x2029, 0xfeff, 0xffff, 0x1f600]).filter_map(char::from_u32).collect();
    for (params, text) in [
        (format!(r#""name":"echo","arguments":{}"#, json!({ "message": odd })), odd.as_str()),
        (r#""name":"\u0065cho","arguments":{"\u006dessage":"\ud83d\ude00\/\u0000"}"#.into(), "😀/\u{0}"),
    ] {
        let reply = call(&mut server, Revision::LATEST, &params).await;
        assert_eq!(reply["result"]["content"], json!([{ "type": "text", "text": text }]), "{params}");
    }
}

#[tokio::test]
async fn an_unpaired_surrogate_is_an_argument_error() {
    for &revision in Revision::ALL {
        let mut server = catalog(revision).await;
        for arguments in [
            r#"{"message":"\ud800"}"#,
            r#"{"message":"a\udc00b"}"#,
            r#"{"message":"\ud83d\ud83d"}"#,
            r#"{"message":"x","\ud800":1}"#,
        ] {
            let reply =
                call(&mut server, revision, &format!(r#""name":"echo","arguments":{arguments}"#)).await;
            // the value of an unknown key is ignored whatever it is
            let answered = reply["result"]["isError"] == true || reply["result"]["content"][0]["text"] == "x";
            assert!(answered, "{arguments}: {reply}");
        }
        let next = call(&mut server, revision, r#""name":"echo","arguments":{"message":"next"}"#).await;
        assert_eq!(text_of(&next), "next");
    }
}

#[tokio::test]
async fn numbers_of_any_size_get_a_response() {
    let mut server = catalog(Revision::LATEST).await;
    for (number, good) in [
        ("1e2", true),
        ("1E+1", true),
        ("-0", true),
        ("-0.0", true),
        ("255.000", true),
        ("256", false),
        ("1e400", false),
        ("-1e-400", true),
        ("0.1", false),
        ("123456789012345678901234567890", false),
        ("1e999999999999", false),
    ] {
        let params = format!(r#""name":"exact","arguments":{{"n":{number}}}"#);
        let reply = call(&mut server, Revision::LATEST, &params).await;
        assert_eq!(reply["result"]["isError"] != true, good, "{number}: {reply}");
        if !good {
            let said = reply["result"]["content"][0]["text"].as_str().unwrap_or_default();
            assert!(said.starts_with("invalid arguments for tool `exact`:\n- "), "{number}: {said}");
        }
    }
    let next = call(&mut server, Revision::LATEST, r#""name":"exact","arguments":{"n":255}"#).await;
    assert_eq!(text_of(&next), "255");
}

#[tokio::test]
async fn a_duplicate_key_is_refused() {
    let mut server = catalog(Revision::LATEST).await;
    let twice = call(&mut server, Revision::LATEST, r#""name":"exact","arguments":{"n":1,"n":2}"#).await;
    assert_eq!(twice["result"]["isError"], true, "{twice}");
    for params in [
        r#""name":"exact","name":"echo","arguments":{"n":1}"#,
        r#""name":"exact","arguments":{"n":1},"arguments":{}"#,
    ] {
        let reply = call(&mut server, Revision::LATEST, params).await;
        assert_eq!(error_code(&reply), -32600, "{params}");
    }
}

#[tokio::test]
async fn deep_nesting_gets_a_response() {
    let mut server = catalog(Revision::LATEST).await;
    for depth in [100, 1_000, 15_000] {
        let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let params = format!(r#""name":"anything","arguments":{{"value":{deep}}}"#);
        let reply = call(&mut server, Revision::LATEST, &params).await;
        assert!(reply["result"]["content"][0]["text"].is_string(), "{depth}: {reply}");
    }
    let next = call(&mut server, Revision::LATEST, r#""name":"echo","arguments":{"message":"next"}"#).await;
    assert_eq!(text_of(&next), "next");
}

#[tokio::test]
async fn unregistered_items_are_reported_once() {
    let mut server = catalog(Revision::LATEST).await;
    server.reply_to(&ping(1)).await;
    server.close_input().await;
    let log = server.exit().await.1;
    let lines: Vec<_> = log.lines().filter(|line| line.contains("no server offers it")).collect();
    assert_eq!(lines.len(), 3, "{log}");
    assert!(lines[0].contains("or mark it `unregistered`") && lines[0].contains("catalog.rs:"), "{log}");
    // only tools have the option
    assert!(lines[1].contains("`unregistered_prompt`") && lines[1].ends_with("; register it"), "{log}");
    assert!(lines[2].contains("::Unregistered` at ") && lines[2].contains("with `.service(..)`"), "{log}");
    assert!(!log.contains("left_out"), "{log}");
}
