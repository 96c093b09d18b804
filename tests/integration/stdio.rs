//! Stdio with a real child process.

use serde_json::{Value, json};

use crate::child::{Server, call, cancel, fixture, legacy_call, ping};

fn text(reply: &Value) -> &str {
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {reply}"))
}

fn code(reply: &Value) -> i64 {
    reply["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error in {reply}"))
}

#[test]
fn one_bad_line_costs_one_message() {
    let mut server = Server::start();
    server.write(b"nope\n\n  \r\n\xff\xfe\n[1]\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":5}\n");
    server.send(&call("after", "echo", &json!({ "message": "still here" })));
    let replies: Vec<Value> = (0..5).map(|_| server.receive()).collect();
    let codes: Vec<i64> = replies[..4].iter().map(code).collect();
    assert_eq!(codes, [-32700, -32700, -32600, -32600]);
    assert!(replies[..3].iter().all(|reply| reply.get("id").is_none()), "{replies:?}");
    assert_eq!(replies[3]["id"], 7);
    assert_eq!(text(&replies[4]), "still here");
}

#[test]
fn a_line_over_the_limit_is_skipped() {
    let mut server = Server::start();
    let long = call("long", "echo", &json!({ "message": "y".repeat(300_000) }));
    server.send(&long);
    assert_eq!(code(&server.receive()), -32600);
    let reply = server.ask(&call(1, "echo", &json!({ "message": "z".repeat(60_000) })));
    assert_eq!(text(&reply).len(), 60_000);
}

#[test]
fn the_last_line_needs_no_end() {
    let mut server = Server::start();
    server.write(ping("last").to_string().as_bytes());
    server.close_input();
    assert_eq!(server.receive()["id"], "last");
    assert!(server.end().0.success());
}

#[test]
fn nothing_but_messages_goes_to_stdout() {
    let mut server = Server::spawn(fixture().env("MCP_LOG", "trace"));
    for tool in ["panics", "fails"] {
        let reply = server.ask(&call(tool, tool, &json!({})));
        assert_eq!(reply["result"]["isError"], true);
        assert!(!reply.to_string().contains("secret"), "{reply}");
    }
    server.ask(&call("next", "echo", &json!({ "message": "" })));
    server.close_input();
    assert_eq!(server.receive_or_end(), None);
    let (status, errors) = server.end();
    assert!(status.success());
    assert!(errors.contains("secret of the panic") && errors.contains("secret of the error"), "{errors}");
}

#[test]
fn a_panic_while_dropping_costs_one_call() {
    let mut server = Server::start();
    for tool in ["panics_twice", "panics_late"] {
        let reply = server.ask(&call(tool, tool, &json!({})));
        assert_eq!((&reply["id"], &reply["result"]["isError"]), (&json!(tool), &json!(true)), "{reply}");
        assert!(!reply.to_string().contains("secret"), "{reply}");
    }
    assert_eq!(text(&server.ask(&call("next", "echo", &json!({ "message": "alive" })))), "alive");
}

#[test]
fn calls_in_flight_are_answered_after_the_end_of_stdin() {
    let mut server = Server::start();
    // more than run at once: those that wait for a place are answered as well
    for id in 0..10 {
        server.send(&call(id, "slow", &json!({ "ms": 200 })));
    }
    server.close_input();
    for _ in 0..10 {
        assert_eq!(text(&server.receive()), "slept");
    }
    assert_eq!(server.receive_or_end(), None);
    assert!(server.end().0.success());
}

#[test]
fn calls_beyond_the_drain_limit_are_stopped() {
    let mut server = Server::spawn(fixture().env("FIXTURE_DRAIN_MS", "100"));
    server.send(&call("for ever", "hang", &json!({})));
    server.close_input();
    assert_eq!(server.receive_or_end(), None);
    let (status, errors) = server.end();
    assert!(status.success());
    assert!(errors.contains("still running"), "{errors}");
}

#[test]
fn an_idle_server_ends_with_stdin() {
    let mut server = Server::start();
    server.ask(&ping("hello"));
    server.close_input();
    assert!(server.end().0.success());
}

