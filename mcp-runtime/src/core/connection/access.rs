//! Which items a caller sees, and which it may call.
//!
//! An item with scopes can be called only with all of them. It is listed as well for callers that can acquire what they
//! lack, whose calls are refused with the names of the scopes. For everyone else, and where the server's own rule says
//! so, it does not exist.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use super::Principal;
use crate::{
    core::{callback::Callback, protocol::ItemList, server::Entries, tool::ToolEntry},
    schema::sort_by,
};

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItemKind {
    /// A tool.
    Tool,
    /// A resource or a template.
    Resource,
    /// A prompt.
    Prompt,
    /// A skill.
    Skill,
    /// An event.
    Event,
}

impl ItemKind {
    /// The noun for it in messages.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
            Self::Skill => "skill",
            Self::Event => "event",
        }
    }

    /// The list that has items of this kind.
    pub(crate) const fn list(self) -> ItemList {
        match self {
            Self::Tool => ItemList::Tools,
            Self::Prompt => ItemList::Prompts,
            Self::Resource | Self::Skill => ItemList::Resources,
            Self::Event => ItemList::Events,
        }
    }
}

/// An item, as [`ListOptions::visible`](crate::config::ListOptions::visible),
/// [`ListOptions::listed`](crate::config::ListOptions::listed) and the functions of a server see it.
#[derive(Clone, Copy)]
pub struct ItemView<'a> {
    pub(crate) kind: ItemKind,
    pub(crate) name: &'a str,
    pub(crate) scopes: &'a [String],
    pub(crate) tags: &'a [&'static str],
    /// Of a tool that is registered; its methods are in `core/tool/view.rs`.
    pub(crate) tool: Option<&'a ToolEntry>,
    /// All tools, where a list of them is made.
    pub(crate) all: Option<&'a Entries<ToolEntry>>,
}

impl fmt::Debug for ItemView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, scopes, tags, .. } = self;
        let mut f = f.debug_struct("ItemView");
        f.field("kind", kind).field("name", name).field("scopes", scopes).field("tags", tags).finish()
    }
}

impl<'a> ItemView<'a> {
    pub(crate) const fn new(kind: ItemKind, name: &'a str, scopes: &'a [String]) -> Self {
        Self { kind, name, scopes, tags: &[], tool: None, all: None }
    }

    /// The kind of the item.
    #[must_use]
    pub fn kind(&self) -> ItemKind {
        self.kind
    }

    /// The name of a tool, prompt or event, with the prefix of its mount; the URI of a resource or a template; what follows
    /// `skill://` in the URI of a skill.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The scopes that a caller needs.
    #[must_use]
    pub fn scopes(&self) -> &'a [String] {
        self.scopes
    }

    /// The tags of a tool.
    #[must_use]
    pub fn tags(&self) -> &'a [&'static str] {
        self.tags
    }
}

/// Decides whether a caller sees an item.
pub(crate) type VisibleFn = Callback<dyn Fn(Option<&Principal>, &ItemView<'_>) -> bool + Send + Sync>;

/// Decides whether the first scope, which was granted, implies the second.
pub(crate) type ImpliesFn = Arc<dyn Fn(&str, &str) -> bool + Send + Sync>;

/// How a server that identifies its callers decides what they may do.
#[derive(Clone, Default)]
pub(crate) struct AccessRules {
    /// The scopes that callers can acquire.
    pub(crate) acquirable: Vec<String>,
    /// Besides the scope itself.
    pub(crate) implies: Option<ImpliesFn>,
    pub(crate) visible: Option<VisibleFn>,
}

impl AccessRules {
    /// Whether these granted scopes include all of those.
    fn include<S: AsRef<str>>(&self, granted: &[String], required: &[S]) -> bool {
        required.iter().map(AsRef::as_ref).all(|required| {
            granted.iter().any(|granted| {
                granted == required || self.implies.as_ref().is_some_and(|implies| implies(granted, required))
            })
        })
    }
}

/// The items that a request may see and call.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    pub(crate) caller: Option<&'a Principal>,
    /// `None` if the server does not tell callers apart, so that every item is visible.
    pub(crate) rules: Option<&'a AccessRules>,
}

/// Why an item is not called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessError<'a> {
    /// It does not exist, for this caller at least.
    Unknown,
    /// It needs these scopes, and the caller lacks some of them.
    MissingScopes(&'a [String]),
}

impl<'a> Access<'a> {
    /// If the server identifies callers, it has rules, and a request without a caller has no scopes.
    pub(crate) fn new(caller: Option<&'a Principal>, rules: Option<&'a AccessRules>) -> Self {
        Self { caller, rules }
    }

    /// Access to everything, for servers that do not identify callers.
    pub(crate) const TRUSTED: Self = Self { caller: None, rules: None };

