//! The contract of a server: everything that models and clients depend on, as a file that is reviewed like code, and the
//! meaning of each difference to it.

mod compare;
mod schema;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt, io, path::Path};

use serde_json::{Map, Value, json};

use super::TestServer;
use crate::core::{
    lock_file::{FORMAT, LockFile},
    project_file,
    protocol::META_SERVER_INFO,
};

/// The environment variable with which a check writes the file.
const UPDATE: &str = "UPDATE_CONTRACT";

/// The kinds of items: member of the file, name in reports, the member of an entry that names it.
const SECTIONS: [(&str, &str, &str); 5] = [
    ("tools", "tool", "name"),
    ("prompts", "prompt", "name"),
    ("resources", "resource", "uri"),
    ("resourceTemplates", "resource template", "uriTemplate"),
    ("events", "event", "name"),
];

/// Everything of a server that models and clients depend on.
///
/// The file is canonical: members are sorted, and each item is one line. [`TestServer::contract`] reads the contract of
/// a server of this program, with settings and scopes; the tool `mcp-dev` reads the lists that any server shows to its
/// clients, and those two from programs of this crate.
#[derive(Debug, Clone, PartialEq)]
pub struct Contract(Map<String, Value>);

impl Contract {
    /// The contract in the lists of a server: `described` has the members `server`, `instructions`, `capabilities`, `tools`,
    /// `prompts`, `resources`, `resourceTemplates` and `events`, each as the wire has it, as far as they are there. What only
    /// the program knows is in `settings`, a schema, and `scopes`, lists by the names of tools, as `schema` of its command
    /// line prints them; without `scopes`, it is unknown.
    #[must_use]
    pub fn of_lists(described: &Value) -> Self {
        let mut members = Map::new();
        members.insert("format".into(), FORMAT.into());
        if let Some(name) = described["server"].get("name") {
            members.insert("server".into(), json!({ "name": name }));
        }
        if let Some(text) = described.get("instructions").filter(|text| text.is_string()) {
            members.insert("instructions".into(), text.clone());
        }
        if let Some(capabilities) = described["capabilities"].as_object() {
            let shown = capabilities.iter().filter(|(name, _)| *name != "experimental");
            let shown: Map<_, _> = shown.map(|(name, value)| (name.clone(), value.clone())).collect();
            members.insert("capabilities".into(), shown.into());
        }
        let list = |section: &str| described[section].as_array().map(Vec::as_slice).unwrap_or_default();
        let templates: Vec<&str> =
            list("resourceTemplates").iter().filter_map(|entry| entry["uriTemplate"].as_str()).collect();
        for (section, _, key) in SECTIONS {
            let mut items = Map::new();
            for entry in list(section) {
                let Some(name) = entry[key].as_str() else { continue };
                // one of a template depends on data
                if section == "resources" && templates.iter().any(|template| is_of_template(name, template)) {
                    continue;
                }
                let mut item = entry.as_object().cloned().unwrap_or_default();
                for dropped in [key, "icons", "size"] {
                    item.remove(dropped);
                }
                items.insert(name.to_owned(), item.into());
            }
            if !items.is_empty() {
                members.insert(section.to_owned(), items.into());
            }
        }
        let mut contract = Self(members);
        if let Some(scopes) = described["scopes"].as_object() {
            let texts = |list: &Value| {
                list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
            };
            let scopes = scopes.iter().map(|(tool, list)| (tool.clone(), texts(list))).collect();
            contract.add_own(described.get("settings"), &scopes);
        }
        contract
    }

