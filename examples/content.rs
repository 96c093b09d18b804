//! Everything that a tool, a resource or a prompt can return.
//!
//! ```sh
//! cargo run --example content -- list
//! cargo run --example content -- call forecast '{"city": "Kiel"}'
//! cargo run --example content -- read content://pixel
//! cargo run --example content -- prompt describe
//! ```

use std::borrow::Cow;

use mcp_runtime::{
    ToolResult,
    content::{Audio, Bytes, Embedded, Image, Message, ResourceContents, ResourceLink, Role, Text},
    prelude::*,
    prompt::PromptResult,
};

/// One red pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

#[mcp_type]
#[derive(Debug, PartialEq)]
struct Forecast {
    city: String,
    /// In degrees Celsius
    high: f64,
    rain: bool,
}

impl Forecast {
    fn of(city: impl Into<String>) -> Self {
        Self { city: city.into(), high: 21.5, rain: false }
    }
}

/// An owned text.
#[mcp_tool]
fn owned_text(name: String) -> String {
    format!("Hello, {name}!")
}

/// A text that is known at compile time.
#[mcp_tool]
fn fixed_text() -> &'static str {
    "always the same"
}

/// A text that is allocated only if necessary.
#[mcp_tool]
fn maybe_fixed_text(loud: bool) -> Cow<'static, str> {
    if loud { "quiet".to_uppercase().into() } else { "quiet".into() }
}

/// A number, as text.
#[mcp_tool]
fn sum(a: i64, b: i64) -> i64 {
    a + b
}

/// A boolean, as text.
#[mcp_tool]
fn is_even(number: i64) -> bool {
    number % 2 == 0
}

/// A structured value; its schema is published as the tool's `outputSchema`.
#[mcp_tool]
fn forecast(city: String) -> Json<Forecast> {
    Json(Forecast::of(city))
}

/// A structured list.
#[mcp_tool]
fn forecasts(cities: Vec<String>) -> Json<Vec<Forecast>> {
    Json(cities.into_iter().map(Forecast::of).collect())
}

/// A structured number.
#[mcp_tool]
fn high(city: String) -> Json<f64> {
    Json(Forecast::of(city).high)
}

/// Nothing.
#[mcp_tool]
fn forget() {}

/// A text, or nothing.
#[mcp_tool]
fn nickname(name: String) -> Option<String> {
    (name.len() > 4).then(|| name.chars().take(3).collect())
}

/// An image.
#[mcp_tool]
fn image() -> Image {
    Image::from_base64(PIXEL, "image/png")
}

/// A sound: a tenth of a second of silence, from bytes.
#[mcp_tool]
fn sound() -> Audio {
    Audio::new(silence(800), "audio/wav")
}

/// A link to a resource, which the client may read.
#[mcp_tool]
fn link() -> ResourceLink {
    ResourceLink::new("content://pixel", "pixel").description("One red pixel").mime("image/png")
}

/// A resource inside the result.
#[mcp_tool]
fn embedded() -> Embedded {
    Embedded::text("content://note", "text/markdown", "# A note")
}

/// Several blocks, in order.
#[mcp_tool]
fn several() -> (&'static str, Image, ResourceLink) {
    ("a pixel:", image(), link())
}

/// A structured value, then blocks.
#[mcp_tool]
fn forecast_with_map(city: String) -> (Json<Forecast>, Image) {
    (Json(Forecast::of(city)), image())
}

/// As many blocks as requested.
#[mcp_tool]
fn countdown(#[mcp(range(0..=10))] from: u8) -> Vec<String> {
    (0..=from).rev().map(|n| n.to_string()).collect()
}

/// Blocks with an audience and a priority.
#[mcp_tool]
fn annotated() -> (Text, Text) {
    (
        Text::new("for people").annotated(|hints| {
            hints.audience([Role::User]).priority(0.9).last_modified("2026-07-28T12:00:00Z")
        }),
        Text::new("for the model").annotated(|hints| hints.audience([Role::Assistant]).priority(0.1)),
    )
}

/// A result of which the function sets every part.
#[mcp_tool(output = Forecast)]
fn whole() -> Result<ToolResult, ToolError> {
    Ok(ToolResult::text("Kiel will be fine")
        .structured(&Forecast::of("Kiel"))?
        .meta("example.org/source", "almanac"))
}

/// A text resource.
#[mcp_resource(uri = "content://note", mime = "text/markdown")]
fn note() -> &'static str {
    "# A note"
}

/// A JSON resource, one for each city that begins with a capital letter.
#[mcp_resource(uri = "content://forecast/{city}")]
fn forecast_of(city: String) -> Option<Json<Forecast>> {
    city.starts_with(char::is_uppercase).then(|| Json(Forecast::of(city)))
}

/// Bytes; a `Vec<u8>` works as well.
#[mcp_resource(uri = "content://silence", mime = "audio/wav")]
fn silent() -> Bytes {
    silence(800).into()
}

/// Contents that set their own type.
#[mcp_resource(uri = "content://pixel", mime = "image/png")]
fn pixel() -> ResourceContents {
    ResourceContents::blob_from_base64(PIXEL).meta("example.org/colour", "red")
}

/// One user message.
#[mcp_prompt]
fn greet(name: String) -> String {
    format!("Say hello to {name}.")
}

/// A short conversation.
#[mcp_prompt]
fn quiz() -> Vec<Message> {
    vec![Message::user("Ask me something."), Message::assistant("What is the capital of France?")]
}

/// An image with a question.
#[mcp_prompt]
fn describe() -> (Image, &'static str) {
    (image(), "What is in this image?")
}

/// A resource with a task, and a description that is computed.
#[mcp_prompt]
fn summarize() -> PromptResult {
    let messages = [Message::user(embedded()), Message::user("Summarize this.")];
    PromptResult::new(messages).description("Summarizes the note")
}

/// A WAV file of 8-bit mono samples at 8 kHz.
fn silence(samples: u32) -> Vec<u8> {
    let mut wav = b"RIFF".to_vec();
    wav.extend((36 + samples).to_le_bytes());
    wav.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data");
    wav.extend(samples.to_le_bytes());
    wav.resize(wav.len() + samples as usize, 0x80);
    wav
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().info(|info| info.name("content")).discover().run()
}
