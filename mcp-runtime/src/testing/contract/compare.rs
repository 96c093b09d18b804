//! The changes between two contracts, and the effect of each. A change that is not known to be harmless is breaking.

use serde_json::{Map, Value};

use super::{
    ChangeClass::{self, Additive, Breaking, Cosmetic, Routing},
    Contract, ContractChange, ContractChanges, SECTIONS,
    schema::{Direction, compare_schemas},
};

/// The changes of one item.
pub(super) struct ItemChangeList<'c> {
    item: String,
    found: &'c mut Vec<ContractChange>,
    /// How many others had been found before those of this item.
    before: usize,
}

impl<'c> ItemChangeList<'c> {
    fn new(item: String, found: &'c mut Vec<ContractChange>) -> Self {
        let before = found.len();
        Self { item, found, before }
    }

    /// Adds that two values differ, if nothing that was found says so: a file must not be another one unseen.
    fn add_unless_known(&mut self, old: Option<&Value>, new: Option<&Value>) {
        if old != new && self.found.len() == self.before {
            self.add(Cosmetic, "is written in another way that means the same");
        }
    }

    pub(super) fn add(&mut self, class: ChangeClass, text: impl Into<String>) {
        self.found.push(ContractChange { class, item: self.item.clone(), text: text.into() });
    }
}

pub(super) fn compare(older: &Contract, newer: &Contract) -> ContractChanges {
    let mut found = Vec::new();
    compare_server(older, newer, &mut ItemChangeList::new("server".to_owned(), &mut found));
    let knows_own = older.is_of_program() && newer.is_of_program();
    for (section, kind, _) in SECTIONS {
        let mut added: Vec<(&String, &Value)> =
            newer.items(section).filter(|(name, _)| item(older, section, name).is_none()).collect();
        for (name, old) in older.items(section) {
            let mut changes = ItemChangeList::new(format!("{kind} {name}"), &mut found);
            if let Some(new) = item(newer, section, name) {
                compare_item(section, old, new, knows_own, &mut changes);
                let scopeless = |item: &Value| match item.as_object() {
                    Some(members) if !knows_own => {
                        members.iter().filter(|(key, _)| *key != "scopes").map(own_pair).collect()
                    }
                    _ => item.clone(),
                };
                changes.add_unless_known(Some(&scopeless(old)), Some(&scopeless(new)));
                continue;
            }
            // a template is named besides
            let same = |new: &Value| section == "resourceTemplates" && new["name"] == old["name"];
            match added.iter().position(|(_, new)| same(new)) {
                Some(at) => {
                    let (uri, new) = added.remove(at);
                    changes.add(Breaking, format!("its URI template is `{uri}` now"));
                    compare_item(section, old, new, knows_own, &mut changes);
                }
                None => changes.add(Breaking, "is gone"),
            }
        }
        for (name, _) in added {
            ItemChangeList::new(format!("{kind} {name}"), &mut found).add(Additive, "is new");
        }
    }
    if knows_own {
        compare_settings(older, newer, &mut found);
    }
    // the order within a class is that of the file
    crate::schema::sort_by(&mut found, |one, other| other.class.cmp(&one.class));
    ContractChanges { changes: found }
}

fn own_pair((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

fn item<'c>(contract: &'c Contract, section: &str, name: &str) -> Option<&'c Value> {
    contract.0.get(section)?.get(name)
}

