//! The names by which a value is taken for a secret, the values that are not secret whatever their name is, the ways in which a
//! secret is written inside other texts, and the secrets in URLs.

use mcp_runtime::__dev::sounds_secret;
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::trace::MASKED;
use crate::examine::words;

/// The shortest secret that is masked wherever it occurs: shorter ones occur by chance.
pub(super) const SHORTEST_SECRET: usize = 4;
/// The shortest value of a variable or a flag whose name has only a part that tells.
const SHORTEST_VALUE: usize = 8;
/// The shortest text with a likely name that is masked wherever it occurs.
const SHORTEST_LIKELY: usize = 6;
/// The shortest line of a secret of several lines that is masked by itself.
const SHORTEST_LINE: usize = 16;
/// Stands in a URL in place of a password.
const MASKED_PASSWORD: &str = "masked";
/// Ends of names without separators and in lower case.
const SURE: [&str; 21] = [
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "authorization",
    "authtoken",
    "bearertoken",
    "cookie",
    "credential",
    "encryptionkey",
    "masterkey",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "refreshtoken",
    "secret",
    "secretkey",
    "signingkey",
    "subscriptionkey",
];
/// Last words of names, which are other things too: a GPIO has a `pin`, and a test a `pass`.
const LIKELY: [&str; 8] = ["auth", "bearer", "dsn", "jwt", "otp", "pass", "pin", "pwd"];
/// Ends of names of tokens by which a client goes on, or that a tokenizer has.
const OPEN_TOKENS: [&str; 18] = [
    "bostoken",
    "canceltoken",
    "cancellationtoken",
    "continuationtoken",
    "continuetoken",
    "cursortoken",
    "deltatoken",
    "endtoken",
    "eostoken",
    "nexttoken",
    "pagetoken",
    "paginationtoken",
    "progresstoken",
    "resumetoken",
    "resumptiontoken",
    "starttoken",
    "stoptoken",
    "synctoken",
];
/// Last words of names that say nothing about the value.
const QUALIFIERS: [&str; 9] =
    ["b64", "base64", "confirm", "confirmation", "header", "json", "string", "text", "value"];
/// Texts that stand in place of a secret, or say how it is given, in lower case.
const OPEN_VALUES: [&str; 22] = [
    "auto",
    "basic",
    "bearer",
    "cookie",
    "default",
    "digest",
    "disabled",
    "enabled",
    "false",
    "header",
    "keyring",
    "masked",
    "none",
    "null",
    "oauth",
    "oauth2",
    "optional",
    "prompt",
    "required",
    "token",
    "true",
    "undefined",
];

/// How sure it is that a value is secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Its text, its number and the texts of its list are.
    Sure,
    /// The same of a plural, whose number is a count.
    SurePlural,
    /// Its text is, unless it says how a secret is given.
    Likely,
}

/// What the name of a member, a variable or a parameter tells.
pub(super) fn sign_of(name: &str) -> Option<Sign> {
    let mut words: Vec<String> = words(name).collect();
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    // `token_value`, `password_2`
    while words.len() > 1
        && words.last().is_some_and(|word| QUALIFIERS.contains(&word.as_str()) || is_number(word))
    {
        words.pop();
    }
    let last = words.pop()?.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    let whole = words.concat() + &last;
    let ends_with = |ends: &[&str], text: &str| ends.iter().any(|end| text.ends_with(end));
    if ends_with(&SURE, &whole) {
        return Some(Sign::Sure);
    }
    if whole.strip_suffix('s').is_some_and(|one| ends_with(&SURE, one)) {
        return Some(Sign::SurePlural);
    }
    let is_token = whole.ends_with("token") && !ends_with(&OPEN_TOKENS, &whole);
    // alone, it is a pattern
    let is_personal_token = last == "pat" && !words.is_empty();
    (is_token || is_personal_token || LIKELY.contains(&last.as_str())).then_some(Sign::Likely)
}

