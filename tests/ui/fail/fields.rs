//! Fields and variants of types with `#[mcp_type]`.

macro_rules! mistakes {
    ($($name:ident: #[$($attribute:tt)*] $type:ty)+) => {
        $(mod $name {
            use mcp_runtime::prelude::*;

            #[mcp_type]
            struct Filter {
                #[$($attribute)*]
                field: $type,
            }

            #[mcp_tool]
            fn search(filter: Filter) -> $type {
                filter.field
            }
        })+
    };
}

mistakes! {
    field_serde_unknown: #[serde(colour)] String
    field_serde_typo: #[serde(defualt)] String
    field_schemars_unknown: #[schemars(colour)] String
    field_with_mcp_option: #[mcp(range(1..=5))] u32
}

mod duplicate_alias {
    use mcp_runtime::mcp_type;

    #[mcp_type]
    struct Place {
        #[serde(alias = "town")]
        city: String,
        town: String,
    }
}

mod duplicate_variant_names {
    use mcp_runtime::mcp_type;

    #[mcp_type]
    enum Unit {
        #[serde(rename = "c")]
        Celsius,
        #[serde(rename = "c")]
        Century,
    }
}

mod field_of_foreign_type {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    enum Step {
        Wait { until: std::time::Instant },
        Stop,
    }

    #[mcp_tool]
    fn plan(steps: Vec<Step>) -> usize {
        steps.len()
    }
}

mod field_without_derives {
    use mcp_runtime::prelude::*;

    struct Author {
        name: String,
    }

    #[mcp_type]
    struct Filter {
        authors: Option<Vec<Author>>,
        parts: Vec<Filter>,
    }

    #[mcp_tool]
    fn search(filter: Filter) -> usize {
        filter.parts.len() + filter.authors.iter().flatten().map(|author| author.name.len()).sum::<usize>()
    }
}

fn main() {}
