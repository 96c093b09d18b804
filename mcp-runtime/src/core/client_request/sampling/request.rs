//! The params of `sampling/createMessage`, and the request that sends them.

use std::{borrow::Cow, collections::HashSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::message::{SamplingBlock, SamplingMessage};
use super::sampled::Sampled;
use crate::{
    core::{
        client_request::engine::ResponseFuture,
        context::{ClientFeature, ClientRequestError, Context, PendingRequest},
        protocol::Revision,
    },
    schema::{Direction, generator, minimize},
};

impl Context {
    /// Requests that the client's model continues a conversation. Nothing is sent before the future is polled.
    ///
    /// Deprecated by the protocol since 2026-07-28, where clients may still offer it.
    ///
    /// # Errors
    /// The client or its user refused, no request can be sent to the client, or the conversation is not valid.
    ///
    /// See [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).
    ///
    /// ```
    /// use mcp_runtime::{client_request::CreateMessage, prelude::*};
    ///
    /// /// Sums up a text.
    /// #[mcp_tool]
    /// async fn sum_up(text: String, ctx: &Context) -> Result<String, ToolError> {
    ///     let request = CreateMessage {
    ///         system_prompt: Some("Answer in one sentence.".into()),
    ///         max_tokens: 200,
    ///         ..CreateMessage::user(text)
    ///     };
    ///     Ok(ctx.sample("summary", request).await?.text())
    /// }
    /// ```
    pub fn sample<'c>(
        &'c self,
        key: impl Into<Cow<'c, str>>,
        request: CreateMessage,
    ) -> ResponseFuture<'c, Sampled> {
        let key = key.into();
        Box::pin(async move {
            let context = &self.client_capabilities()["sampling"]["context"];
            let requires = request.required_feature();
            let request = PendingRequest {
                params: request.encode(&key, self.revision(), context.is_object())?,
                key: key.into(),
                requires,
                method: "sampling/createMessage",
            };
            self.request_client(request, Sampled::decode).await
        })
    }
}

/// A request to the client's model: the params of `sampling/createMessage`.
///
/// Fields have the names of the wire. The protocol has deprecated sampling, so that no more are added.
///
/// See [creating messages](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#creating-messages).
///
/// A model can use tools, which the server runs between two requests:
///
/// ```
/// use mcp_runtime::{
///     client_request::{ClientRequestError, CreateMessage, SamplingBlock, SamplingMessage, SamplingTool},
///     content::Role,
///     prelude::*,
/// };
///
/// #[mcp_type]
/// struct City { city: String }
///
/// async fn weather_report(ctx: &Context) -> Result<String, ClientRequestError> {
///     let mut request = CreateMessage {
///         tools: vec![SamplingTool::new::<City>("weather", "The weather in a city")],
///         ..CreateMessage::user("Where is it warmer, in Rome or in Oslo?")
///     };
///     let wish = ctx.sample("wish", request.clone()).await?;
///     let results = wish.tool_uses().map(|wanted| match wanted.arguments::<City>() {
///         Ok(City { city }) => wanted.result(format!("{city}: 20 °C")),
///         Err(error) => wanted.failure(error.to_string()),
///     });
///     let results = SamplingMessage { role: Role::User, content: results.collect() };
///     request.messages.extend([wish.into(), results]);
///     Ok(ctx.sample("report", request).await?.text())
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessage {
    /// The conversation, which must not be empty. A message with uses of tools must be followed by one with their
    /// results.
    pub messages: Vec<SamplingMessage>,
    /// Hints for the choice of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// Instructions for the model; clients may change or ignore them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The context that the client should add in front of the conversation.
    ///
    /// Deprecated by the protocol. From 2025-11-25 on it is sent only to clients that declare `sampling.context`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_context: Option<SampleContext>,
    /// How random the answer is; the range depends on the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The most tokens of the answer; the default is 1000.
    pub max_tokens: u32,
    /// Texts that end the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    /// Data for the model's provider.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Tools that the model may use. They need not be tools of the server.
    ///
    /// Clients must declare `sampling.tools`, which exists since 2025-11-25, for this and for everything else that has
    /// to do with tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<SamplingTool>,
    /// Whether the model must use a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// `_meta` of the request, which only clients of 2025-11-25 see.
    #[serde(rename = "_meta", skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
}

impl Default for CreateMessage {
    fn default() -> Self {
        Self {
            messages: Vec::new(),
            model_preferences: None,
            system_prompt: None,
            include_context: None,
            temperature: None,
            max_tokens: 1000,
            stop_sequences: Vec::new(),
            metadata: Map::new(),
            tools: Vec::new(),
            tool_choice: None,
            meta: Map::new(),
        }
    }
}

/// Preferences for the choice of a model. Priorities are numbers from 0 to 1.
///
/// See [model preferences](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#model-preferences).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelPreferences {
    /// Parts of names of models; clients use the first that matches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<ModelHint>,
    /// How much a low price matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_priority: Option<f64>,
    /// How much a fast answer matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_priority: Option<f64>,
    /// How much a clever answer matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intelligence_priority: Option<f64>,
}

/// A hint for the choice of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelHint {
    /// A part of the model's name.
    pub name: String,
}

