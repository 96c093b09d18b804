//! The commands that call a server once: `list`, `call`, `read`, `prompt` and `schema`. They print as the command line of a
//! server of `mcp-runtime` does, by the same code.

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use mcp_runtime::{
    __dev::{self, ListedKind},
    client::{CallResult, Client, Error},
};
use serde_json::{Map, Value, json};

use crate::{
    Failure, Outcome, Run, print, print_json,
    server::{self, Progress},
};

pub(crate) fn commands() -> [(Command, Run); 5] {
    let name = |placeholder: &'static str, help: &'static str| {
        Arg::new("name").required(true).value_name(placeholder).help(help)
    };
    let json = || Arg::new("json").value_name("JSON").help("The arguments, as a JSON object");
    let as_json =
        || Arg::new("as-json").long("json").action(ArgAction::SetTrue).help("Print everything as JSON");
    let call = "Call a tool; in a terminal you answer its requests";
    [
        (server::command("list", "List what a server offers", vec![as_json()]), |arguments| {
            connect(arguments, "list")
        }),
        (
            server::command("call", call, vec![name("TOOL", "The tool's name"), json(), as_json()]),
            |arguments| connect(arguments, "call"),
        ),
        (server::command("read", "Read a resource", vec![name("URI", "The resource's URI")]), |arguments| {
            connect(arguments, "read")
        }),
        (
            server::command("prompt", "Get a prompt", vec![name("PROMPT", "The prompt's name"), json()]),
            |arguments| connect(arguments, "prompt"),
        ),
        (server::command("schema", "Print everything that clients see, as JSON", Vec::new()), |arguments| {
            connect(arguments, "schema")
        }),
    ]
}

fn connect(arguments: &ArgMatches, command: &'static str) -> Outcome {
    server::with_client(arguments, async |client| run(client, command, arguments).await)
}

/// Runs one of the commands.
///
/// # Errors
/// The server refuses it, or its tool has failed.
async fn run(client: &Client, command: &str, arguments: &ArgMatches) -> Outcome {
    let name = || arguments.get_one::<String>("name").cloned().unwrap_or_default();
    let as_json = || arguments.get_flag("as-json");
    match command {
        "list" => {
            let Lists { lists, failures, .. } = fetch_lists(client).await;
            match as_json() {
                true => print_json(&Value::Object(to_members(lists)))?,
                false => print(&__dev::list_text(&lists))?,
            }
            if !failures.is_empty() {
                return Err(failures.join("\n").into());
            }
        }
        "schema" => print_json(&fetch_schema(client).await?)?,
        "call" => {
            let result = call(client, name(), read_object(arguments)?).await?;
            match as_json() {
                true => print_json(&result)?,
                false => __dev::print_result(&result, "content")?,
            }
            if result["isError"] == true {
                return Ok(ExitCode::FAILURE);
            }
        }
        "read" => {
            let result = client.send("resources/read", json!({ "uri": name() })).await?;
            __dev::print_result(&result, "contents")?;
        }
        "prompt" => {
            let mut texts = read_object(arguments)?;
            // those of prompts are texts
            for value in texts.as_object_mut().into_iter().flat_map(|own| own.values_mut()) {
                if !value.is_string() {
                    *value = value.to_string().into();
                }
            }
            let result = client.send("prompts/get", json!({ "name": name(), "arguments": texts })).await?;
            __dev::print_result(&result, "messages")?;
        }
        other => return Err(format!("unknown command `{other}`").into()),
    }
    Ok(ExitCode::SUCCESS)
}

/// The result of a call as the wire has it; its progress is shown.
async fn call(client: &Client, tool: String, arguments: Value) -> Result<Value, Failure> {
    let progress = Progress::new();
    let shown = progress.clone();
    let pending = client.call(tool, arguments).progress_extends_timeout();
    let result = pending.on_progress(move |update| shown.update(&update)).await;
    progress.end();
    Ok(to_value(result?))
}

/// The wire's result of a call.
pub(crate) fn to_value(result: CallResult) -> Value {
    let mut members = Map::new();
    members.insert("content".into(), result.content.iter().map(__dev::content_value).collect());
    if let Some(structured) = result.structured {
        members.insert("structuredContent".into(), structured);
    }
    if result.is_error {
        members.insert("isError".into(), true.into());
    }
    if !result.meta.is_empty() {
        members.insert("_meta".into(), result.meta.into());
    }
    members.into()
}

/// The arguments of a call.
fn read_object(arguments: &ArgMatches) -> Result<Value, Failure> {
    let Some(text) = arguments.get_one::<String>("json") else { return Ok(json!({})) };
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => Ok(members.into()),
        Ok(_) => Err("the arguments are not a JSON object".into()),
        Err(error) => {
            Err(format!("the arguments are not JSON: {error}\nquote them for the shell: '{{\"key\": 1}}'")
                .into())
        }
    }
}

/// What a server offers.
struct Lists {
    lists: Vec<(ListedKind, Vec<Value>)>,
    /// The methods of lists that it declares and does not have; these lists are empty.
    missing: Vec<&'static str>,
    /// Why other lists are missing.
    failures: Vec<String>,
}

/// Every list that the server has.
async fn fetch_lists(client: &Client) -> Lists {
    const METHOD_NOT_FOUND: i64 = -32601;
    let (mut lists, mut missing, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for kind in ListedKind::ALL.into_iter().filter(|kind| client.supports(kind.capability())) {
        match fetch_list(client, kind).await {
            Ok(entries) => lists.push((kind, entries)),
            Err(error) if error.code() == Some(METHOD_NOT_FOUND) => {
                missing.push(kind.method());
                lists.push((kind, Vec::new()));
            }
            Err(error) => failures.push(format!("`{}`: {}", kind.method(), server::explained(&error))),
        }
    }
    Lists { lists, missing, failures }
}

async fn fetch_list(client: &Client, kind: ListedKind) -> Result<Vec<Value>, Error> {
    Ok(match kind {
        ListedKind::Tools => client.tools().await?.iter().map(|entry| entry.raw().clone()).collect(),
        ListedKind::Resources => client.resources().await?.iter().map(|entry| entry.raw().clone()).collect(),
        ListedKind::Templates => client.templates().await?.iter().map(|entry| entry.raw().clone()).collect(),
        ListedKind::Prompts => client.prompts().await?.iter().map(|entry| entry.raw().clone()).collect(),
        _ => client.events().await?.iter().map(|entry| entry.raw().clone()).collect(),
    })
}

fn to_members(lists: Vec<(ListedKind, Vec<Value>)>) -> Map<String, Value> {
    lists.into_iter().map(|(kind, entries)| (kind.member().to_owned(), entries.into())).collect()
}

/// Everything that clients see of a server.
pub(crate) async fn fetch_schema(client: &Client) -> Result<Value, Failure> {
    Ok(fetch_schema_and_missing(client).await?.0)
}

/// The same, with the methods of lists that it declares and does not have.
pub(crate) async fn fetch_schema_and_missing(client: &Client) -> Result<(Value, Vec<&'static str>), Failure> {
    let Lists { lists, missing, failures } = fetch_lists(client).await;
    if !failures.is_empty() {
        return Err(failures.join("\n").into());
    }
    let (name, version) = client.server_info();
    let mut all = Map::new();
    all.insert("server".into(), json!({ "name": name, "version": version }));
    if let Some(instructions) = client.instructions() {
        all.insert("instructions".into(), instructions.into());
    }
    all.insert("capabilities".into(), client.capabilities());
    all.extend(to_members(lists));
    Ok((all.into(), missing))
}
