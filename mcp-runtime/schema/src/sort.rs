//! Stable sorting whose code exists once in a program.
//!
//! The sort of the standard library is compiled again for each type of elements and each comparison, about 9 KiB each
//! time. Here the positions of the elements are sorted, which have one type, and the elements are swapped into place.

use std::cmp::Ordering;

/// Sorts stably. A list that is sorted already, as most are, costs one comparison for each element and no memory.
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    if items.is_sorted_by(|one, next| compare(one, next).is_le()) {
        return;
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    sort_positions(&mut order, &|one, other| match (items.get(one), items.get(other)) {
        (Some(one), Some(other)) => compare(one, other),
        _ => Ordering::Equal,
    });
    // `order` has, for each position, where its element is; each cycle is moved along, and marked as done
    for start in 0..order.len() {
        let mut position = start;
        while let Some(from) = order.get(position).copied().filter(|from| *from != position) {
            order[position] = position;
            if from == start {
                break;
            }
            items.swap(position, from);
            position = from;
        }
    }
}

#[inline(never)]
fn sort_positions(order: &mut [usize], compare: &dyn Fn(usize, usize) -> Ordering) {
    order.sort_by(|one, other| compare(*one, *other));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_sorted_as_by_the_stable_sort_of_the_standard_library() {
        // each list of up to six keys of four
        for length in 0..=6_u32 {
            for list in 0..4_usize.pow(length) {
                let keys = (0..length).map(|place| list / 4_usize.pow(place) % 4);
                let mut ours: Vec<_> = keys.enumerate().collect();
                let mut theirs = ours.clone();
                sort_by(&mut ours, |(_, one), (_, other)| one.cmp(other));
                theirs.sort_by_key(|(_, key)| *key);
                assert_eq!(ours, theirs);
            }
        }
    }
}
