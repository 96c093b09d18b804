//! Stopping: what is in flight is answered, what is idle is closed.

use serde_json::json;
use tokio::net::TcpStream;

use super::{
    client::{Ask, Wire, said, within},
    fixture::{Probe, Served, builder},
};

fn call(name: &str) -> Ask {
    Ask::modern(1, "tools/call", json!({"name": name}))
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_answers_what_is_in_flight() {
    within(async {
        let probe = Probe::default();
        let mut server = Served::start(builder(&probe)).await;
        let at = server.at;
        let held: Vec<_> =
            (0..100).map(|_| tokio::spawn(async move { call("hold").send(at).await })).collect();
        probe.entered(100).await;
        let mut idle = Wire::open(at).await;
        idle.write(&call("burst").bytes()).await;
        idle.reply().await;
        server.stop();
        assert!(idle.is_closed().await);
        probe.let_go(100);
        for held in held {
            assert_eq!(said(&held.await.expect("no panic").json()), "let go");
        }
        server.over().await;
        assert!(TcpStream::connect(at).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn what_takes_longer_than_the_drain_time_is_given_up() {
    within(async {
        let probe = Probe::default();
        let builder = builder(&probe).drain(std::time::Duration::from_millis(50));
        let mut server = Served::start(builder).await;
        let mut wire = Wire::open(server.at).await;
        wire.write(&call("hold").bytes()).await;
        probe.entered(1).await;
        server.stop();
        server.over().await;
        probe.ended(1, 0).await;
        assert!(wire.is_closed().await);
    })
    .await;
}

#[tokio::test]
async fn connections_over_the_limit_wait() {
    within(async {
        let server = Served::start(builder(&Probe::default()).max_connections(1)).await;
        let mut first = Wire::open(server.at).await;
        first.write(&call("burst").bytes()).await;
        first.reply().await;
        let mut second = Wire::open(server.at).await;
        second.write(&call("burst").bytes()).await;
        first.write(&call("burst").bytes()).await;
        assert_eq!(said(&first.reply().await.json()), "done");
        drop(first);
        assert_eq!(said(&second.reply().await.json()), "done");
    })
    .await;
}
