//! Fields and variants of types with `#[mcp_type]`.

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

mod field_serde_unknown {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Filter {
        #[serde(colour)]
        author: String,
    }

    #[mcp_tool]
    fn search(filter: Filter) -> String {
        filter.author
    }
}

mod field_serde_typo {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Filter {
        #[serde(defualt)]
        author: String,
    }

    #[mcp_tool]
    fn search(filter: Filter) -> String {
        filter.author
    }
}

mod field_schemars_unknown {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Filter {
        #[schemars(colour)]
        author: String,
    }

    #[mcp_tool]
    fn search(filter: Filter) -> String {
        filter.author
    }
}

mod field_with_mcp_option {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Filter {
        #[mcp(range(1..=5))]
        stars: u32,
    }

    #[mcp_tool]
    fn search(filter: Filter) -> u32 {
        filter.stars
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
