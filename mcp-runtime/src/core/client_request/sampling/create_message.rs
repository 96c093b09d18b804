//! The params of `sampling/createMessage`.

use serde_json::{Map, Value};

use super::messages::{SamplingMessage, check_tool_results, write_messages};
use crate::core::{
    client_request::engine::with_meta,
    context::{ClientFeature, ClientRequestError},
    jsonrpc::{Object, write_array, write_string},
    protocol::Revision,
};

/// The default of `maxTokens`.
const MAX_TOKENS: u32 = 1000;

/// Whether a model must use the tools it was given: `toolChoice.mode` on the wire.
///
/// See [tool choice modes](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#tool-choice-modes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoice {
    /// `auto`: the model decides; the default.
    Auto,
    /// `required`: at least one.
    Required,
    /// `none`: it must not, for instance because this is the last request.
    None,
}

/// The context that a client should add in front of a conversation: `includeContext` on the wire.
///
/// See [context inclusion](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#context-inclusion).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SampleContext {
    /// `thisServer`: its context from this server.
    ThisServer,
    /// `allServers`: its context from all servers.
    AllServers,
}

/// The params that a [`Sample`](super::Sample) collects.
#[derive(Debug, Clone)]
pub(super) struct CreateMessageParams {
    pub(super) messages: Vec<SamplingMessage>,
    pub(super) hints: Vec<String>,
    pub(super) cost: Option<f64>,
    pub(super) speed: Option<f64>,
    pub(super) intelligence: Option<f64>,
    pub(super) system: Option<String>,
    pub(super) context: Option<SampleContext>,
    pub(super) temperature: Option<f64>,
    pub(super) max_tokens: u32,
    pub(super) stop: Vec<String>,
    pub(super) metadata: Map<String, Value>,
    pub(super) meta: Map<String, Value>,
    pub(super) tools: Vec<SamplingTool>,
    pub(super) tool_choice: Option<ToolChoice>,
}

/// A tool that the model may use; the server's function runs it.
#[derive(Debug, Clone)]
pub(super) struct SamplingTool {
    pub(super) name: String,
    pub(super) description: String,
    /// `inputSchema` on the wire.
    pub(super) schema: Value,
}

impl CreateMessageParams {
    pub(super) fn new() -> Self {
        Self {
            messages: Vec::new(),
            hints: Vec::new(),
            cost: None,
            speed: None,
            intelligence: None,
            system: None,
            context: None,
            temperature: None,
            max_tokens: MAX_TOKENS,
            stop: Vec::new(),
            metadata: Map::new(),
            meta: Map::new(),
            tools: Vec::new(),
            tool_choice: None,
        }
    }

    /// The feature that the client must declare.
    pub(super) fn required_feature(&self) -> ClientFeature {
        if self.has_tools() { ClientFeature::SamplingTools } else { ClientFeature::Sampling }
    }

    fn has_tools(&self) -> bool {
        !self.tools.is_empty()
            || self.tool_choice.is_some()
            || self.messages.iter().any(SamplingMessage::has_tools)
    }

    /// Encodes the params of the request with that key; `knows_context` if the client declared `sampling.context`.
    ///
    /// # Errors
    /// The revision does not have a member or a kind of content, or the request is invalid in every revision.
    pub(super) fn encode(
        &self,
        key: &str,
        revision: Revision,
        knows_context: bool,
    ) -> Result<Vec<u8>, ClientRequestError> {
        self.check().map_err(|reason| ClientRequestError::Unfit { key: key.into(), reason })?;
        if self.has_tools() && revision < Revision::V2025_11_25 {
            return Err(ClientRequestError::Revision { what: "tools in sampling" });
        }
        let mut out = Vec::with_capacity(512);
        let mut params = Object::new(&mut out);
        write_messages(params.key("messages"), key, &self.messages, revision)?;
        self.write_preferences(&mut params);
        params.opt_str("systemPrompt", self.system.as_deref());
        // later revisions allow it only if the client declares it
        if let Some(context) = self.context.filter(|_| knows_context || revision < Revision::V2025_11_25) {
            params.str(
                "includeContext",
                match context {
                    SampleContext::ThisServer => "thisServer",
                    SampleContext::AllServers => "allServers",
                },
            );
        }
        if let Some(temperature) = self.temperature {
            params.value("temperature", &temperature);
        }
        params.value("maxTokens", &self.max_tokens);
        if !self.stop.is_empty() {
            params.value("stopSequences", &self.stop);
        }
        if !self.metadata.is_empty() {
            params.value("metadata", &self.metadata);
        }
        self.write_tools(&mut params);
        params.end();
        Ok(with_meta(out, &self.meta, revision))
    }

    fn check(&self) -> Result<(), String> {
        if self.messages.is_empty() {
            return Err("it has no message\nadd `.user(..)`".to_owned());
        }
        let numbers = [
            ("temperature", self.temperature),
            ("cost_priority", self.cost),
            ("speed_priority", self.speed),
            ("intelligence_priority", self.intelligence),
        ];
        if let Some((name, _)) = numbers.iter().find(|(_, number)| number.is_some_and(|n| !n.is_finite())) {
            return Err(format!("its `{name}` is not a finite number"));
        }
        let is_object =
            |tool: &&SamplingTool| tool.schema.get("type").and_then(Value::as_str) == Some("object");
        if let Some(tool) = self.tools.iter().find(|tool| !is_object(tool)) {
            let name = &tool.name;
            return Err(format!(
                "the schema of its tool `{name}` has no `type: object`\ngive the tool a struct"
            ));
        }
        check_tool_results(&self.messages)
    }

    fn write_preferences(&self, params: &mut Object<'_>) {
        let priorities = [
            ("costPriority", self.cost),
            ("speedPriority", self.speed),
            ("intelligencePriority", self.intelligence),
        ];
        if self.hints.is_empty() && priorities.iter().all(|(_, priority)| priority.is_none()) {
            return;
        }
        params.object("modelPreferences", |preferences| {
            if !self.hints.is_empty() {
                write_array(preferences.key("hints"), &self.hints, |out, hint| {
                    let mut object = Object::new(out);
                    write_string(object.key("name"), hint);
                    object.end();
                });
            }
            for (key, priority) in priorities {
                if let Some(priority) = priority {
                    preferences.value(key, &priority.clamp(0.0, 1.0));
                }
            }
        });
    }

    fn write_tools(&self, params: &mut Object<'_>) {
        if !self.tools.is_empty() {
            write_array(params.key("tools"), &self.tools, |out, tool| {
                let mut object = Object::new(out);
                object.str("name", &tool.name).str("description", &tool.description);
                object.value("inputSchema", &tool.schema);
                object.end();
            });
        }
        if let Some(choice) = self.tool_choice {
            params.object("toolChoice", |object| {
                object.str(
                    "mode",
                    match choice {
                        ToolChoice::Auto => "auto",
                        ToolChoice::Required => "required",
                        ToolChoice::None => "none",
                    },
                );
            });
        }
    }
}
