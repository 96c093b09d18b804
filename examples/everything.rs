//! The server that the protocol's conformance suite expects, written with attributes only.
//!
//! ```sh
//! cargo run --example everything -- --http 127.0.0.1:3000
//! npx @modelcontextprotocol/conformance server --url http://127.0.0.1:3000/mcp
//! ```

use std::time::Duration;

use mcp_runtime::{
    FromContext, ProtocolError, ServerHandle,
    client_request::{Answer, ClientFeature, CreateMessage},
    content::{Audio, Embedded, Image, ResourceContents},
    context::LogLevel,
    prelude::*,
    skill::SkillsDir,
    tool::{ToolCall, ToolDef},
};
use serde_json::{Value, json};
use tokio::time::sleep;

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

/// Returns a simple text. It is the first tool, which the suite calls without arguments.
#[mcp_tool(read_only)]
fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Returns an image.
#[mcp_tool(read_only)]
fn test_image_content() -> Image {
    Image::from_base64(PNG, "image/png")
}

/// Returns a sound.
#[mcp_tool(read_only)]
fn test_audio_content() -> Audio {
    Audio::from_base64(WAV, "audio/wav")
}

/// Returns a resource inside the result.
#[mcp_tool(read_only)]
fn test_embedded_resource() -> Embedded {
    Embedded::text("test://embedded-resource", "text/plain", "This is an embedded resource content.")
}

/// Returns text, an image and a resource.
#[mcp_tool(read_only)]
fn test_multiple_content_types() -> (&'static str, Image, Embedded) {
    let data = r#"{"test":"data","value":123}"#;
    let resource = Embedded::text("test://mixed-content-resource", "application/json", data);
    ("Multiple content types test:", test_image_content(), resource)
}

/// Always fails.
#[mcp_tool]
fn test_error_handling() -> Result<(), ToolError> {
    Err(ToolError::new("This tool intentionally returns an error for testing"))
}

/// Reports progress three times.
#[mcp_tool]
async fn test_tool_with_progress(ctx: &Context) -> &'static str {
    for percent in [0.0, 50.0, 100.0] {
        ctx.progress(percent).total(100.0).send();
        sleep(Duration::from_millis(50)).await;
    }
    "Progress test completed"
}

/// Makes its client poll for the result.
#[mcp_tool]
async fn test_reconnection(ctx: &Context) -> &'static str {
    ctx.close_stream(Duration::from_millis(500));
    sleep(Duration::from_millis(100)).await;
    "Reconnection test completed"
}

/// Publishes a change of the tools.
#[mcp_tool]
fn test_trigger_tool_change(server: &ServerHandle) -> &'static str {
    server.tools_changed();
    "Told"
}

/// Publishes a change of the prompts.
#[mcp_tool]
fn test_trigger_prompt_change(server: &ServerHandle) -> &'static str {
    server.prompts_changed();
    "Told"
}

/// Publishes a change of the watched resource.
#[mcp_tool]
fn test_trigger_resource_change(server: &ServerHandle) -> &'static str {
    server.resource_updated("test://watched-resource");
    "Told"
}

/// Ends every listen stream, as a server does before it stops.
#[mcp_tool]
fn test_end_subscriptions(server: &ServerHandle) -> &'static str {
    server.end_subscriptions();
    "Ended"
}

/// Samples the client's model.
#[mcp_tool]
async fn test_sampling(prompt: String, ctx: &Context) -> Result<String, ToolError> {
    let request = CreateMessage { max_tokens: 100, ..CreateMessage::user(prompt) };
    Ok(format!("LLM response: {}", ctx.sample("answer", request).await?.text()))
}

#[mcp_type]
struct Contact {
    username: String,
    email: String,
}

/// What a user answered, in words.
fn told(action: &str, content: Option<Value>) -> String {
    format!("action={action}, content={}", content.unwrap_or(json!({})))
}

/// Asks the user for a name and an address.
#[mcp_tool]
async fn test_elicitation(message: String, ctx: &Context) -> Result<String, ToolError> {
    let answer = ctx.elicit::<Contact>("contact", message).answer().await?;
    Ok(format!("User response: {}", told(answer.action(), answer.accepted().map(|contact| json!(contact)))))
}

