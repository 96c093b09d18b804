//! Results of tools, resources and prompts. Blocks of unknown kinds are kept.

use std::{borrow::Cow, sync::Arc};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::{Map, Value};

use crate::{
    client::{Error, large_text::LARGE},
    core::{
        content::{Content, Message, ResourceContents, parse_content, parse_message},
        jsonrpc::null_is_absent,
    },
    schema::Validator,
};

/// How many steps the check of a result that is not large may take, in the task that asks for its value: some milliseconds.
const MAX_STEPS: usize = 1_000_000;

/// The result of a tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallResult {
    /// The blocks; kinds that this crate does not know are [`Content::Unknown`].
    #[serde(default, deserialize_with = "blocks")]
    pub content: Vec<Content>,
    /// `structuredContent` on the wire, which may be null.
    #[serde(default, deserialize_with = "present", rename = "structuredContent")]
    pub structured: Option<Value>,
    /// Whether the tool failed, and says so to the model: `isError` on the wire.
    #[serde(default, deserialize_with = "null_is_absent")]
    pub is_error: bool,
    /// `_meta` on the wire.
    #[serde(default, deserialize_with = "null_is_absent", rename = "_meta")]
    pub meta: Map<String, Value>,
    /// The tool's output schema, if the client has listed the tool and the value was not checked yet.
    #[serde(skip)]
    output_schema: Option<Arc<Validator>>,
    /// What that schema refuses of the structured value of a large result.
    #[serde(skip)]
    problem: Option<String>,
}

/// Blocks of any kind.
fn blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Content>, D::Error> {
    let blocks: Vec<Value> = null_is_absent(deserializer)?;
    Ok(blocks.into_iter().map(parse_content).collect())
}

/// Items, each of which `parse` reads; `what` is the problem with one that it does not.
fn items<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: fn(&Value) -> Option<T>,
    what: &str,
) -> Result<Vec<T>, D::Error> {
    let items = Vec::<Value>::deserialize(deserializer)?;
    items.iter().map(|item| parse(item).ok_or_else(|| D::Error::custom(what))).collect()
}

fn contents<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ResourceContents>, D::Error> {
    let what = "an item of `contents` has neither text nor a blob";
    items(deserializer, ResourceContents::from_json, what)
}

fn messages<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Message>, D::Error> {
    items(deserializer, parse_message, "a message of the prompt has no role or content")
}

/// A member that is there, also if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl CallResult {
    pub(in crate::client) fn parse(json: &str, output_schema: Option<Arc<Validator>>) -> Result<Self, Error> {
        let mut result: Self = parse(json, "tools/call")?;
        match (&result.structured, &output_schema) {
            // on this thread, which may block
            (Some(value), Some(schema)) if json.len() >= LARGE && !value.is_null() => {
                result.problem = schema.validate(value).first().map(ToString::to_string);
            }
            _ => result.output_schema = output_schema,
        }
        Ok(result)
    }

    /// The texts of its text blocks, joined by line breaks.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }

    /// The result of a tool that succeeded.
    ///
    /// # Errors
    /// [`Error::Tool`]: the tool failed.
    pub fn ok(self) -> Result<Self, Error> {
        if self.is_error { Err(Error::Tool { text: self.text(), result: Box::new(self) }) } else { Ok(self) }
    }

    /// The structured value as a `T`; without one, the JSON in its text. If the client has listed the tool, the value is
    /// checked against the tool's output schema first: what can be enforced of it, in any dialect. The rest, such as a
    /// pattern with look-around, is passed over with a line in the log ([`ToolInfo::unenforced_output`](crate::client::ToolInfo::unenforced_output)).
    ///
    /// # Errors
    /// [`Error::Tool`]: the tool failed. [`Error::Invalid`]: such a value is missing or does not conform.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, Error> {
        if self.is_error {
            return Err(Error::Tool { text: self.text(), result: Box::new(self.clone()) });
        }
        // a server that writes null for every member that it has not means none
        let problem = |value: &Value| {
            let problems = self.output_schema.as_ref().map(|schema| schema.validate_within(MAX_STEPS, value));
            problems.and_then(|problems| problems.first().map(ToString::to_string)).or(self.problem.clone())
        };
        let means_null = |value: &Value| problem(value).is_none() && T::deserialize(value).is_ok();
        let structured = self.structured.as_ref().filter(|value| !value.is_null() || means_null(value));
        let Some(value) = structured else {
            return serde_json::from_str(&self.text()).map_err(|error| {
                Error::invalid(format!("the result has no structured content, and its text is not: {error}"))
            });
        };
        if let Some(problem) = problem(value) {
            return Err(Error::invalid(format!(
                "the result is not what the tool's output schema requires: {problem}"
            )));
        }
        T::deserialize(value).or_else(|error| {
            // servers wrap values that are not objects for revisions whose structured content must be one
            let wrapped =
                value.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("result"));
            wrapped
                .and_then(|value| T::deserialize(value).ok())
                .ok_or_else(|| Error::invalid(format!("the structured content: {error}")))
        })
    }
}

