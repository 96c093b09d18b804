//! The client that the official conformance suite tests. The suite starts it with the address of its server as the last
//! argument, and the name of the scenario in the environment:
//!
//! ```text
//! conformance client --command target/debug/examples/conformance_client --suite all
//! ```

use std::{env, error::Error};

use mcp_runtime::{
    Revision,
    client::{Client, ClientBuilder, ElicitAnswer, IdentityProvider, OAuth, Refresh, SampleAnswer},
    client_request::Root,
    serde_json::{self, Value, json},
};

type Outcome = Result<(), Box<dyn Error>>;

#[mcp_runtime::main]
async fn main() -> Outcome {
    let url = env::args().next_back().ok_or("the suite appends the address of its server")?;
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let version = env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
    let context = env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".to_owned());
    let context: Value = serde_json::from_str(&context)?;

    let revision = version.parse().ok();
    let mut builder = options(revision);
    if let Some(scenario) = scenario.strip_prefix("auth/") {
        builder = builder.oauth(authorization(scenario, &context)?);
    }
    let client = builder.connect(url).await?;
    run(&scenario, &context, &client).await?;
    client.close().await;
    Ok(())
}

/// How the client gets its tokens in each scenario of authorization.
fn authorization(scenario: &str, context: &Value) -> Result<OAuth, Box<dyn Error>> {
    let text = |key: &str| context[key].as_str().unwrap_or_default().to_owned();
    Ok(match scenario {
        "client-credentials-basic" => {
            OAuth::client_credentials(text("client_id"), text("client_secret")).any_issuer()
        }
        "client-credentials-jwt" => {
            OAuth::client_credentials_with_key(text("client_id"), &text("private_key_pem"))?.any_issuer()
        }
        "wif-jwt-bearer" => {
            let token = text("valid_jwt");
            OAuth::workload_identity(text("client_id"), move || {
                let token = token.clone();
                async { Ok(token) }
            })
            .any_issuer()
        }
        "enterprise-managed-authorization" => {
            let token = text("idp_id_token");
            let provider = IdentityProvider::with_id_token(
                text("idp_token_endpoint"),
                text("idp_client_id"),
                move || {
                    let token = token.clone();
                    async { Ok(token) }
                },
            );
            OAuth::enterprise(provider).client(text("client_id"), Some(&text("client_secret"))).any_issuer()
        }
        _ => {
            let oauth = OAuth::headless("http://localhost:3000/callback")
                .name("conformance-client")
                .client_metadata("https://conformance-test.local/client-metadata.json");
            let oauth = if scenario.starts_with("dpop") { oauth.dpop() } else { oauth };
            let Some(issuer) = context["issuer"].as_str() else { return Ok(oauth) };
            oauth.registered(issuer, text("client_id"), Some(&text("client_secret")))
        }
    })
}

/// Every capability, so that servers can ask for anything.
fn options(revision: Option<Revision>) -> ClientBuilder {
    let builder = Client::builder()
        .info("conformance-client", "1.0.0")
        // members that the user leaves out get the form's defaults
        .on_elicit(|_| async { ElicitAnswer::Accept(json!({})) })
        .on_sample(|_| async { Ok(SampleAnswer::text("scripted", "Paris")) })
        .on_roots(|| async { vec![Root::new("file:///conformance")] });
    match revision {
        Some(revision) => builder.revision(revision),
        None => builder,
    }
}

async fn run(scenario: &str, context: &Value, client: &Client) -> Outcome {
    match scenario {
        // these scenarios check only the connection
        "initialize" | "request-metadata" => {}
        "tools_call" => {
            client.tools().await?;
            client.call("add_numbers", json!({ "a": 5, "b": 3 })).await?.ok()?;
        }
        "elicitation-sep1034-client-defaults" => {
            client.tools().await?;
            client.call("test_client_elicitation_defaults", json!({})).await?.ok()?;
        }
        "sse-retry" => {
            client.tools().await?;
            client.call("test_reconnection", json!({})).await?.ok()?;
        }
        "sep-2322-client-request-state" => {
            client.tools().await?;
            // the unrelated call runs while the other one waits for a response
            let (echoed, unrelated) = tokio::join!(
                client.call("test_mrtr_echo_state", json!({})).into_future(),
                client.call("test_mrtr_unrelated", json!({})).into_future(),
            );
            echoed?.ok()?;
            unrelated?.ok()?;
            client.call("test_mrtr_no_state", json!({})).await?.ok()?;
            client.call("test_mrtr_no_result_type", json!({})).await?.ok()?;
        }
        "http-standard-headers" => {
            for tool in client.tools().await? {
                client.call(tool.name(), json!({})).await?;
            }
            if client.supports("resources") {
                for resource in client.resources().await? {
                    client.read(resource.uri()).await?;
                }
            }
            if client.supports("prompts") {
                for prompt in client.prompts().await? {
                    client.prompt(prompt.name(), json!({})).await?;
                }
            }
        }
        "http-custom-headers" => {
            client.tools().await?;
            for call in context["toolCalls"].as_array().into_iter().flatten() {
                let name = call["name"].as_str().unwrap_or_default();
                client.call(name, call["arguments"].clone()).await?;
            }
        }
        "http-invalid-tool-headers" => {
            for tool in client.tools().await? {
                client.call(tool.name(), arguments_for(tool.input_schema())).await?;
            }
        }
        "json-schema-ref-no-deref" => {
            client.tools().refresh(Refresh::Yes).await?;
        }
        "json-schema-2020-12-preservation" => {
            let tools = client.tools().await?;
            let tool = tools.iter().find(|tool| tool.name() == "json_schema_2020_12_tool");
            let schema = tool.ok_or("the tool is not listed")?.input_schema().clone();
            client.call("json_schema_echo", json!({ "schema": schema })).await?.ok()?;
        }
        "sep-2640-client-no-prefetch" => {
            client.skills().await?;
        }
        scenario if scenario.starts_with("sep-2640-client-verify-") => {
            for skill in client.skills().await? {
                client.load_skill(&skill).await?;
                for file in skill.files().unwrap_or_default() {
                    client.read_skill_file(&skill, file.uri).await?;
                }
            }
        }
        // the calls lead to challenges
        scenario if scenario.starts_with("auth/") => {
            client.tools().await?;
            client.call("test-tool", json!({})).await?;
        }
        other => return Err(format!("unknown scenario `{other}`").into()),
    }
    Ok(())
}

/// A value for every property of a schema.
fn arguments_for(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .map(|(name, property)| {
            let value = match property["type"].as_str() {
                Some("integer" | "number") => json!(1),
                Some("boolean") => json!(true),
                _ => json!("text"),
            };
            (name.clone(), value)
        })
        .collect()
}
