//! The files of clients as documents: an entry is set or removed, and everything else, comments and formatting included,
//! stays as it is.

use jsonc_parser::{
    cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode, ObjectPropName},
    errors::ParseErrorKind,
};
use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

use crate::core::jsonc::JSONC;

/// The members of an entry, in the order in which they are written.
pub(super) type Members = Vec<(&'static str, Value)>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON, with comments and trailing commas.
    Json,
    Toml,
    /// Only printed.
    Yaml,
}

pub(super) enum Document {
    Json(CstRootNode),
    /// And whether its lines end with `\r\n`: the crate ends every line in one way.
    Toml(Box<DocumentMut>, bool),
}

/// How an entry gets its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The other members of the entry stay.
    Merge,
    /// Nothing of the entry stays.
    Replace,
}

impl Document {
    /// Parses a text; an empty one is an empty document.
    ///
    /// # Errors
    /// The problem and its position; nothing of the content.
    pub(super) fn parse(format: Format, text: &str) -> Result<Self, String> {
        match format {
            Format::Yaml => Err("files in YAML are not read".to_owned()),
            Format::Json => {
                let root = CstRootNode::parse(text, &JSONC).map_err(|error| {
                    let (line, column) = (error.line_display(), error.column_display());
                    // the crate names the beginning of an object, and the mistake is where its end is missing
                    if let ParseErrorKind::UnterminatedObject | ParseErrorKind::UnterminatedArray = error.kind() {
                        let before = text.trim_end();
                        let end_line = before.matches('\n').count() + 1;
                        let end_column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
                        return format!(
                            "it is not valid JSON: {}, which begins in line {line}, column {column} (line {end_line}, column {end_column})",
                            error.kind()
                        );
                    }
                    format!("it is not valid JSON: {} (line {line}, column {column})", error.kind())
                })?;
                match root.value() {
                    Some(value) if value.as_object().is_none() => {
                        Err("it is not an object (line 1, column 1)".to_owned())
                    }
                    _ => Ok(Self::Json(root)),
                }
            }
            Format::Toml => match text.parse::<DocumentMut>() {
                Ok(document) => match (text.matches("\r\n").count(), text.matches('\n').count()) {
                    (0, _) => Ok(Self::Toml(Box::new(document), false)),
                    (with_return, all) if with_return == all => Ok(Self::Toml(Box::new(document), true)),
                    _ => {
                        Err("some of its lines end with `\\n` and some with `\\r\\n`: end all in one way"
                            .into())
                    }
                },
                Err(error) => {
                    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
                    let line = before.matches('\n').count() + 1;
                    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
                    let message = error.message().lines().next().unwrap_or_default();
                    Err(format!("it is not valid TOML: {message} (line {line}, column {column})"))
                }
            },
        }
    }

    /// The entry of that name in a table; `None` if there is none.
    ///
    /// # Errors
    /// The table is something else, or is there twice.
    pub(super) fn get(&self, table: &str, name: &str) -> Result<Option<Value>, String> {
        let not_table = || format!("`{table}` is not a table of servers");
        match self {
            Self::Json(root) => {
                let Some(object) = root.object_value() else { return Ok(None) };
                let Some(property) = single(&object, table)? else { return Ok(None) };
                let servers = property.object_value().ok_or_else(not_table)?;
                let entry = single(&servers, name)?;
                Ok(entry.map(|entry| {
                    entry.value().and_then(|value| value.to_serde_value()).unwrap_or(Value::Null)
                }))
            }
            Self::Toml(document, _) => {
                let Some(item) = document.get(table) else { return Ok(None) };
                let servers = item.as_table_like().ok_or_else(not_table)?;
                Ok(servers.get(name).map(toml_to_json))
            }
        }
    }

