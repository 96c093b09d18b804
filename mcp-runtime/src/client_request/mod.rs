//! What functions ask their clients for, and what they remember between the rounds of a call: methods of [`Context`].
//! Forms, visits to a URL, answers of models and folders are typed here; the engine behind them is in `context::ask`.

mod elicit;
mod field;
mod form;
mod lower;
mod once;
mod order;
mod request;
mod required;
mod root;
mod sample;
mod sampled;
mod turn;
mod url;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::{Map, Value};

pub use elicit::{Answer, Answering, Elicit, Elicitable};
pub use request::{SampleContext, ToolChoice};
pub use required::UrlElicitation;
pub(crate) use required::required;
pub use root::{Root, Roots};
pub use sample::{Sample, SampleArgs};
pub use sampled::{Sampled, SampledBlock, ToolUse};
pub use url::ElicitUrl;

use crate::{
    context::{AskError, Context},
    jsonrpc::{Object, notification},
    protocol::Revision,
};

/// Why a question is not put at all.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refusal {
    /// The server's mistake.
    Unfit(String),
    /// The client's revision does not have this.
    Revision(&'static str),
}

impl Refusal {
    fn into_error(self, key: &str) -> AskError {
        match self {
            Self::Unfit(reason) => AskError::Unfit { key: key.into(), reason },
            Self::Revision(what) => AskError::Revision { what },
        }
    }
}

/// Adds `_meta` to the params of a question, where the revision has it: the questions of the stateless era are parts of
/// a result, and older ones have none.
fn with_meta(mut params: Vec<u8>, meta: &Map<String, Value>, revision: Revision) -> Vec<u8> {
    if revision == Revision::V2025_11_25 && !meta.is_empty() && params.pop() == Some(b'}') {
        let mut own = Vec::new();
        let mut object = Object::new(&mut own);
        object.value("_meta", meta);
        object.end();
        match params.as_slice() {
            [b'{'] => params = own,
            _ => {
                params.push(b',');
                params.extend_from_slice(&own[1..]);
            }
        }
    }
    params
}

impl Context {
    /// Asks the user to fill in a form, which is made of `T`: a struct, or a single value.
    ///
    /// The fields of a struct may be strings, numbers, booleans, enums without data and lists (or sets) of such enums,
    /// each of them optional. `message` says what it is for. The key names the question within its call; no other
    /// question of that call may have the same.
    ///
    /// Everything before a question may run once more when its answer comes, unless it is inside
    /// [`once`](Self::once).
    ///
    /// # Errors
    /// The user declined or dismissed the form ([`AskError::Declined`], [`AskError::Cancelled`]; see
    /// [`Elicit::answer`] for how to tell without an error), the client cannot be asked, or no form can ask for `T`.
    ///
    /// See [elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation).
    ///
    /// ```
    /// use mcp_runtime::prelude::*;
    ///
    /// #[mcp_type]
    /// enum Size {
    ///     /// Small (30 cm)
    ///     S,
    ///     /// Large (45 cm)
    ///     L,
    /// }
    ///
    /// #[mcp_type]
    /// struct Delivery {
    ///     /// Where to
    ///     address: String,
    ///     size: Size,
    ///     /// Anything else?
    ///     note: Option<String>,
    /// }
    ///
    /// /// Orders a pizza.
    /// #[mcp_tool]
    /// async fn order(pizza: String, ctx: &Context) -> Result<String, ToolError> {
    ///     let delivery: Delivery = ctx.elicit("delivery", "How shall we deliver it?").await?;
    ///     Ok(format!("{pizza} goes to {}", delivery.address))
    /// }
    /// ```
    pub fn elicit<'c, T: Elicitable>(
        &'c self,
        key: impl Into<Cow<'c, str>>,
        message: impl Into<Cow<'c, str>>,
    ) -> Elicit<'c, T> {
        Elicit::new(self, key.into(), message.into())
    }

    /// Asks the user to visit a URL, for what must not pass through the client: passwords, payments, the consent to
    /// use another service.
    ///
    /// Agreement means that the user is on the way there, not that they did what there was to do. The URL must not
    /// hold secrets or let anybody in who has it.
    ///
    /// # Errors
    /// The user declined or dismissed the question, the client cannot be asked, or the URL is none of `http` or
    /// `https`.
    ///
    /// See [URL mode](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#url-mode-elicitation-requests).
    ///
    /// ```
    /// use mcp_runtime::prelude::*;
    ///
    /// /// Connects the user's calendar.
    /// #[mcp_tool]
    /// async fn connect(ctx: &Context) -> Result<&'static str, ToolError> {
    ///     ctx.elicit_url("consent", "Let us read your calendar.", "https://example.com/connect").await?;
    ///     Ok("go on in your browser")
    /// }
    /// ```
    pub fn elicit_url<'c>(
        &'c self,
        key: impl Into<Cow<'c, str>>,
        message: impl Into<Cow<'c, str>>,
        url: impl Into<Cow<'c, str>>,
    ) -> ElicitUrl<'c> {
        ElicitUrl::new(self, key.into(), message.into(), url.into())
    }

    /// Tells the client that the user is done at the URL of the elicitation with this id.
    ///
    /// Only 2025-11-25 has ids and this message; clients of any other revision are told nothing.
    ///
    /// See [completion notifications](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#completion-notifications-for-url-mode-elicitation).
    pub fn elicitation_complete(&self, id: &str) {
        if self.revision() == Revision::V2025_11_25
            && let Some(connection) = &self.inner().request.connection
        {
            connection.notify(notification("notifications/elicitation/complete", |params| {
                params.str("elicitationId", id);
            }));
        }
    }

    /// Asks the client's model to go on with a conversation.
    ///
    /// Deprecated by the protocol since 2026-07-28, where clients may still offer it.
    ///
    /// # Errors
    /// The client or its user refused, cannot be asked, or the conversation is not one that can be sent.
    ///
    /// See [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).
    ///
    /// ```
    /// use mcp_runtime::prelude::*;
    ///
    /// /// Sums up a text.
    /// #[mcp_tool]
    /// async fn sum_up(text: String, ctx: &Context) -> Result<String, ToolError> {
    ///     let answer = ctx.sample("summary").system("Answer in one sentence.").user(text).max_tokens(200).await?;
    ///     Ok(answer.text())
    /// }
    /// ```
    pub fn sample<'c>(&'c self, key: impl Into<Cow<'c, str>>) -> Sample<'c> {
        Sample::new(self, key.into())
    }

    /// Asks the client which folders its user works in.
    ///
    /// Deprecated by the protocol since 2026-07-28, where clients may still offer it.
    ///
    /// # Errors
    /// The client refused or cannot be asked.
    ///
    /// See [roots](https://modelcontextprotocol.io/specification/2026-07-28/client/roots).
    ///
    /// ```
    /// use mcp_runtime::prelude::*;
    ///
    /// /// Lists the folders that are open.
    /// #[mcp_tool]
    /// async fn folders(ctx: &Context) -> Result<Vec<String>, ToolError> {
    ///     Ok(ctx.roots("folders").await?.into_iter().map(|root| root.uri).collect())
    /// }
    /// ```
    pub fn roots<'c>(&'c self, key: impl Into<Cow<'c, str>>) -> Roots<'c> {
        Roots::new(self, key.into())
    }
}
