//! The checked-in list of scenarios that do not pass yet, one `set/scenario` a line; called by `main`.

use std::collections::{BTreeMap, BTreeSet};

use crate::verdict::Verdict;

const LIST: &str = include_str!("not-yet.txt");

/// Every entry, as set and scenario.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    let entries = LIST.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    entries.map(|line| line.split_once('/').unwrap_or_else(|| panic!("`{line}` is not `set/scenario`")))
}

/// The scenarios of a set that do not pass yet.
pub(crate) fn of_set(set: &str) -> BTreeSet<&'static str> {
    all().filter(|(of, _)| *of == set).map(|(_, scenario)| scenario).collect()
}

/// What is wrong with the server, or with the list.
pub(crate) fn compare(not_yet: &BTreeSet<&str>, verdicts: &BTreeMap<String, Verdict>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (scenario, verdict) in verdicts {
        match (verdict, not_yet.contains(scenario.as_str())) {
            (Verdict::Passed, true) => {
                complaints.push(format!("`{scenario}` passes\n  remove it from `not-yet.txt`"));
            }
            (Verdict::Not(why), false) => complaints.push(format!("`{scenario}`\n  {}", why.join("\n  "))),
            _ => {}
        }
    }
    let unknown = not_yet.iter().filter(|scenario| !verdicts.contains_key(**scenario));
    complaints
        .extend(unknown.map(|name| format!("`{name}` is not in this set\n  remove it from `not-yet.txt`")));
    complaints
}

#[test]
fn the_list_is_stale_either_way() {
    let not = || Verdict::Not(vec!["FAILURE x: y".to_owned()]);
    let verdicts = BTreeMap::from([
        ("fails".to_owned(), not()),
        ("fails-as-listed".to_owned(), not()),
        ("passes".to_owned(), Verdict::Passed),
        ("passes-though-listed".to_owned(), Verdict::Passed),
    ]);
    let complaints = compare(&BTreeSet::from(["fails-as-listed", "passes-though-listed", "gone"]), &verdicts);
    assert_eq!(
        complaints,
        [
            "`fails`\n  FAILURE x: y",
            "`passes-though-listed` passes\n  remove it from `not-yet.txt`",
            "`gone` is not in this set\n  remove it from `not-yet.txt`",
        ]
    );
}