    /// Adds an entry to a table, or changes the one that is there.
    pub(super) fn set(&mut self, table: &str, name: &str, members: &Members, change: Change) {
        match self {
            Self::Json(root) => {
                let object = root.object_value_or_set();
                let own = |(key, value): &(&str, Value)| ((*key).to_owned(), to_cst(value));
                let entry = CstInputValue::Object(members.iter().map(own).collect());
                let Some(servers) = object.object_value(table) else {
                    return add(&object, table, CstInputValue::Object(vec![(name.to_owned(), entry)]));
                };
                let present = servers.get(name);
                match present.as_ref().and_then(CstObjectProp::object_value) {
                    Some(kept) if change == Change::Merge => {
                        let members = members.iter().map(|(key, value)| (*key, value));
                        merge_json(&kept, &members.collect::<Vec<_>>());
                    }
                    _ => match present {
                        Some(property) => property.set_value(entry),
                        None => add(&servers, name, entry),
                    },
                }
            }
            Self::Toml(document, _) => {
                let servers = document.entry(table).or_insert_with(|| {
                    let mut servers = Table::new();
                    // without a separate line
                    servers.set_implicit(true);
                    Item::Table(servers)
                });
                let is_inline = servers.is_inline_table();
                let Some(servers) = servers.as_table_like_mut() else { return };
                let is_kept = change == Change::Merge && servers.get(name).is_some_and(Item::is_table_like);
                if !is_kept {
                    servers.insert(name, empty_table(is_inline));
                }
                if let Some(entry) = servers.get_mut(name).and_then(Item::as_table_like_mut) {
                    for (key, value) in members {
                        merge_toml(entry, key, value, is_inline);
                    }
                }
            }
        }
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, table: &str, name: &str) {
        match self {
            Self::Json(root) => {
                let servers = root.object_value().and_then(|object| object.object_value(table));
                if let Some(entry) = servers.and_then(|servers| servers.get(name)) {
                    entry.remove();
                }
            }
            Self::Toml(document, _) => {
                if let Some(servers) = document.get_mut(table).and_then(Item::as_table_like_mut) {
                    servers.remove(name);
                    // a table that has only tables, and now none, would appear as an empty one
                    if servers.is_empty() {
                        document.remove(table);
                    }
                }
            }
        }
    }

    /// Adds values to a list of objects with an `id`, unless there are ones of that id.
    ///
    /// # Errors
    /// The list is something else, or is there twice; nothing is changed.
    pub(super) fn add_inputs(&mut self, inputs: &[Value]) -> Result<(), String> {
        let Self::Json(root) = self else { return Ok(()) };
        if inputs.is_empty() {
            return Ok(());
        }
        let object = root.object_value_or_set();
        if single(&object, INPUTS)?.is_some_and(|present| present.array_value().is_none()) {
            return Err(format!("`{INPUTS}` is not a list of inputs"));
        }
        if object.array_value(INPUTS).is_none() {
            add(&object, INPUTS, CstInputValue::Array(Vec::new()));
        }
        // added on one line, it is a part of a text
        *root = CstRootNode::parse(&root.to_string(), &JSONC).map_err(|error| error.to_string())?;
        let Some(list) = root.object_value().and_then(|object| object.array_value(INPUTS)) else {
            return Err(format!("`{INPUTS}` is not a list of inputs"));
        };
        let known: Vec<Value> =
            list.elements().iter().filter_map(|element| element.to_serde_value()).collect();
        for input in inputs.iter().filter(|input| !known.iter().any(|known| known["id"] == input["id"])) {
            list.append(to_cst(input));
        }
        Ok(())
    }

    /// Removes the inputs that were added with the entry of a server, and that no other one refers to.
    pub(super) fn remove_inputs(&mut self, server: &str, removed: &Value) {
        let Self::Json(root) = self else { return };
        let Some(object) = root.object_value() else { return };
        let rest = object.to_serde_value().map(|mut rest| {
            rest.as_object_mut().map(|rest| rest.remove(INPUTS));
            rest.to_string()
        });
        let (rest, removed) = (rest.unwrap_or_default(), removed.to_string());
        let Some(list) = object.array_value(INPUTS) else { return };
        let own = format!("{server}-");
        let mut is_changed = false;
        for element in list.elements() {
            // one that the user has written stays, whatever refers to it
            let input = element.to_serde_value().filter(is_own_input);
            let id = input.and_then(|input| Some(input["id"].as_str()?.to_owned()));
            let reference = id.filter(|id| id.starts_with(&own)).map(|id| format!("${{input:{id}}}"));
            if reference.is_some_and(|text| removed.contains(&text) && !rest.contains(&text)) {
                element.remove();
                is_changed = true;
            }
        }
        if is_changed
            && list.elements().is_empty()
            && let Some(property) = object.get(INPUTS)
        {
            property.remove();
        }
    }

