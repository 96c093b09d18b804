//! Options of servers.

mod server_with_name {
    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!("search", "1.0.0").discover().run()
    }
}

mod options_of_http_are_an_address {
    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().discover().http("0.0.0.0:8080").run()
    }
}

mod option_one_text_for_a_list {
    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().discover().http(|http| http.allowed_hosts("mcp.example.com")).run()
    }
}

mod option_scopes_one_text {
    use mcp_runtime::auth::Oauth;

    fn start() -> mcp_runtime::Result<()> {
        let auth = Oauth::issuer("https://id.example.com").resource("https://mcp.example.com/mcp");
        mcp_runtime::server!().discover().auth(auth.scopes("notes:read")).run()
    }
}

mod limits_number_for_rate {
    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().discover().limits(|limits| limits.rate(60)).run()
    }
}

mod auth_closure {
    use mcp_runtime::Principal;

    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().discover().auth(|token: &str| (token == "x").then(|| Principal::new("a", "b"))).run()
    }
}

mod state_not_shareable {
    use std::cell::RefCell;

    use mcp_runtime::prelude::*;

    struct Db(RefCell<u32>);

    #[mcp_tool]
    fn search(db: &Db) -> u32 {
        *db.0.borrow()
    }

    fn start() {
        let _ = mcp_runtime::server!().tool::<search>().state(Db(RefCell::new(1))).build();
    }
}

mod state_trait_not_shareable {
    use std::sync::Arc;

    use mcp_runtime::prelude::*;

    trait Repo {
        fn count(&self) -> u32;
    }

    #[mcp_tool]
    fn search(repo: &dyn Repo) -> u32 {
        repo.count()
    }

    fn register(repo: Arc<dyn Repo>) {
        let _ = mcp_runtime::server!().tool::<search>().state(repo).build();
    }
}

mod progress_text {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(ctx: &Context) -> u32 { ctx.progress("50%").send(); 1 }
}

fn main() {}
