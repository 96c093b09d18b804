//! Finds the scalar for which an array or object was refused whose parts a type reads before it understands them, as the forms
//! of most enums and `flatten` do: the error has the place of the whole.

use std::ops::Range;

use super::{
    error::without_position,
    locate::{Place, summarize_scalar},
    tokens::{Steps, Token, Tokens},
};

/// The most scalars that are tried, and the longest text: each trial decodes all of it.
const MAX_SCALARS: usize = 64;
const MAX_BYTES: usize = 8 << 10;

/// The most texts that are replaced by samples.
const MAX_SAMPLED: usize = 8;

/// Texts of which types that parse a text accept one or the other.
const SAMPLES: [&str; 10] = [
    "1",
    "1s",
    "a",
    "2026-07-28",
    "12:00:00",
    "2026-07-28T12:00:00Z",
    "https://example.com/",
    "67e55044-10b1-426f-9247-bb680e5fe0c8",
    "127.0.0.1",
    "a@example.com",
];

/// What a scalar is replaced by, whose type then says that it is not a number: a number that no other is likely to be.
fn mark(index: usize) -> String {
    format!("{}.5", 7_000_000 + index)
}

/// The scalar inside of the value at `path` because of which `decode` fails with `error`; `None` if it fails because of the
/// value as a whole, or that takes too many trials.
pub fn locate_inside(
    json: &str,
    path: &str,
    error: &str,
    decode: &dyn Fn(&str) -> Option<serde_json::Error>,
) -> Option<Place> {
    let scalars = scalars(json, path)?;
    let place = |index: usize| {
        let (path, range) = scalars.get(index)?;
        Some(Place { path: path.clone(), value: json.get(range.clone()).map(summarize_scalar) })
    };
    // all are replaced, and those that are read first put back, one after the other, until the first error is the one
    let mut replaced: Vec<Option<String>> = (0..scalars.len()).map(|index| Some(mark(index))).collect();
    let mut last = None;
    loop {
        let text = with_replaced(json, &scalars, &replaced);
        let failed = decode(&text)?;
        let message = without_position(&failed);
        if message == error {
            break;
        }
        let is_named = |(index, mark): (usize, &Option<String>)| {
            mark.as_ref().is_some_and(|mark| message.contains(mark.as_str())).then_some(index)
        };
        let end = |index: usize| text.find(&mark(index)).map(|start| start + mark(index).len());
        // a reader of names says of a number only where it is
        let is_near = |index: usize| {
            let end = end(index).filter(|_| replaced.get(index).is_some_and(Option::is_some));
            end.is_some_and(|end| {
                (end.saturating_sub(mark(index).len())..=end + 1).contains(&failed.column())
            })
        };
        let named = replaced.iter().enumerate().find_map(is_named);
        let index = named.or_else(|| (0..replaced.len()).find(|index| is_near(*index)))?;
        // if its error has its place, so has the one that is looked for
        let is_placed = failed.line() == 1 && end(index).is_some_and(|end| failed.column() <= end + 1);
        last = (!is_placed).then_some(index);
        *replaced.get_mut(index)? = None;
    }
    match last {
        Some(index) => place(index),
        None if replaced.iter().all(Option::is_some) => {
            accepted_if_replaced(json, &scalars, decode).and_then(place)
        }
        None => None,
    }
}

/// The text whose replacement by a sample is accepted, or the only one.
fn accepted_if_replaced(
    json: &str,
    scalars: &[(String, Range<usize>)],
    decode: &dyn Fn(&str) -> Option<serde_json::Error>,
) -> Option<usize> {
    let is_text = |(_, range): &(String, Range<usize>)| json.as_bytes().get(range.start) == Some(&b'"');
    let texts: Vec<usize> =
        (0..scalars.len()).filter(|index| scalars.get(*index).is_some_and(is_text)).collect();
    let is_accepted = |index: usize, sample: &str| {
        let mut replaced = vec![None; scalars.len()];
        if let Some(replaced) = replaced.get_mut(index) {
            *replaced = Some(format!("\"{sample}\""));
        }
        decode(&with_replaced(json, scalars, &replaced)).is_none()
    };
    let sampled = texts.iter().take(MAX_SAMPLED);
    let found = sampled.copied().find(|index| SAMPLES.iter().any(|sample| is_accepted(*index, sample)));
    found.or(if let [only] = texts.as_slice() { Some(*only) } else { None })
}

