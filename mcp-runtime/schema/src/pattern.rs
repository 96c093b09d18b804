//! Regular expressions of schemas, matched in one pass over the text.
//!
//! `regex-lite` takes some dozen nanoseconds for each byte, and a call may have a hundred thousand texts and keys that each
//! are matched several times. Most patterns of schemas are small and of few constructs: they become a set of at most 64
//! positions, which one pass over the text advances together. All others are left to `regex-lite`, and so is
//! the decision what a valid pattern is.
//!
//! A program without patterns does not contain any of this: its schemas are compiled by [`TextPattern::linked`], which finds
//! the code only after something that can make a schema with patterns has called [`link_patterns`].

use std::sync::OnceLock;

use regex_lite::{Regex, RegexBuilder};

/// A compiled pattern.
#[derive(Debug)]
pub struct TextPattern {
    source: String,
    matcher: TextMatcher,
    /// What a byte of a text costs: how many positions, or parts of a state, may be looked at.
    size: usize,
}

#[derive(Debug)]
enum TextMatcher {
    Automaton(Box<Automaton>),
    Regex(Regex),
}

type CompilePattern = fn(&str) -> Result<TextPattern, regex_lite::Error>;

static COMPILE: OnceLock<CompilePattern> = OnceLock::new();

/// Links patterns into the program, for schemas that may have some.
pub fn link_patterns() {
    let _compile = COMPILE.get_or_init(|| TextPattern::new);
}

impl TextPattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// It is not a valid one.
    pub fn new(source: &str) -> Result<Self, regex_lite::Error> {
        let regex = Regex::new(source)?;
        let (size, matcher) = match Automaton::new(source) {
            Some(automaton) => (automaton.follow.len(), TextMatcher::Automaton(Box::new(automaton))),
            None => (regex_size(source), TextMatcher::Regex(regex)),
        };
        Ok(Self { source: source.to_owned(), matcher, size })
    }

    /// Compiles a pattern of a schema, after [`link_patterns`].
    ///
    /// # Errors
    /// It is not a valid one, or nothing has called `link_patterns`.
    pub(super) fn linked(source: &str) -> Result<Self, String> {
        let Some(compile) = COMPILE.get() else {
            return Err("the program was linked without patterns".to_owned());
        };
        compile(source).map_err(|error| error.to_string())
    }

    /// Whether a part of the text matches, or the text from its beginning or to its end where the pattern says so.
    pub fn is_match(&self, text: &str) -> bool {
        match &self.matcher {
            TextMatcher::Automaton(automaton) => automaton.is_match(text),
            TextMatcher::Regex(regex) => regex.is_match(text),
        }
    }

    /// How many steps of a check it takes to match a text.
    pub(super) fn steps(&self, text: &str) -> usize {
        1 + text.len().saturating_mul(self.size) / 8
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.source
    }
}

/// The size of an expression that `regex-lite` matches, which looks at each state for each character: repetitions are written
/// out, so its text does not tell. A state takes some dozen bytes, and as much longer than a position.
fn regex_size(source: &str) -> usize {
    let compiles = |limit: &usize| RegexBuilder::new(source).size_limit(*limit).build().is_ok();
    let mut limits = (9..24).map(|bits| 1 << bits);
    limits.find(compiles).unwrap_or(1 << 24) / 8
}

/// The positions of characters in a pattern, as bits.
type Positions = u64;

/// How deep groups may be nested.
const MAX_GROUPS: usize = 32;

/// A pattern whose positions fit into 64 bits.
#[derive(Debug)]
struct Automaton {
    at_start: bool,
    at_end: bool,
    /// Whether it matches the empty text.
    is_nullable: bool,
    first: Positions,
    last: Positions,
    /// The positions that may follow each position.
    follow: Vec<Positions>,
    /// The positions at which each ASCII character is accepted.
    ascii: [Positions; 128],
    /// The distinct sets of characters, with the positions at which they are.
    sets: Vec<(CharSet, Positions)>,
}

impl Automaton {
    /// The automaton of a valid pattern; `None` if it has too many positions, or constructs that are not known here.
    fn new(source: &str) -> Option<Self> {
        let (at_start, rest) = source.strip_prefix('^').map_or((false, source), |rest| (true, rest));
        let mut parser = PatternParser { rest, at_end: false, groups: 0 };
        let node = parser.alternatives()?;
        let is_anchored = at_start || parser.at_end;
        if !parser.rest.is_empty() || (is_anchored && matches!(node, PatternNode::Alternatives(_))) {
            return None;
        }
        let mut automaton = Self {
            at_start,
            at_end: parser.at_end,
            is_nullable: false,
            first: 0,
            last: 0,
            follow: Vec::new(),
            ascii: [0; 128],
            sets: Vec::new(),
        };
        let PatternPart { is_nullable, first, last } = automaton.add(&node)?;
        (automaton.is_nullable, automaton.first, automaton.last) = (is_nullable, first, last);
        for (byte, positions) in (0_u8..).zip(&mut automaton.ascii) {
            let matching = automaton.sets.iter().filter(|(set, _)| set.contains(char::from(byte)));
            *positions = matching.fold(0, |all, (_, positions)| all | positions);
        }
        Some(automaton)
    }

