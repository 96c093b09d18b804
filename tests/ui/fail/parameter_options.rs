//! Options of parameters.

mod mcp_bare {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp] value: u32) -> String {
        let _ = value;
        String::new()
    }
}

mod mcp_unknown {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(defualt = 1)] value: u32) -> String {
        let _ = value;
        String::new()
    }
}

mod mcp_renamed {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(regex = "^a$")] value: String) -> String {
        let _ = value;
        String::new()
    }
}

mod mcp_duplicate {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(default = 1)] #[mcp(default = 2)] value: u32) -> String {
        let _ = value;
        String::new()
    }
}

mod mcp_in_cfg_attr {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[cfg_attr(all(), mcp(default = 1))] value: u32) -> String {
        let _ = value;
        String::new()
    }
}

mod mcp_name_empty {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(name = "")] value: u32) -> String {
        let _ = value;
        String::new()
    }
}

mod mcp_optional {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(#[mcp(optional)] q: String) -> String { q }
}

mod mcp_required {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(#[mcp(required)] q: Option<String>) -> String { q.unwrap_or_default() }
}

mod inject_on_reference {
    use mcp_runtime::mcp_tool;

    struct Db;

    #[mcp_tool]
    fn search(#[mcp(inject)] value: &Db) -> String {
        let _ = value;
        String::new()
    }
}

mod raw_on_tool {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(raw)] value: String) -> String {
        let _ = value;
        String::new()
    }
}

mod complete_on_tool {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(#[mcp(complete("a", "b"))] value: String) -> String {
        let _ = value;
        String::new()
    }
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

mod title_of_argument_number {
    use mcp_runtime::mcp_prompt;

    #[mcp_prompt]
    fn review(#[mcp(title = 5)] code: String) -> String {
        code
    }
}

mod prompt_with_raw {
    use mcp_runtime::mcp_prompt;

    #[mcp_prompt]
    fn review(#[mcp(raw)] id: u32) -> String {
        id.to_string()
    }
}

mod complete_number {
    use mcp_runtime::mcp_prompt;

    #[mcp_prompt]
    fn review(#[mcp(complete = 5)] id: u32) -> String {
        id.to_string()
    }
}

mod complete_not_a_completer {
    use mcp_runtime::mcp_prompt;

    #[mcp_prompt]
    fn review(#[mcp(complete = u32::from_str_radix)] id: u32) -> String {
        id.to_string()
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
