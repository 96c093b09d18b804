//! A server of a toolset: what the program allows of it, and how its tools and resources are used.

use std::{future::Future, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::time::timeout;

use super::{
    Toolset, ToolsetResult,
    artifact::{ArtifactSource, Origin},
    resource_tools::{
        RESOURCES_LIST, RESOURCES_READ, RESOURCES_TEMPLATES_LIST, page, resource_entry, template_entry,
    },
    tool_source::{SourceEntry, ToolSource},
    toolset_result::Sieve,
};
use crate::{
    client::{
        Client, Error, ReadResult, ToolInfo,
        connect::shared_client::CallOptions,
        operation::{Operation, OperationKind},
        requests::{read_cache::ReadFrom, request_span::uri_digest},
    },
    core::{
        bound::Texts,
        content::{Content, ResourceLink},
        store::StoreFuture,
    },
};

/// Links of one result that are read.
const MAX_READ_LINKS: usize = 16;

type ToolFilter = Arc<dyn Fn(&ToolInfo) -> bool + Send + Sync>;
type CallRule = Arc<dyn Fn(&str, &Value) -> bool + Send + Sync>;
type UriRule = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// A server, and what the program allows of it.
#[derive(Clone)]
pub(super) struct Member {
    source: Arc<ToolSource>,
    separator: Arc<str>,
    filters: Vec<ToolFilter>,
    call_rules: Vec<CallRule>,
    uri_rules: Vec<UriRule>,
    read_ttl: Duration,
    max_read_link: u64,
}

impl Toolset {
    /// Sets what stands between a namespace and a name, of all servers in this toolset; `.` by default.
    #[must_use]
    pub fn separator(self, separator: &str) -> Self {
        self.each(|member| member.separator = separator.into())
    }

    /// Leaves out the tools for which `keep` is false; they cannot be called either. The functions for resources are asked
    /// for as well.
    #[must_use]
    pub fn filter(self, keep: impl Fn(&ToolInfo) -> bool + Send + Sync + 'static) -> Self {
        let keep: ToolFilter = Arc::new(keep);
        self.each(|member| member.filters.push(keep.clone()))
    }

    /// Leaves out all tools but those whose names, without the namespace, match a pattern: `*` is any text, `?` one
    /// character.
    #[must_use]
    pub fn only(self, patterns: impl Texts) -> Self {
        let patterns = patterns.into_texts();
        self.filter(move |tool| patterns.iter().any(|pattern| matches(pattern, tool.name())))
    }

    /// Leaves out the tools whose names, without the namespace, match a pattern; see [`only`](Self::only).
    #[must_use]
    pub fn except(self, patterns: impl Texts) -> Self {
        let patterns = patterns.into_texts();
        self.filter(move |tool| !patterns.iter().any(|pattern| matches(pattern, tool.name())))
    }

    /// Refuses calls for which `allow` is false; it gets the tool's name in this toolset, and the arguments.
    #[must_use]
    pub fn allow_calls(self, allow: impl Fn(&str, &Value) -> bool + Send + Sync + 'static) -> Self {
        let allow: CallRule = Arc::new(allow);
        self.each(|member| member.call_rules.push(allow.clone()))
    }

    /// Refuses to read, and does not list, resources for whose URI `allow` is false.
    #[must_use]
    pub fn allow_resources(self, allow: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        let allow: UriRule = Arc::new(allow);
        self.each(|member| member.uri_rules.push(allow.clone()))
    }

    /// Sets how long contents of resources are used if their server says nothing about it; an hour by default. Changes that
    /// the server reports end it in any case.
    #[must_use]
    pub fn read_ttl(self, ttl: Duration) -> Self {
        self.each(|member| member.read_ttl = ttl)
    }

    /// Reads the resources that results link to, if their links say that they have at most this size; by default none is
    /// read.
    #[must_use]
    pub fn read_links(self, max_bytes: u64) -> Self {
        self.each(|member| member.max_read_link = max_bytes)
    }
}

impl Member {
    pub(super) fn new(source: ToolSource) -> Self {
        Self {
            source: Arc::new(source),
            separator: ".".into(),
            filters: Vec::new(),
            call_rules: Vec::new(),
            uri_rules: Vec::new(),
            read_ttl: Duration::from_secs(3600),
            max_read_link: 0,
        }
    }

    pub(super) fn namespace(&self) -> &str {
        &self.source.namespace
    }

    /// How the names of its tools begin in the toolset.
    pub(super) fn prefix(&self) -> String {
        format!("{}{}", self.namespace(), self.separator)
    }

    /// The server's name of a tool, by that in the toolset.
    pub(super) fn own_name<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_prefix(self.namespace())?.strip_prefix(&*self.separator)
    }

    /// Lists the tools that the server has now; `None` if it is not there.
    pub(super) fn list(
        &self,
        limit: Duration,
    ) -> impl Future<Output = Option<Arc<Vec<SourceEntry>>>> + Send + use<> {
        let source = self.source.clone();
        async move {
            let listed = in_list_timeout(limit, source.list()).await;
            source.note(&listed);
            if let Err(error) = &listed {
                tracing::warn!(
                    namespace = source.namespace,
                    "error.type" = error.kind(),
                    "a server is not available: its tools are left out"
                );
                *source.failure.lock() = Some(error.clone());
            }
            listed.ok()
        }
    }

    /// A tool by the server's name for it, unless it is left out.
    pub(super) async fn entry(&self, own_name: &str) -> Result<Option<SourceEntry>, Error> {
        Ok(self.source.entry(own_name).await?.filter(|entry| self.shows(&entry.info)))
    }

    /// Why the server was not there when it was last used.
    pub(super) fn failure(&self) -> Option<Error> {
        self.source.failure.lock().clone()
    }

    /// Connects to the server unless it is connected, and begins an operation.
    pub(super) async fn open<'c>(&'c self, toolset: &'c Toolset) -> Result<OpenMember<'c>, Error> {
        let client = in_list_timeout(toolset.list_timeout, self.source.client()).await?;
        let operation = Operation::new(OperationKind::Call, None, &client.shared().options);
        Ok(OpenMember { toolset, member: self, client, operation })
    }

    pub(super) fn shows(&self, tool: &ToolInfo) -> bool {
        self.filters.iter().all(|keep| keep(tool))
    }

    pub(super) fn allows_call(&self, name: &str, arguments: &Value) -> bool {
        self.call_rules.iter().all(|allow| allow(name, arguments))
    }

    pub(super) fn allows_uri(&self, uri: &str) -> bool {
        self.uri_rules.iter().all(|allow| allow(uri))
    }

    fn reads_link(&self, link: &ResourceLink) -> bool {
        let is_small = link.size.is_some_and(|size| size <= self.max_read_link);
        self.max_read_link > 0 && is_small && self.allows_uri(&link.uri)
    }
}

