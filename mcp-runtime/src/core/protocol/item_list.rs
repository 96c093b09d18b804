//! The lists whose changes clients are notified of, as data: whatever capability has one, its names on the wire are here.

use serde::{Deserialize, Serialize};

use super::{Method, Revision};

macro_rules! item_lists {
    ($($list:ident = $name:literal,)*) => {
        /// A list of items whose changes clients are notified of.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub(crate) enum ItemList {
            $(#[serde(rename = $name)] $list,)*
        }

        impl ItemList {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$list,)*];

            /// The method that lists the items.
            pub(crate) const fn method(self) -> &'static str {
                match self {
                    $(Self::$list => concat!($name, "/list"),)*
                }
            }

            /// The method of its notifications.
            pub(crate) const fn notification(self) -> &'static str {
                match self {
                    $(Self::$list => concat!("notifications/", $name, "/list_changed"),)*
                }
            }

            /// Its member of the `notifications` of `subscriptions/listen`.
            pub(crate) const fn member(self) -> &'static str {
                match self {
                    $(Self::$list => concat!($name, "ListChanged"),)*
                }
            }
        }
    };
}

item_lists! {
    Tools = "tools",
    Prompts = "prompts",
    // and of resource templates
    Resources = "resources",
    Events = "events",
}

impl ItemList {
    /// Whether revisions before 2026-07-28 have it.
    pub(crate) fn is_legacy(self) -> bool {
        Method::of_name(self.method()).is_some_and(|method| method.is_in(Revision::LATEST_LEGACY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_of_each_list_is_known_and_only_events_came_with_2026_07_28() {
        for list in ItemList::ALL {
            let method = Method::of_name(list.method()).expect("a method");
            assert!(method.is_in(Revision::LATEST), "{list:?}");
            assert_eq!(list.is_legacy(), *list != ItemList::Events);
        }
        assert_eq!(ItemList::Tools.notification(), "notifications/tools/list_changed");
        assert_eq!(ItemList::Prompts.member(), "promptsListChanged");
    }

    /// Replicas of other versions of this crate read it.
    #[test]
    fn a_list_is_its_name_in_messages_between_replicas() {
        let json = serde_json::to_string(ItemList::ALL).unwrap();
        assert_eq!(json, r#"["tools","prompts","resources","events"]"#);
    }
}
