//! Finds the name that was probably meant.
//!
//! Used for argument names and enum values here, and for tool, prompt and resource names by `registry`.

use std::cmp::Reverse;

/// The known name nearest to a misspelt one, if one is near enough to be worth saying.
///
/// Case is ignored; a transposition counts as one slip, and about one slip in three letters is allowed.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = fold(name);
    // Names come from clients: a very long one is near to nothing, and must not cost quadratic time.
    if letters.is_empty() || letters.len() > 128 {
        return None;
    }
    let limit = (letters.len() / 3).max(1);
    let mut best: Option<(usize, Reverse<usize>, &str)> = None;
    for candidate in known {
        let other = fold(candidate);
        if other.is_empty() || other.len().abs_diff(letters.len()) > limit {
            continue;
        }
        let distance = distance(&letters, &other);
        // One slip in a name of one or two letters makes any other name.
        let telling = distance < letters.len().max(other.len());
        if distance > limit || !telling {
            continue;
        }
        // Slips are rare at the start of a word, so of two that are equally near the longer prefix wins.
        let shared = Reverse(letters.iter().zip(&other).take_while(|(a, b)| a == b).count());
        if best.is_none_or(|(least, prefix, _)| (distance, shared) < (least, prefix)) {
            best = Some((distance, shared, candidate));
        }
    }
    best.map(|(_, _, candidate)| candidate)
}

fn fold(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).collect()
}

/// Insertions, deletions, substitutions and transpositions of neighbours that turn `a` into `b`.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX - 1);
            let mut cost =
                (at(&last, j) + usize::from(x != y)).min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped && x != y {
                cost = cost.min(at(&before_last, j - 1) + 1);
            }
            row.push(cost);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t19_slips_are_recognised() {
        let known = ["query", "limit", "user_id", "sort_order"];
        assert_eq!(nearest("querry", known), Some("query"));
        assert_eq!(nearest("qurey", known), Some("query"));
        assert_eq!(nearest("LIMIT", known), Some("limit"));
        assert_eq!(nearest("userId", known), Some("user_id"));
        assert_eq!(nearest("sortOrder", known), Some("sort_order"));
    }

    #[test]
    fn strangers_are_not() {
        let known = ["query", "limit", "a"];
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("b", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest(&"q".repeat(100_000), known), None);
    }

    #[test]
    fn the_nearest_wins() {
        assert_eq!(nearest("serch", ["perch", "search", "searches"]), Some("search"));
        assert_eq!(nearest("searchs", ["perch", "search", "reaches"]), Some("search"));
    }
}
