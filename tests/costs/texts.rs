//! Texts that types parse and patterns match, in lists.

use mcp_runtime::prelude::*;

use super::requests::{Outcome, Request, copies, each, list};

#[mcp_type]
pub(crate) struct Tag {
    #[schemars(regex(pattern = "^[a-z0-9-]+$"))]
    slug: Option<String>,
    #[schemars(regex(pattern = "^(a?){32}a{32}$"))]
    slow: Option<String>,
    #[schemars(email)]
    email: Option<String>,
    #[schemars(length(max = 100))]
    text: Option<String>,
}

/// Takes texts
#[mcp_tool]
pub(crate) fn parse(
    slip: Option<u32>,
    tags: Option<Vec<Tag>>,
    days: Option<Vec<chrono::NaiveDate>>,
    times: Option<Vec<chrono::DateTime<chrono::Utc>>>,
    uuids: Option<Vec<uuid::Uuid>>,
    texts: Option<Vec<String>>,
    floats: Option<Vec<f64>>,
    doubles: Option<Vec<Option<f32>>>,
) -> bool {
    let _ = (slip, tags, days, times, uuids, texts, floats, doubles);
    true
}

pub(crate) fn requests(bytes: usize) -> Vec<Request> {
    use Outcome::{Bounded, Result, ToolError};
    let parse = |name, arguments: String, outcome| Request::call(name, "parse", &arguments, outcome);
    let texts =
        |argument: &str, text: &str| format!(r#""{argument}":[{}]"#, list(|_| format!("\"{text}\""), bytes));
    let tags = |member: &str, text: &str| each("tags", |_| format!(r#"{{"{member}":"{text}"}}"#), bytes);
    let with_slip = |arguments: String| format!(r#""slip":"1",{arguments}"#);
    let a = |n: usize| "a".repeat(n);
    vec![
        parse("short texts with a pattern", tags("slug", "a-1"), Result),
        parse(
            "texts with a pattern",
            tags("slug", "this-is-a-slug-of-a-title-of-50-characters-or-more"),
            Result,
        ),
        parse(
            "texts with a pattern and a slip",
            with_slip(tags("slug", "this-is-a-slug-of-a-title-of-50-characters-or-more")),
            Bounded,
        ),
        parse("long texts with a pattern", tags("slug", &a(60_000.min(bytes / 2))), Result),
        parse("texts with a slow pattern", tags("slow", &a(40)), Result),
        parse("texts that break a slow pattern", tags("slow", &a(30)), ToolError),
        parse("email addresses", tags("email", "ada@example.com"), Result),
        parse("texts with a maximum", tags("text", "ada"), Result),
        parse("dates", texts("days", "2026-11-23"), Result),
        parse("dates and a slip", with_slip(texts("days", "2026-11-23")), Bounded),
        parse("dates that are not", texts("days", "2026-13-23"), ToolError),
        parse("times", texts("times", "2026-11-23T10:00:00.123456789Z"), Result),
        parse("UUIDs and a slip", with_slip(texts("uuids", "67e55044-10b1-426f-9247-bb680e5fe0c8")), Bounded),
        parse("texts of escapes", texts("texts", r"\u00e9\n\u0001"), Result),
        parse("texts of escapes and a slip", with_slip(texts("texts", r"\u00e9\n\u0001")), Bounded),
        parse(
            "long texts of escapes and a slip",
            with_slip(texts("texts", &r"\u0001".repeat(bytes / 20))),
            Result,
        ),
        parse("half surrogates", texts("texts", r"\ud800"), ToolError),
        parse("numbers with long exponents", copies("floats", "1.234567890123456789e-301", bytes), Result),
        parse(
            "numbers with long exponents and a slip",
            with_slip(copies("floats", "1.234567890123456789e-301", bytes)),
            Bounded,
        ),
        parse(
            "numbers with an exponent of 1,000 digits",
            each("doubles", |_| format!("1e-{}", "9".repeat(1000.min(bytes / 4))), bytes),
            Result,
        ),
        parse("numbers as strings with fractions", texts("floats", "1.5e3"), Bounded),
        parse("numbers that are words", texts("floats", "many"), ToolError),
        parse("150,000 wrong values", each("texts", |n| n.to_string(), bytes), ToolError),
    ]
}
