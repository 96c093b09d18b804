//! Suggestions for misspelt names.

use std::cmp::Reverse;

/// The known name most similar to a misspelt one, if any is similar enough to be suggested.
///
/// Case is ignored; a transposition counts as one edit, and about one edit in three letters is allowed.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = fold(name);
    // names come from clients: a very long one must not cost quadratic time
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
        // a name of one or two letters is one edit away from any other
        let is_similar = distance < letters.len().max(other.len());
        if distance > limit || !is_similar {
            continue;
        }
        // typing errors are rare at the start of a word, so of two equal distances the longer common prefix wins
        let prefix = Reverse(letters.iter().zip(&other).take_while(|(a, b)| a == b).count());
        if best
            .is_none_or(|(best_distance, best_prefix, _)| (distance, prefix) < (best_distance, best_prefix))
        {
            best = Some((distance, prefix, candidate));
        }
    }
    best.map(|(_, _, candidate)| candidate)
}

fn fold(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).collect()
}

/// The number of insertions, deletions, substitutions and transpositions of neighbours that turn `a` into `b`.
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
    fn typing_errors_are_recognized() {
        let known = ["query", "limit", "user_id", "sort_order"];
        assert_eq!(nearest("querry", known), Some("query"));
        assert_eq!(nearest("qurey", known), Some("query"));
        assert_eq!(nearest("LIMIT", known), Some("limit"));
        assert_eq!(nearest("userId", known), Some("user_id"));
        assert_eq!(nearest("sortOrder", known), Some("sort_order"));
    }

    #[test]
    fn dissimilar_names_are_not_suggested() {
        let known = ["query", "limit", "a"];
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("b", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest(&"q".repeat(100_000), known), None);
    }

    #[test]
    fn the_most_similar_name_wins() {
        assert_eq!(nearest("serch", ["perch", "search", "searches"]), Some("search"));
        assert_eq!(nearest("searchs", ["perch", "search", "reaches"]), Some("search"));
    }
}
