//! The clients, one value each: where their files are on every system, how an entry is written, and how it refers to a
//! secret that is not in the file.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::{
    document::{Format, Members},
    link,
    surroundings::{Platform, Surroundings},
};
use crate::schema::nearest;

/// How a client starts a server, or where it connects to.
#[derive(Clone, PartialEq)]
pub(super) enum Launch {
    Command { command: String, arguments: Vec<String> },
    Url(String),
}

/// How a file refers to a value that is not in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reference {
    /// It cannot.
    None,
    /// The text before and behind the name of a variable.
    Variable(&'static str, &'static str),
    /// The client asks its user once, and keeps the answer.
    Input,
    /// A list of variables that the server gets too.
    Forwarded(&'static str),
}

/// How an entry comes into a user's file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The file is edited.
    File,
    /// It is printed.
    Print,
}

/// The members of an entry without its variables, of a server of that name, and the name of the member that has those.
type Write = fn(&Launch, &str) -> Option<(Members, &'static str)>;

pub(super) struct Client {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) way: Way,
    /// The files that a user's entry can be in: those that exist, else the first one.
    pub(super) files: fn(&Surroundings) -> Vec<PathBuf>,
    /// The files that it reads in the folder of a project: the first one that exists is written, else the first.
    pub(super) project: &'static [&'static str],
    pub(super) format: Format,
    /// The member of the file that has the servers.
    pub(super) table: &'static str,
    pub(super) write: Write,
    pub(super) reference: Reference,
    /// The member by which it loads the tools of a server at once, if it loads those of others when it looks for some.
    pub(super) always_load: Option<&'static str>,
    /// Its command, if it has one.
    pub(super) program: Option<&'static str>,
    /// A link that adds a server, of its name and entry.
    pub(super) link: Option<fn(&str, &Value) -> String>,
}

/// Most clients: their file is JSON, and is not written here.
const USUAL: Client = Client {
    id: "",
    title: "",
    way: Way::Print,
    files: |_| Vec::new(),
    project: &[],
    format: Format::Json,
    table: "mcpServers",
    write: |launch, _| usual(launch, &[], Some((&[], "url"))),
    reference: Reference::None,
    always_load: None,
    program: None,
    link: None,
};