    /// Adds the positions of a part of the pattern.
    fn add(&mut self, node: &PatternNode) -> Option<PatternPart> {
        match node {
            PatternNode::Char(set) => {
                let position = 1_u64.checked_shl(u32::try_from(self.follow.len()).ok()?)?;
                self.follow.push(0);
                match self.sets.iter_mut().find(|(known, _)| known == set) {
                    Some((_, positions)) => *positions |= position,
                    None => self.sets.push((set.clone(), position)),
                }
                Some(PatternPart { is_nullable: false, first: position, last: position })
            }
            PatternNode::Sequence(nodes) => {
                let mut all = PatternPart::EMPTY;
                for node in nodes {
                    let next = self.add(node)?;
                    all = self.join(all, next);
                }
                Some(all)
            }
            PatternNode::Alternatives(nodes) => {
                let mut all = PatternPart { is_nullable: false, ..PatternPart::EMPTY };
                for node in nodes {
                    let next = self.add(node)?;
                    all.is_nullable |= next.is_nullable;
                    all.first |= next.first;
                    all.last |= next.last;
                }
                Some(all)
            }
            PatternNode::Repeat { node, least, most } => {
                let mut all = PatternPart::EMPTY;
                for count in 1..=most.unwrap_or((*least).max(1)) {
                    let mut next = self.add(node)?;
                    if most.is_none() && count >= *least {
                        self.connect(next.last, next.first);
                    }
                    next.is_nullable |= count > *least;
                    all = self.join(all, next);
                }
                Some(all)
            }
        }
    }

    /// Two parts, one after the other.
    fn join(&mut self, one: PatternPart, next: PatternPart) -> PatternPart {
        self.connect(one.last, next.first);
        PatternPart {
            is_nullable: one.is_nullable && next.is_nullable,
            first: one.first | if one.is_nullable { next.first } else { 0 },
            last: next.last | if next.is_nullable { one.last } else { 0 },
        }
    }

    fn connect(&mut self, from: Positions, to: Positions) {
        for (at, follow) in self.follow.iter_mut().enumerate() {
            if from >> at & 1 == 1 {
                *follow |= to;
            }
        }
    }

    /// The positions that follow one of these.
    fn following(&self, mut positions: Positions) -> Positions {
        let mut all = 0;
        while positions != 0 {
            all |= self.follow.get(positions.trailing_zeros() as usize).copied().unwrap_or_default();
            positions &= positions - 1;
        }
        all
    }

    fn accepting(&self, char: char) -> Positions {
        match self.ascii.get(char as usize) {
            Some(positions) => *positions,
            None => {
                let matching = self.sets.iter().filter(|(set, _)| set.contains(char));
                matching.fold(0, |all, (_, positions)| all | positions)
            }
        }
    }

    fn is_match(&self, text: &str) -> bool {
        if self.is_nullable && (text.is_empty() || !self.at_start || !self.at_end) {
            return true;
        }
        let mut positions = 0;
        let mut starting = self.first;
        for char in text.chars() {
            positions = (starting | self.following(positions)) & self.accepting(char);
            if !self.at_end && positions & self.last != 0 {
                return true;
            }
            if self.at_start {
                if positions == 0 {
                    return false;
                }
                starting = 0;
            }
        }
        self.at_end && positions & self.last != 0
    }
}

/// The characters that a part of a pattern begins and ends with.
#[derive(Clone, Copy)]
struct PatternPart {
    is_nullable: bool,
    first: Positions,
    last: Positions,
}

impl PatternPart {
    const EMPTY: Self = Self { is_nullable: true, first: 0, last: 0 };
}

#[derive(Debug)]
enum PatternNode {
    Char(CharSet),
    Sequence(Vec<PatternNode>),
    Alternatives(Vec<PatternNode>),
    Repeat { node: Box<PatternNode>, least: u32, most: Option<u32> },
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct CharSet {
    is_negated: bool,
    ranges: Vec<(char, char)>,
}

impl CharSet {
    fn contains(&self, char: char) -> bool {
        self.ranges.iter().any(|(first, last)| (first..=last).contains(&&char)) != self.is_negated
    }
}

/// Reads a valid pattern; every method returns `None` at a construct that it does not know.
struct PatternParser<'p> {
    rest: &'p str,
    at_end: bool,
    groups: usize,
}

