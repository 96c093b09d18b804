//! The file that describes the tools; it is used as a whole, or not at all.

use std::{
    collections::HashSet,
    fmt, fs, io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use mcp_runtime::{
    ServerHandle,
    prelude::*,
    serde_json::{self, Map, Value, json},
    tool::{ToolCall, ToolDef},
};

use super::{output::Outputs, process};

/// One tool of the file.
#[mcp_type]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    description: String,
    /// The program and its arguments. An argument `{name}` is the value of that parameter, and is left out without one.
    command: Vec<String>,
    /// The JSON Schema of each parameter; one without `default` is required.
    #[serde(default)]
    parameters: Map<String, Value>,
    timeout_seconds: u64,
}

/// The reason why a file is not used.
#[derive(Debug)]
pub(crate) enum FileError {
    Read(io::Error),
    Syntax(serde_json::Error),
    NoProgram { tool: String },
    UnknownParameter { tool: String, parameter: String },
    Tools(mcp_runtime::Error),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the file of the tools cannot be used: ")?;
        match self {
            Self::Read(error) => write!(f, "{error}"),
            Self::Syntax(error) => write!(f, "{error}"),
            Self::NoProgram { tool } => write!(f, "the `command` of `{tool}` is empty"),
            Self::UnknownParameter { tool, parameter } => {
                write!(
                    f,
                    "the `command` of `{tool}` has `{{{parameter}}}`, which is not one of its `parameters`"
                )
            }
            Self::Tools(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for FileError {}

/// A file of tools, and its state when it was last read.
#[derive(Debug)]
pub(crate) struct ToolFile {
    path: PathBuf,
    seen: Option<(SystemTime, u64)>,
    /// The names of the registered tools.
    names: HashSet<String>,
}

impl ToolFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, seen: None, names: HashSet::new() }
    }

    fn version(&self) -> Option<(SystemTime, u64)> {
        let file = fs::metadata(&self.path).ok()?;
        Some((file.modified().ok()?, file.len()))
    }

    /// Whether the file has changed since it was last read.
    pub(crate) fn has_changed(&self) -> bool {
        self.version() != self.seen
    }

    /// The tools of the file.
    pub(crate) fn load(&mut self, outputs: &Arc<Outputs>) -> Result<Vec<ToolDef>, FileError> {
        self.seen = self.version();
        let text = fs::read_to_string(&self.path).map_err(FileError::Read)?;
        let entries: Vec<Entry> = serde_json::from_str(&text).map_err(FileError::Syntax)?;
        let tools: Vec<_> =
            entries.into_iter().map(|entry| tool(entry, outputs)).collect::<Result<_, _>>()?;
        self.names = tools.iter().map(|tool| tool.name().to_owned()).collect();
        Ok(tools)
    }

    /// Replaces the tools of the server by those of the file; if they cannot be used, the old ones stay.
    pub(crate) fn reload(&mut self, server: &ServerHandle, outputs: &Arc<Outputs>) -> Result<(), FileError> {
        let old = self.names.clone();
        let tools = self.load(outputs)?;
        let replaced = server.update(|all| {
            for name in &old {
                all.remove_tool(name);
            }
            for tool in tools {
                all.add(tool);
            }
        });
        replaced.map_err(|error| {
            self.names = old;
            FileError::Tools(error)
        })
    }
}

/// The name of the parameter, if a part of a command is `{name}`.
fn placeholder(part: &str) -> Option<&str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

fn tool(entry: Entry, outputs: &Arc<Outputs>) -> Result<ToolDef, FileError> {
    let Entry { name, description, command, parameters, timeout_seconds } = entry;
    let Some((program, arguments)) = command.split_first() else {
        return Err(FileError::NoProgram { tool: name });
    };
    if let Some(parameter) =
        arguments.iter().filter_map(|part| placeholder(part)).find(|p| !parameters.contains_key(*p))
    {
        return Err(FileError::UnknownParameter { tool: name, parameter: parameter.to_owned() });
    }
    let is_required = |(_, schema): &(&String, &Value)| schema.get("default").is_none();
    let required: Vec<_> = parameters.iter().filter(is_required).map(|(name, _)| name).collect();
    let schema = json!({ "type": "object", "required": required, "properties": &parameters });
    let (program, arguments, outputs) = (program.clone(), arguments.to_vec(), outputs.clone());
    let definition = ToolDef::builder(name)
        .description(description)
        .input_schema(schema)
        .timeout(Duration::from_secs(timeout_seconds));
    Ok(definition.handler(move |call: ToolCall| {
        let values = arguments.iter().filter_map(|part| value(part, &call.arguments));
        let command = process::command(&program, values);
        let outputs = outputs.clone();
        async move { outputs.reply(process::run(command, &call.context).await?, &call.context) }
    }))
}

/// A part of a command for these arguments: a value is always one argument of the program, whatever it contains.
fn value(part: &str, arguments: &Value) -> Option<String> {
    let Some(parameter) = placeholder(part) else { return Some(part.to_owned()) };
    Some(match arguments.get(parameter)? {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}
