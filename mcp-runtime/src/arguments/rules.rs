//! Rules in a parameter's attribute (`range`, `length`, `pattern`, `one_of`): published as schema keywords, enforced on
//! decoded values.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt::Display,
    ops::Bound,
    sync::OnceLock,
};

use schemars::Schema;
use serde::Serialize;
use serde_json::Value;

type RulesFn<T> = fn(Option<&T>, &mut Rules);

/// What a visit of the rules collects.
enum RulesVisit<'a> {
    /// Whether the value satisfies all rules, without messages: the fast path.
    Accept(bool),
    /// A message for each rule that the value violates.
    Violations(Vec<String>),
    /// The schema keywords.
    Publish(&'a mut Schema),
    /// Patterns that do not compile.
    InvalidPatterns(Vec<String>),
}

/// Checks the rules of one parameter, or publishes them.
#[allow(missing_debug_implementations)] // lives inside one call
pub struct Rules<'a>(RulesVisit<'a>);

impl Rules<'_> {
    pub(super) fn accept<T>(rules: RulesFn<T>, value: &T) -> bool {
        let mut checker = Rules(RulesVisit::Accept(true));
        rules(Some(value), &mut checker);
        matches!(checker.0, RulesVisit::Accept(true))
    }

    pub(super) fn violations<T>(rules: RulesFn<T>, value: &T) -> Vec<String> {
        let mut checker = Rules(RulesVisit::Violations(Vec::new()));
        rules(Some(value), &mut checker);
        match checker.0 {
            RulesVisit::Violations(list) => list,
            _ => Vec::new(),
        }
    }

    pub(super) fn publish<T>(rules: RulesFn<T>, schema: &mut Schema) {
        rules(None, &mut Rules(RulesVisit::Publish(schema)));
    }

    pub(super) fn invalid_patterns<T>(rules: RulesFn<T>) -> Vec<String> {
        let mut checker = Rules(RulesVisit::InvalidPatterns(Vec::new()));
        rules(None, &mut checker);
        match checker.0 {
            RulesVisit::InvalidPatterns(list) => list,
            _ => Vec::new(),
        }
    }

    fn check(&mut self, satisfied: bool, message: impl FnOnce() -> String) {
        match &mut self.0 {
            RulesVisit::Accept(all) => *all &= satisfied,
            RulesVisit::Violations(list) if !satisfied => list.push(message()),
            _ => {}
        }
    }

    fn keyword(&mut self, key: &str, value: impl FnOnce() -> Value) {
        if let RulesVisit::Publish(schema) = &mut self.0 {
            schema.insert(key.to_owned(), value());
        }
    }

    /// Bounds on a number.
    pub fn range<T: Ranged>(&mut self, value: Option<&T>, min: Bound<T::Number>, max: Bound<T::Number>) {
        let json = |n: T::Number| serde_json::to_value(n).unwrap_or(Value::Null);
        match min {
            Bound::Included(min) => self.keyword("minimum", || json(min)),
            Bound::Excluded(min) => self.keyword("exclusiveMinimum", || json(min)),
            Bound::Unbounded => {}
        }
        match max {
            Bound::Included(max) => self.keyword("maximum", || json(max)),
            Bound::Excluded(max) => self.keyword("exclusiveMaximum", || json(max)),
            Bound::Unbounded => {}
        }
        let Some(number) = value.and_then(Ranged::number) else { return };
        let (low, high) = match (min, max) {
            (Bound::Included(min), _) if number < min => {
                (Some(format!("less than the minimum of {min}")), None)
            }
            (Bound::Excluded(min), _) if number <= min => (Some(format!("not greater than {min}")), None),
            (_, Bound::Included(max)) if number > max => {
                (None, Some(format!("greater than the maximum of {max}")))
            }
            (_, Bound::Excluded(max)) if number >= max => (None, Some(format!("not less than {max}"))),
            _ => (None, None),
        };
        let violation = low.or(high);
        self.check(violation.is_none(), || format!("{number} is {}", violation.unwrap_or_default()));
    }

    /// Bounds on the length: characters of a string, items of a collection.
    pub fn length<T: Length>(&mut self, value: Option<&T>, min: Option<usize>, max: Option<usize>) {
        if let Some(min) = min {
            self.keyword(T::MIN, || min.into());
        }
        if let Some(max) = max {
            self.keyword(T::MAX, || max.into());
        }
        let Some(length) = value.and_then(Length::length) else { return };
        let unit = T::UNIT;
        self.check(min.is_none_or(|min| length >= min), || {
            format!("has {length} {unit}, fewer than the minimum of {}", min.unwrap_or_default())
        });
        self.check(max.is_none_or(|max| length <= max), || {
            format!("has {length} {unit}, more than the maximum of {}", max.unwrap_or_default())
        });
    }

    /// A regular expression that some part of a string must match.
    pub fn pattern<T: Patterned>(&mut self, value: Option<&T>, pattern: &'static Pattern) {
        self.keyword("pattern", || pattern.source.into());
        if let (RulesVisit::InvalidPatterns(list), Err(e)) = (&mut self.0, pattern.compiled()) {
            list.push(format!("`{}` is not a regular expression: {e}", pattern.source));
        }
        let Some(text) = value.and_then(Patterned::text) else { return };
        let matches = pattern.compiled().is_ok_and(|regex| regex.is_match(text));
        self.check(matches, || format!("`{text}` does not match the pattern `{}`", pattern.source));
    }

    /// The only values allowed.
    pub fn one_of<T: OneOf<C>, C: Copy + Serialize + Display>(&mut self, value: Option<&T>, choices: &[C]) {
        self.keyword("enum", || serde_json::to_value(choices).unwrap_or(Value::Null));
        let Some(value) = value else { return };
        let allowed = choices.iter().any(|choice| value.is(*choice));
        self.check(allowed || value.absent(), || {
            let choices: Vec<_> = choices.iter().map(|c| format!("`{c}`")).collect();
            format!("is not one of {}", choices.join(", "))
        });
    }
}