    /// The caller; `None` for an anonymous caller, or if callers are not told apart.
    pub(crate) fn caller(self) -> Option<&'a Principal> {
        self.caller
    }

    /// Whether every item is visible.
    pub(crate) fn is_full(self) -> bool {
        self.rules.is_none()
    }

    /// The granted scopes, sorted and without duplicates.
    pub(crate) fn scopes(self) -> Vec<&'a str> {
        let granted = self.caller.into_iter().flat_map(|caller| &caller.scopes);
        let mut scopes: Vec<&str> = granted.map(String::as_str).collect();
        sort_by(&mut scopes, Ord::cmp);
        scopes.dedup();
        scopes
    }

    /// Whether an item may be called.
    ///
    /// # Errors
    /// It may not; the error says whether the caller learns of the item.
    pub(crate) fn check<'i>(self, item: ItemView<'i>) -> Result<(), AccessError<'i>> {
        let Some(rules) = self.rules else { return Ok(()) };
        if let Some(visible) = &rules.visible {
            // a rule that panics hides the item
            let is_visible = catch_unwind(AssertUnwindSafe(|| visible(self.caller, &item)));
            if !is_visible.unwrap_or(false) {
                return Err(AccessError::Unknown);
            }
        }
        if rules.include(self.caller.map_or(&[], |caller| &caller.scopes), item.scopes) {
            Ok(())
        } else if rules.include(&rules.acquirable, item.scopes) {
            Err(AccessError::MissingScopes(item.scopes))
        } else {
            Err(AccessError::Unknown)
        }
    }

    /// Whether an item may be called.
    pub(crate) fn allows(self, item: ItemView<'_>) -> bool {
        self.check(item).is_ok()
    }

    /// Whether an item is listed.
    pub(crate) fn sees(self, item: ItemView<'_>) -> bool {
        self.check(item) != Err(AccessError::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view<'a>(name: &'a str, scopes: &'a [String]) -> ItemView<'a> {
        ItemView::new(ItemKind::Tool, name, scopes)
    }

    fn scopes(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn an_item_is_listed_if_what_the_caller_lacks_can_be_acquired() {
        let rules = AccessRules { acquirable: scopes(&["read", "write"]), ..AccessRules::default() };
        let ada = Principal::new("x", "ada").with_scopes(["read"]);
        let access = Access::new(Some(&ada), Some(&rules));
        let (read, both, admin) = (scopes(&["read"]), scopes(&["read", "write"]), scopes(&["read", "admin"]));
        assert_eq!(access.check(view("a", &read)), Ok(()));
        assert_eq!(access.check(view("b", &both)), Err(AccessError::MissingScopes(&both)));
        assert_eq!(access.check(view("c", &admin)), Err(AccessError::Unknown));
        let anonymous = Access::new(None, Some(&rules));
        assert!(anonymous.allows(view("d", &[])) && !anonymous.allows(view("a", &read)));
        assert!(anonymous.sees(view("a", &read)) && !anonymous.sees(view("c", &admin)));
        assert!(Access::TRUSTED.allows(view("c", &admin)));
    }

    #[test]
    fn a_scope_implies_others_by_the_rule_of_the_server_only() {
        let ada = Principal::new("x", "ada").with_scopes(["notes"]);
        let read = scopes(&["notes:read"]);
        let plain = AccessRules::default();
        assert!(!Access::new(Some(&ada), Some(&plain)).sees(view("a", &read)));
        let nested = |granted: &str, required: &str| {
            required.strip_prefix(granted).is_some_and(|rest| rest.starts_with(':'))
        };
        let rules = AccessRules { implies: Some(Arc::new(nested)), ..AccessRules::default() };
        assert!(Access::new(Some(&ada), Some(&rules)).allows(view("a", &read)));
        assert!(!Access::new(Some(&ada), Some(&rules)).allows(view("a", &scopes(&["notesx:read"]))));
    }

    #[test]
    fn what_the_rule_of_the_server_hides_does_not_exist_and_a_rule_that_panics_hides() {
        let visible = |caller: Option<&Principal>, item: &ItemView<'_>| {
            assert!(item.name() != "panic");
            caller.is_some_and(|caller| item.name().starts_with(caller.subject()))
        };
        let rules = AccessRules {
            acquirable: scopes(&["x"]),
            visible: Some(Callback(Arc::new(visible))),
            ..AccessRules::default()
        };
        let ada = Principal::new("x", "ada");
        let access = Access::new(Some(&ada), Some(&rules));
        let x = scopes(&["x"]);
        assert!(access.allows(view("ada_1", &[])) && access.sees(view("ada_2", &x)));
        assert_eq!(access.check(view("bob_1", &x)), Err(AccessError::Unknown));
        assert_eq!(access.check(view("panic", &[])), Err(AccessError::Unknown));
    }
}