/// The scalars inside of the value at a path.
fn scalars(json: &str, path: &str) -> Option<Vec<(String, Range<usize>)>> {
    if json.len() > MAX_BYTES {
        return None;
    }
    let mut found = Vec::new();
    let mut steps = Steps::new(json);
    for token in Tokens::new(json) {
        if let Token::Scalar(range) = &token {
            let at = steps.path();
            let inside = at
                .strip_prefix(path)
                .filter(|rest| path.is_empty() && !rest.is_empty() || rest.starts_with(['.', '[']));
            if inside.is_some() {
                found.push((at.to_owned(), range.clone()));
            }
            if found.len() > MAX_SCALARS {
                return None;
            }
        }
        steps.follow(&token);
    }
    (!found.is_empty()).then_some(found)
}

/// The text in one line, with these scalars in place of others. A space behind each tells the end of one from what follows.
fn with_replaced(json: &str, scalars: &[(String, Range<usize>)], replaced: &[Option<String>]) -> String {
    let (mut text, mut done) = (String::with_capacity(json.len()), 0);
    for ((_, range), replaced) in scalars.iter().zip(replaced) {
        if let Some(replaced) = replaced {
            text.push_str(json.get(done..range.start).unwrap_or_default());
            text.push_str(replaced);
            text.push_str("   ");
            done = range.end;
        }
    }
    text.push_str(json.get(done..).unwrap_or_default());
    // text of JSON has no line ends but between its tokens
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, de::DeserializeOwned};

    use super::*;

    #[derive(Debug)]
    struct Even;

    impl<'de> Deserialize<'de> for Even {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            if text.len().is_multiple_of(2) { Ok(Self) } else { Err(serde::de::Error::custom("odd")) }
        }
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Part {
        even: Even,
        name: String,
        ratio: f64,
    }

    #[derive(Debug, Deserialize)]
    #[serde(tag = "kind")]
    #[allow(dead_code)]
    enum Internal {
        Part(Part),
    }

    #[derive(Debug, Deserialize)]
    #[serde(tag = "kind", content = "of")]
    #[allow(dead_code)]
    enum Adjacent {
        Part(Part),
    }

    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    #[allow(dead_code)]
    enum Untagged {
        Part(Part),
        Number(u8),
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Flattened {
        own: String,
        #[serde(flatten)]
        part: Part,
    }

    /// Refuses itself after its members were read.
    #[derive(Debug, Deserialize)]
    #[serde(try_from = "Part")]
    struct Never;

    impl TryFrom<Part> for Never {
        type Error = &'static str;
        fn try_from(_: Part) -> Result<Self, &'static str> {
            Err("never")
        }
    }

    fn found<T: DeserializeOwned + std::fmt::Debug>(json: &str, path: &str) -> Option<(String, String)> {
        let decode = |json: &str| serde_json::from_str::<T>(json).err();
        let error = without_position(&decode(json).expect("an error"));
        locate_inside(json, path, &error, &decode).map(|place| (place.path, place.value.unwrap_or_default()))
    }

    #[test]
    fn the_refused_scalar_of_every_form_of_an_enum_is_found() {
        let part = r#""name":"n","even":"abc","ratio":1.5"#;
        let even = |path: &str| Some((path.to_owned(), "\"abc\"".to_owned()));
        for part in [part, r#""even":"abc","name":"n","ratio":2"#, r#""ratio":2,"name":"odd","even":"abc""#] {
            let internal = format!("[{{\"kind\":\"Part\",{part}}}]");
            assert_eq!(found::<Vec<Internal>>(&internal, "[0]"), even("[0].even"), "{internal}");
            let late = format!("{{{part},\n\"kind\":\"Part\"}}");
            assert_eq!(found::<Internal>(&late, ""), even("even"), "{late}");
            let adjacent = format!(r#"{{"of":{{{part}}},"kind":"Part"}}"#);
            assert_eq!(found::<Adjacent>(&adjacent, ""), even("of.even"), "{adjacent}");
            assert_eq!(found::<Untagged>(&format!("{{{part}}}"), ""), even("even"), "{part}");
            let flattened = format!("{{\"own\":\"x\",{part}}}");
            assert_eq!(found::<Flattened>(&flattened, ""), even("even"), "{flattened}");
        }
    }

    #[test]
    fn a_value_that_is_refused_as_a_whole_has_no_refused_scalar() {
        assert_eq!(found::<Never>(r#"{"name":"n","even":"ab","ratio":1.5}"#, ""), None);
        assert_eq!(found::<Untagged>("[300]", ""), None);
        let many = format!(r#"{{"kind":"Part","even":"abc","x":{:?}}}"#, vec![1; 100]);
        assert_eq!(found::<Internal>(&many, ""), None);
    }
}