pub(super) const CLIENTS: [Client; 15] = [
    Client {
        id: "claude-desktop",
        title: "Claude Desktop",
        way: Way::File,
        files: |around| {
            const FILE: &str = "claude_desktop_config.json";
            let usual = around.in_config("Claude").join(FILE);
            let inside = |package: PathBuf| package.join("LocalCache/Roaming/Claude").join(FILE);
            // one that comes as a package reads its own folder, and no other
            let packaged: Vec<PathBuf> = around.packages("Claude_").into_iter().map(inside).collect();
            let has_usual = usual.parent().is_some_and(|folder| folder.is_dir());
            Some(usual).filter(|_| packaged.is_empty() || has_usual).into_iter().chain(packaged).collect()
        },
        write: |launch, _| usual(launch, &[], None),
        ..USUAL
    },
    Client {
        id: "claude-code",
        title: "Claude Code",
        way: Way::File,
        files: |around| vec![around.in_named("CLAUDE_CONFIG_DIR", "", ".claude.json")],
        project: &[".mcp.json"],
        write: |launch, _| usual(launch, &[], Some((&[("type", "http")], "url"))),
        // without a default, a variable that is not set is an error of the whole file
        reference: Reference::Variable("${", ":-}"),
        always_load: Some("alwaysLoad"),
        program: Some("claude"),
        ..USUAL
    },
    Client {
        id: "vscode",
        title: "VS Code",
        way: Way::File,
        files: |around| vec![around.in_config("Code/User/mcp.json")],
        project: &[".vscode/mcp.json"],
        table: "servers",
        write: |launch, _| usual(launch, &[("type", "stdio")], Some((&[("type", "http")], "url"))),
        reference: Reference::Input,
        program: Some("code"),
        link: Some(link::vscode),
        ..USUAL
    },
    Client {
        id: "cursor",
        title: "Cursor",
        way: Way::File,
        files: |around| vec![around.in_home(".cursor/mcp.json")],
        project: &[".cursor/mcp.json"],
        reference: Reference::Variable("${env:", "}"),
        program: Some("cursor"),
        link: Some(link::cursor),
        ..USUAL
    },
    Client {
        id: "codex",
        title: "Codex",
        way: Way::File,
        files: |around| vec![around.in_named("CODEX_HOME", ".codex", "config.toml")],
        project: &[".codex/config.toml"],
        format: Format::Toml,
        table: "mcp_servers",
        reference: Reference::Forwarded("env_vars"),
        program: Some("codex"),
        ..USUAL
    },
    Client {
        id: "zed",
        title: "Zed",
        way: Way::File,
        files: |around| match around.platform {
            Platform::Linux => vec![around.in_config("zed/settings.json")],
            Platform::Mac => {
                vec![around.in_home(".config/zed/settings.json"), around.in_config("Zed/settings.json")]
            }
            Platform::Windows => vec![around.in_config("Zed/settings.json")],
        },
        project: &[".zed/settings.json"],
        table: "context_servers",
        write: |launch, _| {
            let http: &[(&str, &str)] = &[("source", "custom"), ("type", "http")];
            usual(launch, &[("source", "custom")], Some((http, "url")))
        },
        program: Some("zed"),
        ..USUAL
    },
    Client {
        id: "gemini",
        title: "Gemini CLI",
        way: Way::File,
        files: |around| vec![around.in_home(".gemini/settings.json")],
        project: &[".gemini/settings.json"],
        write: |launch, _| usual(launch, &[], Some((&[("type", "http")], "url"))),
        reference: Reference::Variable("${", "}"),
        program: Some("gemini"),
        ..USUAL
    },
    Client {
        id: "copilot",
        title: "Copilot CLI",
        files: |around| vec![around.in_home(".copilot/mcp-config.json")],
        project: &[".github/mcp.json", ".mcp.json"],
        write: |launch, _| {
            let (mut members, env) = usual(launch, &[("type", "stdio")], Some((&[("type", "http")], "url")))?;
            members.push(("tools", json!(["*"])));
            Some((members, env))
        },
        reference: Reference::Variable("${", "}"),
        program: Some("copilot"),
        ..USUAL
    },
    Client {
        id: "windsurf",
        title: "Windsurf",
        files: |around| vec![around.in_home(".codeium/windsurf/mcp_config.json")],
        write: |launch, _| usual(launch, &[], Some((&[], "serverUrl"))),
        reference: Reference::Variable("${env:", "}"),
        ..USUAL
    },
    Client {
        id: "antigravity",
        title: "Antigravity",
        files: |around| vec![around.in_home(".gemini/config/mcp_config.json")],
        write: |launch, _| usual(launch, &[], Some((&[], "serverUrl"))),
        ..USUAL
    },
    Client {
        id: "goose",
        title: "Goose",
        files: |around| {
            vec![match around.platform {
                Platform::Windows => around.in_config("Block/goose/config/config.yaml"),
                _ => around.in_home(".config/goose/config.yaml"),
            }]
        },
        format: Format::Yaml,
        table: "extensions",
        write: |launch, name| {
            // the description is required
            let mut all = vec![("name", json!(name)), ("description", json!(name))];
            let own = match launch {
                Launch::Command { command, arguments } => vec![
                    ("type", json!("stdio")),
                    ("cmd", json!(command)),
                    ("args", json!(arguments)),
                    ("enabled", json!(true)),
                    ("timeout", json!(300)),
                ],
                Launch::Url(url) => {
                    vec![("type", json!("streamable_http")), ("uri", json!(url)), ("enabled", json!(true))]
                }
            };
            all.extend(own);
            Some((all, "envs"))
        },
        program: Some("goose"),
        link: Some(link::goose),
        ..USUAL
    },
    Client {
        id: "opencode",
        title: "OpenCode",
        files: |around| {
            let file = |ending: &str| around.in_home(&format!(".config/opencode/opencode.{ending}"));
            vec![file("json"), file("jsonc")]
        },
        project: &["opencode.json", "opencode.jsonc"],
        table: "mcp",
        write: |launch, _| {
            let own = match launch {
                Launch::Command { command, arguments } => {
                    let line: Vec<&String> = std::iter::once(command).chain(arguments).collect();
                    vec![("type", json!("local")), ("command", json!(line)), ("enabled", json!(true))]
                }
                Launch::Url(url) => {
                    vec![("type", json!("remote")), ("url", json!(url)), ("enabled", json!(true))]
                }
            };
            Some((own, "environment"))
        },
        reference: Reference::Variable("{env:", "}"),
        program: Some("opencode"),
        ..USUAL
    },
    Client {
        id: "cline",
        title: "Cline",
        files: |around| {
            let storage = "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json";
            vec![around.in_config(storage)]
        },
        write: |launch, _| usual(launch, &[], Some((&[("type", "streamableHttp")], "url"))),
        ..USUAL
    },
    Client {
        id: "kiro",
        title: "Kiro",
        files: |around| vec![around.in_home(".kiro/settings/mcp.json")],
        project: &[".kiro/settings/mcp.json"],
        reference: Reference::Variable("${", "}"),
        program: Some("kiro"),
        link: Some(link::kiro),
        ..USUAL
    },
    Client {
        id: "lm-studio",
        title: "LM Studio",
        files: |around| vec![around.in_home(".lmstudio/mcp.json")],
        link: Some(link::lm_studio),
        ..USUAL
    },
];

