//! Errors with `#[mcp_error]`.

macro_rules! mistakes {
    ($($name:ident: #[$($attribute:tt)*] ($($of_variant:tt)*))+) => {
        $(mod $name {
            use mcp_runtime::mcp_error;

            #[$($attribute)*]
            #[derive(Debug, thiserror::Error)]
            enum Failed {
                $($of_variant)*
                #[error("failed")]
                Failed,
            }

            const _: Failed = Failed::Failed;
        })+
    };
}

mistakes! {
    error_unknown_option: #[mcp_error(private)] (#[mcp(public)])
    error_unknown_option_of_a_variant: #[mcp_error] (#[mcp(pubic)])
    error_public_twice: #[mcp_error(public)] (#[mcp(public)])
}

mod error_on_function {
    use mcp_runtime::mcp_error;

    #[mcp_error]
    fn search() {}
}

mod error_generic {
    use mcp_runtime::mcp_error;

    #[mcp_error]
    #[derive(Debug, thiserror::Error)]
    enum Failed<T> {
        #[mcp(public)]
        #[error("not a {0}")]
        Not(T),
    }

    const _: Option<Failed<String>> = None;
}

mod error_unknown_option_alone {
    use mcp_runtime::prelude::*;

    #[mcp_error(private)]
    #[derive(Debug, thiserror::Error)]
    enum E { #[error("a")] A }

    #[mcp_tool]
    fn search() -> Result<String, E> { Err(E::A) }
}

mod error_public_on_type {
    use mcp_runtime::mcp_error;

    #[mcp_error]
    #[mcp(public)]
    #[derive(Debug, thiserror::Error)]
    #[error("failed")]
    struct Failed;
}

mod error_public_on_field {
    use mcp_runtime::mcp_error;

    #[mcp_error]
    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Failed {
        #[mcp(public)]
        text: String,
    }
}

mod error_public_without_attribute {
    #[derive(Debug, thiserror::Error)]
    enum Failed {
        #[mcp(public)]
        #[error("failed")]
        Failed,
    }

    const _: Failed = Failed::Failed;
}

mod error_struct_without_public {
    use mcp_runtime::mcp_error;

    #[mcp_error]
    #[derive(Debug, thiserror::Error)]
    #[error("failed")]
    struct Failed;
}

mod error_not_an_error {
    use mcp_runtime::{mcp_error, mcp_tool};

    #[mcp_error]
    #[derive(Debug)]
    enum Broken {
        #[mcp(public)]
        Broken,
    }

    #[mcp_tool]
    fn search() -> Result<String, Broken> {
        Err(Broken::Broken)
    }
}

mod error_without_public_variant {
    use mcp_runtime::mcp_error;

    #[mcp_error]
    #[derive(Debug, thiserror::Error)]
    enum Failed {
        #[error("failed")]
        Failed,
    }

    const _: Failed = Failed::Failed;
}

fn main() {}