/// Numbers, which `range` applies to.
#[diagnostic::on_unimplemented(
    message = "`range` needs a number, not `{Self}`",
    label = "`range` does not apply to this type",
    note = "for text and collections write `length(..)`"
)]
pub trait Ranged {
    /// The type of the bounds.
    type Number: Copy + PartialOrd + Display + Serialize;
    /// The number, unless it is absent.
    fn number(&self) -> Option<Self::Number>;
}
/// Texts and collections, which `length` applies to.
#[diagnostic::on_unimplemented(
    message = "`length` needs text or a collection, not `{Self}`",
    label = "`length` does not apply to this type",
    note = "for numbers write `range(..)`"
)]
pub trait Length {
    #[doc(hidden)]
    const MIN: &'static str = "minItems";
    #[doc(hidden)]
    const MAX: &'static str = "maxItems";
    #[doc(hidden)]
    const UNIT: &'static str = "items";
    /// The length, unless it is absent.
    fn length(&self) -> Option<usize>;
}
/// Texts, which `pattern` applies to.
#[diagnostic::on_unimplemented(
    message = "`pattern` needs text, not `{Self}`",
    label = "`pattern` does not apply to this type"
)]
pub trait Patterned {
    /// The text, unless it is absent.
    fn text(&self) -> Option<&str>;
}
/// Types that `one_of` applies to, with choices of type `C`.
#[diagnostic::on_unimplemented(
    message = "`one_of` with choices of type `{C}` does not apply to `{Self}`",
    label = "`one_of` does not apply to this type",
    note = "it needs text or an integer, and choices of that type"
)]
pub trait OneOf<C> {
    /// Whether it is that choice.
    fn is(&self, choice: C) -> bool;
    #[doc(hidden)]
    fn absent(&self) -> bool {
        false
    }
}

macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl Ranged for $t {
            type Number = $t;
            fn number(&self) -> Option<$t> {
                Some(*self)
            }
        }
    )*};
}
numbers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64);

macro_rules! choices {
    ($($t:ty)*) => {$(
        impl OneOf<$t> for $t {
            fn is(&self, choice: $t) -> bool {
                *self == choice
            }
        }
    )*};
}
choices!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize char);

macro_rules! texts {
    ($($t:ty)*) => {$(
        impl Length for $t {
            const MIN: &'static str = "minLength";
            const MAX: &'static str = "maxLength";
            const UNIT: &'static str = "characters";
            fn length(&self) -> Option<usize> {
                Some(self.chars().count())
            }
        }
        impl Patterned for $t {
            fn text(&self) -> Option<&str> {
                Some(self)
            }
        }
        impl OneOf<&'static str> for $t {
            fn is(&self, choice: &'static str) -> bool {
                &**self == choice
            }
        }
    )*};
}
texts!(String Box<str> Cow<'static, str>);

macro_rules! collections {
    ($($t:ty, $min:literal, $max:literal, $unit:literal, [$($g:ident)*];)*) => {$(
        impl<$($g),*> Length for $t {
            const MIN: &'static str = $min;
            const MAX: &'static str = $max;
            const UNIT: &'static str = $unit;
            fn length(&self) -> Option<usize> {
                Some(self.len())
            }
        }
    )*};
}
collections! {
    Vec<T>, "minItems", "maxItems", "items", [T];
    HashSet<T, S>, "minItems", "maxItems", "items", [T S];
    BTreeSet<T>, "minItems", "maxItems", "items", [T];
    HashMap<K, V, S>, "minProperties", "maxProperties", "entries", [K V S];
    BTreeMap<K, V>, "minProperties", "maxProperties", "entries", [K V];
}

impl<T: Ranged> Ranged for Option<T> {
    type Number = T::Number;
    fn number(&self) -> Option<T::Number> {
        self.as_ref().and_then(T::number)
    }
}
impl<T: Length> Length for Option<T> {
    const MIN: &'static str = T::MIN;
    const MAX: &'static str = T::MAX;
    const UNIT: &'static str = T::UNIT;
    fn length(&self) -> Option<usize> {
        self.as_ref().and_then(T::length)
    }
}
impl<T: Patterned> Patterned for Option<T> {
    fn text(&self) -> Option<&str> {
        self.as_ref().and_then(T::text)
    }
}
impl<C, T: OneOf<C>> OneOf<C> for Option<T> {
    fn is(&self, choice: C) -> bool {
        self.as_ref().is_some_and(|v| v.is(choice))
    }
    fn absent(&self) -> bool {
        self.is_none()
    }
}

/// A regular expression, compiled on first use.
#[derive(Debug)]
pub struct Pattern {
    source: &'static str,
    compiled: OnceLock<Result<regex_lite::Regex, regex_lite::Error>>,
}

impl Pattern {
    /// The expression of this source.
    #[must_use]
    pub const fn new(source: &'static str) -> Self {
        Self { source, compiled: OnceLock::new() }
    }

    fn compiled(&self) -> Result<&regex_lite::Regex, &regex_lite::Error> {
        self.compiled.get_or_init(|| regex_lite::Regex::new(self.source)).as_ref()
    }
}