/// Whether a text is not secret, whatever its name is.
pub(super) fn is_open(name: &str, text: &str) -> bool {
    let is_path = || {
        text.starts_with(['/', '~', '.'])
            || text.get(1..3).is_some_and(|start| start == ":\\" || start == ":/")
    };
    let is_folder = || words(name).last().is_some_and(|word| word == "pwd") && is_path();
    text.is_empty()
        || text == MASKED
        || OPEN_VALUES.contains(&text.trim().to_ascii_lowercase().as_str())
        || is_folder()
}

/// Whether a text that has a likely name is masked in other places, too: a plain word occurs by chance.
pub(super) fn is_distinct(text: &str) -> bool {
    text.len() >= SHORTEST_LIKELY && text != MASKED && text.chars().any(|c| !c.is_alphabetic())
}

/// Whether the value of a variable or a flag is masked wherever it occurs.
pub(super) fn is_secret_value(name: &str, value: &str) -> bool {
    if is_open(name, value) {
        return false;
    }
    (value.len() >= SHORTEST_VALUE && sounds_secret(name))
        || (value.len() >= SHORTEST_SECRET && sign_of(name).is_some())
}

/// The secrets in a variable: its value, or what is secret in its URL.
pub(super) fn secrets_of_variable(name: &str, value: &str) -> Vec<String> {
    let mut secrets = Vec::new();
    if is_secret_value(name, value) {
        secrets.push(value.to_owned());
    }
    let _shown = masked_url(value, &mut secrets);
    secrets
}

/// Values of this process's environment that are secret.
pub(super) fn secret_variables() -> impl Iterator<Item = String> {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    variables.flat_map(|(name, value)| secrets_of_variable(&name, &value))
}

/// The spellings of a secret in JSON, in URLs and in quotes of programs, itself first; the lines of one that has several.
pub(super) fn spellings(secret: &str) -> Vec<String> {
    let escaped = |text: &str| {
        let quoted = Value::from(text).to_string();
        quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
    };
    let ascii = |text: &str| -> String {
        let mut units = [0; 2];
        text.chars()
            .map(|c| match c.is_ascii() {
                true => c.to_string(),
                false => c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
            })
            .collect()
    };
    let once = escaped(secret);
    let form: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let mut all = vec![secret.to_owned()];
    // inside a text that is inside a text; of programs whose JSON is ASCII; in single quotes
    let in_texts = [escaped(&once), ascii(&once), once, secret.replace('\\', "\\\\")];
    let in_urls = [
        percent_encoded(secret, "-._~"),
        percent_encoded(secret, "-._~/"),
        percent_encoded(secret, "-._~!*'()"),
        percent_encoded(secret, "-._~!$&'()*+,/:;=?@"),
        with_lowercase_digits(&percent_encoded(secret, "-._~")),
        form.replace('+', "%20"),
        form,
    ];
    let lines = secret.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE);
    // `-----BEGIN PRIVATE KEY-----`
    let lines = lines.filter(|line| !line.starts_with("-----")).map(str::to_owned);
    for spelling in in_texts.into_iter().chain(in_urls).chain(lines) {
        if !all.contains(&spelling) {
            all.push(spelling);
        }
    }
    all
}

