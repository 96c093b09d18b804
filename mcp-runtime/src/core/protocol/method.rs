//! The methods of requests from clients, as data: their revisions, and the parameter that the header `Mcp-Name` repeats.
//! They are answered by `answer` in the `capability.rs` that has the method in `methods`, and five by `route` in
//! `core/dispatch/request.rs`; not here, so that code which reads a name does not link what answers it.

use super::Revision;

/// A method that a client may request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Method {
    pub(crate) name: &'static str,
    /// The first revision that has it.
    since: Revision,
    /// The last one.
    until: Revision,
    /// The member of `params` that names what the request is about, which the header `Mcp-Name` repeats.
    pub(crate) named_by: Option<&'static str>,
}

/// Every method, the most frequent first.
const METHODS: &[Method] = {
    use Revision as R;
    const fn method(name: &'static str, since: R, until: R) -> Method {
        Method { name, since, until, named_by: None }
    }
    const fn all(name: &'static str) -> Method {
        method(name, R::V2024_11_05, R::LATEST)
    }
    const fn legacy(name: &'static str) -> Method {
        method(name, R::V2024_11_05, R::LATEST_LEGACY)
    }
    const fn modern(name: &'static str) -> Method {
        method(name, R::V2026_07_28, R::LATEST)
    }
    const fn named(method: Method, member: &'static str) -> Method {
        Method { named_by: Some(member), ..method }
    }
    &[
        named(all("tools/call"), "name"),
        all("tools/list"),
        named(all("resources/read"), "uri"),
        all("resources/list"),
        all("resources/templates/list"),
        modern("resources/directory/read"),
        legacy("resources/subscribe"),
        legacy("resources/unsubscribe"),
        modern("skills/list"),
        modern("skills/get"),
        modern("events/poll"),
        modern("events/stream"),
        modern("events/list"),
        modern("events/subscribe"),
        modern("events/unsubscribe"),
        named(all("prompts/get"), "name"),
        all("prompts/list"),
        named(modern("tasks/get"), "taskId"),
        named(modern("tasks/update"), "taskId"),
        named(modern("tasks/cancel"), "taskId"),
        all("completion/complete"),
        modern("server/discover"),
        modern("subscriptions/listen"),
        legacy("logging/setLevel"),
        legacy("ping"),
        legacy("initialize"),
        // of the example in the page about the architecture
        #[cfg(test)]
        modern("moods/list"),
    ]
};

/// The methods whose requests are answered with a stream of notifications.
pub(crate) const OPEN_STREAMS: [&str; 2] = ["subscriptions/listen", "events/stream"];

impl Method {
    /// The method of that name, in any revision.
    pub(crate) fn of_name(name: &str) -> Option<&'static Self> {
        METHODS.iter().find(|method| method.name == name)
    }

    /// Whether a revision has it.
    pub(crate) fn is_in(&self, revision: Revision) -> bool {
        (self.since..=self.until).contains(&revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_in_the_table_once_and_its_first_revision_is_not_after_its_last() {
        for (n, method) in METHODS.iter().enumerate() {
            assert!(METHODS.iter().skip(n + 1).all(|other| other.name != method.name), "{}", method.name);
            assert!(method.since <= method.until, "{}", method.name);
        }
        for name in OPEN_STREAMS {
            assert!(Method::of_name(name).is_some_and(|method| method.is_in(Revision::LATEST)), "{name}");
        }
    }

    #[test]
    fn a_method_is_known_by_its_name_in_its_revisions() {
        let ping = Method::of_name("ping").unwrap();
        assert!(ping.is_in(Revision::V2025_11_25) && !ping.is_in(Revision::V2026_07_28));
        let call = Method::of_name("tools/call").unwrap();
        assert!(Revision::ALL.iter().all(|revision| call.is_in(*revision)));
        assert_eq!(Method::of_name("tools/Call"), None);
    }
}
