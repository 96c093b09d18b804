//! Rules in a parameter's attribute (`range`, `length`, `pattern`, `one_of`): published as schema keywords, enforced on
//! decoded values. A pattern is matched only against a text that all other rules accept, of bounded length.

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

use crate::schema::{MAX_PATTERN_TEXT, TextPattern, link_patterns, truncate};

/// The result that a visit of the rules collects.
enum RulesVisit<'a> {
    /// Whether the value satisfies all rules, without messages: the fast path.
    Accept(bool),
    /// A message for each rule that the value violates.
    Violations(&'a mut Vec<String>),
    /// The schema keywords.
    Publish(&'a mut Schema),
    /// Patterns that do not compile, and bounds that cannot be published.
    Invalid(&'a mut Vec<String>),
}

/// Checks the rules of one parameter, or publishes them.
#[allow(missing_debug_implementations)] // lives inside one call
pub struct Rules<'a> {
    visit: RulesVisit<'a>,
    /// Whether a rule has limited the length of a text.
    has_maximum: bool,
}

impl<'a> Rules<'a> {
    #[inline]
    fn new(visit: RulesVisit<'a>) -> Self {
        Self { visit, has_maximum: false }
    }

    /// Looks whether a value breaks none of the rules that are called with it.
    #[inline]
    pub(super) fn accepting() -> Self {
        Self::new(RulesVisit::Accept(true))
    }

    /// Whether the value breaks none.
    #[inline]
    pub(super) fn has_accepted(&self) -> bool {
        matches!(self.visit, RulesVisit::Accept(true))
    }

    /// Collects what is wrong with a value by the rules that are called with it.
    pub(super) fn collecting(violations: &'a mut Vec<String>) -> Self {
        Self::new(RulesVisit::Violations(violations))
    }

    /// Publishes the rules that are called with it.
    pub(super) fn publishing(schema: &'a mut Schema) -> Self {
        Self::new(RulesVisit::Publish(schema))
    }

    /// Checks the declarations of the rules that are called with it.
    pub(super) fn checking_declaration(errors: &'a mut Vec<String>) -> Self {
        Self::new(RulesVisit::Invalid(errors))
    }

    fn check(&mut self, satisfied: bool, message: impl FnOnce() -> String) {
        match &mut self.visit {
            RulesVisit::Accept(all) => *all &= satisfied,
            RulesVisit::Violations(list) if !satisfied => list.push(message()),
            _ => {}
        }
    }

    /// Whether a rule before this one refuses the value.
    fn is_refused(&self) -> bool {
        match &self.visit {
            RulesVisit::Accept(all) => !all,
            RulesVisit::Violations(list) => !list.is_empty(),
            _ => false,
        }
    }

    fn keyword(&mut self, key: &str, value: impl FnOnce() -> Value) {
        if let RulesVisit::Publish(schema) = &mut self.visit {
            schema.insert(key.to_owned(), value());
        }
    }

    /// The bound of a range, published as a keyword of `included` or `excluded`; an excluded integer as the one beside it, in
    /// the direction of `inwards`.
    fn bound<N: Copy + Display + Serialize, K, B: RangeBound<N, K>>(
        &mut self,
        bound: Bound<B>,
        [included, excluded]: [&str; 2],
        inwards: i64,
    ) -> Bound<N> {
        let bound = bound.map(RangeBound::into_number);
        let number = match bound {
            Bound::Included(number) | Bound::Excluded(number) => number,
            Bound::Unbounded => return bound,
        };
        match &mut self.visit {
            RulesVisit::Publish(schema) => {
                let is_excluded = matches!(bound, Bound::Excluded(_));
                let (keyword, value) = match next_integer(number, inwards).filter(|_| is_excluded) {
                    Some(next) => (included, Some(next)),
                    None => (if is_excluded { excluded } else { included }, published_number(number)),
                };
                schema.insert(keyword.to_owned(), value.unwrap_or(Value::Null));
            }
            RulesVisit::Invalid(list) if published_number(number).is_none() => {
                list.push(format!("{number} cannot be published\nkeep the bounds of `range` within 64 bits"));
            }
            _ => {}
        }
        bound
    }

    /// Bounds on a number.
    pub fn range<T: Ranged<M>, M, A, B>(&mut self, value: Option<&T>, min: Bound<A>, max: Bound<B>)
    where
        A: RangeBound<T::Number, T::Kind>,
        B: RangeBound<T::Number, T::Kind>,
    {
        let min: Bound<T::Number> = self.bound(min, ["minimum", "exclusiveMinimum"], 1);
        let max: Bound<T::Number> = self.bound(max, ["maximum", "exclusiveMaximum"], -1);
        let Some(number) = value.and_then(Ranged::number) else { return };
        let violation = match (min, max) {
            (Bound::Included(min), _) if number < min => format!("less than the minimum of {min}"),
            (Bound::Excluded(min), _) if number <= min => format!("not greater than {min}"),
            (_, Bound::Included(max)) if number > max => format!("greater than the maximum of {max}"),
            (_, Bound::Excluded(max)) if number >= max => format!("not less than {max}"),
            _ => return,
        };
        self.check(false, || format!("{number} is {violation}"));
    }

    /// Bounds on the length: characters of a string, items of a collection.
    pub fn length<T: Length>(&mut self, value: Option<&T>, min: Option<usize>, max: Option<usize>) {
        if let Some(min) = min {
            self.keyword(T::MIN, || min.into());
        }
        if let Some(max) = max {
            self.keyword(T::MAX, || max.into());
            self.has_maximum = true;
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
        self.keyword("pattern", || {
            link_patterns();
            pattern.source.into()
        });
        if let (RulesVisit::Invalid(list), Err(e)) = (&mut self.visit, pattern.compiled()) {
            list.push(format!("`{}` is not a regular expression: {e}", pattern.source));
        }
        let has_maximum = std::mem::replace(&mut self.has_maximum, true);
        if !has_maximum {
            self.keyword("maxLength", || MAX_PATTERN_TEXT.into());
        }
        let Some(text) = value.and_then(Patterned::text) else { return };
        if !has_maximum && text.len() > MAX_PATTERN_TEXT {
            let length = text.chars().count();
            self.check(length <= MAX_PATTERN_TEXT, || {
                format!("has {length} characters, more than the maximum of {MAX_PATTERN_TEXT}")
            });
        }
        if self.is_refused() {
            return;
        }
        let matches = pattern.compiled().is_ok_and(|regex| regex.is_match(text));
        self.check(matches, || {
            format!("`{}` does not match the pattern `{}`", truncate(text), pattern.source)
        });
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

/// A bound as the number of a keyword. A decimal is serialized as text, and displayed as a number.
fn published_number<N: Display + Serialize>(number: N) -> Option<Value> {
    let text = number.to_string();
    match serde_json::to_value(number).ok()? {
        number @ Value::Number(_) => Some(number),
        _ => text.parse().ok().map(Value::Number),
    }
}

/// The integer beside another; none of other numbers. A decimal is serialized as text.
fn next_integer<N: Serialize>(number: N, step: i64) -> Option<Value> {
    let number = serde_json::to_value(number).ok()?;
    match (number.as_i64(), number.as_u64()) {
        (Some(integer), _) => integer.checked_add(step).map(Value::from),
        (None, Some(integer)) => integer.checked_add_signed(step).map(Value::from),
        _ => None,
    }
}

/// Numbers, which `range` applies to; `M` marks how.
#[diagnostic::on_unimplemented(
    message = "`range` needs a number, not `{Self}`",
    label = "`range` does not apply to this type",
    note = "for text and collections write `length(..)`"
)]
pub trait Ranged<M> {
    /// The type of the bounds.
    type Number: Copy + PartialOrd + Display + Serialize;
    /// [`Primitive`] or [`Converted`].
    type Kind;
    /// The number, unless it is absent.
    fn number(&self) -> Option<Self::Number>;
}

/// Marks the numbers of Rust.
#[derive(Debug)]
pub struct Primitive;
/// Marks numbers of other crates, such as decimals: they convert from integers and floats.
#[derive(Debug)]
pub struct Converted;
/// Marks a number of kind `M` in another type.
#[derive(Debug)]
pub struct Within<M>(M);

/// Numbers that bound a range of `N`: those of its type, whole numbers for floats, and both for converted numbers.
#[diagnostic::on_unimplemented(
    message = "a bound of this `range` is not a `{N}`",
    label = "`range` needs bounds of type `{N}`"
)]
pub trait RangeBound<N, K> {
    /// The bound as a number of the range.
    fn into_number(self) -> N;
}

