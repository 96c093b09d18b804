//! Entries of `tools/list`: names, descriptions, hints, icons, metadata, order, pages.

use crate::prelude::*;

#[tokio::test]
async fn an_entry_derives_from_the_function() {
    /// Echoes
    #[mcp_tool]
    async fn echo(message: String) -> String {
        message
    }

    let server = serve(mcp_runtime::server!().tool::<echo>());
    let entry = json!({
        "name": "echo",
        "description": "Echoes",
        "inputSchema": {
            "type": "object",
            "properties": { "message": { "type": "string" } },
            "required": ["message"]
        }
    });
    assert_eq!(only_tool(&server).await, entry);
    let mut server = server;
    for revision in LEGACY {
        server = server.legacy(revision);
        assert_eq!(only_tool(&server).await, entry, "{revision}");
        let whole = server.request("tools/list", json!({})).await;
        assert_eq!(*whole.value(), json!({ "tools": [entry] }), "{revision}");
    }
    let whole = server.modern().request("tools/list", json!({})).await;
    assert_eq!(result(&whole), json!({ "tools": [entry], "ttlMs": 0, "cacheScope": "private" }));
}

/// Functions of which each is described in another way.
mod described {
    use mcp_runtime::prelude::*;

    /// One line,
    /// and another.
    ///
    ///   * indented
    #[mcp_tool]
    fn lines() {}
    /** A block. */
    #[mcp_tool]
    fn block() {}
    #[doc = "An attribute"]
    #[mcp_tool]
    fn attribute() {}
    /// Not this
    #[mcp_tool(description = "But \"this\" — with ünïcode")]
    fn option() {}
    #[allow(clippy::empty_docs)] // the subject of the test
    #[doc = ""]
    #[mcp_tool]
    fn empty() {}
}

#[tokio::test]
async fn every_form_of_documentation_becomes_the_description() {
    let server = serve(mcp_runtime::server!().discover_in(concat!(module_path!(), "::described")));
    let tools = server.list_tools().await;
    assert_eq!(
        tools.iter().map(|tool| tool["description"].as_str()).collect::<Vec<_>>(),
        [
            Some("One line,\nand another.\n\n  * indented"),
            Some("A block."),
            Some("An attribute"),
            Some("But \"this\" — with ünïcode"),
            None
        ]
    );
}

#[tokio::test]
async fn names_are_published_unchanged() {
    #[mcp_tool(name = "x.y-z_1")]
    fn named() -> &'static str {
        "called"
    }

    let server = serve(mcp_runtime::server!().tool::<named>());
    assert_eq!(only_tool(&server).await["name"], "x.y-z_1");
    server.call("x.y-z_1", json!({})).await.expect_text("called");
    server.call("named", json!({})).await.expect_code(-32602);
}

#[tokio::test]
async fn raw_identifiers_lose_their_prefix() {
    #[mcp_tool]
    fn r#match(r#type: String, r#in: Option<u8>) -> String {
        let (kind, within) = (r#type, r#in);
        format!("{kind} {within:?}")
    }

    let server = serve(mcp_runtime::server!().tool::<r#match>());
    let entry = only_tool(&server).await;
    assert_eq!(entry["name"], "match");
    assert_eq!(
        entry["inputSchema"]["properties"],
        json!({ "type": { "type": "string" }, "in": { "type": "integer", "minimum": 0, "maximum": 255 } })
    );
    server.call("match", json!({ "type": "a", "in": 2 })).await.expect_text("a Some(2)");
}

#[tokio::test]
async fn names_of_128_characters_are_the_longest() {
    let longest = "n".repeat(128);
    let tool = |name: &str| ToolDef::builder(name).handler(|_| async {});
    let server = serve(mcp_runtime::server!().add(tool(&longest)));
    assert_eq!(only_tool(&server).await["name"], longest.as_str());
    for bad in ["", &"n".repeat(129), "a b", "ä", "a/b", "a\n"] {
        let error = build_error(mcp_runtime::server!().add(tool(bad)));
        assert!(error.contains("is not a tool name: 1 to 128 of"), "{bad:?}: {error}");
    }
}

#[tokio::test]
async fn title_and_meta_are_in_lists_and_meta_in_no_result() {
    #[mcp_tool(
        title = "T",
        meta(model = "m", n = 1, beta = true, "org.example/k" = [1, -2.5, "é\"\n"], nested(deep(x = false))),
        tags("a", "b")
    )]
    fn described() -> &'static str {
        "x"
    }

    let server = serve(mcp_runtime::server!().tool::<described>());
    let meta = json!({
        "model": "m", "n": 1, "beta": true, "org.example/k": [1, -2.5, "é\"\n"],
        "nested": { "deep": { "x": false } }, "tags": ["a", "b"]
    });
    let entry = only_tool(&server).await;
    assert_eq!((&entry["title"], &entry["_meta"]), (&json!("T"), &meta));
    let call = server.call("described", json!({})).await;
    assert_eq!(result(&call), json!({ "content": [{ "type": "text", "text": "x" }] }));
    let entry = only_tool(&server.legacy(Revision::V2025_03_26)).await;
    assert_eq!((entry.get("title"), entry.get("_meta")), (None, None));
}

