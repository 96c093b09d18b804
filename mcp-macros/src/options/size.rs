//! Sizes are a whole number above zero and a unit: `50KB`, `64KiB`, `2MB`.

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
    number.parse::<u64>().ok()?.checked_mul(factor).filter(|&bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

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