    /// The text of the document.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Json(root) => root.to_string(),
            Self::Toml(document, false) => document.to_string(),
            Self::Toml(document, true) => document.to_string().replace("\r\n", "\n").replace('\n', "\r\n"),
        }
    }
}

/// The list of what VS Code asks its user.
pub(super) const INPUTS: &str = "inputs";

/// Whether an input has the members that are written for a secret, and no others.
fn is_own_input(input: &Value) -> bool {
    const MEMBERS: [&str; 4] = ["type", "id", "description", "password"];
    let has_these = |members: &Map<String, Value>| {
        members.len() == MEMBERS.len() && MEMBERS.iter().all(|key| members.contains_key(*key))
    };
    input.as_object().is_some_and(has_these) && input["type"] == "promptString" && input["password"] == true
}

/// The member of that name.
///
/// # Errors
/// There are two of them, and clients do not agree on which counts.
fn single(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, String> {
    let is_it = |property: &CstObjectProp| property.decoded_name().is_some_and(|own| own == name);
    let mut found = object.properties().into_iter().filter(is_it);
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => Err(format!("`{name}` is in it twice")),
        (first, _) => Ok(first),
    }
}

/// Sets members, and leaves alone what is equal: an object keeps members that the new one does not have.
fn merge_json(object: &CstObject, members: &[(&str, &Value)]) {
    let mut missing = Vec::new();
    for (key, value) in members {
        let Some(property) = object.get(key) else {
            missing.push((key, value));
            continue;
        };
        let old = property.value().and_then(|value| value.to_serde_value());
        if old.as_ref() == Some(value) {
            continue;
        }
        match (property.object_value(), value) {
            (Some(inner), Value::Object(members)) => {
                let members = members.iter().map(|(key, value)| (key.as_str(), value));
                merge_json(&inner, &members.collect::<Vec<_>>());
            }
            _ => property.set_value(to_cst(value)),
        }
    }
    // the last step, since a name may become a part of such a text
    for (key, value) in missing {
        add(object, key, to_cst(value));
    }
}

/// Adds a member. In an object on one line, it is added on that line before the others: the crate would give each of these a line,
/// in a time that grows with the square of their number.
fn add(object: &CstObject, name: &str, value: CstInputValue) {
    let children = object.children();
    let first = object.properties().first().and_then(CstObjectProp::name);
    match first.as_ref().and_then(ObjectPropName::as_string_lit) {
        Some(first) if !children.iter().any(CstNode::is_newline) => {
            let space = if children.get(1).is_some_and(CstNode::is_whitespace) { " " } else { "" };
            let member = format!("{}: {},{space}", Value::from(name), on_one_line(&value));
            first.set_raw_value(member + &first.raw_value());
        }
        _ => drop(object.append(name, value)),
    }
}

/// The text of a value, with its members in their order.
fn on_one_line(value: &CstInputValue) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match value {
        CstInputValue::Null => "null".to_owned(),
        CstInputValue::Bool(value) => value.to_string(),
        CstInputValue::Number(number) => number.clone(),
        CstInputValue::String(text) => Value::from(text.as_str()).to_string(),
        CstInputValue::Array(items) => format!("[{}]", joined(items.iter().map(on_one_line).collect())),
        CstInputValue::Object(members) => {
            let member = |(name, value): &(String, _)| {
                format!("{}: {}", Value::from(name.as_str()), on_one_line(value))
            };
            format!("{{ {} }}", joined(members.iter().map(member).collect()))
        }
    }
}

fn to_cst(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(to_cst).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), to_cst(value))).collect())
        }
    }
}

fn empty_table(is_inline: bool) -> Item {
    if is_inline { toml_edit::value(InlineTable::new()) } else { Item::Table(Table::new()) }
}