    /// Adds what only the program knows: its settings, and the scopes of tools.
    fn add_own(&mut self, settings: Option<&Value>, scopes: &Map<String, Value>) {
        self.0.insert("source".into(), "program".into());
        for (name, scopes) in scopes {
            if let Some(Value::Object(tool)) = self.0.get_mut("tools").and_then(|tools| tools.get_mut(name)) {
                tool.insert("scopes".into(), scopes.clone());
            }
        }
        let Some(settings) = settings else { return };
        let required = settings["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut items = Map::new();
        for (name, schema) in settings["properties"].as_object().into_iter().flatten() {
            let mut schema = schema.clone();
            if let Some(definitions) = settings.get("$defs") {
                schema["$defs"] = definitions.clone();
            }
            let is_required = required.iter().any(|required| required == name);
            items.insert(name.clone(), json!({ "required": is_required, "schema": schema }));
        }
        if !items.is_empty() {
            self.0.insert("settings".into(), items.into());
        }
    }

    /// Whether it has what only a program knows: its settings, and the scopes of tools. Two contracts are compared in these
    /// only if both have them.
    #[must_use]
    pub fn is_of_program(&self) -> bool {
        self.0.get("source").is_some_and(|source| source == "program")
    }

    fn items(&self, section: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.0.get(section).and_then(Value::as_object).into_iter().flatten()
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// The text is not a contract, or has another format.
    pub fn parse(text: &str) -> Result<Self, String> {
        LockFile::parse(text).map(|LockFile(members)| Self(members))
    }

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> String {
        let line = |text: &mut String, indent: &str, name: &str, value: &str, is_last: bool| {
            let comma = if is_last { "" } else { "," };
            text.push_str(&format!("{indent}{}: {value}{comma}\n", Value::from(name)));
        };
        let is_section =
            |name: &str| name == "settings" || SECTIONS.iter().any(|(section, ..)| *section == name);
        let mut members: Vec<(&String, &Value)> = self.0.iter().collect();
        // whatever else is in the program, the order is this one
        members.sort_by_key(|(name, _)| (is_section(name), *name));
        let mut text = "{\n".to_owned();
        for (index, (name, value)) in members.iter().enumerate() {
            let is_last = index + 1 == members.len();
            match value.as_object().filter(|_| is_section(name)) {
                Some(items) => {
                    text.push_str(&format!("  {}: {{\n", Value::from(name.as_str())));
                    let items: BTreeMap<&String, &Value> = items.iter().collect();
                    for (index, (name, item)) in items.iter().enumerate() {
                        line(&mut text, "    ", name, &canonical(item), index + 1 == items.len());
                    }
                    text.push_str(if is_last { "  }\n" } else { "  },\n" });
                }
                None => line(&mut text, "  ", name, &canonical(value), is_last),
            }
        }
        text + "}\n"
    }

    /// Writes the file, or replaces it: after a failure or a kill, it is the old one or the new one.
    ///
    /// # Errors
    /// The file cannot be written, or is a link that leads out of the folder in which the path is.
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<()> {
        project_file::replace(path.as_ref(), self.text().as_bytes())
    }

    /// Returns the changes from this contract to a newer one.
    #[must_use]
    pub fn compare(&self, newer: &Self) -> ContractChanges {
        compare::compare(self, newer)
    }
}

/// JSON with sorted members.
fn canonical(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}

/// Whether a URI can be of a template: its literal parts are in it, in order.
fn is_of_template(uri: &str, template: &str) -> bool {
    let mut literals = Vec::new();
    let mut rest = template;
    while let Some((literal, tail)) = rest.split_once('{') {
        literals.push(literal);
        rest = tail.split_once('}').map_or("", |(_, tail)| tail);
    }
    let Some((first, inner)) = literals.split_first() else { return uri == template };
    let Some(mut uri) = uri.strip_prefix(first).and_then(|uri| uri.strip_suffix(rest)) else { return false };
    for literal in inner {
        match uri.split_once(literal) {
            Some((_, tail)) => uri = tail,
            None => return false,
        }
    }
    true
}

/// The effect of a change on the users of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ChangeClass {
    /// Only people may notice it.
    Cosmetic,
    /// Texts or defaults by which a model decides: it may choose differently.
    Routing,
    /// Something new is possible.
    Additive,
    /// Correct uses may fail now.
    Breaking,
}

impl ChangeClass {
    /// Its name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cosmetic => "cosmetic",
            Self::Routing => "routing",
            Self::Additive => "additive",
            Self::Breaking => "breaking",
        }
    }

    /// The part of a version that goes up.
    fn semver(self) -> &'static str {
        match self {
            Self::Cosmetic => "patch",
            Self::Routing | Self::Additive => "minor",
            Self::Breaking => "major",
        }
    }
}

/// A difference between two contracts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContractChange {
    /// The class of the change.
    pub class: ChangeClass,
    /// Kind and name of the item, such as `tool search`.
    pub item: String,
    /// The place in the item, and the change.
    pub text: String,
}

/// Every difference between two contracts, the most important ones first. Its `Display` is the report.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContractChanges {
    /// The differences.
    pub changes: Vec<ContractChange>,
}

impl ContractChanges {
    /// The class of the most important change; `None` without one.
    #[must_use]
    pub fn class(&self) -> Option<ChangeClass> {
        self.changes.iter().map(|change| change.class).max()
    }
}

