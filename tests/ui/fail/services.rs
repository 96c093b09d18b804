//! Services and their methods.

macro_rules! mistakes {
    ($($name:ident: #[$($service:tt)*] #[$($method:tt)*] ($($parameters:tt)*))+) => {
        $(mod $name {
            use mcp_runtime::prelude::*;

            struct Weather;

            #[$($service)*]
            impl Weather {
                #[$($method)*]
                #[allow(unused_variables)]
                fn forecast($($parameters)*) -> String {
                    String::new()
                }
            }
        })+
    };
}

mistakes! {
    service_unknown_option: #[mcp_service(name = "weather")] #[mcp_tool] (&self, city: String)
    service_markers_string: #[mcp_service(markers = "shop")] #[mcp_tool] (&self, words: String)
    service_takes_self: #[mcp_service] #[mcp_tool] (self, city: String)
    service_takes_mut_self: #[mcp_service] #[mcp_tool] (&mut self, city: String)
    service_method_str: #[mcp_service] #[mcp_tool] (&self, city: &str)
    service_method_crate: #[mcp_service] #[mcp_tool(crate = mcp_runtime)] (&self, city: String)
    service_method_marker: #[mcp_service] #[mcp_tool(marker = SearchShop)] (&self, words: String)
    service_param_str_by_value: #[mcp_service] #[mcp_tool] (&self, query: str)
}

mod service_on_struct {
    use mcp_runtime::mcp_service;

    #[mcp_service]
    struct Weather;
}

mod service_on_trait {
    use mcp_runtime::prelude::*;

    #[mcp_service]
    trait Forecast {
        /// The forecast for a city.
        #[mcp_tool(read_only)]
        async fn forecast(&self, #[mcp(default = "Oslo")] city: String) -> String;

        #[mcp_runtime::mcp_tool]
        fn days(&self) -> u32 {
            7
        }
    }
}

mod service_of_trait {
    use mcp_runtime::{mcp_service, mcp_tool};

    struct Weather;

    #[mcp_service]
    impl Forecast for Weather {
        #[mcp_tool]
        fn forecast(&self, city: String) -> String {
            city
        }
    }

    trait Forecast {
        fn forecast(&self, city: String) -> String;
    }
}

mod service_generic {
    use mcp_runtime::{mcp_service, mcp_tool};

    struct Weather<T>(T);

    #[mcp_service]
    impl<T: Sync> Weather<T> {
        #[mcp_tool]
        fn forecast(&self, city: String) -> String {
            city
        }
    }
}

mod service_that_borrows {
    use mcp_runtime::prelude::*;

    struct Notes<'a>(&'a str);

    #[mcp_service]
    impl Notes<'_> {
        #[mcp_tool]
        fn note(&self) -> String {
            self.0.to_owned()
        }
    }
}

mod service_without_items {
    use mcp_runtime::mcp_service;

    struct Weather;

    #[mcp_service]
    impl Weather {
        fn forecast(&self, city: String) -> String {
            city
        }
    }

    const _: fn(&Weather, String) -> String = Weather::forecast;
}

mod service_method_lifetime {
    use mcp_runtime::prelude::*;

    struct Notes(String);

    #[mcp_service]
    impl Notes {
        #[mcp_tool]
        fn add<'a>(&'a self, text: String) -> String {
            text + &self.0
        }
    }
}

mod service_return_self {
    use mcp_runtime::{mcp_service, mcp_tool};

    struct Library;

    #[mcp_service]
    impl Library {
        #[mcp_tool]
        fn copy(&self) -> Self {
            Self
        }
    }

    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().service(Library).run()
    }
}

mod service_not_shareable {
    use std::cell::Cell;

    use mcp_runtime::prelude::*;

    struct Counter(Cell<u32>);

    #[mcp_service]
    impl Counter {
        #[mcp_tool]
        fn count(&self) -> u32 {
            self.0.get()
        }
    }

    fn start() {
        let _ = mcp_runtime::server!().service(Counter(Cell::new(1))).build();
    }
}

mod registered_service {
    use mcp_runtime::{mcp_service, mcp_tool};

    struct Weather;

    #[mcp_service]
    impl Weather {
        #[mcp_tool(timeout = "5s")]
        fn forecast(&self, city: String) -> String {
            city
        }
    }

    fn start() {
        let _ = mcp_runtime::server!().service(Weather).build();
    }
}

fn main() {}