fn merge_toml(table: &mut dyn TableLike, key: &str, value: &Value, is_inline: bool) {
    let old = table.get(key);
    if old.map(toml_to_json).as_ref() == Some(value) {
        return;
    }
    if let Value::Object(members) = value {
        if !old.is_some_and(Item::is_table_like) {
            table.insert(key, empty_table(is_inline));
        }
        let is_inline = table.get(key).is_some_and(Item::is_inline_table);
        if let Some(inner) = table.get_mut(key).and_then(Item::as_table_like_mut) {
            for (key, value) in members {
                merge_toml(inner, key, value, is_inline);
            }
        }
        return;
    }
    let new = to_toml(value);
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            // with the comment behind it
            let decor = old.decor().clone();
            *old = new;
            *old.decor_mut() = decor;
        }
        None => drop(table.insert(key, Item::Value(new))),
    }
}

fn to_toml(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text_to_toml(text),
        Value::Array(items) => toml_edit::Value::Array(items.iter().map(to_toml).collect::<Array>()),
        Value::Object(members) => toml_edit::Value::InlineTable(
            members.iter().map(|(name, value)| (name.as_str(), to_toml(value))).collect(),
        ),
        // no entry has it
        Value::Null => "".into(),
    }
}

/// A text on one line: one of several lines would get the line ends of the file.
fn text_to_toml(text: &str) -> toml_edit::Value {
    // TOML has the escapes of JSON, and allows no DEL
    let on_one_line = Value::from(text).to_string().replace('\u{7f}', "\\u007f");
    let needs_escapes = text.contains(['\n', '\r']);
    let escaped = if needs_escapes { on_one_line.parse().ok() } else { None };
    escaped.unwrap_or_else(|| text.into())
}

