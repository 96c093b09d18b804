use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use rmcp::{
    ErrorData, Json, RoleServer, ServerHandler, ServiceExt,
    handler::server::{
        router::{prompt::PromptRouter, tool::ToolRouter},
        wrapper::Parameters,
    },
    model::*,
    prompt, prompt_handler, prompt_router,
    service::RequestContext,
    tool, tool_handler, tool_router,
    transport::stdio,
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct TakeParams {
    /// Name of the article
    article: String,
    /// Number of pieces
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pieces: u32,
}

fn one() -> u32 {
    1
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Left {
    left: u32,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct ReorderParams {
    /// Name of the article
    article: String,
}

#[derive(Clone)]
struct Stock {
    articles: Arc<Mutex<BTreeMap<String, u32>>>,
    tool_router: ToolRouter<Self>,
    prompt_router: PromptRouter<Self>,
}

#[tool_router]
impl Stock {
    fn new() -> Self {
        let articles = BTreeMap::from([("rope".to_owned(), 7), ("tea".to_owned(), 40)]);
        Self {
            articles: Arc::new(Mutex::new(articles)),
            tool_router: Self::tool_router(),
            prompt_router: Self::prompt_router(),
        }
    }

    #[tool(description = "Take pieces of an article from stock.")]
    fn take(
        &self,
        Parameters(TakeParams { article, pieces }): Parameters<TakeParams>,
    ) -> Result<Json<Left>, String> {
        if !(1..=100).contains(&pieces) {
            return Err("take 1 to 100 pieces".to_owned());
        }
        let mut articles = self.articles.lock().unwrap();
        let left = articles.get_mut(&article).ok_or_else(|| format!("`{article}` is not in stock"))?;
        *left = left.checked_sub(pieces).ok_or_else(|| format!("only {left} pieces are left"))?;
        Ok(Json(Left { left: *left }))
    }
}

#[prompt_router]
impl Stock {
    #[prompt(description = "Order more of an article.")]
    fn reorder(
        &self,
        Parameters(ReorderParams { article }): Parameters<ReorderParams>,
    ) -> Vec<PromptMessage> {
        vec![PromptMessage::new_text(Role::User, format!("Write a short order of {article}."))]
    }
}

#[tool_handler(router = self.tool_router)]
#[prompt_handler(router = self.prompt_router)]
impl ServerHandler for Stock {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_prompts().enable_resources().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("stock", "1.0.0"))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let articles = self.articles.lock().unwrap();
        let listed =
            articles.keys().map(|article| Resource::new(format!("stock://{article}"), article.clone()));
        Ok(ListResourcesResult::with_all_items(listed.collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("stock://{article}", "pieces").with_mime_type("text/plain");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let left = {
            let articles = self.articles.lock().unwrap();
            request.uri.strip_prefix("stock://").and_then(|article| articles.get(article).copied())
        };
        let Some(left) = left else {
            return Err(ErrorData::resource_not_found("unknown article", None));
        };
        let contents = ResourceContents::text(left.to_string(), request.uri).with_mime_type("text/plain");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Stock::new().serve(stdio()).await?.waiting().await?;
    Ok(())
}
