//! User-written derives work as well, and `#[mcp_type]` beside other derives and on generic types.

#![deny(warnings)]

use mcp_runtime::prelude::*;

#[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Own {
    text: String,
}

#[mcp_type]
#[derive(Debug, Clone, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Page<T> {
    #[serde(default)]
    first_item: Option<T>,
    #[schemars(length(min = 1))]
    name: String,
}

#[mcp_type]
#[derive(Debug)]
#[serde(tag = "kind")]
enum Shape<T> {
    Round { radius: T },
    Flat,
}

#[mcp_type]
#[derive(Debug)]
struct Unit;

#[mcp_tool]
fn both(own: Own, page: Page<u32>, shape: Shape<f64>) -> Json<Page<Own>> {
    let name = format!("{page:?}{shape:?}{:?}", Unit);
    Json(Page { first_item: Some(own), name })
}

pub(crate) fn main() {
    assert_ne!(Shape::Round { radius: 1 }.to_string(), Shape::<u32>::Flat.to_string());
    mcp_runtime::server!().tool::<both>().build().expect("a server");
}

impl<T: std::fmt::Debug> std::fmt::Display for Shape<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}