fn toml_to_json(item: &Item) -> Value {
    fn value_to_json(value: &toml_edit::Value) -> Value {
        match value {
            toml_edit::Value::String(text) => text.value().as_str().into(),
            toml_edit::Value::Integer(number) => (*number.value()).into(),
            toml_edit::Value::Float(number) => (*number.value()).into(),
            toml_edit::Value::Boolean(value) => (*value.value()).into(),
            toml_edit::Value::Datetime(time) => time.value().to_string().into(),
            toml_edit::Value::Array(items) => items.iter().map(value_to_json).collect(),
            toml_edit::Value::InlineTable(table) => Value::Object(
                table.iter().map(|(key, value)| (key.to_owned(), value_to_json(value))).collect(),
            ),
        }
    }
    match item {
        Item::None => Value::Null,
        Item::Value(value) => value_to_json(value),
        Item::Table(table) => {
            let member = |(key, item): (&str, &Item)| (key.to_owned(), toml_to_json(item));
            Value::Object(table.iter().map(member).collect::<Map<_, _>>())
        }
        Item::ArrayOfTables(tables) => {
            tables.iter().map(|table| toml_to_json(&Item::Table(table.clone()))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_its_last_brace_is_wrong_at_its_end() {
        for (text, place) in [
            ("{\n  \"a\": {\n  }\n\n", "which begins in line 1, column 1 (line 3, column 4)"),
            ("{\n  \"a\": [1,\n", "which begins in line 2, column 8 (line 2, column 11)"),
            ("{\n  \"a\": }", "(line 2, column 8)"),
        ] {
            let problem = Document::parse(Format::Json, text).err().expect("a problem");
            assert!(problem.ends_with(place), "{text}: {problem}");
        }
    }

    #[test]
    fn inputs_that_the_user_has_written_stay() {
        let own = r#"{ "type": "promptString", "id": "x-key", "description": "Key", "password": true }"#;
        let entry = serde_json::json!({ "env": { "KEY": "${input:x-key}", "OTHER": "${input:mine}" } });
        for (inputs, is_kept) in [
            (own.to_owned(), false),
            (own.replace("true }", "true, \"default\": \"\" }"), true),
            (own.replace("true }", "false }"), true),
            (own.replace("x-key", "mine"), true),
            (String::new(), true),
        ] {
            let text = format!("{{ \"inputs\": [{inputs}], \"servers\": {{ \"x\": {entry} }} }}");
            let mut document = Document::parse(Format::Json, &text).expect("a document");
            document.remove("servers", "x");
            document.remove_inputs("x", &entry);
            assert_eq!(document.text().contains("inputs"), is_kept, "{}", document.text());
            assert!(document.text().contains(&inputs) || !is_kept, "{}", document.text());
        }
    }

    #[test]
    fn a_text_of_several_lines_is_written_as_it_is_into_a_file_with_other_line_ends() {
        let text = "-----BEGIN-----\nAA\u{7f}\\\"\n-----END-----\r\n";
        let mut document = Document::parse(Format::Toml, "a = 1\r\nb = 2\r\n").expect("a document");
        document.set("servers", "x", &vec![("command", Value::from(text))], Change::Replace);
        let written = document.text();
        let read = Document::parse(Format::Toml, &written).expect("a document");
        let entry = serde_json::json!({ "command": text });
        assert_eq!(read.get("servers", "x"), Ok(Some(entry)), "{written}");
        assert!(written.starts_with("a = 1\r\nb = 2\r\n"), "{written}");
    }

    #[test]
    fn a_file_whose_lines_end_in_two_ways_is_not_read() {
        let problem = Document::parse(Format::Toml, "a = 1\r\nb = 2\n").err().expect("a problem");
        assert!(problem.contains("end all in one way"), "{problem}");
        for ends in ["\n", "\r\n"] {
            let text = "a = 1\n# one\n\n[mcp_servers.x]\ncommand = \"x\"\n\n[z]\nc = 3\n".replace('\n', ends);
            let mut document = Document::parse(Format::Toml, &text).expect("a document");
            assert_eq!(document.text(), text);
            document.remove("mcp_servers", "x");
            assert_eq!(document.text(), "a = 1\n\n[z]\nc = 3\n".replace('\n', ends));
        }
    }
}

/// An entry that is set is there, one that is removed is not, and everything else stays.
#[cfg(any(test, feature = "_fuzzing"))]
fn fuzz(data: &[u8]) {
    const TABLE: &str = "servers";

    /// Everything but the entry `a`, and the table if nothing else is in it.
    fn rest(document: &Document) -> Value {
        let mut all = match document {
            Document::Json(root) => {
                root.value().and_then(|value| value.to_serde_value()).unwrap_or_else(|| Map::new().into())
            }
            Document::Toml(document, _) => toml_to_json(document.as_item()),
        };
        let is_empty = all.get_mut(TABLE).and_then(Value::as_object_mut).is_some_and(|servers| {
            servers.remove("a");
            servers.is_empty()
        });
        if let Some(all) = all.as_object_mut().filter(|_| is_empty) {
            all.remove(TABLE);
        }
        all
    }

    let Ok(text) = std::str::from_utf8(data) else { return };
    for format in [Format::Json, Format::Toml] {
        let Ok(mut document) = Document::parse(format, text) else { continue };
        // `install` refuses a file whose table is something else, or is there twice
        if document.get(TABLE, "a").is_err() {
            continue;
        }
        let before = rest(&document);
        let members = vec![("command", Value::from(text)), ("args", serde_json::json!(["-x", text]))];
        document.set(TABLE, "a", &members, Change::Replace);
        let written = document.text();
        let mut read = Document::parse(format, &written).unwrap_or_else(|why| panic!("{why}: {written}"));
        let entry = members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        assert_eq!(read.get(TABLE, "a"), Ok(Some(Value::Object(entry))), "{written}");
        assert_eq!(rest(&read), before, "{written}");
        read.remove(TABLE, "a");
        let written = read.text();
        let read = Document::parse(format, &written).unwrap_or_else(|why| panic!("{why}: {written}"));
        assert_eq!(read.get(TABLE, "a"), Ok(None), "{written}");
        assert_eq!(rest(&read), before, "{written}");
    }
}

#[cfg(any(test, feature = "_fuzzing"))]
inventory::submit!(crate::fuzzing::Target { name: "client_files", run: fuzz });