fn percent_encoded(text: &str, kept: &str) -> String {
    let byte = |byte: u8| {
        let c = char::from(byte);
        if c.is_ascii_alphanumeric() || kept.contains(c) { c.to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(byte).collect()
}

/// The same text with `%2f` in place of `%2F`.
fn with_lowercase_digits(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        text.extend(["%", &digits.to_ascii_lowercase(), rest]);
    }
    text
}

fn percent_decoded(text: &str) -> String {
    let pair = format!("v={}", text.replace('+', "%2B").replace('&', "%26"));
    form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// Whether a parameter of a URL is secret.
fn is_secret_parameter(name: &str) -> bool {
    sign_of(name).is_some() || ["key", "sig", "signature"].contains(&name.to_ascii_lowercase().as_str())
}

/// A URL without its password and without the values of parameters whose names tell that they are secret, which are added to
/// `secrets`; `None` for other words. A URL without secrets stays as it is written.
pub(super) fn masked_url(word: &str, secrets: &mut Vec<String>) -> Option<String> {
    let mut url = Url::parse(word).ok().filter(|_| word.contains("://"))?;
    let mut is_masked = false;
    let mut add = |text: &str| {
        if text.len() >= SHORTEST_SECRET && !is_open("", text) {
            secrets.push(text.to_owned());
        }
    };
    if let Some(password) = url.password().filter(|password| *password != MASKED_PASSWORD).map(str::to_owned)
    {
        is_masked = true;
        // `postgres://postgres:postgres@..` is none
        if password != url.username() && password != url.scheme() {
            add(&password);
            add(&percent_decoded(&password));
        }
        let _has_host = url.set_password(Some(MASKED_PASSWORD));
    }
    let mut query = Vec::new();
    for part in url.query().into_iter().flat_map(|query| query.split('&')) {
        let pair = part.split_once('=').filter(|(name, value)| {
            (is_secret_parameter(name) || sounds_secret(name)) && !is_open(name, &percent_decoded(value))
        });
        match pair {
            Some((name, value)) => {
                is_masked = true;
                add(value);
                add(&percent_decoded(value));
                add(&percent_decoded(&value.replace('+', " ")));
                query.push(format!("{name}={MASKED}"));
            }
            None => query.push(part.to_owned()),
        }
    }
    if !is_masked {
        return Some(word.to_owned());
    }
    let fragment = url.fragment().map(|fragment| format!("#{fragment}")).unwrap_or_default();
    let query = if url.query().is_some() { format!("?{}", query.join("&")) } else { String::new() };
    url.set_fragment(None);
    url.set_query(None);
    Some(format!("{url}{query}{fragment}"))
}

/// A text without the secrets in its URLs, which are returned, too; `None` if it has none.
pub(super) fn without_secrets_of_urls(text: &str) -> Option<(String, Vec<String>)> {
    const SEPARATOR: &str = "://";
    let (mut masked, mut secrets) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some(at) = rest.find(SEPARATOR) {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let scheme = rest[..at].chars().rev().take_while(|c| is_scheme(*c)).count();
        let start = at - scheme;
        let after = at + SEPARATOR.len();
        let is_end = |c: char| c.is_whitespace() || c.is_control() || "\"'`<>\\|{}".contains(c);
        let end = rest[after..].find(is_end).map_or(rest.len(), |end| after + end);
        let word = rest[start..end].trim_end_matches(['.', ',', ';', ':', '!', ')', ']']);
        masked.push_str(&rest[..start]);
        // most have neither a password nor a query
        let shown = if word.contains(['@', '?']) { masked_url(word, &mut secrets) } else { None };
        masked.push_str(shown.as_deref().unwrap_or(word));
        rest = &rest[start + word.len()..];
    }
    masked.push_str(rest);
    (masked != text).then_some((masked, secrets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_in_every_spelling_and_names_that_resemble_them_are_not() {
        for name in [
            "X-Api-Key",
            "apiKey",
            "secret_key",
            "authorization",
            "Set-Cookie",
            "passphrase",
            "DB_PASSWORD",
            "newPassword",
            "password2",
            "clientSecret",
            "credential",
        ] {
            assert_eq!(sign_of(name), Some(Sign::Sure), "{name}");
        }
        assert_eq!(sign_of("credentials"), Some(Sign::SurePlural));
        for name in [
            "token",
            "SVC_TOKEN",
            "tokenValue",
            "auth",
            "bearer",
            "pwd",
            "pin",
            "GITHUB_PAT",
            "session-token",
        ] {
            assert_eq!(sign_of(name), Some(Sign::Likely), "{name}");
        }
        for name in [
            "progressToken",
            "nextPageToken",
            "cursor",
            "nextCursor",
            "tokens",
            "maxTokens",
            "token_count",
            "author",
            "authors",
            "authority",
            "key",
            "keywords",
            "primaryKey",
            "passed",
            "compass",
            "pattern",
            "pat",
            "pinned",
            "tokenizer",
            "cookiePolicy",
            "secretary",
            "",
        ] {
            assert_eq!(sign_of(name), None, "{name}");
        }
    }

    #[test]
    fn values_of_variables_are_secret_from_four_characters_on_unless_they_say_how_a_secret_is_given() {
        for (name, value, is_secret) in [
            ("API_KEY", "hunter2", true),
            ("GITHUB_PAT", "gh-1", true),
            ("DB_PASSWORD", "1234", true),
            ("RATES_KEY", "planted-secret", true),
            ("RATES_KEY", "short", false),
            ("API_KEY", "abc", false),
            ("MAX_TOKENS", "4096", false),
            ("TOKENIZERS_PARALLELISM", "false", false),
            ("GH_TOKEN", "None", false),
            ("PWD", "/srv/ada/work", false),
            ("GIT_AUTHOR_NAME", "Ada Lovelace", false),
            ("PATH", "/usr/local/bin", false),
        ] {
            assert_eq!(is_secret_value(name, value), is_secret, "{name}={value}");
        }
        assert_eq!(secrets_of_variable("DATABASE_URL", "postgres://u:PW%2B12@h/x"), ["PW%2B12", "PW+12"]);
        assert!(secrets_of_variable("DATABASE_URL", "postgres://postgres:postgres@h/x").is_empty());
    }

    #[test]
    fn a_secret_has_spellings_in_json_in_urls_and_in_quotes() {
        assert_eq!(spellings("Planted1"), ["Planted1"]);
        let all = spellings("Pl\"a\\n+ü/ 1");
        for spelling in [
            "Pl\\\"a\\\\n+ü/ 1",
            "Pl\\\\\\\"a\\\\\\\\n+ü/ 1",
            "Pl\\\"a\\\\n+\\u00fc/ 1",
            "Pl%22a%5Cn%2B%C3%BC%2F%201",
            "Pl%22a%5Cn%2B%C3%BC/%201",
            "Pl%22a%5Cn%2B%C3%BC%2F+1",
            "Pl%22a%5cn%2b%c3%bc%2f%201",
        ] {
            assert!(all.iter().any(|one| one == spelling), "{spelling}: {all:?}");
        }
        let key = "-----BEGIN PRIVATE KEY-----\nplanted-line-of-a-key\n-----END PRIVATE KEY-----";
        let all = spellings(key);
        assert!(all.iter().any(|one| one == "planted-line-of-a-key"), "{all:?}");
        assert!(
            !all.iter().any(|one| one.starts_with("-----BEGIN")
                && one.ends_with("KEY-----")
                && !one.contains("planted")),
            "{all:?}"
        );
    }

    #[test]
    fn urls_inside_a_text_lose_their_passwords_and_telling_parameters_only() {
        for (text, expected) in [
            ("at http://u:planted1@h/, and more", "at http://u:masked@h/, and more"),
            ("(https://h/x?api_key=planted1&page=2)", "(https://h/x?api_key=•••&page=2)"),
            ("{\"url\":\"http://h/?key=planted1\"}", "{\"url\":\"http://h/?key=•••\"}"),
            ("ü://:// http://h/?sig=planted1", "ü://:// http://h/?sig=•••"),
        ] {
            let (shown, secrets) = without_secrets_of_urls(text).unwrap_or_default();
            assert_eq!(shown, expected);
            assert!(secrets.iter().any(|secret| secret == "planted1"), "{text}: {secrets:?}");
            // once more, as for what is shown twice
            assert_eq!(without_secrets_of_urls(expected), None);
        }
        for text in [
            "",
            "://",
            "a://",
            "http://h/?author=ada&cursor=x",
            "http://ada@h/?q=a b",
            "https://h/a?token=none",
        ] {
            assert_eq!(without_secrets_of_urls(text), None, "{text}");
        }
    }
}
