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

/// The place of a tool, and how often it has a word.
type Count = (u32, Fields);

/// The words of tools, by the places of these.
#[derive(Default)]
pub(crate) struct Ranking {
    /// By word, the tools that have it, and how often in each field.
    places: HashMap<String, Vec<Count>>,
    /// The words of each tool.
    lengths: Vec<Fields>,
}

/// Tools that a caller may see, and what they decide.
#[derive(Default)]
pub(crate) struct Visible {
    /// By place.
    tools: Vec<bool>,
    count: f32,
    /// How much each word of a field divides what it counts for.
    slopes: Fields,
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

    /// What these tools, by their places, decide for every query.
    pub(crate) fn count(&self, tools: Vec<bool>) -> Visible {
        let (mut count, mut total) = (0.0_f32, Fields::default());
        for (length, _) in self.lengths.iter().zip(&tools).filter(|(_, visible)| **visible) {
            count += 1.0;
            add(&mut total, *length);
        }
        Visible { tools, count, slopes: total.map(|total| B * count / total.max(1.0)) }
    }

    /// The words that some tool has, the rarest among the visible ones first: how rare it is, and the tools that have it. Visible
    /// tools with one of them are marked by their places.
    fn rarest_first(
        &self,
        query: &[String],
        visible: &Visible,
        has_word: &mut [bool],
    ) -> Vec<(f32, &[Count])> {
        let mut rarity = |found: &[Count]| {
            let mut having = 0.0_f32;
            for (place, _) in found {
                if visible.tools.get(*place as usize) == Some(&true) {
                    having += 1.0;
                    has_word.get_mut(*place as usize).into_iter().for_each(|has_word| *has_word = true);
                }
            }
            ((visible.count - having + 0.5) / (having + 0.5)).ln_1p()
        };
        let found = query.iter().filter_map(|word| self.places.get(word)).map(Vec::as_slice);
        let mut words: Vec<_> = found.map(|found| (rarity(found), found)).collect();
        words.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        words
    }

    /// The best of the visible tools for these words, by their places; and how many have one of the words.
    pub(crate) fn best(&self, query: &[String], visible: &Visible, limit: usize) -> (Vec<usize>, usize) {
        let Visible { tools, slopes, .. } = visible;
        let mut has_word = vec![false; tools.len()];
        let words = self.rarest_first(query, visible, &mut has_word);
        let mut scores = vec![0.0_f32; tools.len()];
        let mut ranked: Vec<u32> = Vec::new();
        let mut is_complete = false;
        let score = |scores: &[f32], place: u32| scores.get(place as usize).copied().unwrap_or_default();
        for (n, (rarity, found)) in words.iter().enumerate() {
            // where the words that are left can put no other tool among the best, they only order those that are there
            if !is_complete && ranked.len() > limit && ranked.len() < found.len() {
                let (_, last, _) = ranked
                    .select_nth_unstable_by(limit, |a, b| score(&scores, *b).total_cmp(&score(&scores, *a)));
                is_complete =
                    score(&scores, *last) > words.iter().skip(n).map(|(rarity, _)| rarity * (K1 + 1.0)).sum();
            }
            for (place, [head, body]) in *found {
                let at = *place as usize;
                let (Some(true), Some(sum), Some([of_head, of_body])) =
                    (tools.get(at), scores.get_mut(at), self.lengths.get(at))
                else {
                    continue;
                };
                if *sum == 0.0 {
                    if is_complete {
                        continue;
                    }
                    ranked.push(*place);
                }
                let norm = |length: f32, slope: f32| 1.0 - B + length * slope;
                let weight = HEAD * head / norm(*of_head, slopes[0]) + body / norm(*of_body, slopes[1]);
                *sum += rarity * weight * (K1 + 1.0) / (weight + K1);
            }
        }
        // equal ones in the order of the list
        let order = |a: &u32, b: &u32| score(&scores, *b).total_cmp(&score(&scores, *a)).then(a.cmp(b));
        if limit < ranked.len() {
            ranked.select_nth_unstable_by(limit, order);
            ranked.truncate(limit);
        }
        ranked.sort_unstable_by(order);
        let total = has_word.into_iter().filter(|has_word| *has_word).count();
        (ranked.into_iter().map(|place| place as usize).collect(), total)
    }
}