/// A server of a toolset while it is used: for one call and the links that are read for it, which share their limits.
pub(super) struct OpenMember<'c> {
    toolset: &'c Toolset,
    member: &'c Member,
    client: Client,
    operation: Operation,
}

impl OpenMember<'_> {
    /// Calls a tool, or one of the functions for resources.
    pub(super) async fn call(&self, entry: &SourceEntry, arguments: Value) -> Result<ToolsetResult, Error> {
        let result = self.operation.run(async {
            match entry.info.name() {
                RESOURCES_LIST if entry.is_of_resources => self.list_resources(&arguments).await,
                RESOURCES_TEMPLATES_LIST if entry.is_of_resources => self.list_templates(&arguments).await,
                RESOURCES_READ if entry.is_of_resources => self.read_resource(&arguments).await,
                name => self.call_tool(name, arguments).await,
            }
        });
        let result = result.await;
        self.member.source.note(&result);
        result
    }

    /// Reads a resource whose content was stored and is gone.
    pub(super) async fn read_again(&self, uri: &str) -> Result<ReadResult, Error> {
        self.operation.run(self.read(uri)).await
    }

    fn options(&self) -> CallOptions {
        CallOptions::of(self.operation.clone())
    }

    async fn call_tool(&self, name: &str, arguments: Value) -> Result<ToolsetResult, Error> {
        let result = self.client.call(name, arguments).with_options(self.options()).await?;
        let mut sieve = self.sieve();
        let mut links_to_read = MAX_READ_LINKS;
        for block in result.content {
            match block {
                Content::ResourceLink(link) if links_to_read > 0 && self.member.reads_link(&link) => {
                    links_to_read -= 1;
                    // one that cannot be read stays a link
                    match self.read(&link.uri).await {
                        Ok(read) => self.push_contents(&mut sieve, &link.uri, read).await,
                        Err(_) => sieve.block(Content::ResourceLink(link)).await,
                    }
                }
                block => sieve.block(block).await,
            }
        }
        let structured = match result.structured {
            Some(value) => sieve.structured(value).await,
            None => None,
        };
        Ok(sieve.into_result(structured, result.is_error))
    }

    async fn list_resources(&self, arguments: &Value) -> Result<ToolsetResult, Error> {
        let resources = self.client.resources().await?;
        let allowed = resources.iter().filter(|resource| self.member.allows_uri(resource.uri()));
        let entries: Vec<Value> = allowed.map(resource_entry).collect();
        self.page("resources", &entries, arguments).await
    }

    async fn list_templates(&self, arguments: &Value) -> Result<ToolsetResult, Error> {
        let templates = self.client.templates().await?;
        let entries: Vec<Value> = templates.iter().map(template_entry).collect();
        self.page("resource_templates", &entries, arguments).await
    }

    async fn page(&self, key: &str, entries: &[Value], arguments: &Value) -> Result<ToolsetResult, Error> {
        let offset = match arguments.get("offset") {
            None | Some(Value::Null) => 0,
            Some(offset) => offset
                .as_u64()
                .and_then(|offset| usize::try_from(offset).ok())
                .ok_or_else(|| Error::invalid("`offset` is not a number of entries"))?,
        };
        let page = page(key, entries, offset, self.toolset.artifacts.inline_chars);
        let mut sieve = self.sieve();
        sieve.text(page.to_string(), Some("application/json"), Origin::default()).await;
        Ok(sieve.into_result(None, false))
    }

    async fn read_resource(&self, arguments: &Value) -> Result<ToolsetResult, Error> {
        let uri = arguments.get("uri").and_then(Value::as_str);
        let uri = uri.ok_or_else(|| Error::invalid("`uri` is missing, or not a string"))?;
        if !self.member.allows_uri(uri) {
            tracing::debug!("mcp.resource.uri.digest" = uri_digest(uri), "a resource is not allowed");
            return Err(Error::Denied { what: "this resource".to_owned() });
        }
        let read = self.read(uri).await?;
        let mut sieve = self.sieve();
        self.push_contents(&mut sieve, uri, read).await;
        Ok(sieve.into_result(None, false))
    }

    async fn read(&self, uri: &str) -> Result<ReadResult, Error> {
        let options = self.options();
        let fallback = Some(self.member.read_ttl).filter(|ttl| !ttl.is_zero());
        let read: StoreFuture<'_, _> = Box::pin(self.client.shared().read(uri, fallback, &options));
        let (json, from) = read.await?;
        let counters = &self.toolset.shared.counters;
        match from {
            ReadFrom::Cache | ReadFrom::OtherReader => counters.cache_hits(1),
            ReadFrom::Server => counters.cache_misses(1),
        }
        ReadResult::parse(&json)
    }

    async fn push_contents(&self, sieve: &mut Sieve<'_>, uri: &str, read: ReadResult) {
        for (item, contents) in read.contents.iter().enumerate() {
            let namespace = self.member.namespace().to_owned();
            let source = ArtifactSource { namespace, uri: uri.to_owned(), item };
            sieve.resource(contents, Some(source)).await;
        }
    }

    fn sieve(&self) -> Sieve<'_> {
        Sieve::new(&self.toolset.artifacts, &self.toolset.shared.counters)
    }
}

/// The output of what comes before a call, within the time for lists and connections.
pub(super) async fn in_list_timeout<T>(
    limit: Duration,
    future: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    timeout(limit, future).await.unwrap_or_else(|_| Err(Error::timeout(limit, "list_timeout")))
}

/// Whether a name matches a pattern with `*` and `?`.
fn matches(pattern: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    // which beginnings of the name, by their length, match what was read of the pattern
    let mut matched = vec![false; name.len() + 1];
    matched[0] = true;
    for c in pattern.chars() {
        if c == '*' {
            let shortest = matched.iter().position(|matched| *matched).unwrap_or(matched.len());
            matched[shortest..].fill(true);
        } else {
            for end in (1..matched.len()).rev() {
                matched[end] = matched[end - 1] && (c == '?' || c == name[end - 1]);
            }
            matched[0] = false;
        }
    }
    matched[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("read", "read", true),
            ("read", "read_all", false),
            ("read*", "read_all", true),
            ("*read", "pread", true),
            ("*_*_c", "a_b_b_c", true),
            ("r?ad", "read", true),
            ("r?ad", "rad", false),
            ("*", "", true),
            ("", "a", false),
            ("**a", "ba", true),
            ("a*b", "a", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
