//! Events in every form: with all options, in modules that shadow the prelude, and from `macro_rules!`.
#![deny(warnings)]
#![allow(clippy::ptr_arg)]

use mcp_runtime::{Principal, event, prelude::*};

#[mcp_type]
#[derive(Clone)]
pub struct Mail {
    subject: String,
}

pub struct Mailbox(Vec<Mail>);

#[mcp_rule]
fn has_words(words: &Vec<String>) -> Result<(), ToolError> {
    if words.is_empty() { Err(ToolError::new("say what to look for")) } else { Ok(()) }
}

/// A mail was received.
#[mcp_event(
    name = "mail.received",
    deliver(poll, push),
    rate = "60/1m",
    scopes("mail:read"),
    meta(team = "post"),
    validate = has_words,
    marker = MailReceived
)]
pub async fn received(
    #[mcp(payload)] mail: &Mail,
    /// Words of the subject
    #[mcp(default, length(..=9))]
    words: Vec<String>,
    #[cfg(any())] never: Missing,
    mailbox: &Mailbox,
    reader: Option<&Principal>,
) -> Result<Option<Mail>, ToolError> {
    let is_known = mailbox.0.iter().any(|known| known.subject == mail.subject);
    let wanted = words.iter().any(|word| mail.subject.contains(word));
    Ok((wanted && !is_known && reader.is_some()).then(|| mail.clone()))
}

#[mcp_event(description = "Everything", blocking)]
fn all(#[mcp(payload)] _mail: &Mail) {}

macro_rules! event_of {
    ($name:ident, $ty:ty) => {
        /// Of a macro.
        #[mcp_event]
        fn $name(#[mcp(payload)] payload: &$ty) -> bool {
            !payload.subject.is_empty()
        }
    };
}
event_of!(of_macro, Mail);

mod shadowed {
    #![allow(dead_code)]
    struct Option;
    struct Result;
    struct Box;
    struct String;
    struct Vec;
    mod std {}
    mod core {}

    /// Shadowed.
    #[mcp_runtime::mcp_event]
    pub(crate) fn shadowed(#[mcp(payload)] _mail: &super::Mail, count: u32) -> bool {
        count > 0
    }
}

pub(crate) fn main() {
    let server = mcp_runtime::server!()
        .state(Mailbox(Vec::new()))
        .add(event::of::<MailReceived>())
        .add(event::of::<all>())
        .add(event::of::<of_macro>())
        .add(event::of::<shadowed::shadowed>())
        .build();
    assert!(server.is_ok(), "{:?}", server.err());
}