/// The bound of a range at the end where it has none.
#[derive(Debug, Clone, Copy)]
pub enum NoBound {}
impl<N, K> RangeBound<N, K> for NoBound {
    fn into_number(self) -> N {
        match self {}
    }
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
        impl Ranged<Primitive> for $t {
            type Number = $t;
            type Kind = Primitive;
            fn number(&self) -> Option<$t> {
                Some(*self)
            }
        }
        impl RangeBound<$t, Primitive> for $t {
            fn into_number(self) -> $t {
                self
            }
        }
    )*};
}
numbers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);

// one integer type for each float, so that it is inferred for `range(0..=1)`
impl RangeBound<f32, Primitive> for i64 {
    fn into_number(self) -> f32 {
        self as f32
    }
}
impl RangeBound<f64, Primitive> for i64 {
    fn into_number(self) -> f64 {
        self as f64
    }
}

// no number of Rust converts from both
#[diagnostic::do_not_recommend]
impl<T: Copy + PartialOrd + Display + Serialize + From<i64> + TryFrom<f64>> Ranged<Converted> for T {
    type Number = T;
    type Kind = Converted;
    fn number(&self) -> Option<T> {
        Some(*self)
    }
}
impl<N: From<i64>> RangeBound<N, Converted> for i64 {
    fn into_number(self) -> N {
        self.into()
    }
}

macro_rules! choices {
    ($($t:ty)*) => {$(
        impl OneOf<$t> for $t {
            fn is(&self, choice: $t) -> bool {
                *self == choice
            }
        }
    )*};
}
choices!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize char);

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

impl<M, T: Ranged<M>> Ranged<Within<M>> for Option<T> {
    type Number = T::Number;
    type Kind = T::Kind;
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
    compiled: OnceLock<Result<TextPattern, regex_lite::Error>>,
}

impl Pattern {
    /// The expression of this source.
    #[must_use]
    pub const fn new(source: &'static str) -> Self {
        Self { source, compiled: OnceLock::new() }
    }

    fn compiled(&self) -> Result<&TextPattern, &regex_lite::Error> {
        self.compiled.get_or_init(|| TextPattern::new(self.source)).as_ref()
    }
}