impl fmt::Display for ContractChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ContractChange { class, item, text } in &self.changes {
            writeln!(f, "{:8}  {item}: {text}", class.as_str())?;
        }
        match self.class() {
            None => f.write_str("nothing has changed"),
            Some(class) => {
                write!(f, "the contract has {} changes: a {} version", class.as_str(), class.semver())
            }
        }
    }
}

/// The contract of a server in a test; see [`TestServer::contract`].
#[derive(Debug)]
#[must_use = "nothing is checked before `check` is called"]
pub struct ContractCheck<'s> {
    server: &'s TestServer,
}

impl TestServer {
    /// Returns the contract of the server: everything that models and clients depend on.
    ///
    /// ```no_run
    /// # async fn example(server: mcp_runtime::testing::TestServer) {
    /// // `UPDATE_CONTRACT=1 cargo test` writes the file, which is committed
    /// server.contract().check("mcp.lock.json").await;
    /// # }
    /// ```
    pub fn contract(&self) -> ContractCheck<'_> {
        ContractCheck { server: self }
    }
}

impl ContractCheck<'_> {
    /// Reads the contract from the server.
    ///
    /// # Panics
    /// The server refuses a list.
    pub async fn read(&self) -> Contract {
        let mut discovery = self.server.client.discover().await;
        let server = discovery["_meta"][META_SERVER_INFO].take();
        let server = if server.is_null() { discovery["serverInfo"].take() } else { server };
        let capabilities = discovery["capabilities"].take();
        let mut all = json!({ "server": server, "instructions": discovery["instructions"].take() });
        if capabilities.get("tools").is_some() {
            all["tools"] = self.server.list_tools().await.into();
        }
        if capabilities.get("prompts").is_some() {
            all["prompts"] = self.server.list_prompts().await.into();
        }
        if capabilities.get("resources").is_some() {
            all["resources"] = self.server.list_resources().await.into();
            all["resourceTemplates"] = self.server.list_templates().await.into();
        }
        if capabilities.get("events").is_some() {
            all["events"] = self.events().await.into();
        }
        all["capabilities"] = capabilities;
        let mut contract = Contract::of_lists(&all);
        let server = &self.server.client.connection.server;
        #[cfg(feature = "config")]
        let settings = server.server_settings().map(|settings| settings.schema());
        #[cfg(not(feature = "config"))]
        let settings = None;
        contract.add_own(settings.as_ref(), &server.registry().scopes_of_tools());
        contract
    }

    /// The events of all pages.
    async fn events(&self) -> Vec<Value> {
        let (mut events, mut params) = (Vec::new(), json!({}));
        loop {
            let mut result = self.server.client.request("events/list", params).await.into_result();
            match result["events"].take() {
                Value::Array(page) => events.extend(page),
                _ => return events,
            }
            match result["nextCursor"].take() {
                Value::String(cursor) => params = json!({ "cursor": cursor }),
                _ => return events,
            }
        }
    }

    /// Compares the contract with a file, relative to the folder of the package. With `UPDATE_CONTRACT=1` in the
    /// environment, it writes the file instead.
    /// The file must also contain changes that break nothing: otherwise they could be reverted unnoticed.
    ///
    /// # Panics
    /// The contract differs from the file, or the file cannot be read or written.
    #[track_caller]
    pub fn check(&self, path: impl AsRef<Path>) -> impl Future<Output = ()> {
        let (path, place) = (path.as_ref().to_owned(), std::panic::Location::caller());
        async move {
            let newer = self.read().await;
            let shown = path.display();
            if std::env::var_os(UPDATE).is_some_and(|value| !value.is_empty() && value != "0") {
                let written = newer.write(&path);
                return written
                    .unwrap_or_else(|error| panic!("{place}: `{shown}` cannot be written: {error}"));
            }
            let read = project_file::read(&path)
                .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
            let text = read.unwrap_or_else(|error| {
                panic!("{place}: `{shown}` cannot be read: {error}\n`{UPDATE}=1 cargo test` writes it")
            });
            let older = Contract::parse(&text).unwrap_or_else(|error| panic!("{place}: `{shown}`: {error}"));
            let changes = older.compare(&newer);
            let (what, when) = match changes.class() {
                None => return,
                Some(ChangeClass::Breaking) => ("the server breaks", "if that is meant, "),
                Some(_) => ("the server has changes that are not in", ""),
            };
            panic!(
                "{place}: {what} `{shown}`\n{changes}\n{when}`{UPDATE}=1 cargo test` writes the file anew"
            );
        }
    }
}
