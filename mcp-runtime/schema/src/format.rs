//! The values of `format` that are checked where a schema asks for it: by the grammars that JSON Schema names, and those that
//! schemars names for times without offset.

use serde_json::Value;

use super::error::{Mismatch, quote};

/// A format of strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StringFormat {
    Email,
    Uri,
    Date,
    DateTime,
    PartialDateTime,
    PartialTime,
    Uuid,
}

/// Why a text does not have the `format` of its schema.
pub fn format_error(schema: &Value, text: &str) -> Option<String> {
    let format = StringFormat::from_name(schema.get("format")?.as_str()?)?;
    format.mismatch(text).map(|mismatch| mismatch.message)
}

impl StringFormat {
    /// The format that a schema names, if it is one of these.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "email" => Self::Email,
            "uri" => Self::Uri,
            "date" => Self::Date,
            "date-time" => Self::DateTime,
            "partial-date-time" => Self::PartialDateTime,
            "partial-time" => Self::PartialTime,
            "uuid" => Self::Uuid,
            _ => return None,
        })
    }

    /// As in `a date, as in 2026-07-28`.
    fn describe(self) -> &'static str {
        match self {
            Self::Email => "an email address",
            Self::Uri => "a URI, as in https://example.com/a",
            Self::Date => "a date, as in 2026-07-28",
            Self::DateTime => "a date and time, as in 2026-07-28T12:00:00Z",
            Self::PartialDateTime => "a date and time, as in 2026-07-28T12:00:00",
            Self::PartialTime => "a time, as in 12:00:00",
            Self::Uuid => "a UUID",
        }
    }

    /// The mismatch of a text that does not have this format.
    pub(super) fn mismatch(self, text: &str) -> Option<Mismatch> {
        let expected = (!self.matches(text)).then(|| self.describe())?;
        Some(Mismatch::new(expected, format!("{} is not {expected}", quote(text))))
    }

    /// Whether a text has this format.
    pub(super) fn matches(self, text: &str) -> bool {
        match self {
            Self::Email => is_email(text),
            Self::Uri => is_uri(text),
            Self::Date => is_date(text),
            Self::DateTime => is_date_time(text),
            Self::PartialDateTime => {
                text.split_once(['T', 't']).is_some_and(|(date, time)| is_date(date) && is_partial_time(time))
            }
            Self::PartialTime => is_partial_time(text),
            Self::Uuid => is_uuid(text),
        }
    }
}

/// A mailbox of RFC 5321, without comments.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    if local.len() > 64 || domain.len() > 255 {
        return false;
    }
    let is_atom_byte = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&b);
    let is_dotted = local.split('.').all(|atom| !atom.is_empty() && atom.bytes().all(is_atom_byte));
    let is_quoted = local.len() >= 2
        && local.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).is_some_and(|inner| {
            let mut bytes = inner.bytes();
            while let Some(byte) = bytes.next() {
                let is_allowed = match byte {
                    b'\\' => bytes.next().is_some_and(|next| matches!(next, b' '..=b'~')),
                    b'"' => false,
                    other => matches!(other, b' '..=b'~'),
                };
                if !is_allowed {
                    return false;
                }
            }
            true
        });
    (is_dotted || is_quoted) && is_domain(domain)
}

fn is_domain(domain: &str) -> bool {
    if let Some(literal) = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let address = literal.strip_prefix("IPv6:").unwrap_or(literal);
        return address.parse::<std::net::IpAddr>().is_ok();
    }
    domain.split('.').all(|label| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    })
}

/// A URI with a scheme, by RFC 3986.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme_byte = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.bytes().all(is_scheme_byte) {
        return false;
    }
    let (before_fragment, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    if fragment.contains('#') {
        return false;
    }
    // brackets enclose the address of a host, and are allowed nowhere else
    let (host, path) = match before_fragment.strip_prefix("//") {
        Some(after) => after.split_at(after.find(['/', '?']).unwrap_or(after.len())),
        None => ("", before_fragment),
    };
    let host = match (host.find('['), host.find(']')) {
        (Some(open), Some(close)) if open < close => {
            let address = host.get(open + 1..close).unwrap_or_default();
            if !address.starts_with(['v', 'V']) && address.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            [host.get(..open).unwrap_or_default(), host.get(close + 1..).unwrap_or_default()]
        }
        (None, None) => [host, ""],
        _ => return false,
    };
    host.into_iter().chain([path, fragment]).all(has_uri_bytes)
}

fn has_uri_bytes(text: &str) -> bool {
    let is_escape =
        |after: &str| after.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~:/?@!$&'()*+,;=%".contains(&b))
        && text.split('%').skip(1).all(is_escape)
}

