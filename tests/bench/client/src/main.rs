//! Calls `echo` as often as each line of its input says, and prints a line when that is done:
//! `bench-client-mcp-runtime TARGET AT_ONCE`, with a command line or a URL.

use mcp_runtime::{
    client::{Client, Error},
    serde_json::json,
};

async fn call(client: Client, from: usize, count: usize) -> Result<(), Error> {
    for number in from..from + count {
        let message = format!("message {number:010} the quick brown fox jumps over the lazy dog");
        let result = client.call("echo", json!({ "message": message })).await?;
        assert_eq!(result.text(), message);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next().ok_or("a target")?;
    let at_once: usize = arguments.next().ok_or("a number")?.parse()?;
    let client = Client::connect(target).await?;
    loop {
        let mut line = String::new();
        let read = tokio::task::spawn_blocking(move || std::io::stdin().read_line(&mut line).map(|_| line));
        let Ok(count) = read.await??.trim().parse::<usize>() else { break };
        let each = count / at_once;
        let workers: Vec<_> =
            (0..at_once).map(|worker| tokio::spawn(call(client.clone(), worker * each, each))).collect();
        for worker in workers {
            worker.await??;
        }
        println!("done");
    }
    client.close().await;
    Ok(())
}
