//! BM25 over the tools that a caller may see, with a length for each of two fields: a short name that the query says counts more
//! than a long one, however long the description is. The number, lengths and words of these tools alone decide, so that tools
//! which others may see change nothing.

use std::collections::HashMap;

/// How fast the weight of a word that is repeated stops growing.
const K1: f32 = 1.2;
/// How much less a word counts in a long field.
const B: f32 = 0.75;
/// How much names and titles count beside the rest.
const HEAD: f32 = 2.0;

/// One value for names and titles, and one for all other texts.
type Fields = [f32; 2];

/// The words of tools, by the places of these.
#[derive(Default)]
pub(crate) struct Ranking {
    /// By word, the tools that have it, and how often in each field.
    places: HashMap<String, Vec<(u32, Fields)>>,
    /// The words of each tool.
    lengths: Vec<Fields>,
}

/// The words of one tool.
#[derive(Default)]
pub(crate) struct WordCounts(HashMap<String, Fields>);

impl WordCounts {
    /// Adds the words of a name or title.
    pub(crate) fn add_head(&mut self, text: &str) {
        self.add(text, [1.0, 0.0]);
    }

    /// Adds the words of another text, each of which counts this much.
    pub(crate) fn add_body(&mut self, text: &str, count: f32) {
        self.add(text, [0.0, count]);
    }

    fn add(&mut self, text: &str, counts: Fields) {
        crate::words::words(text, |word| add(self.0.entry(word).or_default(), counts));
    }
}

fn add([head, body]: &mut Fields, counts: Fields) {
    *head += counts[0];
    *body += counts[1];
}

impl Ranking {
    /// Adds the tool at a place.
    pub(crate) fn add(&mut self, place: usize, words: WordCounts) {
        let Ok(at) = u32::try_from(place) else { return };
        if self.lengths.len() <= place {
            self.lengths.resize(place + 1, Fields::default());
        }
        for (word, counts) in words.0 {
            self.lengths.get_mut(place).into_iter().for_each(|length| add(length, counts));
            self.places.entry(word).or_default().push((at, counts));
        }
    }

    /// The best of the visible tools for these words, by their places; and how many have one of the words.
    pub(crate) fn best(&self, query: &[String], visible: &[bool], limit: usize) -> (Vec<usize>, usize) {
        let is_visible = |place: u32| visible.get(place as usize).is_some_and(|visible| *visible);
        let length = |place: usize| self.lengths.get(place).copied().unwrap_or_default();
        let (mut count, mut total) = (0.0_f32, Fields::default());
        for (place, _) in visible.iter().enumerate().filter(|(_, visible)| **visible) {
            count += 1.0;
            add(&mut total, length(place));
        }
        let norm = |length: f32, total: f32| 1.0 - B + B * length * count / total.max(1.0);
        let mut scores = vec![0.0_f32; self.lengths.len()];
        for word in query {
            let found = self.places.get(word).map_or(&[][..], Vec::as_slice);
            let found = || found.iter().filter(|(place, _)| is_visible(*place));
            #[expect(clippy::cast_precision_loss, reason = "it is the number of tools")]
            let having = found().count() as f32;
            let rarity = (1.0 + (count - having + 0.5) / (having + 0.5)).ln();
            for (place, [head, body]) in found() {
                let [of_head, of_body] = length(*place as usize);
                let weight = HEAD * head / norm(of_head, total[0]) + body / norm(of_body, total[1]);
                let score = rarity * weight * (K1 + 1.0) / (weight + K1);
                scores.get_mut(*place as usize).into_iter().for_each(|sum| *sum += score);
            }
        }
        let scored = scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0);
        let mut ranked: Vec<(usize, f32)> = scored.collect();
        let total = ranked.len();
        // equal ones in the order of the list
        let order = |(a, x): &(usize, f32), (b, y): &(usize, f32)| y.total_cmp(x).then(a.cmp(b));
        if limit < total {
            ranked.select_nth_unstable_by(limit, order);
            ranked.truncate(limit);
        }
        ranked.sort_unstable_by(order);
        (ranked.into_iter().map(|(place, _)| place).collect(), total)
    }
}