/// A full date of RFC 3339.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let [_, _, _, _, b'-', _, _, b'-', _, _] = bytes else { return false };
    let number = |from: usize, to: usize| digits(bytes.get(from..to).unwrap_or_default());
    let (Some(year), Some(month), Some(day)) = (number(0, 4), number(5, 7), number(8, 10)) else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// A date and time of RFC 3339, with its offset.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    if !is_date(date) {
        return false;
    }
    let (clock, offset) = match time.strip_suffix(['Z', 'z']) {
        Some(clock) => (clock, 0),
        None => {
            let Some(sign) = time.rfind(['+', '-']) else { return false };
            let (clock, zone) = time.split_at(sign);
            let [sign, h1, h2, b':', m1, m2] = zone.as_bytes() else { return false };
            match (digits(&[*h1, *h2]), digits(&[*m1, *m2])) {
                (Some(hours @ 0..=23), Some(minutes @ 0..=59)) => {
                    let offset = hours * 60 + minutes;
                    (clock, if *sign == b'-' { -offset } else { offset })
                }
                _ => return false,
            }
        }
    };
    match clock_digits(clock) {
        Some((0..=23, 0..=59, 0..=59)) => true,
        // a leap second is the last one of a day in UTC
        Some((hours @ 0..=23, minutes @ 0..=59, 60)) => {
            (hours * 60 + minutes - offset).rem_euclid(24 * 60) == 24 * 60 - 1
        }
        _ => false,
    }
}

/// A time without offset.
fn is_partial_time(text: &str) -> bool {
    matches!(clock_digits(text), Some((0..=23, 0..=59, 0..=60)))
}

/// Hours, minutes and seconds, which may have a fraction.
fn clock_digits(text: &str) -> Option<(i32, i32, i32)> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let [h1, h2, b':', m1, m2, b':', s1, s2] = clock.as_bytes() else { return None };
    Some((digits(&[*h1, *h2])?, digits(&[*m1, *m2])?, digits(&[*s1, *s2])?))
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

fn digits(bytes: &[u8]) -> Option<i32> {
    let is_number = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit);
    is_number.then(|| bytes.iter().fold(0, |number, digit| number * 10 + i32::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_format(name: &str, good: &[&str], bad: &[&str]) {
        let format = StringFormat::from_name(name).expect("a format");
        for text in good {
            assert!(format.matches(text), "{text} is {name}");
        }
        for text in bad {
            assert!(!format.matches(text), "{text} is not {name}");
        }
    }

    #[test]
    fn each_format_is_its_grammar() {
        assert_format(
            "email",
            &["a@b", "ada.lovelace+x@example.co.uk", "\"a b\"@example.com", "x@[127.0.0.1]", "x@[IPv6:::1]"],
            &[
                "", "@", "a@", "@b", "a b@c", "a..b@c", ".a@b", "a@b..c", "a@-b", "a@b-", "a@[1]", "a",
                "\"@b", "é@b",
            ],
        );
        assert_format(
            "uri",
            &[
                "https://example.com/a?b=c#d",
                "mailto:a@b",
                "urn:isbn:1",
                "file:///x",
                "http://[::1]:80/",
                "x:%20",
                "https://u@h:1/",
                "x:",
            ],
            &[
                "",
                "example.com",
                "/a",
                "//h/a",
                "1x:y",
                "x y:z",
                "http://a b",
                "http://a/%2",
                "http://[::1",
                "http://[g]/",
                "x:[",
                "http://a/é",
                "x:#a#b",
                "http://a/<b>",
                ":x",
            ],
        );
        assert_format(
            "date",
            &["2026-07-28", "2024-02-29", "2000-02-29", "0000-01-01"],
            &[
                "2026-7-28",
                "2026-02-29",
                "1900-02-29",
                "2026-13-01",
                "2026-00-01",
                "2026-01-00",
                "2026-04-31",
                "26-01-01",
                "2026-01-01T",
                "२०२६-01-01",
            ],
        );
        assert_format(
            "date-time",
            &[
                "2026-07-28T12:00:00Z",
                "2026-07-28t12:00:00.5z",
                "2026-07-28T12:00:00+05:30",
                "1998-12-31T23:59:60Z",
                "1998-12-31T15:59:60.123-08:00",
            ],
            &[
                "2026-07-28",
                "2026-07-28T12:00:00",
                "2026-07-28 12:00:00Z",
                "2026-07-28T24:00:00Z",
                "2026-07-28T12:60:00Z",
                "2026-07-28T12:00Z",
                "2026-07-28T12:00:00.Z",
                "2026-07-28T12:00:00+5:30",
                "2026-07-28T12:00:00+24:00",
                "1998-12-31T22:59:60Z",
                "2026-02-30T12:00:00Z",
                "2026-07-28T12:00:61Z",
            ],
        );
        assert_format(
            "uuid",
            &["67e55044-10b1-426f-9247-bb680e5fe0c8", "67E55044-10B1-426F-9247-BB680E5FE0C8"],
            &["", "67e5504410b1426f9247bb680e5fe0c8", "67e55044-10b1-426f-9247-bb680e5fe0cg"],
        );
        assert_eq!(StringFormat::from_name("hostname"), None);
    }
}