/// The contents of a resource.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct ReadResult {
    /// Its items: most resources have one, directories have several.
    #[serde(deserialize_with = "contents")]
    pub contents: Vec<ResourceContents>,
    /// `_meta` on the wire.
    #[serde(default, deserialize_with = "null_is_absent", rename = "_meta")]
    pub meta: Map<String, Value>,
}

impl ReadResult {
    pub(in crate::client) fn parse(json: &str) -> Result<Self, Error> {
        parse(json, "resources/read")
    }

    /// The texts of its items, joined by line breaks.
    ///
    /// # Errors
    /// [`Error::Invalid`]: an item is binary.
    pub fn text(&self) -> Result<String, Error> {
        let text = |item: &ResourceContents| {
            item.as_text().map(str::to_owned).ok_or_else(|| {
                Error::invalid(format!(
                    "`{}` is binary\nread it with `bytes()`",
                    item.uri.as_deref().unwrap_or("the resource")
                ))
            })
        };
        Ok(self.contents.iter().map(text).collect::<Result<Vec<_>, _>>()?.join("\n"))
    }

    /// The bytes of its first item, also of a text.
    ///
    /// # Errors
    /// [`Error::Invalid`]: it has no item, or its base64 is malformed.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>, Error> {
        let item = self.contents.first().ok_or_else(|| Error::invalid("the resource has no contents"))?;
        match item.as_text() {
            Some(text) => Ok(text.as_bytes().into()),
            None => item.to_bytes().ok_or_else(|| Error::invalid("the resource's blob is not base64")),
        }
    }
}

/// A prompt with its arguments filled in.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct RenderedPrompt {
    /// `description` on the wire.
    pub description: Option<String>,
    /// Its messages.
    #[serde(deserialize_with = "messages")]
    pub messages: Vec<Message>,
    /// `_meta` on the wire.
    #[serde(default, deserialize_with = "null_is_absent", rename = "_meta")]
    pub meta: Map<String, Value>,
}

impl RenderedPrompt {
    pub(in crate::client) fn parse(json: &str) -> Result<Self, Error> {
        parse(json, "prompts/get")
    }
}

/// Values that complete an argument.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Suggestions {
    /// The values, best first.
    #[serde(default, deserialize_with = "null_is_absent")]
    pub values: Vec<String>,
    /// How many there are in all, if the server knows.
    pub total: Option<u64>,
    /// Whether there are more.
    #[serde(default, deserialize_with = "null_is_absent")]
    pub has_more: bool,
}

impl Suggestions {
    pub(in crate::client) fn parse(json: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct WireCompletion {
            completion: Suggestions,
        }
        Ok(parse::<WireCompletion>(json, "completion/complete")?.completion)
    }
}

/// Decodes a result.
pub(in crate::client) fn parse<'a, T: Deserialize<'a>>(json: &'a str, method: &str) -> Result<T, Error> {
    let invalid = |what: &dyn std::fmt::Display| Error::invalid(format!("the result of `{method}`: {what}"));
    // a struct would be read from an array as well
    if !json.trim_start().starts_with('{') {
        return Err(invalid(&"it is not an object"));
    }
    serde_json::from_str(json).map_err(|error| invalid(&error))
}
