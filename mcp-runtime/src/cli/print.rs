//! Runs the commands that call the server, and prints: results to stdout, everything else to stderr.

use std::{
    io::{self, IsTerminal as _, Write},
    sync::Arc,
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

use super::{
    command::{ACTIONS, Action, Description},
    terminal,
};
use crate::{
    client::exchange::{ListedKind, MemoryClient, MemoryReply, prompt_arguments},
    core::{
        connection::Principal,
        content::{Content, ContentWriter},
        protocol::Revision,
        server::{Error, Result, Server},
        visible_text::{in_one_line, visible, visible_json},
    },
    schema::signature,
};

/// Resources that `list` shows.
const MAX_RESOURCES: usize = 50;

const SERVING: &str = "\
serving
  (none), stdio          serve stdin and stdout
  --http [ADDR]          serve HTTP at http://ADDR/mcp; 127.0.0.1:8080 by default";

#[cfg(feature = "install")]
const INSTALL: &str = "  install [CLIENT]       add this server to a client; `install --help` has more\n";
#[cfg(not(feature = "install"))]
const INSTALL: &str = "";

const CALLER: &str = "  --as SUBJECT           make the request as this caller, with any number of
                         --scope SCOPE and --claim NAME=VALUE";

/// How long the state may take to end after a command, unless another time is set.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// What commands print of a server that need not be built for them.
pub(super) struct About<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    pub(super) instructions: Option<&'a str>,
    /// Their part of the help, their values, and what is missing or wrong.
    #[cfg(feature = "config")]
    pub(super) settings: Option<(String, String, Option<String>)>,
}

impl About<'_> {
    pub(super) fn print(&self, what: &Description) -> Result<()> {
        match what {
            Description::Help => print_help(self),
            Description::Version => print_line(&format!("{} {}", self.name, self.version)),
            #[cfg(feature = "config")]
            Description::Settings => super::settings::print_settings(self.settings.as_ref()),
        }
    }
}

/// Prints text and a line end to stdout.
pub(super) fn print_line(text: &str) -> Result<()> {
    print_bytes(format!("{text}\n").as_bytes())
}

fn print_json(value: &Value) -> Result<()> {
    print_line(&visible_json(&format!("{value:#}")))
}

