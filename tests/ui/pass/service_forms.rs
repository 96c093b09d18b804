//! Methods as tools, resources and prompts, with `Self` wherever it is allowed.

#![deny(warnings)]
#![allow(clippy::new_without_default)]
#![forbid(unsafe_code)]

use mcp_runtime::{Completion, prelude::*, resource::ListedResource};

pub struct Db;

#[mcp_type]
#[derive(Clone)]
pub struct Weather {
    unit: String,
}

#[mcp_service]
impl Weather {
    const LIMIT: u32 = 5;

    pub fn new() -> Self {
        Self { unit: "C".into() }
    }

    fn ids(_: &Completion, _: &Db) -> Vec<String> {
        vec!["a".into()]
    }

    /// The forecast.
    #[mcp_tool(read_only, timeout = "5s", scopes("weather"))]
    pub async fn forecast(
        &self,
        /// Where
        city: String,
        #[mcp(default = Self::LIMIT, range(1..=Self::LIMIT))] days: u32,
        other: Option<Self>,
        db: &Db,
        ctx: &Context,
    ) -> Result<Json<Self>, ToolError> {
        let _: (String, u32, &Db, &Context) = (city, days, db, ctx);
        Ok(Json(other.unwrap_or_else(|| self.clone())))
    }

    #[mcp_tool(blocking)]
    fn slow(&self, db: &Db) -> u32 {
        let _: &Db = db;
        1
    }

    #[mcp_tool]
    fn associated(count: u32) -> u32 {
        count
    }

    #[mcp_resource(uri = "weather://{city}", mime = "text/plain", list = Self::cities)]
    fn city(&self, #[mcp(complete = Self::ids)] city: String) -> String {
        format!("{}{city}", self.unit)
    }

    async fn cities(_: &Db) -> Vec<ListedResource> {
        vec!["weather://bern".into()]
    }

    #[mcp_prompt]
    async fn ask(&self, city: String, other: Option<&Self>) -> String {
        let _: Option<&Weather> = other;
        city
    }

    #[must_use]
    pub fn plain(&self) -> &str {
        &self.unit
    }
}

pub(crate) fn main() {
    assert_eq!(Weather::new().plain(), "C");
    assert_eq!(Weather::new().slow(&Db), 1);
    mcp_runtime::server!().service(Weather::new()).state(Db).build().expect("a server");
}
