//! Answers the questions of a function in a terminal: its forms field by field, and its URLs. Input is checked
//! against the form before it is sent.

use std::{
    io::{self, BufRead, IsTerminal as _, Write},
    sync::Arc,
};

use serde_json::{Map, Value, json};

use crate::{
    client::exchange::MemoryClient,
    core::{
        sync::Mutex,
        visible_text::{in_lines, in_one_line, visible},
    },
    schema::Validator,
};

/// The same client, which asks the user if there is a terminal to ask in.
pub(super) fn answer_in_terminal(client: MemoryClient) -> MemoryClient {
    if !io::stdin().is_terminal() {
        return client;
    }
    let capabilities = json!({ "elicitation": { "form": {}, "url": {} } });
    let answer = |method: &str, params: &Value| match method {
        "elicitation/create" => answer_question(params),
        other => Err(format!("`{other}` cannot be answered in a terminal")),
    };
    client.with_answers(capabilities, Arc::new(answer))
}

/// The user's answer to these params of `elicitation/create`, one question at a time: the wire's result.
///
/// # Errors
/// The terminal cannot be read or written.
pub fn answer_question(params: &Value) -> Result<Value, String> {
    static ASKING: Mutex<()> = Mutex::new(());
    let _one = ASKING.lock();
    let mut dialog = Dialog { input: io::stdin().lock(), output: io::stderr() };
    dialog.answer(params).map_err(|error| error.to_string())
}

/// A hint for an error that is due to a missing terminal; empty for any other.
pub(super) fn unanswered_hint(error: &Value) -> &'static str {
    let asks = error["data"]["requiredCapabilities"].get("elicitation").is_some();
    if asks && !io::stdin().is_terminal() {
        "\nit asks its user: call it in a terminal, where stdin is not redirected, and answer there"
    } else {
        ""
    }
}

/// A user who reads `output` and types into `input`.
struct Dialog<R, W> {
    input: R,
    output: W,
}

impl<R: BufRead, W: Write> Dialog<R, W> {
    /// The result of `elicitation/create`; the end of the input cancels.
    fn answer(&mut self, params: &Value) -> io::Result<Value> {
        match self.ask(params) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(json!({ "action": "cancel" })),
            answered => answered,
        }
    }

    fn ask(&mut self, params: &Value) -> io::Result<Value> {
        self.say(&in_lines(params["message"].as_str().unwrap_or_default()).to_string())?;
        let form = &params["requestedSchema"];
        if params["mode"] == "url" {
            self.say(&format!("Open {}", in_one_line(params["url"].as_str().unwrap_or_default())))?;
            return self.ask_consent(json!({ "action": "accept" }));
        }
        match form["properties"].as_object().filter(|fields| !fields.is_empty()) {
            Some(fields) => self.fill_in(fields, form),
            None => self.ask_consent(json!({ "action": "accept", "content": {} })),
        }
    }

    fn ask_consent(&mut self, accept: Value) -> io::Result<Value> {
        loop {
            match parse_boolean(&self.read("yes or no")?) {
                Some(true) => return Ok(accept),
                Some(false) => return Ok(json!({ "action": "decline" })),
                None => {}
            }
        }
    }

    /// Asks for each field of a form.
    fn fill_in(&mut self, fields: &Map<String, Value>, form: &Value) -> io::Result<Value> {
        self.say("(Ctrl-D leaves without an answer)")?;
        let required = form["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let required: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
        // properties have no order, but what is required does
        let first = required.iter().copied().filter_map(|name| fields.get_key_value(name));
        let others = fields.iter().filter(|(name, _)| !required.contains(&name.as_str()));
        let mut content = Map::new();
        for (name, schema) in first.chain(others) {
            if let Some(value) = self.ask_field(name, schema, required.contains(&name.as_str()))? {
                content.insert(name.clone(), value);
            }
        }
        Ok(json!({ "action": "accept", "content": content }))
    }

    /// The value of one field; `None` if it is left out.
    fn ask_field(&mut self, name: &str, schema: &Value, is_required: bool) -> io::Result<Option<Value>> {
        let options = options_of(schema);
        // a keyword that only clients know is checked by the function
        // the server has compiled the schema of the form before
        let validator = Validator::compile_generated(schema).ok();
        let question = describe(name, schema, &options, is_required);
        loop {
            let line = self.read(&question)?;
            if line.is_empty() {
                match schema.get("default") {
                    Some(default) => return Ok(Some(default.clone())),
                    None if !is_required => return Ok(None),
                    None => self.say("a value is required")?,
                }
                continue;
            }
            let Some(value) = parse_value(&line, schema, &options) else {
                self.say(&format!("that is not {}", expected(schema, &options)))?;
                continue;
            };
            match validator.as_ref().map(|validator| validator.validate(&value)).unwrap_or_default().first() {
                None => return Ok(Some(value)),
                Some(error) => self.say(&error.to_string())?,
            }
        }
    }

    /// Writes what may have text of the function in it.
    fn say(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.output, "{}", visible(text))
    }

    /// A line, without spaces around it; the end of the input is an error.
    fn read(&mut self, question: &str) -> io::Result<String> {
        write!(self.output, "{}: ", visible(question))?;
        self.output.flush()?;
        let mut line = String::new();
        if self.input.read_line(&mut line)? == 0 {
            writeln!(self.output)?;
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim().to_owned())
    }
}

