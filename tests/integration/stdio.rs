//! Stdio, with a real child process.

use crate::{
    prelude::*,
    process::{fixture, legacy, start},
};

#[tokio::test]
async fn an_invalid_line_costs_one_message() {
    let mut server = start();
    server.write(b"nope\n\n  \r\n\xff\xfe\n[1]\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":5}\n").await;
    server.send(&call("after", "echo", &json!({ "message": "still here" }))).await;
    let replies = server.messages(5).await;
    let codes: Vec<i64> = replies[..4].iter().map(error_code).collect();
    assert_eq!(codes, [-32700, -32700, -32600, -32600]);
    assert!(replies[..3].iter().all(|reply| reply.get("id").is_none()), "{replies:?}");
    assert_eq!(replies[3]["id"], 7);
    assert_eq!(text_of(&replies[4]), "still here");
}

#[tokio::test]
async fn a_line_over_the_limit_is_skipped() {
    let mut server = start();
    let long = call("long", "echo", &json!({ "message": "y".repeat(5_000_000) }));
    server.send(&long).await;
    assert_eq!(error_code(&server.message().await), -32600);
    let reply = server.reply_to(&call(1, "echo", &json!({ "message": "z".repeat(60_000) }))).await;
    assert_eq!(text_of(&reply).len(), 60_000);
}

#[tokio::test]
async fn the_last_line_needs_no_terminator() {
    let mut server = start();
    server.write(ping("last").to_string().as_bytes()).await;
    server.close_input().await;
    assert_eq!(server.message().await["id"], "last");
    assert!(server.exit().await.0.success());
}

#[tokio::test]
async fn nothing_but_messages_goes_to_stdout() {
    let mut server = LineConnection::spawn(fixture().env("MCP_LOG", "trace"));
    for tool in ["panics", "fails"] {
        let reply = server.reply_to(&call(tool, tool, &json!({}))).await;
        assert_eq!(reply["result"]["isError"], true);
        assert!(!reply.to_string().contains("secret"), "{reply}");
    }
    server.reply_to(&call("next", "echo", &json!({ "message": "" }))).await;
    server.close_input().await;
    assert_eq!(server.next().await, None);
    let (status, errors) = server.exit().await;
    assert!(status.success());
    assert!(errors.contains("secret of the panic") && errors.contains("secret of the error"), "{errors}");
}

#[cfg(unix)]
#[tokio::test]
async fn what_a_tool_prints_does_not_reach_the_client() {
    let mut server = start();
    for id in [1, 2] {
        // the connection accepts nothing but whole messages
        let reply = server.reply_to(&call(id, "prints", &json!({}))).await;
        assert_eq!(text_of(&reply), "printed");
    }
    server.close_input().await;
    assert_eq!(server.next().await, None);
    let (status, errors) = server.exit().await;
    assert!(status.success());
    for printed in ["a stray line\n", "{\"jsonrpc\":", "of a child\n"] {
        assert_eq!(errors.matches(printed).count(), 2, "{printed}: {errors}");
    }
}

#[tokio::test]
async fn a_panic_while_dropping_costs_one_call() {
    let mut server = start();
    for tool in ["panics_twice", "panics_late"] {
        let reply = server.reply_to(&call(tool, tool, &json!({}))).await;
        assert_eq!((&reply["id"], &reply["result"]["isError"]), (&json!(tool), &json!(true)), "{reply}");
        assert!(!reply.to_string().contains("secret"), "{reply}");
    }
    assert_eq!(
        text_of(&server.reply_to(&call("next", "echo", &json!({ "message": "alive" }))).await),
        "alive"
    );
}

#[tokio::test]
async fn calls_in_flight_are_answered_after_the_end_of_stdin() {
    let mut server = start();
    // more than run concurrently: calls that wait for a permit are answered as well
    for id in 0..10 {
        server.send(&call(id, "slow", &json!({ "ms": 200 }))).await;
    }
    server.close_input().await;
    for _ in 0..10 {
        assert_eq!(text_of(&server.message().await), "slept");
    }
    assert_eq!(server.next().await, None);
    assert!(server.exit().await.0.success());
}

