//! The addition: which tools are listed, the search, and the three tools that pass calls on.

use std::sync::Arc;

use mcp_runtime::{
    Context, ToolError,
    addition::{Addition, IntoAddition, ItemKind},
    config::ItemView,
    tool::{ToolCall, ToolDef},
};
use serde_json::{Value, json};

use crate::{answer::answer, catalogue::Catalogue, class::Class};

/// The name of the tool that searches.
const SEARCH: &str = "search_tools";
/// The most tools that one search answers with.
const MAX_LIMIT: usize = 20;
/// Bytes of JSON that are counted as one token.
const BYTES_OF_TOKEN: usize = 4;

/// A search over the tools of a server, to [add](mcp_runtime::ServerBuilder::add) to it: if the server has many tools, its list
/// has `search_tools`, the tools `call_read_only`, `call_tool` and `call_destructive`, and those that are named by
/// [`always`](Self::always), must be listed to be used (`x-mcp-header`, required tasks) or are not for models. All others
/// are found by the search, and called by one of the three, or by their names.
///
/// Whether a server has many tools is decided by the server alone, for all clients: by [`at_least`](Self::at_least) and
/// [`at_least_tokens`](Self::at_least_tokens), or by its operator with [`enabled`](Self::enabled).
///
/// ```
/// use mcp_runtime_search::Search;
///
/// # fn main() -> mcp_runtime::Result<()> {
/// let server = mcp_runtime::server!().add(Search::bm25().always(["login"]).at_least(60)).build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a search does nothing before it is added to a server"]
pub struct Search {
    always: Vec<String>,
    tools: usize,
    tokens: usize,
    enabled: Option<bool>,
}

impl Search {
    /// A search that ranks tools by BM25 over the words of their names, titles, descriptions, tags and arguments.
    pub fn bm25() -> Self {
        Self { always: Vec::new(), tools: 60, tokens: 8_000, enabled: None }
    }

    /// Lists these tools as well, by the names that clients see.
    pub fn always<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.always.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets from how many tools on the list is searched instead, without the four tools of the search; 60 by default.
    pub fn at_least(mut self, tools: usize) -> Self {
        self.tools = tools;
        self
    }

    /// Sets from which size on the list is searched instead, in tokens of 4 bytes; 8,000 by default.
    pub fn at_least_tokens(mut self, tokens: usize) -> Self {
        self.tokens = tokens;
        self
    }

    /// Decides whether the list is searched, whatever its size, such as by a setting of the operator; `None` leaves that to the
    /// size.
    pub fn enabled(mut self, enabled: impl Into<Option<bool>>) -> Self {
        self.enabled = enabled.into();
        self
    }

    /// Whether an item is in lists.
    fn lists(&self, item: &ItemView<'_>) -> bool {
        let Some(size) = item.list_size().filter(|_| item.kind() == ItemKind::Tool) else { return true };
        let is_large = || {
            let own = Class::ALL.len() + 1;
            size.tools >= self.tools.saturating_add(own) || size.bytes / BYTES_OF_TOKEN >= self.tokens
        };
        if self.enabled.unwrap_or_else(is_large) {
            is_own(item) || !is_callable(item) || self.always.iter().any(|name| name == item.name())
        } else {
            !is_own(item)
        }
    }
}

fn is_own(tool: &ItemView<'_>) -> bool {
    tool.name() == SEARCH || Class::ALL.iter().any(|class| tool.name() == class.caller())
}

/// Whether calls may be passed on to a tool, so that it need not be listed.
pub(crate) fn is_callable(tool: &ItemView<'_>) -> bool {
    !(is_own(tool)
        || tool.is_forwarder()
        || tool.has_header_arguments()
        || tool.requires_task()
        || !tool.is_for_models())
}

impl IntoAddition for Search {
    fn into_addition(self) -> Addition {
        let catalogue = Arc::new(Catalogue::default());
        let find = ToolDef::builder(SEARCH)
            .description(
                "Finds tools of this server by words, and tells how each is called. Write two to six words as the API would \
                 name the action and its object, such as `create invoice draft`, and not what the user has said.",
            )
            .input_schema(json!({
                "type": "object",
                "properties": {
                    "query": { "type": "string", "maxLength": 400 },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": 5 },
                },
                "required": ["query"],
            }))
            .hints(|hints| hints.read_only = Some(true))
            // of a new state of the items the words are read first
            .blocking_handler(move |call: ToolCall| {
                let (query, limit) = (call.arg::<String>("query")?, call.arg::<usize>("limit")?);
                let tools = call.context.tools();
                Ok::<_, ToolError>(answer(&tools, &catalogue.find(&tools, &query, limit)))
            });
        let callers = Class::ALL.into_iter().map(caller);
        let addition = callers.fold(Addition::new().and(find), Addition::and);
        addition.listed(move |_, item| self.lists(item))
    }
}

/// The tool that passes calls on to those of a class.
fn caller(class: Class) -> ToolDef {
    ToolDef::builder(class.caller())
        .description(class.describe())
        .input_schema(json!({
            "type": "object",
            "properties": { "name": { "type": "string" }, "arguments": { "type": "object" } },
            "required": ["name"],
        }))
        .hints(|hints| class.hint(hints))
        // they may be secret ones of the other tool
        .secret("arguments")
        .forwards(move |context, arguments| pass_on(context, class, arguments))
}

/// The call that a call of one of the three becomes, by the tools as they are for this call.
fn pass_on(context: &Context, class: Class, mut call: Value) -> Result<(String, Value), ToolError> {
    let name = call.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let tools = context.tools();
    // what the caller may not see is answered as what does not exist, before anything is said of it
    if let Some(tool) = tools.get(&name) {
        if !is_callable(&tool) && !is_own(&tool) {
            return Err(ToolError::new(format!("`{name}` is in the list of tools\ncall it by its name")));
        }
        let own = Class::of(&tool);
        if own != class {
            let caller = own.caller();
            return Err(ToolError::new(format!(
                "`{name}` is not for `{}`\ncall it with `{caller}`",
                class.caller()
            )));
        }
    }
    let arguments = call.get_mut("arguments").map_or_else(|| json!({}), Value::take);
    Ok((name, arguments))
}