#[mcp_type]
#[derive(Default)]
#[serde(rename_all = "lowercase")]
enum Status {
    #[default]
    Active,
    Inactive,
    Pending,
}

#[mcp_type]
#[serde(default)]
struct Profile {
    name: String,
    age: i32,
    score: f64,
    status: Status,
    verified: bool,
}

impl Default for Profile {
    fn default() -> Self {
        Self { name: "John Doe".into(), age: 30, score: 95.5, status: Status::Active, verified: true }
    }
}

/// Elicits with a form that has defaults.
#[mcp_tool]
async fn test_elicitation_sep1034_defaults(ctx: &Context) -> Result<String, ToolError> {
    let answer = ctx.elicit::<Profile>("profile", "Please check your profile").answer().await?;
    let text = told(answer.action(), answer.accepted().map(|profile| json!(profile)));
    Ok(format!("Elicitation completed: {text}"))
}

#[mcp_type]
#[serde(rename_all = "lowercase")]
enum Plain {
    Option1,
    Option2,
    Option3,
}

#[mcp_type]
#[serde(rename_all = "lowercase")]
enum Titled {
    #[schemars(title = "First Option")]
    Value1,
    #[schemars(title = "Second Option")]
    Value2,
    #[schemars(title = "Third Option")]
    Value3,
}

#[mcp_type]
#[serde(rename_all = "lowercase")]
enum Old {
    Opt1,
    Opt2,
    Opt3,
}

#[mcp_type]
#[serde(rename_all = "camelCase")]
struct Choices {
    untitled_single: Plain,
    titled_single: Titled,
    #[schemars(extend("enumNames" = ["Option One", "Option Two", "Option Three"]))]
    legacy_enum: Old,
    untitled_multi: Vec<Plain>,
    titled_multi: Vec<Titled>,
}

/// Elicits one and several of a few values.
#[mcp_tool]
async fn test_elicitation_sep1330_enums(ctx: &Context) -> Result<String, ToolError> {
    let answer = ctx.elicit::<Choices>("choices", "Please choose").answer().await?;
    let text = told(answer.action(), answer.accepted().map(|choices| json!(choices)));
    Ok(format!("Elicitation completed: {text}"))
}

/// Reports progress, then elicits.
#[mcp_tool]
async fn test_streaming_elicitation(ctx: &Context) -> Result<String, ToolError> {
    ctx.progress(1.0).total(2.0).send();
    let sure = ctx.elicit::<bool>("sure", "Go on?").await?;
    Ok(format!("Answered {sure}"))
}

#[mcp_type]
struct UserName {
    name: String,
}

/// Elicits a name.
#[mcp_tool]
async fn test_input_required_result_elicitation(ctx: &Context) -> Result<String, ToolError> {
    Ok(greet(ctx.elicit::<UserName>("user_name", "What is your name?").await?.name))
}

/// Asks the client's model for a capital.
#[mcp_tool]
async fn test_input_required_result_sampling(ctx: &Context) -> Result<String, ToolError> {
    let question = CreateMessage::user("What is the capital of France?");
    Ok(ctx.sample("capital_question", CreateMessage { max_tokens: 100, ..question }).await?.text())
}

/// Lists the client's roots.
#[mcp_tool]
async fn test_input_required_result_list_roots(ctx: &Context) -> Result<String, ToolError> {
    Ok(ctx.roots("client_roots").await?.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>().join(", "))
}

#[mcp_type]
struct Confirmation {
    ok: bool,
}

/// Elicits a confirmation; its request state travels with the client.
#[mcp_tool]
async fn test_input_required_result_request_state(ctx: &Context) -> Result<&'static str, ToolError> {
    Ok(if ctx.elicit::<Confirmation>("confirm", "Please confirm").await?.ok {
        "state-ok: confirmed"
    } else {
        "state-ok: not confirmed"
    })
}

/// Elicits a confirmation; a client that changes the request state is refused.
#[mcp_tool]
async fn test_input_required_result_tampered_state(ctx: &Context) -> Result<&'static str, ToolError> {
    test_input_required_result_request_state(ctx).await
}

