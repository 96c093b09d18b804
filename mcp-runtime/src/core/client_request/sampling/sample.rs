//! Requests to the client's model.

use std::{borrow::Cow, fmt};

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::{
    create_message::{CreateMessageParams, SampleContext, SamplingTool, ToolChoice},
    messages::{SamplingBlock, SamplingMessage},
    sampled::Sampled,
};
use crate::{
    core::{
        client_request::engine::ResponseFuture,
        content::{IntoContent, Message, Role},
        context::{ClientRequestError, Context, PendingRequest},
    },
    schema::{Direction, generator, minimize},
};

/// Types that can be the arguments of a tool for a model.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a tool",
    label = "not a type with a schema",
    note = "put `#[mcp_type]` on `{Self}`, or derive `schemars::JsonSchema` (1.x)"
)]
pub trait SampleArgs: JsonSchema {}
#[diagnostic::do_not_recommend]
impl<T: JsonSchema> SampleArgs for T {}

impl Context {
    /// Requests that the client's model continues a conversation.
    ///
    /// Deprecated by the protocol since 2026-07-28, where clients may still offer it.
    ///
    /// # Errors
    /// The client or its user refused, no request can be sent to the client, or the conversation is not valid.
    ///
    /// See [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).
    ///
    /// ```
    /// use mcp_runtime::prelude::*;
    ///
    /// /// Sums up a text.
    /// #[mcp_tool]
    /// async fn sum_up(text: String, ctx: &Context) -> Result<String, ToolError> {
    ///     let answer = ctx.sample("summary").system("Answer in one sentence.").user(text).max_tokens(200).await?;
    ///     Ok(answer.text())
    /// }
    /// ```
    pub fn sample<'c>(&'c self, key: impl Into<Cow<'c, str>>) -> Sample<'c> {
        Sample { ctx: self, key: key.into(), params: CreateMessageParams::new() }
    }
}

/// A request to the client's model, of [`Context::sample`]. Nothing is sent before it is polled.
#[must_use = "nothing is sent before `.await`"]
pub struct Sample<'c> {
    ctx: &'c Context,
    key: Cow<'c, str>,
    params: CreateMessageParams,
}

impl<'c> Sample<'c> {
    fn push(mut self, message: SamplingMessage) -> Self {
        self.params.messages.push(message);
        self
    }

    /// Adds a message of the user: a text, an image or audio.
    pub fn user(self, content: impl IntoContent) -> Self {
        self.push(SamplingMessage::new(Role::User, content.into_content()))
    }

    /// Adds a message of the assistant.
    pub fn assistant(self, content: impl IntoContent) -> Self {
        self.push(SamplingMessage::new(Role::Assistant, content.into_content()))
    }

    /// Adds a message.
    pub fn message(self, message: Message) -> Self {
        self.push(SamplingMessage::new(message.role, message.content))
    }

    /// Adds an earlier answer of the model, with the tools that it requests.
    ///
    /// Each of these needs a [`tool_result`](Self::tool_result) right after it.
    ///
    /// ```
    /// use mcp_runtime::{client_request::ClientRequestError, prelude::*};
    ///
    /// #[mcp_type]
    /// struct City { city: String }
    ///
    /// async fn weather_report(ctx: &Context) -> Result<String, ClientRequestError> {
    ///     let question = "Where is it warmer, in Rome or in Oslo?";
    ///     let wish = ctx.sample("wish").user(question).tool::<City>("weather", "The weather in a city").await?;
    ///     let mut report = ctx.sample("report").user(question).answered(&wish);
    ///     for wanted in wish.tool_uses() {
    ///         report = match wanted.arguments::<City>() {
    ///             Ok(city) => report.tool_result(&wanted.id, format!("{}: 20 °C", city.city)),
    ///             Err(error) => report.tool_failure(&wanted.id, error.to_string()),
    ///         };
    ///     }
    ///     Ok(report.tool::<City>("weather", "The weather in a city").await?.text())
    /// }
    /// ```
    pub fn answered(self, answer: &Sampled) -> Self {
        self.push(answer.into())
    }

    /// Adds the result of a tool that the model requested.
    pub fn tool_result(self, id: impl Into<String>, content: impl IntoContent) -> Self {
        self.push_result(id.into(), content, false)
    }

    /// Adds the failure of a tool that the model requested: `isError` on the wire.
    pub fn tool_failure(self, id: impl Into<String>, content: impl IntoContent) -> Self {
        self.push_result(id.into(), content, true)
    }

    fn push_result(mut self, id: String, content: impl IntoContent, is_error: bool) -> Self {
        let block = SamplingBlock::Result { id, content: vec![content.into_content()], is_error };
        match self.params.messages.last_mut() {
            // the results for one message belong into one message
            Some(last) if last.role == Role::User && last.is_results() => last.blocks.push(block),
            _ => self.params.messages.push(SamplingMessage { role: Role::User, blocks: vec![block] }),
        }
        self
    }

