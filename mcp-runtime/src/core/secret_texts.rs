//! The texts of secret values, by which these are found in other texts: also in errors of the program's own code, which may
//! quote any value.

use serde_json::Value;

use super::sync::Mutex;

/// What replaces a secret in texts.
pub(crate) const REDACTED: &str = "****";

/// The length in bytes of the shortest text that is searched for: shorter ones occur by chance.
const SHORTEST: usize = 4;
/// The largest number of texts.
const MAX_TEXTS: usize = 4096;

/// The secrets of the settings that this process has read: the program may give them to any server.
static READ: Mutex<SecretTexts> = Mutex::new(SecretTexts::new());

/// Without `Debug`, like everything that holds values.
pub(crate) struct SecretTexts {
    texts: Vec<String>,
    /// The reason why other texts may have a secret that is not found in them.
    is_incomplete: Option<&'static str>,
}

impl SecretTexts {
    pub(crate) const fn new() -> Self {
        Self { texts: Vec::new(), is_incomplete: None }
    }

    /// Adds the texts in a value that is secret.
    pub(crate) fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                let escaped = Value::from(text.as_str()).to_string();
                self.add_text(escaped.trim_matches('"'));
                self.add_text(text);
            }
            Value::Number(number) => self.add_text(&number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(members) => members.values().for_each(|member| self.add(member)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        if text.is_empty() || self.texts.iter().any(|known| known == text) {
            return;
        }
        if text.len() < SHORTEST {
            self.is_incomplete = Some("one of less than 4 characters cannot be found in it");
        } else if self.texts.len() == MAX_TEXTS {
            self.is_incomplete = Some("there are too many secrets to look for");
        } else {
            self.texts.push(text.to_owned());
        }
    }

    /// Remembers these secrets for every server of this process.
    pub(crate) fn remember(&self) {
        let mut read = READ.lock();
        self.texts.iter().for_each(|text| read.add_text(text));
        read.is_incomplete = read.is_incomplete.or(self.is_incomplete);
    }

    /// The text of an error of the program's own code, without the secrets that the process has read.
    pub(crate) fn mask_error(text: &str) -> String {
        let read = READ.lock();
        match read.is_incomplete {
            Some(reason) => format!("the message is withheld: it may contain a secret, and {reason}"),
            None => read.mask(text),
        }
    }

    /// A text without these secrets: one may be a part of another, or overlap with it.
    pub(crate) fn mask(&self, text: &str) -> String {
        let mut is_secret = vec![false; text.len()];
        for secret in &self.texts {
            let mut from = 0;
            while let Some(at) = text.get(from..).and_then(|rest| rest.find(secret.as_str())) {
                let start = from + at;
                if let Some(found) = is_secret.get_mut(start..start + secret.len()) {
                    found.fill(true);
                }
                // the next one may begin in this one
                from = start + secret.chars().next().map_or(1, char::len_utf8);
            }
        }
        let mut masked = String::new();
        let mut was_secret = false;
        for (at, c) in text.char_indices() {
            let is_secret = is_secret.get(at) == Some(&true);
            match is_secret {
                true if was_secret => {}
                true => masked.push_str(REDACTED),
                false => masked.push(c),
            }
            was_secret = is_secret;
        }
        masked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> SecretTexts {
        let mut secrets = SecretTexts::new();
        texts.iter().for_each(|text| secrets.add(&Value::from(*text)));
        secrets
    }

    #[test]
    fn secrets_that_overlap_are_masked_whole() {
        for (secrets, text, masked) in [
            (&["planted1", "planted1-REST"][..], "/x/planted1-REST/y planted1", "/x/****/y ****"),
            (&["planted1-REST", "planted1"], "planted1-REST", "****"),
            (&["oneTWO", "TWOthree"], "<oneTWOthree>", "<****>"),
            (&["aaaa"], "aaaaa b", "**** b"),
            (&["ümlaut"], "ä ümlautü", "ä ****ü"),
            (&["a \"quoted\" one"], r#"{"key":"a \"quoted\" one"}"#, r#"{"key":"****"}"#),
            (&["other"], "nothing", "nothing"),
        ] {
            assert_eq!(of(secrets).mask(text), masked);
        }
    }
}