fn compare_server(older: &Contract, newer: &Contract, changes: &mut ItemChangeList<'_>) {
    let (old, new) = (&older.0, &newer.0);
    if old.get("server") != new.get("server") {
        changes.add(Cosmetic, "its name has changed");
    }
    if old.get("instructions") != new.get("instructions") {
        changes.add(Routing, "its instructions have changed");
    }
    let empty = Map::new();
    let capabilities =
        |members: &Map<String, Value>| members.get("capabilities").and_then(Value::as_object).cloned();
    let (old, new) = (capabilities(old).unwrap_or_default(), capabilities(new).unwrap_or(empty));
    for (name, value) in &old {
        match new.get(name) {
            None => changes.add(Breaking, format!("the capability `{name}` is gone")),
            Some(now) => {
                for (option, _) in value.as_object().into_iter().flatten().filter(|(_, value)| is_on(value)) {
                    if !now.get(option).is_some_and(is_on) {
                        changes.add(Breaking, format!("the capability `{name}.{option}` is gone"));
                    }
                }
                for (option, _) in now.as_object().into_iter().flatten().filter(|(_, value)| is_on(value)) {
                    if !value.get(option).is_some_and(is_on) {
                        changes.add(Additive, format!("the capability `{name}.{option}` is new"));
                    }
                }
            }
        }
    }
    for name in new.keys().filter(|name| !old.contains_key(*name)) {
        changes.add(Additive, format!("the capability `{name}` is new"));
    }
    let (old, new) = (older.0.get("capabilities"), newer.0.get("capabilities"));
    changes.add_unless_known(old, new);
}

