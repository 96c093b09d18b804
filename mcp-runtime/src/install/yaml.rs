//! An entry in YAML, for the client whose file is that. It is printed; no such file is read or written.

use serde_json::Value;

use super::document::Members;

/// The entry of a server in its table.
pub(super) fn snippet(table: &str, name: &str, members: &Members) -> String {
    let mut text = format!("{}:\n  {}:\n", key(table), key(name));
    for (member, value) in members {
        write(&mut text, 4, member, value);
    }
    text
}

fn write(text: &mut String, indent: usize, name: &str, value: &Value) {
    text.push_str(&format!("{:indent$}{}:", "", key(name)));
    match value {
        Value::Object(members) if !members.is_empty() => {
            text.push('\n');
            for (name, value) in members {
                write(text, indent + 2, name, value);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            for item in items {
                text.push_str(&format!("{:indent$}  - {}\n", "", scalar(item)));
            }
        }
        value => text.push_str(&format!(" {}\n", scalar(value))),
    }
}

/// A value as JSON, which is YAML as well.
fn scalar(value: &Value) -> String {
    value.to_string()
}

/// A name, in quotation marks if YAML may read another value in it.
fn key(name: &str) -> String {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        && !WORDS.contains(&name.to_ascii_lowercase().as_str());
    if is_plain { name.to_owned() } else { Value::from(name).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_has_one_line_for_each_value_and_names_that_stay_texts() {
        let members = vec![
            ("name", json!("no")),
            ("args", json!(["a: b", "- c", "\"d\"", "#"])),
            ("envs", json!({ "ON": "1", "PATH": "C:\\x" })),
            ("enabled", json!(true)),
            ("none", json!([])),
        ];
        let text = r##"extensions:
  "no":
    name: "no"
    args:
      - "a: b"
      - "- c"
      - "\"d\""
      - "#"
    envs:
      "ON": "1"
      PATH: "C:\\x"
    enabled: true
    none: []
"##;
        assert_eq!(snippet("extensions", "no", &members), text);
    }
}
