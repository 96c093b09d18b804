//! The words of a text: letters and digits, split where the case changes, in lower case, and without the plural of English.
//! Work is linear in the text.

/// Calls `add` with each word.
pub(crate) fn words(text: &str, mut add: impl FnMut(String)) {
    let mut word = String::new();
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if !c.is_alphanumeric() {
            finish(&mut word, &mut add);
            before = None;
            continue;
        }
        // `createIssue`, and `HTTPServer` before the last capital
        let follows_lower = before.is_some_and(|before: char| !before.is_uppercase());
        let begins_word = chars.peek().is_some_and(|next| next.is_lowercase());
        if c.is_uppercase() && before.is_some() && (follows_lower || begins_word) {
            finish(&mut word, &mut add);
        }
        word.extend(c.to_lowercase());
        before = Some(c);
    }
    finish(&mut word, &mut add);
}

fn finish(word: &mut String, add: &mut impl FnMut(String)) {
    if !word.is_empty() {
        add(singular(std::mem::take(word)));
    }
}

/// `issues` as `issue`, `repositories` as `repository`; `status`, `access` and `aws` as they are.
fn singular(mut word: String) -> String {
    let keeps = ["ss", "us", "is"].iter().any(|end| word.ends_with(end));
    if word.len() < 4 || keeps {
        return word;
    }
    if word.len() > 4 && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if word.ends_with('s') {
        word.pop();
    }
    word
}
