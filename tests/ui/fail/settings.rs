//! Settings with `#[mcp_config]`.

mod config_on_enum {
    use mcp_runtime::mcp_config;

    #[mcp_config]
    enum Settings {
        Plain,
    }

    const _: Settings = Settings::Plain;
}

mod config_unknown_option {
    use mcp_runtime::mcp_config;

    #[mcp_config]
    struct Settings {
        #[mcp(defautl = 5)]
        timeout: u64,
    }

    fn start() {
        let _server = mcp_runtime::server!().config::<Settings>();
        let _timeout = Settings::load().map(|settings| settings.timeout);
    }
}

mod config_serde_attribute {
    use mcp_runtime::mcp_config;

    #[mcp_config]
    struct Settings {
        #[serde(rename = "time")]
        timeout: u64,
    }

    fn start() {
        let _timeout = Settings::load().map(|settings| settings.timeout);
    }
}

mod config_default_of_another_type {
    use mcp_runtime::mcp_config;

    #[mcp_config]
    struct Settings {
        #[mcp(default = "many")]
        count: u64,
    }

    fn start() {
        let _count = Settings::load().map(|settings| settings.count);
    }
}

mod config_default_not_a_duration {
    use std::time::Duration;

    use mcp_runtime::mcp_config;

    #[mcp_config]
    struct Settings {
        #[mcp(default = "soon")]
        wait: Duration,
    }

    fn start() {
        let _wait = Settings::load().map(|settings| settings.wait);
    }
}

mod config_rule_of_another_type {
    use mcp_runtime::mcp_config;

    #[mcp_config]
    struct Settings {
        #[mcp(range(1..))]
        name: String,
    }

    fn start() {
        let _name = Settings::load().map(|settings| settings.name);
    }
}

mod config_field_without_derives {
    use mcp_runtime::mcp_config;

    struct Place;

    #[mcp_config]
    struct Settings {
        place: Place,
    }

    const _: Option<Settings> = None;
}

mod config_not_settings {
    struct Preferences;

    fn start() {
        let _server = mcp_runtime::server!().config::<Preferences>();
    }
}

mod config_state_from_without_result {
    use mcp_runtime::mcp_config;

    #[mcp_config]
    struct Settings {
        name: String,
    }

    fn start() {
        let _server = mcp_runtime::server!()
            .config::<Settings>()
            .state_from(|settings: &Settings| settings.name.clone());
    }
}

mod config_secret_compared {
    use mcp_runtime::config::Secret;

    fn start() {
        let (key, other): (Secret<String>, Secret<String>) = ("key".into(), "other".into());
        let _is_equal = key == other;
    }
}

fn main() {}

mod state_async_of_a_plain_function {
    fn start() {
        let _server = mcp_runtime::server!().state_async(|| Ok::<_, String>(1_u8));
    }
}

mod state_async_with_a_future_of_one_thread {
    use std::rc::Rc;

    async fn open() -> Result<u8, String> {
        let shared = Rc::new(1);
        std::future::ready(()).await;
        Ok(*shared)
    }

    fn start() {
        let _server = mcp_runtime::server!().state_async(open);
    }
}