#[tokio::test]
async fn only_hints_that_are_set_are_published() {
    #[mcp_tool(read_only, destructive = false)]
    fn two() {}
    #[mcp_tool(read_only = false, destructive, idempotent, open_world = false)]
    fn four() {}
    #[mcp_tool]
    fn none() {}

    let server = serve(mcp_runtime::server!().tool::<two>().tool::<four>().tool::<none>());
    let tools = server.list_tools().await;
    assert_eq!(tools[0]["annotations"], json!({ "readOnlyHint": true, "destructiveHint": false }));
    assert_eq!(
        tools[1]["annotations"],
        json!({
            "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false
        })
    );
    assert_eq!(tools[2], json!({ "name": "none", "inputSchema": { "type": "object", "properties": {} } }));
}

#[tokio::test]
async fn parameter_docs_are_property_descriptions() {
    #[mcp_tool]
    fn documented(
        /// Words to look for
        query: String,
        /// First line
        ///
        /// and more
        #[mcp(default = 1)]
        page: u8,
        #[mcp(description = "From the option", name = "sortBy")] _sort_by: Option<String>,
        plain: bool,
    ) -> String {
        let _ = (page, plain);
        query
    }

    let server = serve(mcp_runtime::server!().tool::<documented>());
    assert_eq!(
        only_tool(&server).await["inputSchema"],
        json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "Words to look for" },
                "page": {
                    "type": "integer", "minimum": 0, "maximum": 255, "default": 1,
                    "description": "First line\n\nand more"
                },
                "sortBy": { "type": "string", "description": "From the option" },
                "plain": { "type": "boolean" }
            },
            "required": ["query", "plain"]
        })
    );
}

mod found {
    //! Found by `discover_in`, out of alphabetical order.

    use mcp_runtime::prelude::*;

    #[mcp_tool]
    pub(super) fn second_by_name() -> u8 {
        1
    }
    #[mcp_tool]
    pub(super) fn first_by_name() -> u8 {
        2
    }
    #[rustfmt::skip]
    mod inner {
        use mcp_runtime::prelude::*;
        #[mcp_tool] pub(super) fn right() -> u8 { 3 } #[mcp_tool] pub(super) fn further_right() -> u8 { 4 }
    }
    #[mcp_tool(name = "zz_last")]
    pub(super) fn a_function() -> u8 {
        5
    }
}

#[tokio::test]
async fn discovered_tools_are_in_source_order() {
    let names = |tools: Vec<Value>| -> Vec<String> {
        tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let module = concat!(module_path!(), "::found");
    let expected = ["second_by_name", "first_by_name", "right", "further_right", "zz_last"];
    for _ in 0..3 {
        let server = serve(mcp_runtime::server!().discover_in(module));
        assert_eq!(names(server.list_tools().await), expected);
    }
    // tools registered before discovery keep their position, and are not duplicated
    let server =
        serve(mcp_runtime::server!().tool::<found::a_function>().discover_in(module).discover_in(module));
    assert_eq!(
        names(server.list_tools().await),
        ["zz_last", "second_by_name", "first_by_name", "right", "further_right"]
    );
    let server = serve(mcp_runtime::server!().tool::<found::first_by_name>().tool::<found::second_by_name>());
    assert_eq!(names(server.list_tools().await), ["first_by_name", "second_by_name"], "registration order");
}

#[tokio::test]
async fn invalid_cursors_are_refused() {
    let module = concat!(module_path!(), "::found");
    let server = serve(mcp_runtime::server!().discover_in(module).lists(|lists| lists.page_size(2)));
    for bad in
        [json!(""), json!("nope"), json!("%%%"), json!(3), json!({}), json!("é"), json!("A".repeat(100_000))]
    {
        let reply = server.request("tools/list", json!({ "cursor": bad })).await;
        let (code, message) = refusal(&reply);
        assert_eq!(code, -32602, "{bad}");
        assert!(message.contains("`cursor`"), "{message}");
    }
    let null = server.request("tools/list", json!({ "cursor": null })).await;
    assert_eq!(null.value()["tools"].as_array().map(Vec::len), Some(2), "null is not a cursor");
    // a full page that is the last one
    let exact = serve(mcp_runtime::server!().discover_in(module).lists(|lists| lists.page_size(5)));
    assert_eq!(exact.request("tools/list", json!({})).await.value().get("nextCursor"), None);
}