/// Requests elicitation, sampling and roots at once.
#[mcp_tool]
async fn test_input_required_result_multiple_inputs(ctx: &Context) -> Result<String, ToolError> {
    let (user, greeting, roots) = tokio::join!(
        ctx.elicit::<UserName>("user_name", "What is your name?"),
        ctx.sample("greeting", CreateMessage { max_tokens: 50, ..CreateMessage::user("Write a greeting") }),
        ctx.roots("client_roots"),
    );
    Ok(format!("{}: {} ({} roots)", user?.name, greeting?.text(), roots?.len()))
}

#[mcp_type]
struct Color {
    color: String,
}

/// Elicits twice, one after the other.
#[mcp_tool]
async fn test_input_required_result_multi_round(ctx: &Context) -> Result<String, ToolError> {
    let UserName { name } = ctx.elicit("step1", "What is your name?").await?;
    let Color { color } = ctx.elicit("step2", format!("{name}, what is your favorite color?")).await?;
    Ok(format!("{name} likes {color}"))
}

/// Requests only what the client supports.
#[mcp_tool]
async fn test_input_required_result_capabilities(ctx: &Context) -> Result<String, ToolError> {
    if ctx.supports(ClientFeature::Elicitation) {
        return Ok(ctx.elicit::<UserName>("user_name", "What is your name?").await?.name);
    }
    let request = CreateMessage { max_tokens: 50, ..CreateMessage::user("Make up a name") };
    Ok(ctx.sample("name", request).await?.text())
}

/// Logs three times, in about a tenth of a second.
#[mcp_tool]
async fn test_tool_with_logging(ctx: &Context) -> &'static str {
    ctx.log(LogLevel::Info, "Tool execution started").send();
    sleep(Duration::from_millis(50)).await;
    ctx.log(LogLevel::Info, "Tool processing data").send();
    sleep(Duration::from_millis(50)).await;
    ctx.log(LogLevel::Info, "Tool execution completed").send();
    "Logged three times."
}

/// Logs to clients whose request sets a level.
#[mcp_tool]
fn test_logging_tool(ctx: &Context) -> &'static str {
    ctx.log(LogLevel::Info, json!({ "event": "called" })).logger("everything").send();
    "Logged for those who asked."
}

/// Runs only for clients with a model.
#[mcp_tool(requires(sampling))]
fn test_missing_capability() -> &'static str {
    "Success"
}

/// Greets at once, never as a task.
#[mcp_tool]
fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

/// Sleeps, as a task for clients with the extension.
#[mcp_tool(task)]
async fn slow_compute(seconds: f64, label: Option<String>) -> String {
    sleep(Duration::from_secs_f64(seconds.clamp(0.0, 3600.0))).await;
    format!("{} done after {seconds} s", label.as_deref().unwrap_or("computation"))
}

/// Fails, as a task.
#[mcp_tool(task = required)]
async fn failing_job() -> Result<(), ToolError> {
    sleep(Duration::from_millis(100)).await;
    Err(ToolError::new("This job always fails"))
}

/// Ends in a JSON-RPC error.
#[mcp_tool(task)]
async fn protocol_error_job() -> Result<(), ToolError> {
    Err(ProtocolError::internal("The job broke").into())
}

#[mcp_type]
struct Agreement {
    confirm: bool,
}

/// Deletes a file once the user has agreed.
#[mcp_tool(task)]
async fn confirm_delete(filename: String, ctx: &Context) -> Result<String, ToolError> {
    let answer = ctx.elicit("confirm", format!("Delete {filename}?")).answer().await?;
    Ok(match answer {
        Answer::Accept(Agreement { confirm: true }) => format!("Deleted {filename}"),
        _ => format!("Kept {filename}"),
    })
}

/// Elicits two values at once, as a task.
#[mcp_tool(task)]
async fn multi_input(ctx: &Context) -> Result<String, ToolError> {
    let (user, agreement) = tokio::join!(
        ctx.elicit::<UserName>("name", "What is your name?"),
        ctx.elicit::<Agreement>("agreement", "Do you agree?"),
    );
    Ok(format!("{} agrees: {}", user?.name, agreement?.confirm))
}

