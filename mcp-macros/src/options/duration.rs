//! Durations are a whole number above zero and a unit: `250ms`, `5s`, `2m`, `1h`.

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

#[cfg(test)]
mod tests {
    use super::parse_milliseconds;

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
}