/// `command`, `args` and `env` after some members, or a URL; `http` are the members before the URL and its name, and none
/// if the file cannot have one.
fn usual(
    launch: &Launch,
    stdio: &[(&'static str, &str)],
    http: Option<(&[(&'static str, &str)], &'static str)>,
) -> Option<(Members, &'static str)> {
    let text = |(key, value): &(&'static str, &str)| (*key, Value::from(*value));
    let members = match launch {
        Launch::Command { command, arguments } => {
            let own = [("command", json!(command)), ("args", json!(arguments))];
            stdio.iter().map(text).chain(own).collect()
        }
        Launch::Url(url) => {
            let (before, key) = http?;
            before.iter().map(text).chain([(key, json!(url))]).collect()
        }
    };
    Some((members, "env"))
}

impl Client {
    /// The client of that name.
    ///
    /// # Errors
    /// There is none; the message has the nearest one.
    pub(super) fn named(name: &str) -> Result<&'static Self, String> {
        let id = match name {
            "claude" => return Err("`claude` is two clients: `claude-code` and `claude-desktop`".to_owned()),
            "code" | "vs-code" => "vscode",
            "gemini-cli" => "gemini",
            "copilot-cli" => "copilot",
            "lmstudio" => "lm-studio",
            "codex-cli" => "codex",
            other => other,
        };
        CLIENTS.iter().find(|client| client.id == id).ok_or_else(|| {
            let ids = CLIENTS.iter().map(|client| client.id);
            let near =
                nearest(id, ids.clone()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            format!(
                "unknown client `{name}`{near}\nthose that are known: {}",
                ids.collect::<Vec<_>>().join(", ")
            )
        })
    }

    /// Whether it is on this machine: its command, or the folder of its file.
    pub(super) fn is_found(&self, around: &Surroundings) -> bool {
        let has_folder = |path: PathBuf| {
            // the home directory itself says nothing
            path.parent().is_some_and(|folder| folder != around.home && folder.is_dir()) || path.is_file()
        };
        self.program.is_some_and(|program| around.program(program).is_some())
            || (self.files)(around).into_iter().any(has_folder)
    }

    /// The files of a user to write: those that exist, else the first of those whose folder exists, else the first.
    pub(super) fn user_files(&self, around: &Surroundings) -> Vec<PathBuf> {
        let files = (self.files)(around);
        // each package of a client is a separate client
        if self.id == "claude-desktop" {
            return files;
        }
        let found = files.iter().find(|path| path.exists());
        let found =
            found.or_else(|| files.iter().find(|path| path.parent().is_some_and(|folder| folder.is_dir())));
        found.or(files.first()).cloned().into_iter().collect()
    }

    /// The file in the folder of a project; `None` if the client reads none there.
    pub(super) fn project_file(&self, around: &Surroundings) -> Option<PathBuf> {
        let mut files = self.project.iter().map(|inside| around.folder.join(inside));
        files
            .find(|path| path.exists())
            .or_else(|| self.project.first().map(|inside| around.folder.join(inside)))
    }

    /// Whether it probably refuses a file with comments or trailing commas.
    pub(super) fn reads_plain_json(&self) -> bool {
        self.id == "claude-desktop"
    }

    /// Whether a member of an entry belongs into a user's file only.
    pub(super) fn is_of_user(&self, member: &str) -> bool {
        self.id == "copilot" && member == "tools"
    }

    /// The members of an entry with these variables, and what VS Code is to ask.
    pub(super) fn entry(
        &self,
        launch: &Launch,
        variables: &[Variable],
        server: &str,
    ) -> Option<(Members, Vec<Value>)> {
        let (mut members, env_key) = (self.write)(launch, server)?;
        let (mut env, mut inputs, mut forwarded) = (Map::new(), Vec::new(), Vec::new());
        for Variable { name, value, description, .. } in variables {
            match (value, self.reference) {
                (VariableValue::Text(text) | VariableValue::Secret(text), _) => {
                    env.insert(name.clone(), text.as_str().into());
                }
                (VariableValue::Reference, Reference::Variable(before, behind)) => {
                    env.insert(name.clone(), format!("{before}{name}{behind}").into());
                }
                (VariableValue::Reference, Reference::Input) => {
                    let id = format!("{server}-{}", name.to_lowercase().replace('_', "-"));
                    env.insert(name.clone(), format!("${{input:{id}}}").into());
                    let description = if description.is_empty() { name } else { description };
                    inputs.push(json!({
                        "type": "promptString", "id": id, "description": description, "password": true
                    }));
                }
                (VariableValue::Reference, Reference::Forwarded(_)) => forwarded.push(name.as_str()),
                (VariableValue::Reference, Reference::None) | (VariableValue::Missing, _) => {}
            }
        }
        if !env.is_empty() {
            members.push((env_key, env.into()));
        }
        if let (Reference::Forwarded(key), false) = (self.reference, forwarded.is_empty()) {
            members.push((key, json!(forwarded)));
        }
        Some((members, inputs))
    }
}

/// A variable that a server needs.
#[derive(Clone)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) value: VariableValue,
    pub(super) description: String,
    pub(super) is_required: bool,
    pub(super) is_secret: bool,
}

impl Variable {
    /// Its description, behind its name.
    pub(super) fn about(&self) -> String {
        if self.description.is_empty() { String::new() } else { format!(" ({})", self.description) }
    }
}

/// Without `Debug`: some are secret.
#[derive(Clone, PartialEq)]
pub(super) enum VariableValue {
    Text(String),
    /// Written, and never shown.
    Secret(String),
    /// By the client's own syntax.
    Reference,
    /// To be added by the user.
    Missing,
}
