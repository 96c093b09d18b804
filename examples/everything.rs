//! What the protocol's conformance suite asks of a server, with attributes only.
//!
//! ```sh
//! cargo run --example everything -- list
//! cargo run --example everything -- --http 127.0.0.1:3000
//! npx @modelcontextprotocol/conformance server --url http://127.0.0.1:3000/mcp
//! ```

use std::time::Duration;

use mcp_runtime::{Audio, ToolCall, prelude::*};
use serde_json::json;

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
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    "Progress test completed"
}

/// Takes an argument that HTTP clients mirror into the header `Mcp-Param-Value`.
#[mcp_tool(read_only)]
fn test_custom_header(#[mcp(header = "Value")] value: String) -> String {
    format!("Header value: {value}")
}

/// A tool made at run time, whose schema uses what JSON Schema 2020-12 has to offer.
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
            Ok::<_, ToolError>(format!("Contact of {}", name.as_deref().unwrap_or("somebody")))
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

/// A text that clients may watch.
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

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().name("everything").discover().add_tool(json_schema_tool()).run()
}