#[tokio::test]
async fn modern_requests_need_no_handshake_and_legacy_ones_do() {
    let mut server = start();
    assert_eq!(server.reply_to(&ping("p")).await["result"], json!({}));
    assert_eq!(
        error_code(&server.reply_to(&legacy_call("early", "echo", &json!({ "message": "" }))).await),
        -32602
    );
    assert_eq!(text_of(&server.reply_to(&call(1, "echo", &json!({ "message": "m" }))).await), "m");
    let mut named = call(2, "echo", &json!({ "message": "m" }));
    for version in ["2025-11-25", "1999-01-01"] {
        named["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(version);
        assert_eq!(error_code(&server.reply_to(&named).await), -32022);
    }
}

#[tokio::test]
async fn batches_are_accepted_in_2025_03_26() {
    let mut server = legacy("2025-03-26").await;
    let echo = |id| legacy_call(id, "echo", &json!({ "message": id }));
    server.send(
        &json!([echo("a"), { "jsonrpc": "2.0", "method": "notifications/x" }, { "jsonrpc": "2.0", "id": 9 },
        legacy_call("s", "slow", &json!({ "ms": 20 }))]),
    ).await;
    let reply = server.message().await;
    let of = |id: &Value| {
        reply.as_array().unwrap().iter().find(|r| r["id"] == *id).unwrap_or_else(|| panic!("{reply}"))
    };
    assert_eq!(reply.as_array().unwrap().len(), 3);
    assert_eq!(text_of(of(&json!("a"))), "a");
    assert_eq!(text_of(of(&json!("s"))), "slept");
    assert_eq!(error_code(of(&json!(9))), -32600);
    // a cancelled member is left out and does not delay the others
    server.send(&json!([echo("b"), legacy_call("never", "hang", &json!({}))])).await;
    server.send(&cancelled("never")).await;
    assert_eq!(server.message().await.as_array().unwrap().len(), 1);
    // refused as a whole; a batch of notifications gets no response
    server
        .send(&json!([echo("c"), { "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {} }]))
        .await;
    let refused = server.message().await;
    let codes: Vec<_> = refused.as_array().unwrap().iter().map(error_code).collect();
    assert_eq!(codes, [-32600; 2], "{refused}");
    server.send(&json!([{ "jsonrpc": "2.0", "method": "notifications/x" }])).await;
    server.send(&json!([])).await;
    server.reply_to(&ping("end")).await;
}

#[tokio::test]
async fn other_revisions_answer_a_batch_with_one_error() {
    let mut server = legacy("2025-11-25").await;
    server.send(&json!([ping("a"), ping("b")])).await;
    let reply = server.message().await;
    assert_eq!((error_code(&reply), reply.get("id")), (-32600, None));
    server.reply_to(&ping("c")).await;
}

#[tokio::test]
async fn legacy_clients_get_no_error_without_an_id() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let mut server = legacy(revision).await;
        server.write(b"nope\n").await;
        if revision != "2025-03-26" {
            server.send(&json!([ping("a"), ping("b")])).await;
        }
        // no other message comes first
        assert_eq!(server.reply_to(&ping("next")).await["result"], json!({}));
    }
}

#[tokio::test]
async fn a_full_server_queues_then_refuses_and_still_answers_pings() {
    let mut server = start();
    for id in 0..13 {
        server.send(&call(id, "wait", &json!({}))).await;
    }
    let busy = server.message().await;
    assert_eq!((busy["id"].as_i64(), error_code(&busy)), (Some(12), -32603));
    assert!(busy["error"]["message"].as_str().unwrap().contains("busy"), "{busy}");
    server.reply_to(&ping("alive")).await;
    // cancellation still works: a waiting request never starts, a running one releases its permit
    for id in [11, 0, 1, 2, 3, 4, 5, 6] {
        server.send(&cancelled(id)).await;
    }
    server.send(&call("open", "open", &json!({ "n": 100 }))).await;
    let replies = server.messages(5).await;
    let mut ids: Vec<i64> = replies.iter().filter_map(|reply| reply["id"].as_i64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [7, 8, 9, 10]);
    server.reply_to(&ping("nothing else comes")).await;
}