/// Elicited before the task starts, since it is injected.
impl FromContext for UserName {
    type Error = ToolError;

    async fn from_context(ctx: &Context) -> Result<Self, ToolError> {
        Ok(ctx.elicit("user_name", "What is your name?").await?)
    }
}

/// Elicits a name, then continues as a task.
#[mcp_tool(task)]
async fn test_tool_with_task(#[mcp(inject)] user: UserName) -> String {
    format!("Hello, {}! The task is done.", user.name)
}

/// Takes an argument that HTTP clients mirror into the header `Mcp-Param-Value`.
#[mcp_tool(read_only)]
fn test_custom_header(#[mcp(header = "Value")] value: String) -> String {
    format!("Header value: {value}")
}

/// A tool made at run time, whose schema uses keywords of JSON Schema 2020-12.
pub(crate) fn json_schema_tool() -> ToolDef {
    ToolDef::builder("json_schema_2020_12_tool")
        .description("Takes a schema that uses much of JSON Schema 2020-12.")
        .input_schema(json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
                }
            },
            "properties": {
                "name": { "type": "string" },
                "address": { "$ref": "#/$defs/address" },
                "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                "phone": { "type": "string" },
                "email": { "type": "string" }
            },
            "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
            "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
            "then": { "required": ["phone"] },
            "else": { "required": ["email"] },
            "additionalProperties": false
        }))
        .handler(|call: ToolCall| async move {
            let name: Option<String> = call.arg("name")?;
            Ok::<_, ToolError>(format!("Contact of {}", name.as_deref().unwrap_or("someone")))
        })
}

/// A text that never changes.
#[mcp_resource(uri = "test://static-text")]
fn static_text() -> &'static str {
    "This is the content of the static text resource."
}

/// An image that never changes.
#[mcp_resource(uri = "test://static-binary", mime = "image/png")]
fn static_binary() -> ResourceContents {
    ResourceContents::blob_from_base64(PNG)
}

/// A text that clients can subscribe to.
#[mcp_resource(uri = "test://watched-resource")]
fn watched_resource() -> &'static str {
    "This is the content of the watched resource."
}

#[mcp_type]
#[serde(rename_all = "camelCase")]
struct TemplateData {
    id: String,
    template_test: bool,
    data: String,
}

/// Data of one id.
#[mcp_resource(uri = "test://template/{id}/data")]
fn template(id: String) -> Json<TemplateData> {
    Json(TemplateData { data: format!("Data for ID: {id}"), template_test: true, id })
}

/// A prompt without arguments.
#[mcp_prompt]
fn test_simple_prompt() -> &'static str {
    "This is a simple prompt for testing."
}

/// A prompt with two arguments.
#[mcp_prompt]
fn test_prompt_with_arguments(
    /// The first argument
    #[mcp(complete("test value", "test case", "other"))]
    arg1: String,
    /// The second argument
    arg2: String,
) -> String {
    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
}

/// A prompt with a resource in it.
#[mcp_prompt]
fn test_prompt_with_embedded_resource(
    /// The URI to give to the resource
    #[mcp(name = "resourceUri")]
    resource_uri: String,
) -> (Embedded, &'static str) {
    let text = "Embedded resource content for testing.";
    (Embedded::text(resource_uri, "text/plain", text), "Please process the embedded resource above.")
}

/// A prompt with an image in it.
#[mcp_prompt]
fn test_prompt_with_image() -> (Image, &'static str) {
    (test_image_content(), "Please analyze the image above.")
}

#[mcp_type]
struct UserContext {
    context: String,
}

/// A prompt that elicits first.
#[mcp_prompt]
async fn test_input_required_result_prompt(ctx: &Context) -> Result<String, ToolError> {
    let about = ctx.elicit::<UserContext>("user_context", "What is this about?").await?;
    Ok(format!("Please help with {}.", about.context))
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!()
        .info(|info| info.name("everything"))
        .discover()
        .add(json_schema_tool())
        .add(SkillsDir::new(concat!(env!("CARGO_MANIFEST_DIR"), "/skills")))
        .telemetry(|telemetry| telemetry.client_logging())
        .run()
}
