//! What a client's model is asked: the conversation and the wishes about its answer.
//!
//! `sample` fills it in and sends what it writes.

use serde_json::{Map, Value};

use crate::client_request::{
    Refusal,
    turn::{self, Turn},
    with_meta,
};
use crate::{
    context::ClientFeature,
    jsonrpc::{Object, write_array, write_string},
    protocol::Revision,
};

/// Tokens that a model may answer with unless told otherwise.
const MAX_TOKENS: u32 = 1000;

/// Whether a model must use the tools it was given: the wire's `toolChoice.mode`.
///
/// See [tool choice modes](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#tool-choice-modes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoice {
    /// `auto`: it decides, as it does without this.
    Auto,
    /// `required`: at least one.
    Required,
    /// `none`: it must not, for instance because this is the last question.
    None,
}

/// What a client should put before a conversation: the wire's `includeContext`.
///
/// See [context inclusion](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#context-inclusion).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SampleContext {
    /// `thisServer`: what it has of this server.
    ThisServer,
    /// `allServers`: what it has of all its servers.
    AllServers,
}

/// The question.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) turns: Vec<Turn>,
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
    pub(super) tools: Vec<Tool>,
    pub(super) tool_choice: Option<ToolChoice>,
}

/// A tool that the model may use, which the server's function runs itself.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) description: String,
    /// The wire's `inputSchema`.
    pub(super) schema: Value,
}

impl Request {
    pub(super) fn new() -> Self {
        Self {
            turns: Vec::new(),
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

    /// What a client needs for it.
    pub(super) fn needs(&self) -> ClientFeature {
        if self.has_tools() { ClientFeature::SamplingTools } else { ClientFeature::Sampling }
    }

    fn has_tools(&self) -> bool {
        !self.tools.is_empty() || self.tool_choice.is_some() || self.turns.iter().any(Turn::has_tools)
    }

    /// The params; `knows_context` if the client declared `sampling.context`.
    ///
    /// # Errors
    /// The revision does not have what is in it, or no model could be asked this.
    pub(super) fn params(&self, revision: Revision, knows_context: bool) -> Result<Vec<u8>, Refusal> {
        self.check()?;
        if self.has_tools() && revision < Revision::V2025_11_25 {
            return Err(Refusal::Revision("tools in sampling"));
        }
        let mut out = Vec::with_capacity(512);
        let mut params = Object::new(&mut out);
        turn::write(params.key("messages"), &self.turns, revision)?;
        self.preferences(&mut params);
        params.opt_str("systemPrompt", self.system.as_deref());
        // later revisions want it sent only where the client said that it knows it
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
        self.tools(&mut params);
        params.end();
        Ok(with_meta(out, &self.meta, revision))
    }

    fn check(&self) -> Result<(), Refusal> {
        let unfit = |text: String| Err(Refusal::Unfit(text));
        if self.turns.is_empty() {
            return unfit("it has no message\nadd `.user(..)`".to_owned());
        }
        let numbers = [
            ("temperature", self.temperature),
            ("cost_priority", self.cost),
            ("speed_priority", self.speed),
            ("intelligence_priority", self.intelligence),
        ];
        if let Some((name, _)) = numbers.iter().find(|(_, number)| number.is_some_and(|n| !n.is_finite())) {
            return unfit(format!("its `{name}` is no finite number"));
        }
        let is_object = |tool: &&Tool| tool.schema.get("type").and_then(Value::as_str) == Some("object");
        if let Some(tool) = self.tools.iter().find(|tool| !is_object(tool)) {
            let name = &tool.name;
            return unfit(format!(
                "the schema of its tool `{name}` has no `type: object`\ngive the tool a struct"
            ));
        }
        turn::balanced(&self.turns)
    }

    fn preferences(&self, params: &mut Object<'_>) {
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

    fn tools(&self, params: &mut Object<'_>) {
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
