//! Rates are a whole number above zero and a time: `60/1m`, `5/s`. Sizes are a whole number above zero and a unit:
//! `50KB`, `64KiB`, `2MB`.

use crate::options::duration::parse_milliseconds;

/// How many times, and in how many milliseconds.
pub(crate) fn parse_rate(text: &str) -> Option<(u32, u64)> {
    let (times, period) = text.split_once('/')?;
    let times = parse_number(times)?;
    let has_number = period.starts_with(|c: char| c.is_ascii_digit());
    let period =
        if has_number { parse_milliseconds(period) } else { parse_milliseconds(&format!("1{period}")) };
    Some((u32::try_from(times).ok()?, period?))
}

/// The size in bytes.
pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let factor = match unit {
        "B" => 1,
        "KB" => 1_000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        _ => return None,
    };
    parse_number(number)?.checked_mul(factor)
}

/// A whole number above zero, without a sign.
fn parse_number(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten().filter(|&number| number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn sizes_have_a_number_and_a_unit() {
        for (text, bytes) in
            [("1B", 1), ("50KB", 50_000), ("64KiB", 65_536), ("2MB", 2_000_000), ("1MiB", 1_048_576)]
        {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
        for text in [
            "",
            "50",
            "KB",
            "0KB",
            "1.5MB",
            "50 KB",
            "50kb",
            "-1B",
            "99999999999999999999B",
            "18446744073709551615MB",
        ] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }
}
