//! Servers as hosts have them in a file: `mcpServers` of Claude, Cursor and others, `servers` of VS Code, `context_servers` of
//! Zed. One that is not usable is an error of that server, and costs no other.

use std::{
    collections::{BTreeMap, HashMap},
    env, fmt,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use jsonc_parser::{CollectOptions, parse_to_ast};
use serde_json::{Map, Value};
use tokio::task::JoinSet;

use super::{Client, ClientBuilder, Error, agent::Toolset};
use crate::core::{jsonc::JSONC, text_file::read_text};

/// Members under which hosts keep servers.
const KEYS: [&str; 3] = ["mcpServers", "servers", "context_servers"];

type Configure = Arc<dyn Fn(&str, ClientBuilder) -> ClientBuilder + Send + Sync>;

/// The servers of a host's file: of `mcpServers`, `servers` or `context_servers`, in JSON that may have comments and
/// trailing commas.
///
/// ```no_run
/// use mcp_runtime::client::McpServers;
///
/// # async fn example() -> Result<(), mcp_runtime::client::Error> {
/// let toolset = McpServers::read(".mcp.json")?.toolset()?;
/// println!("{} tools", toolset.tools().await?.len());
/// # Ok(())
/// # }
/// ```
///
/// A server has a `command` with `args`, `env`, `envFile` and `cwd`, or a `url` (`serverUrl`, `httpUrl`) with `headers`;
/// with the `type` `sse` it is used over HTTP+SSE. One that is `disabled`, or not `enabled`, is left out. The other
/// members of an entry are the host's, and are not read.
///
/// In texts, `${NAME}` and `${env:NAME}` are variables of the environment, `${NAME:-text}` is one with a default,
/// `${userHome}` is the user's folder, and `${pathSeparator}` and `${/}` stand between folders. Others, such as
/// `${input:token}` and `${workspaceFolder}`, are set with [`variable`](Self::variable).
#[derive(Clone)]
#[must_use = "nothing is connected before `connect` or `toolset`"]
pub struct McpServers {
    entries: BTreeMap<String, Value>,
    variables: HashMap<String, String>,
    configure: Option<Configure>,
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // entries have credentials
        f.debug_struct("McpServers").field("names", &self.names().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

impl McpServers {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Invalid`]: it cannot be read, or has no servers.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = read_text(path, u64::MAX)
            .map_err(|error| Error::invalid(format!("`{}` cannot be read: {error}", path.display())))?;
        Self::parse(&text)
    }

    /// Parses the text of such a file.
    ///
    /// # Errors
    /// [`Error::Invalid`]: it is not JSON, or has no servers.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let parsed = parse_to_ast(text.trim_start_matches('\u{feff}'), &CollectOptions::default(), &JSONC);
        let file: Value = parsed
            .map_err(|error| {
                let (line, column) = (error.line_display(), error.column_display());
                Error::invalid(format!("the file of servers is not JSON at line {line} column {column}"))
            })?
            .value
            .map_or(Value::Null, Value::from);
        // the settings of VS Code have them in `mcp`
        let places = [Some(&file), file.get("mcp")];
        let servers =
            places.into_iter().flatten().find_map(|place| KEYS.iter().find_map(|key| place.get(key)));
        let Some(Value::Object(servers)) = servers else {
            return Err(Error::invalid(format!(
                "the file has no servers\nname them in `{}`",
                KEYS.join("`, `")
            )));
        };
        let is_used = |entry: &Value| {
            let has = |key: &str, value: bool| entry.get(key) == Some(&Value::Bool(value));
            !has("disabled", true) && !has("enabled", false)
        };
        let entries = servers.iter().filter(|(_, entry)| is_used(entry));
        let entries = entries.map(|(name, entry)| (name.clone(), entry.clone())).collect();
        Ok(Self { entries, variables: HashMap::new(), configure: None })
    }

    /// The names of the servers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Sets a variable such as `input:token` or `workspaceFolder`; it takes precedence over those of the environment.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Changes the options with which a server is connected, by its name.
    pub fn configure(
        mut self,
        change: impl Fn(&str, ClientBuilder) -> ClientBuilder + Send + Sync + 'static,
    ) -> Self {
        self.configure = Some(Arc::new(change));
        self
    }

    /// Connects all servers at once; each is connected, or has its own error.
    pub async fn connect(&self) -> BTreeMap<String, Result<Client, Error>> {
        let mut connecting = JoinSet::new();
        for name in self.names() {
            let (servers, name) = (self.clone(), name.to_owned());
            connecting.spawn(async move {
                let connected = servers.connect_one(&name).await;
                (name, connected)
            });
        }
        let mut clients = BTreeMap::new();
        while let Some(joined) = connecting.join_next().await {
            if let Ok((name, connected)) = joined {
                clients.insert(name, connected);
            }
        }
        // functions of the program may panic
        for name in self.names().filter(|name| !clients.contains_key(*name)).collect::<Vec<_>>() {
            clients.insert(name.to_owned(), Err(Error::not_connected("connecting panicked")));
        }
        clients
    }

    /// One toolset of all servers, each under its name. They are connected when they are first needed, and again when a
    /// connection has ended; one that is not there hides its own tools and no others.
    ///
    /// # Errors
    /// [`Error::Invalid`]: the file has no server, or two of their names collide.
    pub fn toolset(&self) -> Result<Toolset, Error> {
        Toolset::merge(self.names().map(|name| {
            let (servers, name) = (self.clone(), name.to_owned());
            Toolset::connecting(name.clone(), move || {
                let (servers, name) = (servers.clone(), name.clone());
                async move { servers.connect_one(&name).await }
            })
        }))
    }

    async fn connect_one(&self, name: &str) -> Result<Client, Error> {
        let invalid = |what: String| Error::invalid(format!("the server `{name}`: {what}"));
        let mut builder = Client::builder();
        if let Some(configure) = &self.configure {
            builder = configure(name, builder);
        }
        let entry = self.entries.get(name).and_then(Value::as_object);
        let entry = entry.ok_or_else(|| invalid("it is not an object".to_owned()))?;
        let entry = ServerEntry { entry, variables: &self.variables };
        match entry.target().map_err(invalid)? {
            EntryTarget::Command(command) => builder.connect(command).await,
            EntryTarget::Url { url, headers, is_sse } => {
                for (header, value) in headers {
                    builder = builder.header(&header, &value);
                }
                if is_sse {
                    builder = builder.http_sse();
                }
                builder.connect(&url).await
            }
        }
    }
}

/// How a server is reached.
enum EntryTarget {
    Command(Command),
    Url { url: String, headers: Vec<(String, String)>, is_sse: bool },
}

/// One server of a file.
struct ServerEntry<'a> {
    entry: &'a Map<String, Value>,
    variables: &'a HashMap<String, String>,
}

impl ServerEntry<'_> {
    fn target(&self) -> Result<EntryTarget, String> {
        if let Some(command) = self.text("command")? {
            return self.command(&command).map(EntryTarget::Command);
        }
        for key in ["url", "serverUrl", "httpUrl"] {
            let Some(url) = self.text(key)? else { continue };
            if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
                return Err(format!("`{key}` is not an `http:` or `https:` URL"));
            }
            let headers = self.texts("headers")?;
            let kind = ["type", "transport"].iter().find_map(|key| self.entry.get(*key)?.as_str());
            return Ok(EntryTarget::Url { url, headers, is_sse: kind == Some("sse") });
        }
        Err("it has neither a `command` nor a `url`".to_owned())
    }

    fn command(&self, program: &str) -> Result<Command, String> {
        let mut command = Command::new(program);
        match self.entry.get("args") {
            None | Some(Value::Null) => {}
            Some(Value::Array(args)) => {
                for arg in args {
                    command.arg(self.expand(&scalar("args", arg)?)?);
                }
            }
            Some(_) => return Err("`args` is not an array".to_owned()),
        }
        let dir = self.text("cwd")?.map(PathBuf::from);
        if let Some(file) = self.text("envFile")? {
            let file = dir.as_deref().unwrap_or(Path::new("")).join(file);
            let text = read_text(&file, u64::MAX)
                .map_err(|error| format!("its `envFile` cannot be read: {error}"))?;
            command.envs(variables_of(&text));
        }
        command.envs(self.texts("env")?);
        if let Some(dir) = dir {
            command.current_dir(dir);
        }
        Ok(command)
    }

    /// A member that is text, with its variables.
    fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.entry.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => self.expand(text).map(Some),
            Some(_) => Err(format!("`{key}` is not text")),
        }
    }

    /// A member that is an object of texts.
    fn texts(&self, key: &str) -> Result<Vec<(String, String)>, String> {
        let members = match self.entry.get(key) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Object(members)) => members,
            Some(_) => return Err(format!("`{key}` is not an object")),
        };
        let given = members.iter().filter(|(_, value)| !value.is_null());
        given.map(|(name, value)| Ok((name.clone(), self.expand(&scalar(key, value)?)?))).collect()
    }

    /// A text with the values of its variables, in which no other variables are looked for.
    fn expand(&self, text: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((variable, after)) = after.split_once('}') else { break };
            out.push_str(before);
            out.push_str(&self.value_of(variable)?);
            rest = after;
        }
        Ok(out + rest)
    }

    fn value_of(&self, variable: &str) -> Result<String, String> {
        if let Some(value) = self.variables.get(variable) {
            return Ok(value.clone());
        }
        let (name, default) = match variable.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (variable, None),
        };
        let of_environment = match name {
            "userHome" => env::home_dir().map(|home| home.to_string_lossy().into_owned()),
            "pathSeparator" | "/" => Some(std::path::MAIN_SEPARATOR.to_string()),
            name => {
                let name = name.strip_prefix("env:").unwrap_or(name);
                // `env::var` panics on names that cannot be
                let is_name = !name.is_empty() && !name.contains(['=', '\0', ':']);
                is_name.then(|| env::var(name).ok()).flatten()
            }
        };
        // an empty one is as one that is not set, as in shells
        let value = of_environment.filter(|value| !value.is_empty() || default.is_none());
        value.or_else(|| default.map(str::to_owned)).ok_or_else(|| {
            format!(
                "the variable `${{{variable}}}` is not set\nset it in the environment, or with `variable`"
            )
        })
    }
}

/// A number or a bool is given where a text is meant.
fn scalar(key: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        _ => Err(format!("`{key}` has a value that is not text")),
    }
}

/// The variables of a file such as `.env`: lines of `NAME=value`, perhaps with quotes, `export` and comments.
fn variables_of(text: &str) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else { continue };
        let (name, value) = (name.trim(), value.trim());
        let unquoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
        if !name.is_empty() {
            variables.push((name.to_owned(), unquoted.unwrap_or(value).to_owned()));
        }
    }
    variables
}

/// No file makes a program of anything but its `command`.
#[cfg(any(test, feature = "_fuzzing"))]
fn fuzz(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _for_a_panic = variables_of(text);
    let Ok(servers) = McpServers::parse(text) else { return };
    for entry in servers.entries.values().filter_map(Value::as_object) {
        // no file of this machine is read
        if !entry.contains_key("envFile") {
            let _for_a_panic = ServerEntry { entry, variables: &servers.variables }.target();
        }
    }
}

#[cfg(any(test, feature = "_fuzzing"))]
inventory::submit!(crate::fuzzing::Target { name: "mcp_servers", run: fuzz });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_not_a_part_of_the_json() {
        let text = "\u{feff}// a\n{ /* b\n, } */ \"servers\": {\"a\": {\"url\": \"http://a/*b*/,]\\\"//\", }, }, // c\n }";
        let servers = McpServers::parse(text).unwrap();
        assert_eq!(servers.entries["a"], serde_json::json!({ "url": "http://a/*b*/,]\"//" }));
        for (bad, place) in
            [("{\n\"servers\": {,,}}", "line 2"), ("/* not closed", "line 1"), ("{'servers': {}}", "line 1")]
        {
            let error = McpServers::parse(bad).unwrap_err().to_string();
            assert!(error.contains("is not JSON") && error.contains(place), "{bad}: {error}");
        }
        assert!(McpServers::parse("").unwrap_err().to_string().contains("has no servers"));
    }

    #[test]
    fn variables_have_values_or_a_default_or_name_what_is_missing() {
        let variables = HashMap::from([("input:key".to_owned(), "${HOME}".to_owned())]);
        let entry = ServerEntry { entry: &Map::new(), variables: &variables };
        let expand = |text: &str| entry.expand(text);
        let path = env::var("PATH").unwrap();
        assert_eq!(expand("${PATH}|${env:PATH}|${PATH:-x}"), Ok(format!("{path}|{path}|{path}")));
        assert_eq!(expand("${MCP_NOT_SET:-a:b}/${MCP_NOT_SET:-}"), Ok("a:b/".to_owned()));
        // a value is not looked through
        assert_eq!(expand("a${input:key}b"), Ok("a${HOME}b".to_owned()));
        assert_eq!(expand("$PATH ${open"), Ok("$PATH ${open".to_owned()));
        assert_eq!(expand("a${/}b"), Ok(format!("a{}b", std::path::MAIN_SEPARATOR)));
        for missing in ["${MCP_NOT_SET}", "${input:other}", "${workspaceFolder}", "${}", "${=}"] {
            let error = expand(missing).unwrap_err();
            assert!(error.contains(missing) && error.contains("is not set"), "{error}");
        }
    }

    #[test]
    fn files_of_variables_are_read_line_by_line() {
        let text = "# a\nA=1\nexport B = \"two words\"\n\nC='x=y'\nD=\nno variable\n=x";
        let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(variables_of(text), [of("A", "1"), of("B", "two words"), of("C", "x=y"), of("D", "")]);
    }
}