/// A tool that the model may use; the server's function runs it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingTool {
    /// The name, which uses of the tool repeat.
    pub name: String,
    /// What the tool does, for the model.
    pub description: String,
    /// The JSON schema of the tool's arguments, which must be of `"type": "object"`.
    pub input_schema: Value,
}

impl SamplingTool {
    /// A tool with the arguments of a struct, or without any if that is `()`.
    pub fn new<T: JsonSchema>(name: impl Into<String>, description: impl Into<String>) -> Self {
        let mut input_schema = generator().into_root_schema_for::<T>().to_value();
        minimize(&mut input_schema, Direction::Input);
        if let Some(schema) = input_schema.as_object_mut() {
            // the name of the type means nothing to a model
            schema.remove("title");
        }
        if input_schema.get("type").and_then(Value::as_str) == Some("null") {
            input_schema = json!({ "type": "object" });
        }
        Self { name: name.into(), description: description.into(), input_schema }
    }
}

/// Whether a model must use the tools it was given: `toolChoice.mode` on the wire.
///
/// See [tool choice modes](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#tool-choice-modes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum SampleContext {
    /// `thisServer`: its context from this server.
    ThisServer,
    /// `allServers`: its context from all servers.
    AllServers,
}

impl CreateMessage {
    /// A request with this one message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self { messages: vec![SamplingMessage::user(text)], ..Self::default() }
    }

    /// The feature that the client must declare.
    pub(super) fn required_feature(&self) -> ClientFeature {
        if self.has_tools() { ClientFeature::SamplingTools } else { ClientFeature::Sampling }
    }

    fn has_tools(&self) -> bool {
        !self.tools.is_empty()
            || self.tool_choice.is_some()
            || self
                .blocks()
                .any(|block| matches!(block, SamplingBlock::ToolUse(_) | SamplingBlock::ToolResult { .. }))
    }

    fn blocks(&self) -> impl Iterator<Item = &SamplingBlock> {
        self.messages.iter().flat_map(|message| &message.content)
    }

    /// Encodes the params of the request with that key; `knows_context` if the client declared `sampling.context`.
    ///
    /// # Errors
    /// The revision does not have a member or a kind of content, or the request is invalid in every revision.
    pub(super) fn encode(
        mut self,
        key: &str,
        revision: Revision,
        knows_context: bool,
    ) -> Result<Vec<u8>, ClientRequestError> {
        let unfit = |reason| ClientRequestError::Unfit { key: key.into(), reason };
        self.check().map_err(unfit)?;
        if self.has_tools() && revision < Revision::V2025_11_25 {
            return Err(ClientRequestError::Revision("tools in sampling"));
        }
        if revision < Revision::V2025_03_26
            && self.blocks().any(|block| matches!(block, SamplingBlock::Audio { .. }))
        {
            return Err(ClientRequestError::Revision("audio in sampling"));
        }
        if revision < Revision::V2025_11_25 {
            // a message has one block there
            self.messages = self.messages.into_iter().flat_map(SamplingMessage::split).collect();
        } else if !knows_context {
            self.include_context = None;
        }
        if revision != Revision::V2025_11_25 {
            self.meta.clear();
        }
        serde_json::to_vec(&self).map_err(|error| unfit(error.to_string()))
    }

    fn check(&self) -> Result<(), String> {
        if self.messages.is_empty() {
            return Err("it has no message\nadd a `SamplingMessage`".to_owned());
        }
        if self.messages.iter().any(|message| message.content.is_empty()) {
            return Err("a message has no content".to_owned());
        }
        if self.temperature.is_some_and(|temperature| !temperature.is_finite()) {
            return Err("its `temperature` is not a finite number".to_owned());
        }
        let preferences = self.model_preferences.iter();
        let priorities =
            preferences.flat_map(|p| [p.cost_priority, p.speed_priority, p.intelligence_priority]);
        if priorities.flatten().any(|priority| !(0.0..=1.0).contains(&priority)) {
            return Err("a priority of its `model_preferences` is not a number from 0 to 1".to_owned());
        }
        let is_object = |tool: &&SamplingTool| tool.input_schema["type"] == "object";
        if let Some(SamplingTool { name, .. }) = self.tools.iter().find(|tool| !is_object(tool)) {
            return Err(format!(
                "the schema of its tool `{name}` has no `type: object`\ngive the tool a struct"
            ));
        }
        self.check_tool_results()
    }

    /// Checks that every message with uses of tools is followed by one with their results.
    fn check_tool_results(&self) -> Result<(), String> {
        let mut expected = HashSet::new();
        let last = [];
        let messages = self.messages.iter().map(|message| &*message.content);
        for blocks in messages.chain([&last[..]]) {
            let (mut results, mut uses) = (HashSet::new(), HashSet::new());
            for block in blocks {
                match block {
                    SamplingBlock::ToolUse(call) => uses.insert(&*call.id),
                    SamplingBlock::ToolResult { tool_use_id, .. } => results.insert(&**tool_use_id),
                    _ => false,
                };
            }
            if results != expected {
                let mut odd: Vec<&str> = results.symmetric_difference(&expected).copied().collect();
                odd.sort_unstable();
                return Err(format!(
                    "the uses and results of tools do not match: `{}`\nafter a message with uses of tools add one with a result for each",
                    odd.join("`, `")
                ));
            }
            expected = uses;
        }
        Ok(())
    }
}
