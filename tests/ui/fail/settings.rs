//! Settings with `#[mcp_config]`.

macro_rules! mistakes {
    ($($name:ident: #[$($attribute:tt)*] $field:ident: $type:ty)+) => {
        $(mod $name {
            use mcp_runtime::mcp_config;

            #[mcp_config]
            struct Settings {
                #[$($attribute)*]
                $field: $type,
            }

            fn start() {
                let _server = mcp_runtime::server!().config::<Settings>();
                let _value = Settings::load().map(|settings| settings.$field);
            }
        })+
    };
}

mistakes! {
    config_default_of_another_type: #[mcp(default = "many")] count: u64
    config_default_not_a_duration: #[mcp(default = "soon")] wait: std::time::Duration
    config_rule_of_another_type: #[mcp(range(1..))] name: String
    config_unknown_option: #[mcp(defautl = 5)] timeout: u64
}

mod config_on_enum {
    use mcp_runtime::mcp_config;

    #[mcp_config]
    enum Settings {
        Plain,
    }

    const _: Settings = Settings::Plain;
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