fn is_on(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

fn compare_item(section: &str, old: &Value, new: &Value, knows_own: bool, changes: &mut ItemChangeList<'_>) {
    let differs = |key: &str| old.get(key) != new.get(key);
    if differs("description") {
        changes.add(Routing, "its description has changed");
    }
    for key in ["title", "_meta"] {
        if differs(key) {
            changes.add(Cosmetic, format!("its `{key}` has changed"));
        }
    }
    if section.starts_with("resource") {
        if differs("mimeType") {
            changes.add(
                Breaking,
                format!("its type was {}, and is {}", shown(&old["mimeType"]), shown(&new["mimeType"])),
            );
        }
        for key in ["name", "annotations"] {
            if differs(key) {
                changes.add(Cosmetic, format!("its `{key}` has changed"));
            }
        }
    }
    match section {
        "tools" => compare_tools(old, new, knows_own, changes),
        "prompts" => compare_prompts(old, new, changes),
        "events" => {
            compare_schemas(&old["inputSchema"], &new["inputSchema"], Direction::Input, "", changes);
            let (payload, now) = (&old["payloadSchema"], &new["payloadSchema"]);
            compare_schemas(payload, now, Direction::Output, "payloadSchema", changes);
            compare_sets("delivery", &old["delivery"], &new["delivery"], (Breaking, Additive), changes);
        }
        _ => {}
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "not given".to_owned(),
        Value::String(text) => format!("`{text}`"),
        value => format!("`{value}`"),
    }
}

/// Members of two lists: the classes of those that are gone, and of those that are new.
fn compare_sets(
    what: &str,
    old: &Value,
    new: &Value,
    (gone, added): (ChangeClass, ChangeClass),
    changes: &mut ItemChangeList<'_>,
) {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (old, new) = (list(old), list(new));
    for value in old.iter().filter(|value| !new.contains(value)) {
        changes.add(gone, format!("its {what} {} is gone", shown(value)));
    }
    for value in new.iter().filter(|value| !old.contains(value)) {
        changes.add(added, format!("its {what} {} is new", shown(value)));
    }
}

fn compare_tools(old: &Value, new: &Value, knows_own: bool, changes: &mut ItemChangeList<'_>) {
    compare_schemas(&old["inputSchema"], &new["inputSchema"], Direction::Input, "", changes);
    match (old.get("outputSchema"), new.get("outputSchema")) {
        (Some(_), None) => changes.add(Breaking, "its output schema is gone"),
        (None, Some(_)) => changes.add(Additive, "has an output schema now"),
        (Some(old), Some(new)) => compare_schemas(old, new, Direction::Output, "outputSchema", changes),
        (None, None) => {}
    }
    // name, default, and the value that promises more
    const HINTS: [(&str, bool, bool); 4] = [
        ("readOnlyHint", false, true),
        ("destructiveHint", true, false),
        ("idempotentHint", false, true),
        ("openWorldHint", true, false),
    ];
    let is_read_only = |tool: &Value| tool["annotations"]["readOnlyHint"] == true;
    // of a tool that changes nothing these say nothing, before or after
    let any_is_read_only = is_read_only(old) || is_read_only(new);
    for (hint, default, promise) in HINTS {
        if any_is_read_only && matches!(hint, "destructiveHint" | "idempotentHint") {
            continue;
        }
        let value = |tool: &Value| tool["annotations"][hint].as_bool().unwrap_or(default);
        match (value(old), value(new)) {
            (was, is) if was == is => {}
            (was, _) if was == promise => {
                changes.add(Breaking, format!("its annotation `{hint}` is weaker: it was {promise}"));
            }
            _ => changes.add(Additive, format!("its annotation `{hint}` is {promise} now")),
        }
    }
    if old["annotations"]["title"] != new["annotations"]["title"] {
        changes.add(Cosmetic, "the title in its annotations has changed");
    }
    let tasks = |tool: &Value| tool["execution"]["taskSupport"].as_str().unwrap_or("forbidden").to_owned();
    match (&*tasks(old), &*tasks(new)) {
        (was, is) if was == is => {}
        ("forbidden" | "required", "optional") => {
            changes.add(Additive, "may be called as a task, or not, now");
        }
        (was, is) => changes.add(Breaking, format!("calls as tasks were {was}, and are {is}")),
    }
    if knows_own {
        compare_sets("scope", &old["scopes"], &new["scopes"], (Additive, Breaking), changes);
    }
}

fn compare_prompts(old: &Value, new: &Value, changes: &mut ItemChangeList<'_>) {
    let list = |prompt: &Value| prompt["arguments"].as_array().cloned().unwrap_or_default();
    let (old, new) = (list(old), list(new));
    for was in &old {
        let name = shown(&was["name"]);
        let Some(is) = new.iter().find(|is| is["name"] == was["name"]) else {
            changes.add(Breaking, format!("the argument {name} is gone"));
            continue;
        };
        match (was["required"] == true, is["required"] == true) {
            (false, true) => changes.add(Breaking, format!("the argument {name} is required now")),
            (true, false) => changes.add(Additive, format!("the argument {name} is optional now")),
            _ => {}
        }
        if was["description"] != is["description"] {
            changes.add(Routing, format!("the description of the argument {name} has changed"));
        }
        if was["title"] != is["title"] {
            changes.add(Cosmetic, format!("the title of the argument {name} has changed"));
        }
    }
    for is in new.iter().filter(|is| !old.iter().any(|was| was["name"] == is["name"])) {
        let name = shown(&is["name"]);
        match is["required"] == true {
            true => changes.add(Breaking, format!("the argument {name} is new, and required")),
            false => changes.add(Additive, format!("the argument {name} is new")),
        }
    }
}

fn compare_settings(older: &Contract, newer: &Contract, found: &mut Vec<ContractChange>) {
    for (name, old) in older.items("settings") {
        let mut changes = ItemChangeList::new(format!("setting {name}"), found);
        let Some(new) = item(newer, "settings", name) else {
            changes.add(Breaking, "is gone");
            continue;
        };
        match (old["required"] == true, new["required"] == true) {
            (false, true) => changes.add(Breaking, "is required now"),
            (true, false) => changes.add(Additive, "is optional now"),
            _ => {}
        }
        compare_schemas(&old["schema"], &new["schema"], Direction::Input, "", &mut changes);
        changes.add_unless_known(Some(old), Some(new));
    }
    for (name, new) in newer.items("settings").filter(|(name, _)| item(older, "settings", name).is_none()) {
        let mut changes = ItemChangeList::new(format!("setting {name}"), found);
        match new["required"] == true {
            true => changes.add(Breaking, "is new, and required"),
            false => changes.add(Additive, "is new"),
        }
    }
}
