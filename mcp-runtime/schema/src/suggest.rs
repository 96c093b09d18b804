//! Suggestions for misspelt names.

use std::cmp::Reverse;

/// The most pairs of letters that are compared for one suggestion: an enumeration may have thousands of names.
const MOST_COMPARED: usize = 1 << 18;

/// The known name most similar to a misspelt one, if any is similar enough to be suggested.
///
/// Case is ignored; a transposition counts as one edit, and about one edit in three letters is allowed.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = Folded::new(name);
    // names come from clients: a very long one must not cost quadratic time
    if name.length == 0 || name.length > 128 {
        return None;
    }
    let mut best: Option<(Rank, &str)> = None;
    let mut compared = 0;
    for candidate in known {
        compared += candidate.len() * name.length + 64;
        if compared > MOST_COMPARED {
            break;
        }
        if let Some(rank) = name.rank(candidate)
            && best.is_none_or(|(best, _)| rank < best)
        {
            best = Some((rank, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The number of edits, and the length of the common prefix: typing errors are rare at the start of a word, so of two equal
/// distances the longer prefix wins.
type Rank = (usize, Reverse<usize>);

/// A name in lower case, and the number of its characters.
struct Folded {
    text: String,
    length: usize,
}

impl Folded {
    fn new(name: &str) -> Self {
        let text: String = name.chars().flat_map(char::to_lowercase).collect();
        Self { length: text.chars().count(), text }
    }

    /// How similar a known name is, if it is similar enough.
    fn rank(&self, known: &str) -> Option<Rank> {
        let limit = (self.length / 3).max(1);
        let known = Self::new(known);
        if known.length == 0 || known.length.abs_diff(self.length) > limit {
            return None;
        }
        let distance = strsim::osa_distance(&self.text, &known.text);
        // a name of one or two letters is one edit away from any other
        if distance > limit || distance >= self.length.max(known.length) {
            return None;
        }
        let prefix =
            self.text.chars().zip(known.text.chars()).take_while(|(one, other)| one == other).count();
        Some((distance, Reverse(prefix)))
    }
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
