//! Durations are a whole number above zero and a unit: `250ms`, `5s`, `2m`, `1h`. Rates are a whole number above zero and
//! a duration: `60/1m`, or `5/s` for `5/1s`.
//!
//! Both crates compile this file, the runtime for rates that a program sets: it uses nothing of either. A test holds the
//! two copies equal.

/// The duration in milliseconds.
pub(crate) fn parse_milliseconds(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor).filter(|&found| found > 0)
}

/// How many times, and in how many milliseconds.
pub(crate) fn parse_rate(text: &str) -> Option<(u32, u64)> {
    let (times, period) = text.split_once('/')?;
    let times = Some(times).filter(|times| times.bytes().all(|b| b.is_ascii_digit()))?;
    let has_number = period.starts_with(|c: char| c.is_ascii_digit());
    let period =
        if has_number { parse_milliseconds(period) } else { parse_milliseconds(&format!("1{period}")) };
    Some((times.parse().ok().filter(|&times| times > 0)?, period?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_whole_number_and_a_unit() {
        for (text, found) in [("250ms", 250), ("5s", 5_000), ("2m", 120_000), ("1h", 3_600_000)] {
            assert_eq!(parse_milliseconds(text), Some(found), "{text}");
        }
        for text in ["", "5", "s", "0s", "5 s", "1.5s", "-1s", "5d", "5S", "99999999999999999999s", "é"] {
            assert_eq!(parse_milliseconds(text), None, "{text}");
        }
        assert_eq!(parse_milliseconds("18446744073709551615h"), None);
    }

    #[test]
    fn rates_have_a_number_and_a_time() {
        for (text, rate) in [
            ("60/1m", (60, 60_000)),
            ("60/m", (60, 60_000)),
            ("5/s", (5, 1_000)),
            ("1/250ms", (1, 250)),
            ("1000/24h", (1_000, 86_400_000)),
        ] {
            assert_eq!(parse_rate(text), Some(rate), "{text}");
        }
        for text in [
            "",
            "60",
            "60/",
            "/1m",
            "0/1m",
            "60/0s",
            "60 / 1m",
            "60/1d",
            "+6/1m",
            "5000000000/1s",
            "60/1m/1m",
        ] {
            assert_eq!(parse_rate(text), None, "{text}");
        }
    }
}
