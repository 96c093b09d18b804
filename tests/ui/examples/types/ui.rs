//! Tools with pages, under names that shadow the prelude's.

use mcp_runtime::prelude::*;

#[allow(dead_code)]
mod shadows {
    pub struct Result;
    pub struct Option;
    pub struct Some;
    pub struct None;
}
#[allow(unused_imports)]
use shadows::{None, Option, Result, Some};

/// A chart
#[mcp_tool(ui(resource = "ui://charts/page.html", visibility(model, app)), meta(team = "charts"))]
fn chart(ctx: &Context) -> &'static str {
    if ctx.client_supports_ui() { "shown" } else { "1, 2, 3" }
}

/// More of it
#[mcp_tool(ui(visibility("app")))]
fn more() {}

/// Its page
#[mcp_resource(
    uri = "ui://charts/page.html",
    ui(
        csp(connect("https://api.example.org"), resource("https://*.example.org"), frame = ["https://a.example"]),
        permissions(camera, clipboard_write),
        prefers_border,
        domain = "charts.example.org"
    ),
    meta(version = 1)
)]
fn page() -> &'static str {
    "<!doctype html>"
}

pub(crate) fn main() {
    mcp_runtime::server!().tool::<chart>().tool::<more>().resource::<page>().build().unwrap();
}
