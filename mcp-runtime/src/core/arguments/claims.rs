//! The issuer's claims about a caller, as a type of the user's.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{FromContext, inject::no_caller};
use crate::core::{context::Context, error::ToolError};

/// The hint in the log when claims are absent: the sources of claims.
const HINT: &str = "claims are those of the token or API key that `.auth(..)` accepts; \
                    a command line says them: `call NAME --as ada --claim tenant=acme`";

/// The [claims](crate::Principal::claims) of the caller as a `T`: `#[mcp(inject)] claims: Claims<Tenant>`.
///
/// A caller without claims is one with an empty object of them. Members that `T` does not name are ignored.
///
/// ```
/// use mcp_runtime::{Principal, auth::Claims, prelude::*, testing::TestServer};
/// use serde::Deserialize;
/// use serde_json::json;
///
/// #[derive(Deserialize)]
/// struct Tenant {
///     tenant: String,
/// }
///
/// /// Which tenant is calling?
/// #[mcp_tool]
/// async fn tenant(#[mcp(inject)] claims: Claims<Tenant>) -> String {
///     claims.0.tenant
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> mcp_runtime::Result<()> {
/// let claims = json!({ "tenant": "acme" }).as_object().cloned().unwrap_or_default();
/// let ada = Principal::new("https://id.example.com", "ada").with_claims(claims);
/// let server = TestServer::new(mcp_runtime::server!().tool::<tenant>())?.caller(ada);
/// server.call("tenant", json!({})).await.expect_text("acme");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The request has no caller, which the client is told; or its claims are not a `T`: a private error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claims<T>(pub T);

impl<T: DeserializeOwned + Send> FromContext for Claims<T> {
    type Error = ToolError;

    async fn from_context(context: &Context) -> Result<Self, ToolError> {
        let Some(caller) = context.caller() else {
            return Err(no_caller(&format!(
                "the request has no authenticated caller, and thus no claims\n{HINT}"
            )));
        };
        let claims = caller.claims().cloned().unwrap_or_default();
        serde_json::from_value(Value::Object(claims)).map(Self).map_err(|error| {
            let name = std::any::type_name::<T>();
            ToolError::private(format!("the claims of the caller are not a `{name}`: {error}\n{HINT}"))
        })
    }
}
