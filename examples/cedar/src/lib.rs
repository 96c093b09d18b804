//! Calls of tools that [Cedar](https://www.cedarpolicy.com) policies allow: a layer asks them with the caller, the item and the
//! arguments of the call.

use cedar_policy::{
    Authorizer, Context as Facts, Decision, Entities, Entity, EntityId, EntityTypeName, EntityUid, PolicySet,
    Request, RestrictedExpression,
};
use mcp_runtime::{
    Principal,
    layer::{Layer, LayeredCall, Next, Outcome},
    prelude::*,
    serde_json::Value,
};

/// Policies, which are parsed once.
pub struct Cedar {
    authorizer: Authorizer,
    policies: PolicySet,
}

impl Cedar {
    /// # Errors
    /// The text is not a set of policies.
    pub fn new(policies: &str) -> Result<Self, cedar_policy::ParseErrors> {
        Ok(Self { authorizer: Authorizer::new(), policies: policies.parse()? })
    }

    /// Whether the policies allow a call: `User::"subject"` with its role, `Action::"name"`, `Server::"self"`, and the
    /// arguments as the context.
    fn allows(&self, caller: Option<&Principal>, name: &str, arguments: Value) -> Result<bool, Failed> {
        let subject = caller.map_or("anonymous", Principal::subject);
        let role = caller.and_then(|caller| caller.claims()?.get("role")?.as_str()).unwrap_or("none");
        let user = uid("User", subject)?;
        let role = RestrictedExpression::new_string(role.to_owned());
        let entity = Entity::new(user.clone(), [("role".to_owned(), role)].into(), [].into())?;
        let facts = Facts::from_json_value(arguments, None)?;
        let request = Request::new(user, uid("Action", name)?, uid("Server", "self")?, facts, None)?;
        let entities = Entities::from_entities([entity], None)?;
        let response = self.authorizer.is_authorized(&request, &self.policies, &entities);
        // a policy that cannot be evaluated does not apply: one that forbids would allow the call by its mistake
        if let Some(error) = response.diagnostics().errors().next() {
            return Err(error.to_string().into());
        }
        Ok(response.decision() == Decision::Allow)
    }
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

fn uid(kind: &str, id: &str) -> Result<EntityUid, Failed> {
    Ok(EntityUid::from_type_name_and_id(kind.parse::<EntityTypeName>()?, EntityId::new(id)))
}

impl Layer for Cedar {
    async fn call(&self, call: LayeredCall, next: Next) -> Outcome {
        let arguments = Value::Object(call.arguments());
        match self.allows(call.context().caller(), call.name(), arguments) {
            Ok(true) => next.run(&call).await,
            // the model reads it, and can tell the user
            Ok(false) => {
                Err(ToolError::new(format!("no policy allows `{}` with these arguments", call.name())))
            }
            // such as arguments that Cedar has no type for: the log has the reason
            Err(error) => {
                eprintln!("policies cannot decide about `{}`: {error}", call.name());
                Err(ToolError::new(format!(
                    "the policies cannot decide about `{}` with these arguments",
                    call.name()
                )))
            }
        }
    }
}

/// The balance of an account.
#[mcp_tool(read_only)]
pub fn balance(account: String) -> String {
    format!("{account}: 2000")
}

/// Transfers an amount between accounts.
#[mcp_tool]
fn transfer(from: String, to: String, #[mcp(range(1..))] amount: u32) -> String {
    format!("{amount} from {from} to {to}")
}

/// The server, with the policies of a file.
///
/// # Panics
/// The file is not a set of policies.
pub fn server() -> mcp_runtime::ServerBuilder {
    let policies = Cedar::new(include_str!("../policies.cedar")).expect("policies");
    mcp_runtime::server!().tool::<balance>().tool::<transfer>().layer(policies)
}