#[test]
fn a_ping_overtakes_slow_calls_which_run_side_by_side() {
    let mut server = Server::start();
    server.send(&call("a", "wait", &json!({})));
    server.send(&call("b", "wait", &json!({})));
    server.ask(&ping("p"));
    server.until_counted("waiting 2");
    server.send(&call("open", "open", &json!({ "n": 2 })));
    let mut ids = [(); 3].map(|()| server.receive()["id"].as_str().unwrap().to_owned());
    ids.sort();
    assert_eq!(ids, ["a", "b", "open"]);
}

#[test]
fn a_cancelled_call_ends_and_is_not_answered() {
    for legacy in [false, true] {
        let mut server = if legacy { Server::legacy("2025-06-18") } else { Server::start() };
        let mut request = if legacy { legacy_call } else { call }("never", "hang", &json!({}));
        request["params"]["_meta"]["progressToken"] = json!("of a cancelled call");
        server.send(&request);
        server.send(&cancel("unknown"));
        server.send(&cancel("never"));
        // `ask` refuses anything else that comes first, as the progress that the tool still reports
        server.until_counted("dropped 1 fired 1");
        server.close_input();
        assert_eq!(server.receive_or_end(), None);
    }
}

#[test]
fn modern_requests_need_no_handshake_and_legacy_ones_do() {
    let mut server = Server::start();
    assert_eq!(server.ask(&ping("p"))["result"], json!({}));
    assert_eq!(code(&server.ask(&legacy_call("early", "echo", &json!({ "message": "" })))), -32602);
    assert_eq!(text(&server.ask(&call(1, "echo", &json!({ "message": "m" })))), "m");
    let mut named = call(2, "echo", &json!({ "message": "m" }));
    for version in ["2025-11-25", "1999-01-01"] {
        named["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(version);
        assert_eq!(code(&server.ask(&named)), -32022);
    }
}

#[test]
fn modern_requests_are_served_after_a_handshake() {
    let mut server = Server::legacy("2024-11-05");
    let modern = server.ask(&call(1, "echo", &json!({ "message": "m" })));
    assert_eq!(modern["result"]["resultType"], "complete");
    let legacy = server.ask(&legacy_call(2, "echo", &json!({ "message": "m" })));
    assert_eq!(legacy["result"], json!({ "content": [{ "type": "text", "text": "m" }] }));
}

#[test]
fn batches_exist_in_one_revision() {
    let mut server = Server::legacy("2025-03-26");
    let echo = |id| legacy_call(id, "echo", &json!({ "message": id }));
    server.send(
        &json!([echo("a"), { "jsonrpc": "2.0", "method": "notifications/x" }, { "jsonrpc": "2.0", "id": 9 },
        legacy_call("s", "slow", &json!({ "ms": 20 }))]),
    );
    let reply = server.receive();
    let of = |id: &Value| {
        reply.as_array().unwrap().iter().find(|r| r["id"] == *id).unwrap_or_else(|| panic!("{reply}"))
    };
    assert_eq!(reply.as_array().unwrap().len(), 3);
    assert_eq!(text(of(&json!("a"))), "a");
    assert_eq!(text(of(&json!("s"))), "slept");
    assert_eq!(code(of(&json!(9))), -32600);
    // a member that is cancelled is left out, and holds nothing up
    server.send(&json!([echo("b"), legacy_call("never", "hang", &json!({}))]));
    server.send(&cancel("never"));
    assert_eq!(server.receive().as_array().unwrap().len(), 1);
    // refused as a whole; only notifications: nothing to say
    server.send(&json!([echo("c"), { "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {} }]));
    let refused = server.receive();
    assert!(refused.as_array().unwrap().iter().all(|r| code(r) == -32600), "{refused}");
    server.send(&json!([{ "jsonrpc": "2.0", "method": "notifications/x" }]));
    server.send(&json!([]));
    server.ask(&ping("end"));
}

#[test]
fn elsewhere_a_batch_is_one_error() {
    let mut server = Server::legacy("2025-11-25");
    server.send(&json!([ping("a"), ping("b")]));
    let reply = server.receive();
    assert_eq!((code(&reply), reply.get("id")), (-32600, None));
    server.ask(&ping("c"));
}

#[test]
fn older_sessions_get_no_error_without_an_id() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let mut server = Server::legacy(revision);
        server.write(b"nope\n");
        server.ask(&ping("next"));
    }
}

#[test]
fn a_full_server_queues_then_says_busy_and_still_answers_pings() {
    let mut server = Server::start();
    for id in 0..13 {
        server.send(&call(id, "wait", &json!({})));
    }
    let busy = server.receive();
    assert_eq!((busy["id"].as_i64(), code(&busy)), (Some(12), -32603));
    assert!(busy["error"]["message"].as_str().unwrap().contains("busy"), "{busy}");
    server.ask(&ping("alive"));
    // cancelling is heard as well: a waiting request never starts, a running one frees its place for those that wait
    for id in [11, 0, 1, 2, 3, 4, 5, 6] {
        let cancelled =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
        server.send(&cancelled);
    }
    server.send(&call("open", "open", &json!({ "n": 100 })));
    let ids: Vec<Value> = (0..5).map(|_| server.receive()["id"].clone()).collect();
    let mut ids: Vec<i64> = ids.iter().filter_map(Value::as_i64).collect();
    ids.sort_unstable();
    assert_eq!(ids, [7, 8, 9, 10]);
    server.ask(&ping("nothing else comes"));
}

#[test]
fn an_id_in_flight_cannot_be_used_again() {
    let mut server = Server::start();
    server.send(&call("same", "wait", &json!({})));
    let reply = server.ask(&call("same", "echo", &json!({ "message": "" })));
    assert_eq!(code(&reply), -32600);
    // once answered it is free again
    server.send(&call("open", "open", &json!({ "n": 1 })));
    let ids = [server.receive(), server.receive()].map(|reply| reply["id"].clone());
    assert!(ids.contains(&json!("same")), "{ids:?}");
    assert_eq!(text(&server.ask(&call("same", "echo", &json!({ "message": "again" })))), "again");
}

/// Every request of a client that writes a lot before it reads gets one reply, on a whole line.
#[cfg(unix)]
fn flood(mut server: Server) {
    const CALLS: usize = 3000;
    let large = json!({ "n": 20_000 });
    let requests: String = (0..CALLS).map(|id| format!("{}\n", call(id, "large", &large))).collect();
    server.write(requests.as_bytes());
    server.close_input();
    let mut seen = vec![false; CALLS];
    for _ in 0..CALLS {
        let reply = server.receive();
        let id = usize::try_from(reply["id"].as_u64().unwrap()).unwrap();
        assert!(!std::mem::replace(&mut seen[id], true), "{id} was answered twice");
        if reply.get("error").is_none() {
            assert_eq!(text(&reply).len(), 20_000);
        } else {
            assert_eq!(code(&reply), -32603);
        }
    }
    assert_eq!(server.receive_or_end(), None);
    assert!(server.end().0.success());
}

/// Lets nothing through until it is told to.
#[cfg(unix)]
struct Gated<R>(R, Option<std::sync::mpsc::Receiver<()>>);

#[cfg(unix)]
impl<R: std::io::Read> std::io::Read for Gated<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if let Some(gate) = self.1.take() {
            gate.recv().unwrap();
        }
        self.0.read(buffer)
    }
}

#[cfg(unix)]
fn gated_flood(output: impl std::io::Read + Send + 'static, stdout: std::os::fd::OwnedFd) {
    let (open, gate) = std::sync::mpsc::channel();
    let mut command = fixture();
    command.stdout(stdout);
    let mut server = Server::with_output(&mut command, Some(Box::new(Gated(output, Some(gate)))));
    drop(command);
    // within the server's bounds, so that it has to take all of it: the reader goes on although nobody reads
    let requests: String = (0..12)
        .map(|id| format!("{}\n", call(format!("first {id}"), "large", &json!({ "n": 60_000 }))))
        .collect();
    server.write(requests.as_bytes());
    server.send(&call("hang", "hang", &json!({})));
    server.send(&cancel("hang"));
    open.send(()).unwrap();
    for _ in 0..12 {
        assert_eq!(text(&server.receive()).len(), 60_000);
    }
    // the cancellation was heard while nothing could be written
    server.ask(&ping("last"));

    flood(server);
}

#[cfg(unix)]
#[test]
fn a_pipe_that_nobody_reads_loses_nothing() {
    let (reader, writer) = std::io::pipe().unwrap();
    gated_flood(reader, writer.into());
}

#[cfg(unix)]
#[test]
fn a_socket_that_nobody_reads_loses_nothing() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    gated_flood(ours, theirs.into());
}