    /// Sets `systemPrompt` on the wire; clients may change or ignore it.
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.params.system = Some(text.into());
        self
    }

    /// Sets `maxTokens` on the wire; the default is 1000.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.params.max_tokens = tokens;
        self
    }

    /// Sets `temperature` on the wire; its range depends on the model.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.params.temperature = Some(temperature);
        self
    }

    /// Adds a text that ends the answer: one of `stopSequences` on the wire.
    pub fn stop(mut self, text: impl Into<String>) -> Self {
        self.params.stop.push(text.into());
        self
    }

    /// Adds a hint for the choice of the model, a part of its name; clients use the first that matches.
    pub fn model(mut self, hint: impl Into<String>) -> Self {
        self.params.hints.push(hint.into());
        self
    }

    /// Sets how much a low price matters, from 0 to 1.
    pub fn cost_priority(mut self, priority: f64) -> Self {
        self.params.cost = Some(priority);
        self
    }

    /// Sets how much a fast answer matters, from 0 to 1.
    pub fn speed_priority(mut self, priority: f64) -> Self {
        self.params.speed = Some(priority);
        self
    }

    /// Sets how much a clever answer matters, from 0 to 1.
    pub fn intelligence_priority(mut self, priority: f64) -> Self {
        self.params.intelligence = Some(priority);
        self
    }

    /// Requests context from servers in front of the conversation: `includeContext` on the wire.
    ///
    /// Deprecated by the protocol. From 2025-11-25 on it is sent only to clients that declare `sampling.context`.
    pub fn context(mut self, context: SampleContext) -> Self {
        self.params.context = Some(context);
        self
    }

    /// Adds a member to `metadata` on the wire, for the model's provider.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.params.metadata.insert(key.into(), value.into());
        self
    }

    /// Adds a member to the `_meta` of the request, which only clients of 2025-11-25 see.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.params.meta.insert(key.into(), value.into());
        self
    }

    /// Adds a tool that the model may use, with a struct for its arguments.
    ///
    /// It need not be a tool of the server: uses are returned as [`ToolUse`](crate::client_request::ToolUse). Clients
    /// must declare `sampling.tools`, which exists since 2025-11-25.
    pub fn tool<T: SampleArgs>(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        let mut schema = generator().into_root_schema_for::<T>().to_value();
        minimize(&mut schema, Direction::Input);
        if let Some(schema) = schema.as_object_mut() {
            // the name of the type means nothing to a model
            schema.remove("title");
        }
        if schema.get("type").and_then(Value::as_str) == Some("null") {
            schema = json!({ "type": "object" });
        }
        self.tool_with_schema(name, description, schema)
    }

    /// Adds a tool whose `inputSchema` is written by hand.
    pub fn tool_with_schema(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Value,
    ) -> Self {
        self.params.tools.push(SamplingTool { name: name.into(), description: description.into(), schema });
        self
    }

    /// Sets whether the model must use a tool.
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.params.tool_choice = Some(choice);
        self
    }
}

impl<'c> IntoFuture for Sample<'c> {
    type Output = Result<Sampled, ClientRequestError>;
    type IntoFuture = ResponseFuture<'c, Sampled>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { ctx, key, params } = self;
        Box::pin(async move {
            let context = &ctx.client_capabilities()["sampling"]["context"];
            let request = PendingRequest {
                params: params.encode(&key, ctx.revision(), context.is_object())?,
                key: key.into(),
                requires: params.required_feature(),
                method: "sampling/createMessage",
            };
            ctx.request_client(request, Sampled::decode).await
        })
    }
}

