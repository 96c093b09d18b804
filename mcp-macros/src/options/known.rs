//! The names of all options and of their values, an example of each, and the suggestion for an unknown one.

/// Options of tools, resources and prompts; prompts have no others.
pub(crate) const ITEM: &[&str] = &[
    "name",
    "title",
    "description",
    "icon",
    "meta",
    "max_concurrency_per_caller",
    "rate",
    "max_result",
    "blocking",
    "scopes",
    "requires",
    "layers",
    "validate",
    "marker",
    "crate",
];
/// Further options of tools.
pub(crate) const TOOL: &[&str] = &[
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "timeout",
    "max_concurrency",
    "tags",
    "strict",
    "output",
    "unregistered",
    "ui",
    "task",
];
/// Further options of resources.
pub(crate) const RESOURCE: &[&str] =
    &["uri", "mime", "audience", "priority", "size", "cache", "list", "subscribe", "ui"];
pub(crate) const EVENT: &[&str] =
    &["name", "description", "deliver", "rate", "blocking", "scopes", "meta", "validate", "marker", "crate"];
/// How an event may be delivered.
pub(crate) const DELIVERY: &[&str] = &["poll", "push", "webhook"];
/// How a call becomes a task, and what becomes of it when its server has stopped.
pub(crate) const TASK: &[&str] = &["restart", "required", "manual"];
/// Options that may be repeated.
pub(crate) const REPEATABLE: &[&str] = &["icon"];
pub(crate) const ICON: &[&str] = &["src", "mime", "sizes", "theme"];
pub(crate) const THEMES: &[&str] = &["light", "dark"];
pub(crate) const FEATURES: &[&str] =
    &["elicitation", "elicitation_url", "sampling", "sampling_tools", "roots"];
/// Options of parameters and of the fields of `#[mcp_config]`.
pub(crate) const VALUE: &[&str] = &[
    "name",
    "title",
    "description",
    "default",
    "range",
    "length",
    "pattern",
    "one_of",
    "example",
    "flatten",
    "secret",
];
/// Further options of a parameter.
pub(crate) const PARAMETER: &[&str] = &["header", "complete", "inject", "raw"];
/// Further options of the parameters of an event's function.
pub(crate) const EVENT_PARAMETER: &[&str] = &["payload", "inject"];
/// Further options of a field of `#[mcp_config]`.
pub(crate) const SETTING: &[&str] = &["flag", "env"];
pub(crate) const CONFIG: &[&str] = &["name", "crate"];
pub(crate) const CACHE: &[&str] = &["ttl", "public"];
pub(crate) const TOOL_UI: &[&str] = &["resource", "visibility"];
pub(crate) const VISIBILITY: &[&str] = &["model", "app"];
pub(crate) const RESOURCE_UI: &[&str] = &["csp", "permissions", "prefers_border", "domain"];
pub(crate) const CSP: &[&str] = &["connect", "resource", "frame", "base_uri"];
pub(crate) const PERMISSIONS: &[&str] = &["camera", "microphone", "geolocation", "clipboard_write"];
pub(crate) const ERROR: &[&str] = &["public", "crate"];
pub(crate) const ERROR_VARIANT: &[&str] = &["public"];
pub(crate) const SERVICE: &[&str] = &["markers", "crate"];
pub(crate) const CRATE: &[&str] = &["crate"];

/// Names that other frameworks give to an option, and the name here; used for suggestions only.
const ALIASES: &[(&str, &str)] = &[
    ("about", "description"),
    ("doc", "description"),
    ("min", "range"),
    ("max", "range"),
    ("min_length", "length"),
    ("max_length", "length"),
    ("regex", "pattern"),
    ("values", "one_of"),
    ("rename", "name"),
    ("mime_type", "mime"),
    ("template", "uri"),
    ("state", "inject"),
    ("concurrency", "max_concurrency"),
    ("sensitive", "secret"),
    ("long", "flag"),
    ("variable", "env"),
    ("prefix", "name"),
    ("middleware", "layers"),
    ("wrap", "layers"),
    ("rate_limit", "rate"),
    ("throttle", "rate"),
    ("max_size", "max_result"),
    ("max_output", "max_result"),
    ("require", "requires"),
    ("check", "validate"),
    ("rules", "validate"),
    ("validator", "validate"),
    ("needs", "requires"),
    ("elicit", "elicitation"),
    ("sample", "sampling"),
    ("uri", "resource"),
    ("uri", "src"),
    ("url", "src"),
    ("href", "src"),
    ("size", "sizes"),
];

/// The second line of the message for an unknown option: where it belongs, or what was probably meant.
pub(crate) fn suggest_option(name: &str, known: &[&str]) -> String {
    match find_owner(name) {
        Some(owner) if find_alias(name, known).is_none() => format!("it is an option of {owner}"),
        _ => suggest(name, known),
    }
}

/// The second line of the message for an unknown name: the nearest known one, or all of them.
pub(crate) fn suggest(name: &str, known: &[&str]) -> String {
    match find_nearest(name, known) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("it takes {}", quote_all(known)),
    }
}

/// The only item or parameter that has this option, if there is just one.
fn find_owner(name: &str) -> Option<&'static str> {
    if ITEM.contains(&name) {
        return None;
    }
    let owners = [
        (VALUE, "a parameter: `#[mcp(..)]`"),
        (PARAMETER, "a parameter: `#[mcp(..)]`"),
        (TOOL, "`#[mcp_tool]`"),
        (RESOURCE, "`#[mcp_resource]`"),
        (EVENT, "`#[mcp_event]`"),
        (&["payload"], "a parameter of `#[mcp_event]`"),
        (TOOL_UI, "`ui(..)` of a tool"),
        (RESOURCE_UI, "`ui(..)` of a resource"),
        (&["src", "sizes", "theme"], "`icon(..)`"),
    ];
    let mut found = owners.iter().filter(|(options, _)| options.contains(&name)).map(|(_, owner)| *owner);
    match (found.next(), found.next()) {
        (owner, None) => owner,
        _ => None,
    }
}

