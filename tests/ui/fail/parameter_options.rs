//! Options of parameters.

include!("../support/table.rs");

mistakes! {
    mcp_bare: #[mcp_tool] (#[mcp] value: u32)
    mcp_unknown: #[mcp_tool] (#[mcp(defualt = 1)] value: u32)
    mcp_renamed: #[mcp_tool] (#[mcp(regex = "^a$")] value: String)
    mcp_duplicate: #[mcp_tool] (#[mcp(default = 1)] #[mcp(default = 2)] value: u32)
    mcp_in_cfg_attr: #[mcp_tool] (#[cfg_attr(all(), mcp(default = 1))] value: u32)
    mcp_name_empty: #[mcp_tool] (#[mcp(name = "")] value: u32)
    mcp_optional: #[mcp_tool] (#[mcp(optional)] q: String)
    mcp_required: #[mcp_tool] (#[mcp(required)] q: Option<String>)
    inject_on_reference: #[mcp_tool] (#[mcp(inject)] value: &Db)
    raw_on_tool: #[mcp_tool] (#[mcp(raw)] value: String)
    complete_on_tool: #[mcp_tool] (#[mcp(complete("a", "b"))] value: String)
    title_of_argument_number: #[mcp_prompt] (#[mcp(title = 5)] code: String)
    prompt_with_raw: #[mcp_prompt] (#[mcp(raw)] id: u32)
    complete_number: #[mcp_prompt] (#[mcp(complete = 5)] id: u32)
    complete_not_a_completer: #[mcp_prompt] (#[mcp(complete = u32::from_str_radix)] id: u32)
}

mod payload_of_tool {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Mail {
        subject: String,
    }

    #[mcp_tool]
    fn send(#[mcp(payload)] mail: Mail) -> String {
        mail.subject
    }
}

mod flatten_option {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Search {
        query: Option<String>,
    }

    #[mcp_tool]
    fn search(#[mcp(flatten)] search: Option<Search>) -> String {
        search.and_then(|search| search.query).unwrap_or_default()
    }
}

mod flatten_beside_argument {
    use mcp_runtime::{mcp_tool, mcp_type};

    #[mcp_type]
    struct Query {
        text: String,
    }

    #[mcp_tool]
    fn search(#[mcp(flatten)] query: Query, limit: u32) -> String {
        query.text.repeat(limit as usize)
    }
}

mod flatten_with_range {
    use mcp_runtime::{mcp_tool, mcp_type};

    #[mcp_type]
    struct Query {
        text: String,
    }

    #[mcp_tool]
    fn search(#[mcp(flatten, length(1..))] query: Query) -> String {
        query.text
    }
}

mod secret_with_flatten {
    use mcp_runtime::{mcp_tool, mcp_type};

    #[mcp_type]
    struct Login {
        password: String,
    }

    #[mcp_tool]
    fn sign_in(#[mcp(flatten, secret)] login: Login) -> String {
        login.password
    }
}

fn main() {}
