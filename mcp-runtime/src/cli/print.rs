//! What the commands print: results to stdout, everything else to stderr.

use std::io::{self, Write};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::command::Action;
use crate::{
    server::{Result, Server},
    transport::memory::{MemoryClient, MemoryReply, prompt_arguments},
};

const USAGE: &str = "\
usage: {program} [COMMAND]

serving
  (none), stdio          serve stdin and stdout
  --http [ADDR]          serve HTTP at http://ADDR/mcp; 127.0.0.1:8080 by default

trying it out
  list [--json]          what the server offers
  call NAME [JSON]       call a tool with these arguments
  read URI               read a resource
  prompt NAME [JSON]     get a prompt with these arguments
  schema                 every descriptor that clients see, as JSON

  --help, --version

Logs go to stderr; MCP_LOG=debug shows more of them.";

/// The lists of a server: method, member of the result, headline.
const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "tools"),
    ("resources/list", "resources", "resources"),
    ("resources/templates/list", "resourceTemplates", "resource templates"),
    ("prompts/list", "prompts", "prompts"),
];

/// Prints one line, or several, to stdout.
pub(super) fn line(text: &str) -> Result<()> {
    bytes(format!("{text}\n").as_bytes())
}

fn bytes(bytes: &[u8]) -> Result<()> {
    match io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()) {
        // `… | head` has seen enough
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Says something on stderr.
pub(super) fn complain(text: &str) {
    // without stderr there is nobody to tell
    let _lost = writeln!(io::stderr(), "{text}");
}

fn program() -> String {
    let path = std::env::current_exe().ok();
    path.as_deref()
        .and_then(|path| path.file_name())
        .map_or("server".into(), |name| name.to_string_lossy().into_owned())
}

pub(super) fn help(server: &Server) -> Result<()> {
    let instructions = server.instructions().map(|text| format!("{text}\n\n")).unwrap_or_default();
    let usage = USAGE.replace("{program}", &program());
    line(&format!("{} {}\n\n{instructions}{usage}", server.name(), server.version()))
}

/// For people who started a server in a terminal.
pub(super) fn welcome(server: &Server) {
    let path = std::env::current_exe().map_or_else(|_| program(), |path| path.display().to_string());
    complain(&format!(
        "{name} {version} is an MCP server: it waits for a client's messages on stdin (Ctrl-D ends it).\n\
         To connect a client, give it this command: {path}\n\
         To see what it offers: {path} list\n\
         For everything else: {path} --help",
        name = server.name(),
        version = server.version(),
    ));
}

/// Does one thing to the server; whether it went well.
pub(super) async fn act(server: Server, action: &Action) -> Result<bool> {
    let client = MemoryClient::modern(server);
    match action {
        Action::List { json: true } => {
            let lists = lists(&client).await?;
            line(&format!(
                "{:#}",
                Value::Object(lists.into_iter().map(|(_, key, list)| (key.into(), list)).collect())
            ))?;
            Ok(true)
        }
        Action::List { json: false } => list(&client).await,
        Action::Schema => schema(&client).await,
        Action::Call { name, arguments } => {
            let arguments = if arguments.is_null() { json!({}) } else { arguments.clone() };
            show(
                &client.request("tools/call", json!({ "name": name, "arguments": arguments })).await,
                "content",
            )
        }
        Action::Read(uri) => show(&client.request("resources/read", json!({ "uri": uri })).await, "contents"),
        Action::Prompt { name, arguments } => {
            let arguments = if arguments.is_null() { json!({}) } else { arguments.clone() };
            let arguments = prompt_arguments(arguments);
            show(
                &client.request("prompts/get", json!({ "name": name, "arguments": arguments })).await,
                "messages",
            )
        }
    }
}

/// Headline, member and entries of every list that the server has.
async fn lists(client: &MemoryClient) -> Result<Vec<(&'static str, &'static str, Value)>> {
    let capabilities = client.discover().await["capabilities"].take();
    let mut all = Vec::new();
    for (method, member, headline) in LISTS {
        let capability = method.split('/').next().unwrap_or_default();
        if capabilities.get(capability).is_some() {
            let entries = client
                .list(method, member)
                .await
                .map_err(|reply| format!("`{method}` failed: {:#}", reply.message))?;
            all.push((headline, member, Value::Array(entries)));
        }
    }
    Ok(all)
}

async fn list(client: &MemoryClient) -> Result<bool> {
    let mut text = String::new();
    for (headline, _, entries) in lists(client).await? {
        let rows: Vec<(&str, &str)> = entries.as_array().into_iter().flatten().map(row).collect();
        let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        if rows.is_empty() {
            continue;
        }
        text.push_str(&format!("{headline}\n"));
        for (name, description) in rows {
            text.push_str(format!("  {name:width$}  {description}").trim_end());
            text.push('\n');
        }
    }
    bytes(if text.is_empty() { "the server offers nothing\n" } else { &text }.as_bytes())?;
    Ok(true)
}

/// What a list entry is called by, and the first line of what it says of itself.
fn row(entry: &Value) -> (&str, &str) {
    let name =
        ["uri", "uriTemplate", "name"].into_iter().find_map(|key| entry[key].as_str()).unwrap_or_default();
    (name, entry["description"].as_str().and_then(|text| text.lines().next()).unwrap_or_default())
}

async fn schema(client: &MemoryClient) -> Result<bool> {
    let mut whole = client.discover().await;
    let mut all = serde_json::Map::new();
    all.insert("server".into(), whole["_meta"][crate::protocol::META_SERVER_INFO].take());
    for key in ["instructions", "capabilities"] {
        if let Some(value) = whole.get_mut(key) {
            all.insert(key.into(), value.take());
        }
    }
    all.extend(lists(client).await?.into_iter().map(|(_, member, entries)| (member.into(), entries)));
    line(&format!("{:#}", Value::Object(all)))?;
    Ok(true)
}

/// Prints a reply: its texts as they are, a resource's bytes as they are, anything else as JSON.
fn show(reply: &MemoryReply, member: &str) -> Result<bool> {
    if let Some(error) = reply.message.get("error") {
        complain(&format!("error {}: {}", error["code"], error["message"].as_str().unwrap_or_default()));
        return Ok(false);
    }
    let result = reply.result();
    if result["isError"] == true {
        let blocks = result["content"].as_array().into_iter().flatten();
        complain(&blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"));
        return Ok(false);
    }
    for entry in result[member].as_array().into_iter().flatten() {
        let (role, block) =
            entry.get("content").map_or((None, entry), |content| (entry["role"].as_str(), content));
        if let Some(role) = role {
            bytes(format!("{role}: ").as_bytes())?;
        }
        if let Some(text) = block["text"].as_str() {
            line(text)?;
        } else if let Some(blob) = block["blob"].as_str().and_then(|text| BASE64_STANDARD.decode(text).ok()) {
            bytes(&blob)?;
        } else {
            line(&block.to_string())?;
        }
    }
    Ok(true)
}
