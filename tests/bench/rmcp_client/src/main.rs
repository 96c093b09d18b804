//! The same as `bench-client-mcp-runtime`, with rmcp: `bench-client-rmcp TARGET AT_ONCE`.

use rmcp::{
    RoleClient, ServiceExt,
    model::CallToolRequestParams,
    service::{Peer, RunningService},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::json;

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn call(client: Peer<RoleClient>, from: usize, count: usize) -> Result<(), Failure> {
    for number in from..from + count {
        let message = format!("message {number:010} the quick brown fox jumps over the lazy dog");
        let mut arguments = serde_json::Map::new();
        arguments.insert("message".to_owned(), json!(message));
        let params = CallToolRequestParams::new("echo").with_arguments(arguments);
        let result = client.call_tool(params).await?;
        let text = result.content.first().and_then(|block| block.as_text()).map(|text| text.text.as_str());
        assert_eq!(text, Some(&*message));
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next().ok_or("a target")?;
    let at_once: usize = arguments.next().ok_or("a number")?.parse()?;
    let service: RunningService<RoleClient, ()> = if target.starts_with("http") {
        ().serve(StreamableHttpClientTransport::from_uri(target)).await?
    } else {
        let mut words = target.split(' ');
        let mut command = tokio::process::Command::new(words.next().unwrap_or_default());
        command.args(words);
        ().serve(TokioChildProcess::new(command)?).await?
    };
    loop {
        let mut line = String::new();
        let read = tokio::task::spawn_blocking(move || std::io::stdin().read_line(&mut line).map(|_| line));
        let Ok(count) = read.await??.trim().parse::<usize>() else { break };
        let each = count / at_once;
        let workers: Vec<_> = (0..at_once)
            .map(|worker| tokio::spawn(call(service.peer().clone(), worker * each, each)))
            .collect();
        for worker in workers {
            worker.await??;
        }
        println!("done");
    }
    service.cancel().await?;
    Ok(())
}