/// The values to choose from, each with its title; none if any value is possible.
fn options_of(schema: &Value) -> Vec<(&str, &str)> {
    let schema = if schema["type"] == "array" { &schema["items"] } else { schema };
    if let Some(values) = schema["enum"].as_array() {
        let names = schema["enumNames"].as_array().map(Vec::as_slice).unwrap_or_default();
        let name = |index: usize| names.get(index).and_then(Value::as_str);
        let values = values.iter().enumerate();
        return values
            .filter_map(|(index, value)| Some((value.as_str()?, name(index).or(value.as_str())?)))
            .collect();
    }
    let titled = schema["oneOf"].as_array().or(schema["anyOf"].as_array()).into_iter().flatten();
    titled
        .filter_map(|option| {
            let value = option["const"].as_str()?;
            Some((value, option["title"].as_str().unwrap_or(value)))
        })
        .collect()
}

/// The question for one field: title or name, description, what can be typed, and the default.
fn describe(name: &str, schema: &Value, options: &[(&str, &str)], is_required: bool) -> String {
    let mut text = in_one_line(schema["title"].as_str().unwrap_or(name)).to_string();
    if let Some(description) = schema["description"].as_str() {
        text.push_str(&format!(" ({})", in_lines(description)));
    }
    for (index, (value, title)) in options.iter().enumerate() {
        let title = if title == value { String::new() } else { format!(": {}", in_one_line(title)) };
        text.push_str(&format!("\n  {}. {}{title}", index + 1, in_one_line(value)));
    }
    if !options.is_empty() {
        text.push('\n');
    }
    match schema.get("default") {
        Some(default) => text.push_str(&format!(" [{}]", in_one_line(&default.to_string()))),
        None if !is_required => text.push_str(" [none]"),
        None => {}
    }
    text
}

fn expected(schema: &Value, options: &[(&str, &str)]) -> &'static str {
    match schema["type"].as_str() {
        Some("array") => "a list of these values, with commas between them",
        _ if !options.is_empty() => "one of these values",
        Some("boolean") => "`yes` or `no`",
        Some("integer") => "an integer",
        Some("number") => "a number",
        _ => "a text",
    }
}

/// Parses a line as a value of the field; `None` if it is not one.
fn parse_value(line: &str, schema: &Value, options: &[(&str, &str)]) -> Option<Value> {
    let choose = |text: &str| {
        let by_number = || text.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
        let chosen = options.iter().find(|(value, _)| *value == text).or_else(by_number);
        chosen.map(|(value, _)| Value::from(*value))
    };
    match schema["type"].as_str() {
        Some("array") => line.split(',').map(|part| choose(part.trim())).collect(),
        _ if !options.is_empty() => choose(line),
        Some("boolean") => parse_boolean(line).map(Value::from),
        Some("integer" | "number") => serde_json::from_str(line).ok().filter(Value::is_number),
        _ => Some(line.into()),
    }
}

