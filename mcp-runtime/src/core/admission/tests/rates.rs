//! Durations and rates are what their digits and units say.

use crate::core::admission::rate_syntax::{parse_milliseconds, parse_rate};

fn fuzz(data: &[u8]) {
    fn milliseconds(text: &str) -> Option<u64> {
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let number: u128 = text.strip_suffix(unit)?.parse().ok()?;
        let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
        let (_, factor) = units.iter().find(|(known, _)| *known == unit)?;
        u64::try_from(number.checked_mul(*factor)?).ok().filter(|found| *found > 0)
    }

    let Ok(text) = std::str::from_utf8(data) else { return };
    assert_eq!(parse_milliseconds(text), milliseconds(text), "{text}");
    if let Some((times, period)) = parse_rate(text) {
        assert!(times > 0 && period > 0, "{text}");
        let (left, right) = text.split_once('/').unwrap_or_default();
        assert_eq!(left.parse(), Ok(times), "{text}");
        let one = if right.starts_with(|c: char| c.is_ascii_digit()) { "" } else { "1" };
        assert_eq!(milliseconds(&format!("{one}{right}")), Some(period), "{text}");
    }
}

inventory::submit!(crate::fuzzing::Target { name: "rates", run: fuzz });
