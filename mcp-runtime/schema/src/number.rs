//! Exact comparison and division of JSON numbers: `2^53 + 1` is not `2^53`, `0.3` is a multiple of `0.1`.

use std::{cmp::Ordering, fmt};

use serde_json::Number;

/// Compares two numbers by value, regardless of notation.
pub(super) fn compare(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return a.cmp(&b);
    }
    // most are small, and exact as floats
    let is_exact = |float: f64| float.abs() < 9_007_199_254_740_992.0;
    if let (Some(a), Some(b)) = (a.as_f64().filter(|a| is_exact(*a)), b.as_f64().filter(|b| is_exact(*b)))
        && let Some(order) = a.partial_cmp(&b)
    {
        return order;
    }
    let ((a, a_rest), (b, b_rest)) = (parts(a), parts(b));
    a.cmp(&b).then_with(|| a_rest.total_cmp(&b_rest))
}

/// The integral part of a number, and what is left of it: equal numbers have equal parts, and their order is that of the parts.
pub(super) fn parts(number: &Number) -> (i128, f64) {
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    if let Some(whole) = whole {
        return (whole, 0.0);
    }
    let float = float(number);
    // beyond the range of integers, the conversion saturates
    let whole = float as i128;
    let is_saturated = matches!(whole, i128::MIN | i128::MAX);
    // -0.0 equals 0
    (whole, if is_saturated { float } else { float.fract() + 0.0 })
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

/// Whether a number is an integer by value: `30.0` is.
pub(super) fn is_integer(number: &Number) -> bool {
    !number.is_f64() || float(number).fract() == 0.0
}

/// An integer type of Rust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegerType {
    min: i128,
    max: u128,
}

impl IntegerType {
    /// By its name, as in `u8`, or that of its `format`, as in `uint8`.
    pub fn named(name: &str) -> Option<Self> {
        macro_rules! by_name {
            ($($integer:ident $format:literal)*) => {
                match name {
                    $(stringify!($integer) | $format => Some(Self {
                        min: i128::try_from($integer::MIN).ok()?,
                        max: u128::try_from($integer::MAX).ok()?,
                    }),)*
                    _ => None,
                }
            };
        }
        by_name!(i8 "int8" i16 "int16" i32 "int32" i64 "int64" i128 "int128" isize "int"
            u8 "uint8" u16 "uint16" u32 "uint32" u64 "uint64" u128 "uint128" usize "uint")
    }

    /// Whether it holds a number that is an integer. A float is also the next integers beyond 128 bits.
    pub(super) fn holds(self, number: &Number) -> bool {
        match (number.as_i64(), number.as_u64()) {
            (Some(number), _) if number < 0 => i128::from(number) >= self.min,
            (_, Some(number)) => u128::from(number) <= self.max,
            _ => {
                let float = float(number);
                let is_beyond = float >= u128::MAX as f64 || float <= i128::MIN as f64;
                !is_beyond && float as i128 >= self.min && float as u128 <= self.max
            }
        }
    }

    /// The message about a number that it does not hold, which is shown as it was written.
    pub fn refusal(self, number: &str) -> String {
        if number.contains(['.', 'e', 'E']) {
            format!("{number} is not {self}")
        } else if number.starts_with('-') {
            format!("{number} is less than the minimum of {}", self.min)
        } else {
            format!("{number} is greater than the maximum of {}", self.max)
        }
    }
}

impl fmt::Display for IntegerType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an integer from {} to {}", self.min, self.max)
    }
}

/// Whether `divisor` divides `number` without remainder, in decimal notation.
pub(super) fn is_multiple(number: &Number, divisor: &Number) -> bool {
    let (Some((digits, exponent)), Some((by, by_exponent))) = (decimal(number), decimal(divisor)) else {
        return false;
    };
    if by == 0 {
        return false;
    }
    let shift = exponent - by_exponent;
    if shift >= 0 {
        let mut remainder = digits % by;
        for _ in 0..shift {
            if remainder == 0 {
                break;
            }
            remainder = remainder * 10 % by;
        }
        return remainder == 0;
    }
    let mut by = by;
    for _ in 0..-shift {
        if by > digits {
            break;
        }
        by = by.saturating_mul(10);
    }
    digits % by == 0
}

/// The digits and the power of ten of a number's shortest decimal form, without its sign.
fn decimal(number: &Number) -> Option<(u128, i32)> {
    let text = number.to_string();
    let text = text.trim_start_matches('-');
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.trim_start_matches('+').parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}").parse().ok()?;
    Some((digits, exponent - i32::try_from(fraction.len()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn comparison_is_exact() {
        let cases = [
            ("9007199254740993", "9007199254740992.0", Ordering::Greater),
            ("18446744073709551615", "18446744073709551616.0", Ordering::Less),
            ("-1", "-0.5", Ordering::Less),
            ("0", "-0.0", Ordering::Equal),
            ("0", "0.5", Ordering::Less),
            ("3", "3.0", Ordering::Equal),
            ("-9223372036854775808", "-1e300", Ordering::Greater),
            ("1.5", "2.5", Ordering::Less),
        ];
        for (a, b, expected) in cases {
            assert_eq!(compare(&number(a), &number(b)), expected, "{a} and {b}");
            assert_eq!(compare(&number(b), &number(a)), expected.reverse(), "{b} and {a}");
        }
    }

    #[test]
    fn multiples_are_exact_in_decimal() {
        let multiples = [
            ("0.3", "0.1"),
            ("4.5", "1.5"),
            ("0", "7"),
            ("-12", "4"),
            ("1e300", "1"),
            ("7.0", "7"),
            ("0.0075", "0.0001"),
        ];
        for (a, b) in multiples {
            assert!(is_multiple(&number(a), &number(b)), "{a} of {b}");
        }
        for (a, b) in [("0.35", "0.1"), ("1", "2"), ("1e-7", "1"), ("1", "1e3"), ("10", "4"), ("1", "0")] {
            assert!(!is_multiple(&number(a), &number(b)), "{a} of {b}");
        }
    }
}