impl PatternParser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.rest = self.rest.get(char.len_utf8()..)?;
        Some(char)
    }

    fn skip(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn alternatives(&mut self) -> Option<PatternNode> {
        let mut all = vec![self.sequence()?];
        while self.skip("|") {
            all.push(self.sequence()?);
        }
        if all.len() == 1 { all.pop() } else { Some(PatternNode::Alternatives(all)) }
    }

    fn sequence(&mut self) -> Option<PatternNode> {
        let mut all = Vec::new();
        while let Some(char) = self.peek() {
            if matches!(char, '|' | ')') {
                break;
            }
            if self.groups == 0 && self.rest == "$" {
                self.rest = "";
                self.at_end = true;
                break;
            }
            let node = self.atom()?;
            all.push(self.repeated(node)?);
        }
        Some(PatternNode::Sequence(all))
    }

    fn atom(&mut self) -> Option<PatternNode> {
        match self.next()? {
            '(' => {
                if !self.skip("?:") && self.peek() == Some('?') {
                    return None;
                }
                self.groups += 1;
                if self.groups > MAX_GROUPS {
                    return None;
                }
                let node = self.alternatives()?;
                self.groups -= 1;
                self.skip(")").then_some(node)
            }
            '[' => self.set().map(PatternNode::Char),
            '.' => Some(PatternNode::Char(CharSet { is_negated: true, ranges: vec![('\n', '\n')] })),
            '\\' => self.escape().map(PatternNode::Char),
            '^' | '$' | '*' | '+' | '?' | '{' | '}' | ']' => None,
            char => Some(PatternNode::Char(CharSet { is_negated: false, ranges: vec![(char, char)] })),
        }
    }

    fn repeated(&mut self, node: PatternNode) -> Option<PatternNode> {
        let (least, most) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                let (counts, rest) = self.rest.get(1..)?.split_once('}')?;
                // one character follows, which is skipped
                self.rest = self.rest.get(self.rest.len() - rest.len() - 1..)?;
                match counts.split_once(',') {
                    None => (counts.parse().ok()?, Some(counts.parse().ok()?)),
                    Some((least, "")) => (least.parse().ok()?, None),
                    Some((least, most)) => (least.parse().ok()?, Some(most.parse().ok()?)),
                }
            }
            _ => return Some(node),
        };
        self.next();
        // a lazy one matches the same texts
        self.skip("?");
        let is_repeated_again = matches!(self.peek(), Some('*' | '+' | '?' | '{'));
        (!is_repeated_again).then(|| PatternNode::Repeat { node: Box::new(node), least, most })
    }

    /// Parses the part after a backslash.
    fn escape(&mut self) -> Option<CharSet> {
        let char = self.next()?;
        let ranges = match char.to_ascii_lowercase() {
            'd' => vec![('0', '9')],
            'w' => vec![('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
            's' => vec![('\t', '\r'), (' ', ' ')],
            _ => match char {
                'n' => vec![('\n', '\n')],
                't' => vec![('\t', '\t')],
                'r' => vec![('\r', '\r')],
                _ if char.is_ascii_punctuation() && !matches!(char, '<' | '>') => vec![(char, char)],
                _ => return None,
            },
        };
        Some(CharSet { is_negated: char.is_ascii_uppercase(), ranges })
    }

    /// Parses the part after an opening bracket.
    fn set(&mut self) -> Option<CharSet> {
        let mut set = CharSet { is_negated: self.skip("^"), ranges: Vec::new() };
        if self.peek() == Some(']') {
            return None;
        }
        loop {
            let first = match self.next()? {
                ']' => return Some(set),
                '[' => return None,
                '\\' => {
                    let escaped = self.escape()?;
                    match escaped.ranges.as_slice() {
                        _ if escaped.is_negated => return None,
                        [(first, last)] if first == last => *first,
                        ranges => {
                            set.ranges.extend(ranges);
                            // a range cannot begin with a class
                            if self.peek() == Some('-') && !self.rest.starts_with("-]") {
                                return None;
                            }
                            continue;
                        }
                    }
                }
                // two of these are operators
                char @ ('&' | '~' | '-') if self.peek() == Some(char) => return None,
                char => char,
            };
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
            if !is_range {
                set.ranges.push((first, first));
                continue;
            }
            self.next();
            let last = match self.next()? {
                '[' | '-' | '&' | '~' => return None,
                '\\' => match self.escape()?.ranges.as_slice() {
                    [(first, last)] if first == last => *first,
                    _ => return None,
                },
                char => char,
            };
            set.ranges.push((first, last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATTERNS: [&str; 49] = [
        "",
        "^$",
        "^",
        "$",
        "a",
        "^a",
        "a$",
        "^-?\\d+$",
        "^\\d+$",
        "^[a-z0-9-]+$",
        "^[a-z][a-z0-9_]*$",
        "^x-",
        "^k[0-9]+$",
        "^(a?){9}a{9}$",
        "^(ab|a|bc)*$",
        "ab|ba",
        "^(?:ab|ba)$",
        "(?:a|b)$",
        "^(a|)b?$",
        "^[^a-b]+$",
        "[^a]",
        "^.$",
        "^.{2,3}$",
        "^a{2,}b$",
        "^a{0}b$",
        "^a{0,2}?b$",
        "^(a{1,2}b?){2}$",
        "^((a|b)*1)+$",
        "^\\w+\\s\\S\\W$",
        "^[\\w.-]+@[\\w-]+$",
        "\\.",
        "^\\D+$",
        "^[\\d-]+$",
        "^[-a]+$",
        "^[a\\-z]+$",
        "^[\\n\\t]$",
        "^é+$",
        "[é-ü]$",
        "^[^\\s]*$",
        "1b?a",
        "(a*)*b",
        "^(a*b*)*$",
        "a+?b",
        "^a|b$",
        "(?i)^ab$",
        "\\bab",
        "^[[:alpha:]]+$",
        "^\\x61+$",
        "^(a{20}){4}$",
    ];

    /// All texts of up to three of these characters, and some longer ones.
    fn texts() -> Vec<String> {
        let chars = ['a', 'b', 'A', '1', '-', '_', ' ', '\n', '.', '@', 'é', 'k', 'x'];
        let mut texts = vec![String::new()];
        let mut from = 0;
        for _ in 0..3 {
            let until = texts.len();
            for at in from..until {
                let longer: Vec<String> = chars.iter().map(|char| format!("{}{char}", texts[at])).collect();
                texts.extend(longer);
            }
            from = until;
        }
        let others = [
            "aaaaaaaaa",
            "aaaaaaaaaaaaaaaaaa",
            "aaaaaaaaaaaaaaaaaaa",
            "k0123",
            "ab1ba1",
            "a_b x.",
            "a.b@c-d",
        ];
        texts.extend(others.map(str::to_owned));
        texts.push("a".repeat(80));
        texts
    }

    #[test]
    fn every_pattern_matches_what_the_regex_matches() {
        let texts = texts();
        for source in PATTERNS {
            let regex = Regex::new(source).unwrap_or_else(|error| panic!("{source}: {error}"));
            let pattern = TextPattern::new(source).unwrap_or_else(|error| panic!("{source}: {error}"));
            for text in &texts {
                assert_eq!(pattern.is_match(text), regex.is_match(text), "{source:?} on {text:?}");
            }
        }
    }

    #[test]
    fn random_patterns_match_what_the_regex_matches() {
        let texts = texts();
        let parts = [
            "a", "b", "[ab]", "[^a]", ".", "(", "(?:", ")", ")", "|", "*", "+", "?", "{2}", "{0,1}", "\\d",
            "é", "^", "$",
        ];
        let mut seed = 7_u64;
        let mut compiled = 0;
        for _ in 0..3000 {
            let mut source = String::new();
            for _ in 0..8 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                source.push_str(parts[(seed >> 33) as usize % parts.len()]);
            }
            let Ok(regex) = Regex::new(&source) else { continue };
            let Some(automaton) = Automaton::new(&source) else { continue };
            compiled += 1;
            for text in texts.iter().step_by(7) {
                assert_eq!(automaton.is_match(text), regex.is_match(text), "{source:?} on {text:?}");
            }
        }
        assert!(compiled > 50, "{compiled}");
    }

    #[test]
    fn common_patterns_need_no_regex() {
        for source in PATTERNS.iter().take(43) {
            assert!(Automaton::new(source).is_some(), "{source}");
        }
        for source in PATTERNS.iter().skip(43) {
            assert!(Automaton::new(source).is_none(), "{source}");
        }
        let slow = TextPattern::new("^(a?){32}a{32}$").unwrap();
        assert!(format!("{:?}", slow.matcher).starts_with("Automaton"));
        assert!(slow.is_match(&"a".repeat(40)) && !slow.is_match(&"a".repeat(30)));
    }
}
