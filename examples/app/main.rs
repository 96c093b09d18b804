//! A tool with its own page (MCP Apps): a poll that the user sees, and votes in, inside the chat.
//!
//! ```sh
//! cargo run --example app -- list
//! cargo run --example app -- call poll                      # the result for a client without pages
//! cargo run --example app -- read ui://poll/page.html
//! cargo run --example app -- --http 127.0.0.1:8080
//! ```

use std::sync::{Mutex, PoisonError};

use mcp_runtime::{ServerBuilder, prelude::*};

/// The drinks to choose from.
#[mcp_type]
#[derive(Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Drink {
    Tea,
    Coffee,
    Water,
}

/// The number of votes for each drink.
#[mcp_type]
#[derive(Clone, Copy, Default)]
struct Tally {
    tea: u32,
    coffee: u32,
    water: u32,
}

#[derive(Default)]
struct Votes(Mutex<Tally>);

impl Votes {
    fn change(&self, change: impl FnOnce(&mut Tally)) -> Tally {
        let mut tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut tally);
        *tally
    }
}

/// Asks the user what to drink, and shows the votes.
///
/// The page gets the tally as structured content; the model reads the same as text, and what to do with it.
#[mcp_tool(read_only, ui(resource = "ui://poll/page.html"))]
fn poll(votes: &Votes, ctx: &Context) -> (Json<Tally>, &'static str) {
    let hint = if ctx.client_supports_ui() {
        "The user sees the poll, and votes in it."
    } else {
        "Ask the user what to drink, then call `vote`."
    };
    (Json(votes.change(|_| {})), hint)
}

/// Casts a vote.
///
/// Hosts that show the page hide this tool from the model: there, the user votes.
#[mcp_tool(ui(visibility(app)))]
fn vote(drink: Drink, votes: &Votes) -> Json<Tally> {
    Json(votes.change(|tally| match drink {
        Drink::Tea => tally.tea += 1,
        Drink::Coffee => tally.coffee += 1,
        Drink::Water => tally.water += 1,
    }))
}

/// The page of the poll.
#[mcp_resource(uri = "ui://poll/page.html", ui(prefers_border))]
fn page() -> &'static str {
    include_str!("page.html")
}

pub(crate) fn server() -> ServerBuilder {
    mcp_runtime::server!()
        .info(|info| info.name("app"))
        .state(Votes::default())
        .tool::<poll>()
        .tool::<vote>()
        .resource::<page>()
}

fn main() -> mcp_runtime::Result<()> {
    server().run()
}
