//! A relay without an item of its own, in front of the `everything` example, has the verdicts of the example itself.

use std::sync::{Arc, Mutex};

use mcp_external_tests::{manifest_dir, skip};
use mcp_runtime_remote::Remote;
use mcp_tests::programs::{example::Served, lock};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    runtime::Runtime,
};

use crate::{
    suite::{self, Suite},
    verdict::Verdict,
};

/// What has arrived at the example.
#[derive(Clone, Default)]
struct Arrived(Arc<Mutex<Vec<u8>>>);

impl Arrived {
    /// How often a method was requested: its name is in a header and in the body of each.
    fn count(&self, method: &str) -> usize {
        let arrived = self.0.lock().expect("bytes");
        String::from_utf8_lossy(&arrived).matches(&format!("\"method\":\"{method}\"")).count()
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, kept: Option<Arrived>) {
    let mut bytes = [0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if let Some(kept) = &kept {
            kept.0.lock().expect("bytes").extend_from_slice(&bytes[..read]);
        }
        if to.write_all(&bytes[..read]).await.is_err() {
            break;
        }
    }
}

/// Forwards connections to the example, and keeps what it is sent.
async fn forward(listener: TcpListener, example: String, arrived: Arrived) {
    while let Ok((client, _)) = listener.accept().await {
        let (example, arrived) = (example.clone(), arrived.clone());
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(example).await else { return };
            let ((from_client, to_client), (from_server, to_server)) =
                (client.into_split(), server.into_split());
            tokio::join!(copy(from_client, to_server, Some(arrived)), copy(from_server, to_client, None));
        });
    }
}

/// Scenarios of the extension for tasks: a relay awaits the tasks of other servers, and declares none itself.
const NOT_RELAYED: &str = "tasks-";

#[test]
fn a_relay_of_a_server_of_2026_07_28_has_its_verdicts() {
    let set = &suite::REQUIREMENTS_2026_07_28;
    let suite = match Suite::install() {
        Ok(suite) => suite,
        Err(missing) => return skip("conformance of a relay", &missing),
    };
    let _lock = lock("conformance");
    let example = Served::start("everything", manifest_dir());
    let address = example.url().trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let (runtime, arrived) = (Runtime::new().expect("a runtime"), Arrived::default());
    let port = || runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let url = |at: &TcpListener| format!("http://{}/mcp", at.local_addr().expect("an address"));
    let (front, back) = (port(), port());
    let (shown, upstream) = (url(&front), url(&back));
    runtime.spawn(forward(back, address, arrived.clone()));
    let relay = mcp_runtime::server!().add(Remote::new("everything", upstream).no_prefix());
    let relay = relay.build().expect("a relay");
    runtime.spawn(async move { relay.serve_http_on(front).await });

    let verdicts = suite.run(set, &shown);
    let (passed, other): (Vec<_>, Vec<_>) =
        verdicts.iter().partition(|(_, verdict)| **verdict == Verdict::Passed);
    // the example itself passes all
    let differ: Vec<_> = other.iter().filter(|(scenario, _)| !scenario.starts_with(NOT_RELAYED)).collect();
    assert!(differ.is_empty(), "{differ:#?}");
    assert!(passed.len() >= 25, "{} scenarios have passed", passed.len());
    // the relay has answered no call itself
    let calls = arrived.count("tools/call");
    assert!(calls >= 25, "{calls} calls have arrived");
}
