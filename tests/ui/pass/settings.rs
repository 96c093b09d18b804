//! Settings in a module that shadows names, with fields under a `#[cfg]`, and a struct that nothing loads.

#![deny(warnings)]

mod inside {
    #![allow(dead_code, non_camel_case_types)]

    use std::{collections::BTreeMap, time::Duration};

    use mcp_runtime::{config::Secret, mcp_config, mcp_type};

    struct Result;
    struct Option;
    struct Default;
    struct Box;
    struct Ok;
    struct Some;
    struct String;
    mod core {}
    mod std_ {}

    #[mcp_type]
    #[derive(Debug, PartialEq)]
    pub(super) enum Level {
        Low,
        High,
    }

    #[mcp_config(name = "inside")]
    #[derive(Debug)]
    pub(super) struct Settings {
        #[cfg(any())]
        missing: Missing,
        #[mcp(default = 5, range(1..=60))]
        pub(super) timeout: u64,
        #[cfg(not(any()))]
        #[mcp(secret)]
        pub(super) key: Secret<std::string::String>,
        #[mcp(default = Level::Low)]
        pub(super) level: Level,
        #[mcp(default = "250ms")]
        pub(super) wait: Duration,
        #[mcp(default = "1s")]
        pub(super) longest: std::option::Option<Duration>,
        #[mcp(flatten)]
        pub(super) others: Others,
        pub(super) table: Table,
    }

    #[mcp_config]
    #[derive(Debug)]
    pub(super) struct Others {
        pub(super) r#type: std::option::Option<u8>,
    }

    #[mcp_config]
    #[derive(Debug)]
    pub(super) struct Table {
        #[mcp(default)]
        pub(super) names: BTreeMap<std::string::String, u8>,
    }

    #[mcp_config]
    pub struct Unused {
        name: u8,
    }
}

pub(crate) fn main() {
    let settings = r#"{ "key": "sesame", "type": 3, "level": "High", "table": { "names": { "a": 1 } } }"#;
    let settings: inside::Settings = mcp_runtime::serde_json::from_str(settings).unwrap();
    assert_eq!((settings.timeout, settings.level), (5, inside::Level::High));
    assert_eq!((settings.wait.as_millis(), settings.longest.map(|time| time.as_secs())), (250, Some(1)));
    assert_eq!((settings.others.r#type, settings.table.names["a"]), (Some(3), 1));
    assert_eq!(settings.key.expose(), "sesame");
}
