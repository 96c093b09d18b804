//! Questions to the user. Each is asked once, whatever number of files and attempts need its answer.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

/// A question to the user.
pub(super) struct Question<'q> {
    pub(super) text: &'q str,
    /// Whether the answer is not shown while it is typed.
    pub(super) is_secret: bool,
}

/// The answer, or `None` if there is none.
type Ask<'a> = &'a mut dyn FnMut(&Question<'_>) -> Option<String>;

/// Without `Debug`: some answers are secret.
pub(super) struct Questions<'a> {
    ask: Ask<'a>,
    /// Those that were asked, with their answers.
    answers: Vec<(String, Option<String>)>,
}

impl<'a> Questions<'a> {
    pub(super) fn new(ask: Ask<'a>) -> Self {
        Self { ask, answers: Vec::new() }
    }

    pub(super) fn answer(&mut self, question: &Question<'_>) -> Option<String> {
        if let Some((_, answer)) = self.answers.iter().find(|(text, _)| text == question.text) {
            return answer.clone();
        }
        let answer = (self.ask)(question);
        self.answers.push((question.text.to_owned(), answer.clone()));
        answer
    }
}

pub(super) fn ask_in_terminal(question: &Question<'_>) -> Option<String> {
    if !io::stdin().is_terminal() {
        return None;
    }
    let mut out = io::stderr();
    write!(out, "{}: ", question.text).and_then(|()| out.flush()).ok()?;
    let mut line = String::new();
    if question.is_secret {
        line = rpassword::read_password().ok()?;
    } else {
        io::stdin().lock().read_line(&mut line).ok()?;
    }
    Some(line.trim().to_owned()).filter(|line| !line.is_empty())
}