fn parse_boolean(line: &str) -> Option<bool> {
    match &*line.to_ascii_lowercase() {
        "y" | "yes" | "true" => Some(true),
        "n" | "no" | "false" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of a user who types these lines, and what they see.
    fn answer(params: &Value, lines: &str) -> (Value, String) {
        let mut dialog = Dialog { input: lines.as_bytes(), output: Vec::new() };
        let answer = dialog.answer(params).expect("no error");
        (answer, String::from_utf8(dialog.output).expect("UTF-8"))
    }

    fn form() -> Value {
        json!({ "message": "An order\u{1b}[2J", "requestedSchema": {
            "type": "object",
            "properties": {
                "name": { "type": "string", "description": "Who it is for", "minLength": 2 },
                "pieces": { "type": "integer", "maximum": 9, "default": 1 },
                "hot": { "type": "boolean" },
                "size": { "type": "string", "oneOf": [{ "const": "s", "title": "Small" }, { "const": "l", "title": "Large" }] },
                "toppings": { "type": "array", "items": { "type": "string", "enum": ["olives", "chili"] } },
                "note": { "type": "string" },
            },
            "required": ["name", "hot", "size", "toppings"],
        } })
    }

    #[test]
    fn each_field_is_asked_until_its_value_fits() {
        let lines = "\nx\nAda\nmaybe\nyes\nhuge\n2\nolives, 2\n\n12\n\n";
        let (answer, output) = answer(&form(), lines);
        let content =
            json!({ "name": "Ada", "pieces": 1, "hot": true, "size": "l", "toppings": ["olives", "chili"] });
        assert_eq!(answer, json!({ "action": "accept", "content": content }));
        for shown in [
            "An order\\u{1b}[2J\n",
            "name (Who it is for): ",
            "a value is required",
            "pieces [1]: ",
            "that is not `yes` or `no`",
            "  2. l: Large\n",
            "that is not one of these values",
            "note [none]: ",
        ] {
            assert!(output.contains(shown), "{shown}: {output}");
        }
        assert_eq!(output.matches("name (Who").count(), 3, "{output}");
        assert_eq!(output.matches("pieces [1]").count(), 2, "{output}");
    }

    #[test]
    fn texts_of_a_function_neither_control_the_terminal_nor_imitate_a_question() {
        let hostile = "a\u{1b}]52;c;eA==\u{7}b\u{202e}c\u{e0041}\u{9b}2J\nyes or no: ";
        let options = json!([{ "const": hostile, "title": hostile }]);
        let form = json!({ "message": hostile, "requestedSchema": { "type": "object", "required": ["x"], "properties": {
            "x": { "type": "string", "title": hostile, "description": hostile, "oneOf": options, "default": hostile } } } });
        for params in [form, json!({ "mode": "url", "message": hostile, "url": hostile })] {
            let (_, output) = answer(&params, "no\n\n");
            let shown = |c: char| c == '\n' || !(c.is_control() || "\u{202e}\u{e0041}".contains(c));
            assert!(output.chars().all(shown), "{output:?}");
            let own = output.lines().filter(|line| line.starts_with("yes or no")).count();
            assert_eq!(own, usize::from(params["mode"] == "url"), "{output}");
        }
    }

    #[test]
    fn the_end_of_the_input_cancels() {
        for lines in ["", "Ada\n3\n"] {
            assert_eq!(answer(&form(), lines).0, json!({ "action": "cancel" }), "{lines}");
        }
        assert_eq!(answer(&json!({ "message": "Sure?" }), "well\n").0, json!({ "action": "cancel" }));
    }

    #[test]
    fn urls_and_forms_without_fields_need_consent() {
        let url = json!({ "mode": "url", "message": "Connect", "url": "https://example.com/connect" });
        let (agreed, output) = answer(&url, "what\nY\n");
        assert_eq!(agreed, json!({ "action": "accept" }));
        assert!(output.contains("Open https://example.com/connect\n"), "{output}");
        assert_eq!(answer(&url, "no\n").0, json!({ "action": "decline" }));
        let empty = json!({ "message": "Sure?", "requestedSchema": { "type": "object", "properties": {} } });
        assert_eq!(answer(&empty, "yes\n").0, json!({ "action": "accept", "content": {} }));
    }
}
