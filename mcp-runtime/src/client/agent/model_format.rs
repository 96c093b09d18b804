//! Names of tools in the form that the APIs of models take: of the characters that they allow.

use std::collections::{HashMap, HashSet};

use super::artifact::hex_digest;
use crate::core::recent_map::RecentMap;

/// The longest name that all of these APIs take.
const MAX_NAME: usize = 64;
/// The number of names that are remembered. Beyond it, those are forgotten that were not listed for longest.
const MAX_NAMES: usize = 100_000;
/// The same for bytes of the tools' own names, which are the servers'.
const MAX_NAME_BYTES: usize = 16 << 20;

/// Which names stand for which tools. Once a name was given, it stays for as long as the tool is listed.
pub(super) struct ModelNames {
    by_tool: RecentMap<String, String>,
    by_name: HashMap<String, String>,
}

impl Default for ModelNames {
    fn default() -> Self {
        Self::with_bytes(MAX_NAME_BYTES)
    }
}

impl ModelNames {
    fn with_bytes(max_bytes: usize) -> Self {
        let by_tool = RecentMap::with_bytes(MAX_NAMES, max_bytes, |tool: &String, _| tool.len());
        Self { by_tool, by_name: HashMap::new() }
    }

    /// The tool that a name stands for.
    pub(super) fn tool(&self, name: &str) -> Option<&str> {
        self.by_name.get(name).map(String::as_str)
    }

    /// Names for these tools, in their order.
    pub(super) fn names(&mut self, tools: &[&str]) -> Vec<String> {
        for tool in self.by_tool.trim().into_keys() {
            // it has had both if a tool with the first one as its own name came later
            for name in [allowed(&tool, MAX_NAME), legal_name(&tool)] {
                if self.by_name.get(&name) == Some(&tool) {
                    self.by_name.remove(&name);
                }
            }
        }
        // a tool whose own name is allowed has it
        let own: HashSet<&str> = tools.iter().copied().filter(|tool| is_allowed(tool)).collect();
        let mut name_of = |tool: &str| {
            if own.contains(tool) {
                return tool.to_owned();
            }
            if let Some(known) = self.by_tool.get(tool).filter(|known| !own.contains(known.as_str())) {
                return known.clone();
            }
            let plain = allowed(tool, MAX_NAME);
            let is_free = plain.len() <= MAX_NAME
                && tool.chars().count() <= MAX_NAME
                && !own.contains(plain.as_str())
                && !self.by_name.contains_key(&plain);
            let name = if is_free { plain } else { legal_name(tool) };
            self.by_tool.insert(tool.to_owned(), name.clone());
            self.by_name.insert(name.clone(), tool.to_owned());
            name
        };
        tools.iter().map(|tool| name_of(tool)).collect()
    }
}

fn is_allowed_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn is_allowed(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_allowed_char)
}

fn allowed(name: &str, length: usize) -> String {
    name.chars().take(length).map(|c| if is_allowed_char(c) { c } else { '_' }).collect()
}

/// A name that these APIs take, of any text; names of different texts differ.
pub(super) fn legal_name(text: &str) -> String {
    format!("{}_{}", allowed(text, MAX_NAME - 9), &hex_digest(text.as_bytes())[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_allowed_distinct_and_stay() {
        let mut names = ModelNames::default();
        let long = format!("shop.{}", "x".repeat(100));
        let tools = ["shop.buy", "shop_buy", "shop/buy", &long, "tee.größe"];
        let first = names.names(&tools);
        assert!(first.iter().all(|name| is_allowed(name)), "{first:?}");
        assert_eq!(first.iter().collect::<HashSet<_>>().len(), tools.len(), "{first:?}");
        assert_eq!(first[1], "shop_buy", "a name that is allowed stays as it is");
        assert_eq!(names.names(&tools), first);
        // also when the others are away
        assert_eq!(names.names(&["shop/buy"]), [first[2].clone()]);
        assert_eq!(names.tool(&first[3]), Some(&*long));
        assert_eq!(ModelNames::default().names(&["files.read"]), ["files_read"]);
    }

    #[test]
    fn names_of_servers_that_change_all_the_time_are_forgotten_and_one_in_use_stays() {
        const BYTES: usize = 160 << 10;
        let mut names = ModelNames::with_bytes(BYTES);
        let used = names.names(&["shop/buy", "shop.buy"]);
        // more than the bound by far
        for list in 0..4 {
            let others: Vec<_> =
                (0..10).map(|tool| format!("{list}/{tool}{}", "x".repeat(10 << 10))).collect();
            names.names(&others.iter().map(String::as_str).collect::<Vec<_>>());
            let kept: usize = names.by_tool.iter().map(|(tool, _)| tool.len()).sum();
            // two lists may exceed the bound, each a half of it
            assert!(kept <= BYTES + (210 << 10), "{kept} bytes");
            assert_eq!(names.by_name.len(), names.by_tool.iter().count());
            assert_eq!(names.names(&["shop/buy", "shop.buy"]), used, "after {list} lists");
            assert_eq!(names.tool(&used[1]), Some("shop.buy"));
        }
    }
}