fn quote_all(known: &[&str]) -> String {
    known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The known name of which `word` is an alias.
fn find_alias<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let mut names = ALIASES.iter().filter(|(alias, _)| *alias == word);
    names.find_map(|(_, name)| known.iter().find(|known| *known == name).copied())
}

/// The known name that is nearest to `word`, if it is near enough for `word` to be a typo or an abbreviation.
fn find_nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    if let Some(found) = find_alias(word, known) {
        return Some(found);
    }
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let word = plain(word);
    let (distance, name) = known.iter().map(|name| (edit_distance(&word, &plain(name)), *name)).min()?;
    let abbreviated = || known.iter().copied().find(|name| word.len() > 2 && plain(name).starts_with(&word));
    (distance <= word.len() / 3).then_some(name).or_else(abbreviated)
}

/// The optimal string alignment distance: insertions, deletions, substitutions and transpositions.
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut older: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    let mut before: Option<char> = None;
    for (row, a) in from.chars().enumerate() {
        let mut line = vec![row + 1];
        for (column, b) in to.iter().enumerate() {
            let cell = |line: &[usize], at: usize| line.get(at).copied().unwrap_or(usize::MAX / 2);
            let mut best = cell(&last, column) + usize::from(a != *b);
            best = best.min(cell(&last, column + 1) + 1).min(cell(&line, column) + 1);
            if let Some(left) = column.checked_sub(1)
                && before == Some(*b)
                && to.get(left) == Some(&a)
            {
                best = best.min(cell(&older, left) + 1);
            }
            line.push(best);
        }
        before = Some(a);
        older = std::mem::replace(&mut last, line);
    }
    last.last().copied().unwrap_or(0)
}

/// One example of each option, for the second line of a message.
pub(crate) fn usage(option: &str) -> String {
    let example = match option {
        "name" => "name = \"search\"",
        "title" => "title = \"Search\"",
        "description" => "description = \"Searches the catalogue.\"",
        "icon" => "icon = \"https://example.org/icon.png\"",
        "src" => "src = \"https://example.org/icon.png\"",
        "sizes" => "sizes(\"48x48\", \"any\")",
        "theme" => "theme = \"dark\"",
        "meta" => "meta(model = \"m\", tags = [\"a\"])",
        "scopes" => "scopes(\"read\", \"write\")",
        "requires" => "requires(elicitation, sampling)",
        "tags" => "tags(\"billing\")",
        "marker" => "marker = SearchTool",
        "markers" => "markers = shop",
        "crate" => "crate = path::to::mcp_runtime",
        "timeout" => "timeout = \"5s\"",
        "max_concurrency" => "max_concurrency = 2",
        "max_concurrency_per_caller" => "max_concurrency_per_caller = 2",
        "rate" => "rate = \"60/1m\"",
        "max_result" => "max_result = \"50KB\"",
        "output" => "output = Report",
        "task" => "task",
        "layers" => "layers(timing, Retry::times(3))",
        "validate" => "validate = check_dates",
        "deliver" => "deliver(poll, push)",
        "uri" => "uri = \"docs://pages/{id}\"",
        "mime" => "mime = \"application/json\"",
        "audience" => "audience(\"user\", \"assistant\")",
        "priority" => "priority = 0.5",
        "size" => "size = 1024",
        "cache" => "cache(ttl = \"60s\", public)",
        "ttl" => "ttl = \"60s\"",
        "list" => "list = path::to::function",
        "subscribe" => "subscribe = path::to::function",
        "resource" => "resource = \"ui://server/page.html\"",
        "visibility" => "visibility(model, app)",
        "permissions" => "permissions(camera, clipboard_write)",
        "domain" => "domain = \"app.example.org\"",
        "default" => "default = 10",
        "example" => "example = 10",
        "range" => "range(1..=100)",
        "length" => "length(1..=200)",
        "pattern" => "pattern = \"^[a-z]+$\"",
        "one_of" => "one_of(\"a\", \"b\")",
        "header" => "header = \"Region\"",
        "complete" => "complete = path::to::function",
        "flag" => "flag = \"database\"",
        "env" => "env = \"DATABASE_URL\"",
        flag => return format!("write `{flag}` alone"),
    };
    format!("write `{example}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_find_the_nearest_option() {
        for (word, known, meant) in [
            ("titel", ITEM, Some("title")),
            ("readonly", TOOL, Some("read_only")),
            ("ReadOnly", TOOL, Some("read_only")),
            ("desciption", ITEM, Some("description")),
            ("max_concurency", TOOL, Some("max_concurrency")),
            ("icons", ITEM, Some("icon")),
            ("mime_type", RESOURCE, Some("mime")),
            ("min", VALUE, Some("range")),
            ("min", TOOL, None),
            ("colour", TOOL, None),
            ("x", TOOL, None),
            ("uri", TOOL_UI, Some("resource")),
            ("tasks", TOOL, Some("task")),
            ("desc", ITEM, Some("description")),
            ("prio", RESOURCE, Some("priority")),
            ("needs", ITEM, Some("requires")),
        ] {
            assert_eq!(find_nearest(word, known), meant, "{word}");
        }
    }

    #[test]
    fn distance_counts_edits() {
        for (from, to, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "acb", 1),
            ("abc", "axc", 1),
            ("ab", "abc", 1),
        ] {
            assert_eq!(edit_distance(from, to), edits, "{from} -> {to}");
        }
    }
}