pub(super) fn print_bytes(bytes: &[u8]) -> Result<()> {
    match io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()) {
        // the reader, such as `head`, has exited
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Prints text and a line end to stderr.
pub(super) fn print_to_stderr(text: &str) {
    // a failed write cannot be reported anywhere
    let _result = writeln!(io::stderr(), "{text}");
}

fn program_name() -> String {
    let path = std::env::current_exe().ok();
    path.as_deref()
        .and_then(|path| path.file_name())
        .map_or("server".into(), |name| name.to_string_lossy().into_owned())
}

fn print_help(about: &About<'_>) -> Result<()> {
    let About { name, version, instructions, .. } = about;
    let program = program_name();
    let instructions = instructions.map(|text| format!("{text}\n\n")).unwrap_or_default();
    let actions: String = ACTIONS.iter().map(|(usage, does)| format!("  {usage:<22} {does}\n")).collect();
    #[cfg(feature = "config")]
    let settings = about.settings.as_ref().map(|(help, ..)| (" [SETTINGS]", format!("{help}\n\n")));
    #[cfg(feature = "config")]
    let (placeholder, settings) = settings.unwrap_or_default();
    #[cfg(not(feature = "config"))]
    let (placeholder, settings) = ("", "");
    print_line(&format!(
        "{name} {version}\n\n{instructions}usage: {program}{placeholder} [COMMAND]\n\n{SERVING}\n\n\
         trying it out\n{actions}{INSTALL}\n{CALLER}\n\n{settings}  --help, --version\n\n\
         Logs go to stderr; MCP_LOG=debug shows more of them."
    ))
}

/// Explains stdio to a user who started the server in a terminal.
pub(super) fn print_welcome(server: &Server) {
    let path = std::env::current_exe().map_or_else(|_| program_name(), |path| path.display().to_string());
    print_to_stderr(&format!(
        "{name} {version} is an MCP server: it waits for a client's messages on stdin (Ctrl-D ends it).\n\
         To connect a client, give it this command: {path}\n\
         To see what it offers: {path} list\n\
         For everything else: {path} --help",
        name = server.name(),
        version = server.version(),
    ));
}

/// Runs a command, as that caller, and prints its result.
///
/// # Errors
/// The server answered with a failure, or stdout cannot be written.
pub(super) async fn run_action(
    server: Server,
    action: &Action,
    caller: Option<Arc<Principal>>,
) -> Result<()> {
    #[cfg(feature = "config")]
    let settings_schema =
        server.server_settings().filter(|settings| !settings.is_empty()).map(|settings| settings.schema());
    #[cfg(not(feature = "config"))]
    let settings_schema = None;
    let serving = match action {
        Action::List { .. } | Action::Schema => None,
        _ => Some(server.open_state().await?),
    };
    let mut client = terminal::answer_in_terminal(MemoryClient::modern(server.clone()));
    if caller.is_some() {
        client.connection.set_caller(caller);
    }
    let printed = match action {
        Action::List { json } => {
            client.connection.leave_out_instances();
            let (lists, failures) = fetch_lists(&client).await;
            match json {
                true => print_json(&insert_lists(Map::new(), lists).into())?,
                false => print_lists(&lists)?,
            }
            if failures.is_empty() { Ok(()) } else { Err(Error::call(failures.join("\n"))) }
        }
        Action::Schema => {
            client.connection.leave_out_instances();
            print_json(&describe(&client, settings_schema).await?)
        }
        Action::Call { name, arguments } => {
            #[cfg(feature = "tasks")]
            let reply = super::tasks::call_tool(&mut client, name, arguments).await?;
            #[cfg(not(feature = "tasks"))]
            let reply = client.call_with_text(name, arguments).await;
            print_reply(&reply, "content")
        }
        Action::Read(uri) => {
            print_reply(&client.request("resources/read", json!({ "uri": uri })).await, "contents")
        }
        Action::Prompt { name, arguments } => {
            let arguments = prompt_arguments(parsed(arguments.as_bytes()));
            print_reply(
                &client.request("prompts/get", json!({ "name": name, "arguments": arguments })).await,
                "messages",
            )
        }
        #[cfg(feature = "events")]
        Action::Events { name, arguments } => {
            super::events::print_events(&client, name, parsed(arguments.as_bytes())).await
        }
    };
    if let Some(serving) = serving {
        server.end_state(serving, server.options().limits.shutdown_timeout.unwrap_or(END_TIMEOUT)).await;
    }
    printed.map_err(|error| with_scope_hint(error, &client))
}

/// A message of a server in this process, or an argument.
pub(super) fn parsed(message: &[u8]) -> Value {
    std::str::from_utf8(message).ok().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Kind and entries of every list that the server has, and why others failed.
async fn fetch_lists(client: &MemoryClient) -> (Vec<(ListedKind, Vec<Value>)>, Vec<String>) {
    let capabilities = client.discover().await["capabilities"].take();
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for kind in ListedKind::ALL {
        if capabilities.get(kind.capability()).is_none() {
            continue;
        }
        match client.list(kind).await {
            Ok(entries) => all.push((kind, entries)),
            Err(reply) => {
                let error = failed(&reply.message["error"]);
                failures.push(format!("`{}` failed: {error}", kind.method()));
            }
        }
    }
    (all, failures)
}

/// The error of a request that was refused.
pub(super) fn failed(error: &Value) -> Error {
    let message = visible(error["message"].as_str().unwrap_or_default());
    Error::call(format!("JSON-RPC error {}: {message}{}", error["code"], terminal::unanswered_hint(error)))
}

/// Inserts lists as the members that results have them in.
fn insert_lists(mut members: Map<String, Value>, lists: Vec<(ListedKind, Vec<Value>)>) -> Map<String, Value> {
    for (kind, entries) in lists {
        members.insert(kind.member().to_owned(), entries.into());
    }
    members
}

fn print_lists(lists: &[(ListedKind, Vec<Value>)]) -> Result<()> {
    let mut text = list_text(lists);
    if lists.iter().all(|(_, entries)| entries.is_empty()) {
        for line in crate::core::server::unregistered() {
            text.push_str(&format!("{line}\n"));
        }
    }
    print_bytes(text.as_bytes())
}

/// Lists as people read them, each under its heading. Of many resources, which may be the rows of a table, the first are shown.
#[must_use]
pub fn list_text(lists: &[(ListedKind, Vec<Value>)]) -> String {
    let mut text = String::new();
    for (kind, entries) in lists {
        let most = if *kind == ListedKind::Resources { MAX_RESOURCES } else { usize::MAX };
        let shown = entries.iter().take(most);
        let rows: Vec<_> = shown.map(|entry| (name_and_description(entry), signature_of(entry))).collect();
        let width = rows.iter().map(|((name, _), _)| name.chars().count()).max().unwrap_or_default();
        if rows.is_empty() {
            continue;
        }
        text.push_str(match kind {
            ListedKind::Templates => "resource templates",
            other => other.member(),
        });
        text.push('\n');
        for ((name, description), signature) in rows {
            text.push_str(format!("  {name:width$}  {description}").trim_end());
            text.push('\n');
            if let Some(signature) = signature {
                text.push_str(&format!("      {}\n", in_one_line(&signature)));
            }
        }
        if let Some(more @ 1..) = entries.len().checked_sub(most) {
            text.push_str(&format!("  and {more} more: `--json` prints all\n"));
        }
    }
    if text.is_empty() {
        text.push_str("the server offers nothing\n");
    }
    text
}

/// The name or URI of a list entry, and the first line of its description.
fn name_and_description(entry: &Value) -> (String, String) {
    let name =
        ["uri", "uriTemplate", "name"].into_iter().find_map(|key| entry[key].as_str()).unwrap_or_default();
    let description = entry["description"].as_str().and_then(|text| text.lines().next()).unwrap_or_default();
    (in_one_line(name).to_string(), in_one_line(description).to_string())
}

/// The arguments of a tool or a prompt, in the notation of a function call; `None` if it has none.
fn signature_of(entry: &Value) -> Option<String> {
    let name = entry["name"].as_str()?;
    if let Some(schema) = entry.get("inputSchema") {
        return Some(signature(name, schema)).filter(|signature| !signature.ends_with("()"));
    }
    let argument = |argument: &Value| {
        let mark = if argument["required"] == true { "" } else { "?" };
        Some(format!("{}{mark}", argument["name"].as_str()?))
    };
    let arguments: Vec<_> = entry["arguments"].as_array()?.iter().filter_map(argument).collect();
    (!arguments.is_empty()).then(|| format!("{name}({})", arguments.join(", ")))
}

/// Everything that clients see.
///
/// # Errors
/// The server refuses a list.
async fn describe(client: &MemoryClient, settings: Option<Value>) -> Result<Value> {
    let mut discovery = client.discover().await;
    let mut all = Map::new();
    all.insert("server".into(), discovery["_meta"][crate::core::protocol::META_SERVER_INFO].take());
    for key in ["instructions", "capabilities"] {
        if let Some(value) = discovery.get_mut(key) {
            all.insert(key.into(), value.take());
        }
    }
    let (lists, failures) = fetch_lists(client).await;
    if !failures.is_empty() {
        return Err(Error::call(failures.join("\n")));
    }
    let mut all = insert_lists(all, lists);
    // no list has them; the member is there without any, so that a reader knows that there are none
    all.insert("scopes".into(), client.connection.server.registry().scopes_of_tools().into());
    if let Some(settings) = settings {
        all.insert("settings".into(), settings);
    }
    Ok(all.into())
}

/// An error of a request by a caller without scopes, for whom an item that needs some is not there, with how to have one.
fn with_scope_hint(error: Error, client: &MemoryClient) -> Error {
    let connection = &client.connection;
    let has_no_scopes = connection.caller().is_some_and(|caller| caller.scopes().is_empty());
    let is_unknown = error.to_string().contains(": unknown ");
    if !has_no_scopes || !is_unknown || connection.server.registry().scoped().is_empty() {
        return error;
    }
    Error::call(format!("{error}\nsome items need a scope, and are not there without it: `--scope SCOPE`"))
}

/// Prints a reply: texts and a resource's bytes unchanged, anything else as JSON.
fn print_reply(reply: &MemoryReply, member: &str) -> Result<()> {
    if let Some(error) = reply.message.get("error") {
        return Err(failed(error));
    }
    print_result(reply.result(), member)
}

/// A block of content as the newest revision writes it.
#[must_use]
pub fn content_value(content: &Content) -> Value {
    let mut text = Vec::new();
    ContentWriter(Revision::LATEST).write_content(&mut text, content);
    parsed(&text)
}

/// Prints a result: texts and a resource's bytes unchanged, anything else as JSON. In a terminal, characters that it obeys are
/// escaped.
///
/// # Errors
/// The result is that of a failed tool, or asks for input; stdout cannot be written.
pub fn print_result(result: &Value, member: &str) -> Result<()> {
    let bytes = result_bytes(result, member)?;
    match io::stdout().is_terminal() {
        true => print_bytes(visible(&String::from_utf8_lossy(&bytes)).as_bytes()),
        false => print_bytes(&bytes),
    }
}

/// # Errors
/// The result is that of a failed tool, or asks for input.
fn result_bytes(result: &Value, member: &str) -> Result<Vec<u8>> {
    if result["resultType"] == "input_required" {
        return Err(Error::call("a question of the function was not answered"));
    }
    if result["isError"] == true {
        let blocks = result["content"].as_array().into_iter().flatten();
        let texts: Vec<_> = blocks.filter_map(|block| block["text"].as_str()).collect();
        let text = if texts.is_empty() { result.to_string() } else { texts.join("\n") };
        return Err(Error::call(visible(&text)));
    }
    let mut bytes = Vec::new();
    for entry in result[member].as_array().into_iter().flatten() {
        let (role, block) =
            entry.get("content").map_or((None, entry), |content| (entry["role"].as_str(), content));
        if let Some(role) = role {
            bytes.extend(format!("{role}: ").as_bytes());
        }
        if let Some(text) = block["text"].as_str() {
            bytes.extend(format!("{text}\n").as_bytes());
        } else if let Some(blob) = block["blob"].as_str().and_then(|text| BASE64_STANDARD.decode(text).ok()) {
            bytes.extend(blob);
        } else {
            bytes.extend(format!("{}\n", visible_json(&block.to_string())).as_bytes());
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{ToolError, resource::ResourceDef};

    #[tokio::test]
    async fn the_schema_has_templates_and_needs_no_database_for_instances_of_them() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let read = |_| async { Ok::<_, ToolError>("x") };
        let plain = ResourceDef::builder("note://plain").name("plain").handler(read);
        let rows = ResourceDef::builder("note://{id}").name("rows");
        let rows = rows.list(move |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
            async { ["note://1"] }
        });
        let server =
            Server::builder("test", "1").add(plain).add(rows.handler(read)).build().expect("a server");
        let mut client = MemoryClient::modern(server);
        client.connection.leave_out_instances();
        let all = describe(&client, None).await.expect("a schema");
        assert_eq!(all["resources"].as_array().map(Vec::len), Some(1), "{all}");
        assert_eq!(all["resources"][0]["uri"], "note://plain");
        assert_eq!(all["resourceTemplates"][0]["uriTemplate"], "note://{id}");
        assert_eq!(asked.load(Ordering::Relaxed), 0, "a function of the program was called");
    }

    #[test]
    fn of_many_resources_the_first_are_shown_and_the_others_counted() {
        let rows = |count: usize| -> Vec<Value> {
            (0..count).map(|n| json!({ "uri": format!("note://{n}") })).collect()
        };
        let text = list_text(&[(ListedKind::Resources, rows(60)), (ListedKind::Templates, rows(60))]);
        assert_eq!(text.matches("note://").count(), MAX_RESOURCES + 60, "{text}");
        assert!(text.contains("\n  and 10 more: `--json` prints all\nresource templates\n"), "{text}");
        assert!(!list_text(&[(ListedKind::Resources, rows(50))]).contains("more"));
    }
}
