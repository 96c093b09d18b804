//! Entries of a server's lists: typed accessors over what it sent, of which nothing is lost.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::schema::Validator;

macro_rules! entries {
    ($($(#[$doc:meta])* $entry:ident, $key:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $entry(Arc<Value>);

        impl $entry {
            /// `None` if the entry lacks what identifies it.
            pub(in crate::client) fn new(entry: impl Into<Arc<Value>>) -> Option<Self> {
                let entry = entry.into();
                entry.get($key)?.as_str()?;
                Some(Self(entry))
            }

            fn text(&self, key: &str) -> Option<&str> {
                self.0.get(key)?.as_str()
            }

            /// `name` on the wire.
            #[must_use]
            pub fn name(&self) -> &str {
                self.text("name").unwrap_or_default()
            }

            /// The name for people: `title` on the wire, or the `title` of its annotations, or else its name.
            #[must_use]
            pub fn title(&self) -> &str {
                let annotated = || self.0.get("annotations")?.get("title")?.as_str();
                self.text("title").or_else(annotated).unwrap_or_else(|| self.name())
            }

            /// `description` on the wire.
            #[must_use]
            pub fn description(&self) -> Option<&str> {
                self.text("description")
            }

            /// `_meta` on the wire.
            #[must_use]
            pub fn meta(&self) -> Option<&Map<String, Value>> {
                self.0.get("_meta")?.as_object()
            }

            /// The whole entry as the server sent it.
            #[must_use]
            pub fn raw(&self) -> &Value {
                &self.0
            }
        }
    )*};
}

entries! {
    /// A tool in a server's list.
    ToolInfo, "name";
    /// A resource in a server's list.
    ResourceInfo, "uri";
    /// A template of resources in a server's list.
    TemplateInfo, "uriTemplate";
    /// A prompt in a server's list.
    PromptInfo, "name";
    /// An event in a server's list (preview).
    EventInfo, "name";
}

impl EventInfo {
    /// The ways in which the server delivers the event: `push`, `poll` and `webhook`.
    pub fn delivery(&self) -> impl Iterator<Item = &str> {
        self.0.get("delivery").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    /// `inputSchema` on the wire: that of the arguments of a subscription; null if the server sent none.
    #[must_use]
    pub fn input_schema(&self) -> &Value {
        self.0.get("inputSchema").unwrap_or(&Value::Null)
    }

    /// `payloadSchema` on the wire: that of what an occurrence says; null if the server sent none.
    #[must_use]
    pub fn payload_schema(&self) -> &Value {
        self.0.get("payloadSchema").unwrap_or(&Value::Null)
    }
}

impl ToolInfo {
    /// `inputSchema` on the wire; null if the server sent none.
    #[must_use]
    pub fn input_schema(&self) -> &Value {
        self.0.get("inputSchema").unwrap_or(&Value::Null)
    }

    /// `outputSchema` on the wire.
    #[must_use]
    pub fn output_schema(&self) -> Option<&Value> {
        self.0.get("outputSchema").filter(|schema| !schema.is_null())
    }

    /// The keywords of its output schema that [`structured`](crate::client::CallResult::structured) passes over, each with its place
    /// and the reason: those of other dialects, patterns that are not regular expressions of Rust, references that lead out
    /// of the schema.
    #[must_use]
    pub fn unenforced_output(&self) -> Vec<String> {
        let (_, passed_over) = self.output_schema().map(Validator::compile_foreign).unwrap_or_default();
        passed_over.iter().map(ToString::to_string).collect()
    }

    /// A hint of `annotations` on the wire, such as `readOnlyHint`. Hints of a server that is not trusted mean nothing.
    #[must_use]
    pub fn hint(&self, name: &str) -> Option<bool> {
        self.0.get("annotations")?.get(name)?.as_bool()
    }

    /// Whether legacy clients must, may or must not call it as a task: `execution.taskSupport` on the wire.
    pub(in crate::client) fn task_support(&self) -> Option<&str> {
        self.0.get("execution")?.get("taskSupport")?.as_str()
    }
}

impl ResourceInfo {
    /// `uri` on the wire.
    #[must_use]
    pub fn uri(&self) -> &str {
        self.text("uri").unwrap_or_default()
    }

    /// `mimeType` on the wire.
    #[must_use]
    pub fn mime_type(&self) -> Option<&str> {
        self.text("mimeType")
    }

    /// `size` on the wire, in bytes.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.0.get("size")?.as_u64()
    }
}

impl TemplateInfo {
    /// `uriTemplate` on the wire.
    #[must_use]
    pub fn uri_template(&self) -> &str {
        self.text("uriTemplate").unwrap_or_default()
    }

    /// `mimeType` on the wire.
    #[must_use]
    pub fn mime_type(&self) -> Option<&str> {
        self.text("mimeType")
    }
}

impl PromptInfo {
    /// The names of its arguments, and whether each is required.
    pub fn arguments(&self) -> impl Iterator<Item = (&str, bool)> {
        let arguments =
            self.0.get("arguments").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        arguments.iter().filter_map(|argument| {
            let required = argument.get("required").and_then(Value::as_bool).unwrap_or(false);
            Some((argument.get("name")?.as_str()?, required))
        })
    }
}