impl fmt::Debug for Sample<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sample").field("key", &self.key).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::core::{
        content::{Audio, Image, ResourceLink},
        context::ClientFeature,
        protocol::Revision,
    };

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct City {
        /// City name
        city: String,
    }

    /// The params of a request.
    fn params(
        revision: Revision,
        fill: impl for<'c> FnOnce(Sample<'c>) -> Sample<'c>,
    ) -> Result<Value, ClientRequestError> {
        let ctx = Context::for_test();
        let params = fill(ctx.sample("key")).params.encode("key", revision, false)?;
        Ok(serde_json::from_slice(&params).unwrap_or_else(|error| panic!("{error}")))
    }

    fn wish() -> Sampled {
        let result = json!({
            "role": "assistant", "model": "m", "stopReason": "toolUse",
            "content": [
                { "type": "text", "text": "Let me see." },
                { "type": "tool_use", "id": "1", "name": "weather", "input": { "city": "Rome" }, "_meta": { "s": 1 } },
                { "type": "tool_use", "id": "2", "name": "weather", "input": { "town": "Oslo" } },
            ],
        });
        Sampled::decode(&result.to_string()).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn unset_options_are_not_sent() {
        for &revision in Revision::ALL {
            let expected = json!({
                "messages": [{ "role": "user", "content": { "type": "text", "text": "Hello" } }],
                "maxTokens": 1000
            });
            assert_eq!(params(revision, |sample| sample.user("Hello")), Ok(expected), "{revision}");
        }
    }

    #[test]
    fn every_option_is_sent() {
        let sent = params(Revision::LATEST, |sample| {
            let sample =
                sample.user("Hi").assistant("Hello").message(Message::user(Image::new("png", "image/png")));
            let sample = sample.user(Audio::new("wav", "audio/wav")).system("Be short.").max_tokens(7);
            let sample = sample.temperature(0.5).stop("END").stop("\n").model("opus").model("sonnet");
            let sample = sample.cost_priority(0.0).speed_priority(2.0).intelligence_priority(0.25);
            let sample =
                sample.metadata("user", 1).tool::<City>("weather", "The weather").tool::<()>("time", "Now");
            sample.tool_choice(ToolChoice::Required).context(SampleContext::AllServers)
        });
        let schema = json!({
            "type": "object",
            "properties": { "city": { "type": "string", "description": "City name" } },
            "required": ["city"]
        });
        assert_eq!(
            sent,
            Ok(json!({
                "messages": [
                    { "role": "user", "content": { "type": "text", "text": "Hi" } },
                    { "role": "assistant", "content": { "type": "text", "text": "Hello" } },
                    { "role": "user", "content": { "type": "image", "data": "cG5n", "mimeType": "image/png" } },
                    { "role": "user", "content": { "type": "audio", "data": "d2F2", "mimeType": "audio/wav" } },
                ],
                "modelPreferences": {
                    "hints": [{ "name": "opus" }, { "name": "sonnet" }],
                    "costPriority": 0.0, "speedPriority": 1.0, "intelligencePriority": 0.25
                },
                "systemPrompt": "Be short.",
                "temperature": 0.5,
                "maxTokens": 7,
                "stopSequences": ["END", "\n"],
                "metadata": { "user": 1 },
                "tools": [
                    { "name": "weather", "description": "The weather", "inputSchema": schema },
                    { "name": "time", "description": "Now", "inputSchema": { "type": "object" } },
                ],
                "toolChoice": { "mode": "required" },
            }))
        );
    }

    #[test]
    fn the_context_is_requested_only_of_clients_that_know_it() {
        let ctx = Context::for_test();
        let sample = ctx.sample("key").user("Hi").context(SampleContext::ThisServer);
        for &revision in Revision::ALL {
            for declared in [true, false] {
                let params = sample
                    .params
                    .encode("key", revision, declared)
                    .unwrap_or_else(|error| panic!("{error:?}"));
                let sent = String::from_utf8_lossy(&params).contains(r#""includeContext":"thisServer""#);
                assert_eq!(sent, declared || revision <= Revision::V2025_06_18, "{revision} {declared}");
            }
        }
    }

    #[test]
    fn tools_need_a_feature_of_their_own() {
        let ctx = Context::for_test();
        let needs = |sample: Sample<'_>| sample.params.required_feature();
        assert_eq!(needs(ctx.sample("a").user("Hi")), ClientFeature::Sampling);
        for sample in [
            ctx.sample("b").user("Hi").tool::<City>("weather", ""),
            ctx.sample("c").user("Hi").tool_choice(ToolChoice::None),
            ctx.sample("d").user("Hi").answered(&wish()),
        ] {
            assert_eq!(sample.params.required_feature(), ClientFeature::SamplingTools);
        }
    }

    #[test]
    fn uses_of_tools_are_returned_with_their_results() {
        let wish = wish();
        let sent = params(Revision::V2025_11_25, |sample| {
            let sample = sample.user("Where is it warmer?").answered(&wish);
            sample.tool_failure("2", "no `city`").tool_result("1", "20 °C").user("Well?")
        });
        let content = |text: &str| json!([{ "type": "text", "text": text }]);
        assert_eq!(
            sent.map(|mut params| params["messages"].take()),
            Ok(json!([
                { "role": "user", "content": { "type": "text", "text": "Where is it warmer?" } },
                { "role": "assistant", "content": [
                    { "type": "text", "text": "Let me see." },
                    { "type": "tool_use", "id": "1", "name": "weather", "input": { "city": "Rome" }, "_meta": { "s": 1 } },
                    { "type": "tool_use", "id": "2", "name": "weather", "input": { "town": "Oslo" } },
                ]},
                { "role": "user", "content": [
                    { "type": "tool_result", "toolUseId": "2", "content": content("no `city`"), "isError": true },
                    { "type": "tool_result", "toolUseId": "1", "content": content("20 °C") },
                ]},
                { "role": "user", "content": { "type": "text", "text": "Well?" } },
            ]))
        );
    }

    #[test]
    fn invalid_conversations_are_refused() {
        type Fill = fn(Sample<'_>) -> Sample<'_>;
        let unfit = |fill: Fill| match params(Revision::LATEST, fill) {
            Err(ClientRequestError::Unfit { reason, .. }) => reason,
            other => panic!("{other:?}"),
        };
        let cases: [(&str, Fill); 8] = [
            ("no message", |sample| sample.system("x")),
            ("`temperature`", |sample| sample.user("x").temperature(f64::NAN)),
            ("`speed_priority`", |sample| sample.user("x").speed_priority(f64::INFINITY)),
            ("a resource", |sample| sample.user(ResourceLink::new("file:///a", "a"))),
            ("`1`, `2`", |sample| sample.user("x").answered(&wish())),
            ("`2`", |sample| sample.user("x").answered(&wish()).tool_result("1", "a")),
            ("`3`", |sample| sample.user("x").tool_result("3", "a")),
            ("`count`", |sample| sample.user("x").tool::<u8>("count", "")),
        ];
        for (expected, fill) in cases {
            let text = unfit(fill);
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn older_revisions_get_only_what_they_define() {
        let audio = |revision| params(revision, |sample| sample.user(Audio::new("wav", "audio/wav")));
        assert_eq!(
            audio(Revision::V2024_11_05),
            Err(ClientRequestError::Revision { what: "audio in sampling" })
        );
        assert!(audio(Revision::V2025_03_26).is_ok());
        let tools = |revision| params(revision, |sample| sample.user("x").tool::<City>("weather", ""));
        assert_eq!(
            tools(Revision::V2025_06_18),
            Err(ClientRequestError::Revision { what: "tools in sampling" })
        );
        assert!(tools(Revision::V2025_11_25).is_ok());
        // a message has one block there
        let two = json!({ "role": "assistant", "model": "m", "content": [
            { "type": "text", "text": "a" }, { "type": "image", "data": "cG5n", "mimeType": "image/png" }
        ]});
        let two = Sampled::decode(&two.to_string()).unwrap_or_else(|error| panic!("{error}"));
        let sent = params(Revision::V2025_06_18, |sample| sample.user("x").answered(&two));
        let messages = sent.map(|params| params["messages"].as_array().map(Vec::len));
        assert_eq!(messages, Ok(Some(3)));
    }

    #[test]
    fn results_are_decoded() {
        let one = json!({
            "role": "assistant", "model": "m", "content": { "type": "text", "text": "Paris" }, "_meta": {}
        });
        let one = Sampled::decode(&one.to_string()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((one.text(), one.model.as_str(), one.stop_reason), ("Paris".to_owned(), "m", None));
        let wish = wish();
        assert_eq!(wish.stop_reason.as_deref(), Some("toolUse"));
        let cities: Vec<Option<City>> = wish.tool_uses().map(|wanted| wanted.arguments().ok()).collect();
        assert_eq!(cities, [Some(City { city: "Rome".into() }), None]);
    }

    #[test]
    fn malformed_results_are_described() {
        let text = json!({ "type": "text", "text": "x" });
        let cases = [
            (json!(3), "not an object"),
            (json!({ "content": text, "model": "m" }), "`role`"),
            (json!({ "role": "system", "content": text, "model": "m" }), "`role`"),
            (json!({ "role": "assistant", "model": "m" }), "`content`"),
            (json!({ "role": "assistant", "content": "x", "model": "m" }), "block"),
            (json!({ "role": "assistant", "content": [{ "type": "video" }], "model": "m" }), "block"),
            (json!({ "role": "assistant", "content": { "type": "text" }, "model": "m" }), "`text`"),
            (
                json!({ "role": "assistant", "content": { "type": "image", "data": "?" }, "model": "m" }),
                "`data`",
            ),
            (json!({ "role": "assistant", "content": { "type": "tool_use" }, "model": "m" }), "`input`"),
            (json!({ "role": "assistant", "content": text }), "`model`"),
            (json!({ "role": "assistant", "content": text, "model": "m", "stopReason": 3 }), "`stopReason`"),
        ];
        for (result, expected) in cases {
            let wrong = Sampled::decode(&result.to_string()).map(drop);
            assert!(wrong.as_ref().is_err_and(|wrong| wrong.contains(expected)), "{result}: {wrong:?}");
        }
    }
}
