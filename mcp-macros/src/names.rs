//! The options that exist, and what was probably meant by one that does not.
//!
//! Called wherever an option's key matches nothing.

use crate::attr::Entry;
use crate::errors::Errors;

pub(crate) const TOOL: &[&str] = &[
    "name",
    "title",
    "description",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "icon",
    "meta",
    "timeout",
    "max_concurrency",
    "blocking",
    "scopes",
    "requires",
    "tags",
    "strict",
    "output",
    "unlisted",
    "ui",
    "task",
    "crate",
];
pub(crate) const RESOURCE: &[&str] = &[
    "uri",
    "name",
    "title",
    "description",
    "mime",
    "icon",
    "audience",
    "priority",
    "size",
    "cache",
    "list",
    "subscribe",
    "scopes",
    "requires",
    "meta",
    "ui",
    "crate",
];
pub(crate) const PROMPT: &[&str] =
    &["name", "title", "description", "icon", "meta", "scopes", "requires", "crate"];
/// Options that may be given several times.
pub(crate) const REPEATABLE: &[&str] = &["icon"];
pub(crate) const ICON: &[&str] = &["src", "mime", "sizes", "theme"];
pub(crate) const THEMES: &[&str] = &["light", "dark"];
pub(crate) const FEATURES: &[&str] =
    &["elicitation", "elicitation_url", "sampling", "sampling_tools", "roots"];
pub(crate) const PARAMETER: &[&str] = &[
    "name",
    "title",
    "description",
    "default",
    "range",
    "length",
    "pattern",
    "one_of",
    "example",
    "header",
    "complete",
    "flatten",
    "inject",
    "raw",
];
pub(crate) const CACHE: &[&str] = &["ttl", "public"];
pub(crate) const TOOL_UI: &[&str] = &["resource", "visibility"];
pub(crate) const VISIBILITY: &[&str] = &["model", "app"];
pub(crate) const RESOURCE_UI: &[&str] = &["csp", "permissions", "prefers_border", "domain"];
pub(crate) const CSP: &[&str] = &["connect", "resource", "frame", "base_uri"];
pub(crate) const PERMISSIONS: &[&str] = &["camera", "microphone", "geolocation", "clipboard_write"];
pub(crate) const CRATE: &[&str] = &["crate"];

/// What people write who come from other frameworks.
const RENAMED: &[(&str, &str)] = &[
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
    ("require", "requires"),
    ("needs", "requires"),
    ("elicit", "elicitation"),
    ("sample", "sampling"),
    ("uri", "resource"),
    ("uri", "src"),
    ("url", "src"),
    ("href", "src"),
    ("size", "sizes"),
];

/// Reports an option that the place does not take.
pub(crate) fn refuse(entry: &Entry, place: &str, known: &[&str], errors: &Errors) {
    let name = entry.name.as_str();
    let fix = match home(name) {
        Some(home) if renamed(name, known).is_none() => format!("it is an option of {home}"),
        _ => fix(name, known),
    };
    errors.at(&entry.key, format_args!("unknown option `{name}` of {place}\n{fix}"));
}

/// What to write instead of a name that is not known.
pub(crate) fn fix(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("it takes {}", list(known)),
    }
}

/// Where an option belongs that only one place takes.
fn home(name: &str) -> Option<&'static str> {
    let homes = [
        (PARAMETER, "a parameter: `#[mcp(..)]`"),
        (TOOL, "`#[mcp_tool]`"),
        (RESOURCE, "`#[mcp_resource]`"),
        (TOOL_UI, "`ui(..)` of a tool"),
        (RESOURCE_UI, "`ui(..)` of a resource"),
        (&["src", "sizes", "theme"], "`icon(..)`"),
    ];
    let mut found = homes.iter().filter(|(options, _)| options.contains(&name)).map(|(_, home)| *home);
    match (found.next(), found.next()) {
        (home, None) => home,
        _ => None,
    }
}

fn list(known: &[&str]) -> String {
    known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// What is known here under another name.
fn renamed<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let mut names = RENAMED.iter().filter(|(other, _)| *other == word);
    names.find_map(|(_, name)| known.iter().find(|known| *known == name).copied())
}

/// The known name that `word` most resembles, if any is near enough to be a slip.
fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    if let Some(found) = renamed(word, known) {
        return Some(found);
    }
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let word = plain(word);
    let (distance, name) = known.iter().map(|name| (distance(&word, &plain(name)), *name)).min()?;
    let abbreviated = || known.iter().copied().find(|name| word.len() > 2 && plain(name).starts_with(&word));
    (distance <= word.len() / 3).then_some(name).or_else(abbreviated)
}

/// Edits (insert, delete, replace, swap of neighbours) that turn `from` into `to`.
fn distance(from: &str, to: &str) -> usize {
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

/// Whether a caller can have been granted it (RFC 6749, section 3.3).
pub(crate) fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\')
}

/// A word of an option as a variant is named: `sampling_tools` is `SamplingTools`.
pub(crate) fn pascal(word: &str) -> String {
    let mut up = true;
    let mut name = String::new();
    for c in word.chars() {
        if c == '_' {
            up = true;
        } else if std::mem::take(&mut up) {
            name.push(c.to_ascii_uppercase());
        } else {
            name.push(c);
        }
    }
    name
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
        "crate" => "crate = path::to::mcp_runtime",
        "timeout" => "timeout = \"5s\"",
        "max_concurrency" => "max_concurrency = 2",
        "output" => "output = Report",
        "task" => "task = required",
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
        flag => return format!("write `{flag}` alone"),
    };
    format!("write `{example}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_the_option_that_was_meant() {
        for (word, known, meant) in [
            ("titel", TOOL, Some("title")),
            ("readonly", TOOL, Some("read_only")),
            ("ReadOnly", TOOL, Some("read_only")),
            ("desciption", PROMPT, Some("description")),
            ("max_concurency", TOOL, Some("max_concurrency")),
            ("icons", TOOL, Some("icon")),
            ("mime_type", RESOURCE, Some("mime")),
            ("min", PARAMETER, Some("range")),
            ("min", TOOL, None),
            ("colour", TOOL, None),
            ("x", TOOL, None),
            ("uri", TOOL_UI, Some("resource")),
            ("tasks", TOOL, Some("task")),
            ("desc", TOOL, Some("description")),
            ("prio", RESOURCE, Some("priority")),
            ("needs", TOOL, Some("requires")),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
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
            assert_eq!(distance(from, to), edits, "{from} -> {to}");
        }
    }
}
