//! The server of the page on databases, with PostgreSQL: its state is a pool, which is made before the first message.

use std::process::Command;

use mcp_external_tests::{postgres::PostgresServer, skip};
use mcp_tests::{
    programs,
    support::{LineConnection, call, cancelled, ping, soon, text_of, within},
};
use serde_json::json;

/// Builds the example, which is a workspace of its own.
fn example() -> std::path::PathBuf {
    let folder = programs::workspace_dir().join("examples/postgres");
    // with the builds of the other examples that are
    let target = programs::profile_dir().parent().expect("the target folder").join("recipes");
    let mut cargo = programs::cargo();
    cargo.args(["build", "--quiet", "--locked"]).current_dir(&folder).env("CARGO_TARGET_DIR", &target);
    assert!(cargo.status().expect("cargo starts").success());
    target.join("debug/mcp-example-postgres")
}

#[tokio::test]
async fn the_server_of_the_page_makes_its_pool_first_and_rolls_back_what_is_cancelled() {
    let postgres = match PostgresServer::start() {
        Ok(postgres) => postgres,
        Err(missing) => return skip("the_server_of_the_page", &missing),
    };
    let program = example();
    let with = |url: &str, arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).env_remove("DATABASE_URL");
        if !url.is_empty() {
            command.env("DATABASE_URL", url);
        }
        command
    };
    let run = |url: &str, arguments: &[&str]| {
        let output = with(url, arguments).output().expect("it starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };

    // without settings, and without a database
    let nowhere = "postgres://shop:planted@127.0.0.1:1/shop";
    for url in ["", nowhere] {
        for command in [&["--help"][..], &["list"], &["schema"]] {
            let (success, stdout, stderr) = run(url, command);
            assert!(success && !stdout.is_empty(), "{command:?}: {stderr}");
        }
    }
    for command in [&["call", "open_orders"][..], &["stdio"], &["--http", "0"]] {
        let (success, _, stderr) = run(nowhere, command);
        assert!(!success && stderr.contains("the state `Pool<"), "{stderr}");
        assert!(!stderr.contains("planted"), "{stderr}");
    }

    // the first start migrates the database
    let url = postgres.url();
    let (success, stdout, stderr) = run(&url, &["call", "open_orders"]);
    assert!(success && stdout.trim() == "[]", "{stdout}{stderr}");
    let mut session = postgres.open();
    session.execute("INSERT INTO orders VALUES (1, 'tea'), (2, 'coffee')");

    within(async {
        let mut server = LineConnection::spawn(&mut with(&url, &[]));
        let cancel = |id: i32| json!({ "id": id, "reason": "too late" });
        let reply = server.reply_to(&call("a", "cancel_order", &cancel(1))).await;
        assert_ne!(reply["result"]["isError"], true, "{reply}");
        let reply = server.reply_to(&call("b", "cancel_order", &cancel(1))).await;
        assert_eq!(text_of(&reply), "order 1 does not exist, or is not open");

        // its second statement waits, and the first is done
        session.execute("BEGIN; LOCK TABLE cancellations");
        server.send(&call("c", "cancel_order", &cancel(2))).await;
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        assert!(soon(|| postgres.query(waiting) == "1").await);
        server.send(&cancelled("c")).await;
        server.reply_to(&ping("d")).await;
        session.execute("COMMIT");
        // waits for the end of the transaction
        session
            .execute("BEGIN; SELECT id AS waits FROM orders WHERE id = 2 FOR UPDATE \\g /dev/null\nCOMMIT");
        assert_eq!(postgres.query("SELECT open FROM orders WHERE id = 2"), "t");
        assert_eq!(postgres.query("SELECT id FROM cancellations"), "1");
        let reply = server.reply_to(&call("e", "open_orders", &json!({}))).await;
        assert_eq!(reply["result"]["structuredContent"], json!([{ "id": 2, "product": "coffee" }]));

        server.close_input().await;
        let (status, log) = server.exit().await;
        assert!(status.success(), "{log}");
    })
    .await;
}
