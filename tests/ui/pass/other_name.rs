//! Every attribute finds the runtime under another name.

#![deny(warnings)]

mod deep {
    pub mod api {
        pub use renamed as inner;
    }
}

/// Hides the runtime's own name.
mod hidden {
    mod mcp_runtime {}

    use super::deep;
    use renamed::prelude::*;

    #[mcp_tool(crate = renamed)]
    pub(crate) fn one(#[mcp(length(1..))] query: String) -> String {
        query
    }

    #[mcp_resource(uri = "a://b", crate = ::renamed)]
    pub(crate) fn two() -> String {
        String::new()
    }

    #[mcp_prompt(crate = deep::api::inner)]
    pub(crate) fn three(tone: Tone) -> String {
        format!("{tone:?}")
    }

    #[mcp_type(crate = crate::other_name::deep::api::inner)]
    #[derive(Debug)]
    pub(crate) enum Tone {
        Kind,
    }

    #[mcp_error(public, crate = ::renamed)]
    #[derive(Debug, thiserror::Error)]
    #[error("failed")]
    pub(crate) struct Failed;

    #[mcp_type(crate = ::renamed)]
    pub(crate) struct Weather {
        pub(crate) unit: String,
    }

    #[mcp_service(crate = ::renamed)]
    impl Weather {
        #[mcp_tool]
        fn forecast(&self, tone: Option<Tone>) -> String {
            format!("{}{tone:?}", self.unit)
        }
    }
}

#[renamed::main(crate = renamed)]
pub(crate) async fn main() {
    let tone = hidden::Tone::Kind;
    assert_eq!(hidden::three(tone), "Kind");
    renamed::server!()
        .tool::<hidden::one>()
        .resource::<hidden::two>()
        .prompt::<hidden::three>()
        .service(hidden::Weather { unit: String::new() })
        .build()
        .expect("a server");
}
