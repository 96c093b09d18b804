//! Servers as one set of tools: every server has a namespace, and one that is not there hides its own tools and no others.

use std::{
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use super::{
    Artifact, ArtifactRef, Artifacts, ToolsetResult,
    artifact::{Origin, filename_of},
    member::{Member, in_list_timeout},
    model_format::ModelNames,
    model_schema::{MAX_DESCRIPTION, MAX_SCHEMA, model_description, model_schema, with_own_keys},
    tool_source::ToolSource,
};
use crate::{
    client::{Client, Error, ToolInfo},
    core::{store::StoreFuture, sync::Mutex},
};

/// The most tools that all of the APIs of models take.
const MAX_TOOLS: usize = 128;
/// Tools that are named in one line of the log.
const MAX_LOGGED: usize = 10;

/// The tools of one or several servers under names with namespaces, such as `files.search`, with functions that make
/// their resources usable; clones share connections and counters.
///
/// Made by [`Client::toolset`]; see the [module](super).
#[derive(Clone)]
pub struct Toolset {
    members: Vec<Member>,
    pub(super) artifacts: Artifacts,
    /// Whether the program chose the artifacts.
    has_own_artifacts: bool,
    pub(super) list_timeout: Duration,
    pub(super) shared: Arc<SharedState>,
}

#[derive(Default)]
pub(super) struct SharedState {
    names: Mutex<ModelNames>,
    pub(super) counters: CounterCells,
}

/// A tool in a toolset.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolsetTool {
    name: String,
    info: ToolInfo,
}

impl ToolsetTool {
    /// Its name in the toolset, with the namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server's definition, with the server's name for it.
    #[must_use]
    pub fn info(&self) -> &ToolInfo {
        &self.info
    }
}

/// Counters of a toolset since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolsetCounters {
    /// Calls.
    pub calls: u64,
    /// Calls with an error, or a result that says so.
    pub failed_calls: u64,
    /// Calls and reads that a rule of the program refused.
    pub denied: u64,
    /// Reads that were answered from the cache, or by the request of another reader.
    pub cache_hits: u64,
    /// Reads that the server answered.
    pub cache_misses: u64,
    /// Artifacts that were stored.
    pub artifacts: u64,
    /// Their size.
    pub artifact_bytes: u64,
    /// Artifacts that were gone and fetched again.
    pub artifacts_fetched_again: u64,
}

macro_rules! counter_cells {
    ($($counter:ident => $event:literal),*) => {
        #[derive(Default)]
        pub(super) struct CounterCells {
            $($counter: AtomicU64,)*
        }

        impl CounterCells {
            $(pub(super) fn $counter(&self, number: u64) {
                self.$counter.fetch_add(number, Ordering::Relaxed);
                // the prefix makes a metric of it where the subscriber is one of OpenTelemetry's
                tracing::debug!({ concat!("monotonic_counter.", $event) } = number);
            })*

            pub(super) fn read(&self) -> ToolsetCounters {
                ToolsetCounters { $($counter: self.$counter.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counter_cells! {
    calls => "mcp.client.toolset.calls",
    failed_calls => "mcp.client.toolset.failed_calls",
    denied => "mcp.client.toolset.denied",
    cache_hits => "mcp.client.cache.hits",
    cache_misses => "mcp.client.cache.misses",
    artifacts => "mcp.client.artifacts",
    artifact_bytes => "mcp.client.artifact.bytes",
    artifacts_fetched_again => "mcp.client.artifacts.fetched_again"
}

impl fmt::Debug for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespaces: Vec<_> = self.members.iter().map(Member::namespace).collect();
        f.debug_struct("Toolset").field("namespaces", &namespaces).finish_non_exhaustive()
    }
}

impl Client {
    /// The server's tools for a model, named `namespace.tool`. Where the server has resources, there are also
    /// `namespace.resources_list`, `namespace.resources_read` and `namespace.resources_templates_list`.
    pub fn toolset(&self, namespace: impl Into<String>) -> Toolset {
        Toolset::of(ToolSource::new(namespace.into(), Some(self.clone()), None))
    }
}

impl Toolset {
    fn of(source: ToolSource) -> Self {
        Self {
            members: vec![Member::new(source)],
            artifacts: Artifacts::memory(),
            has_own_artifacts: false,
            list_timeout: Duration::from_secs(30),
            shared: Arc::default(),
        }
    }

    /// The tools of a server that is connected when it is first needed, and again when its connection has ended: after half
    /// a second at first, after 30 seconds at most. Until then it has no tools.
    pub fn connecting<F, Fut>(namespace: impl Into<String>, connect: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Client, Error>> + Send + 'static,
    {
        Self::of(ToolSource::new(namespace.into(), None, Some(Box::new(move || Box::pin(connect())))))
    }

    /// One toolset of several.
    ///
    /// # Errors
    /// [`Error::Invalid`]: a name could be of two servers, because they have one namespace, or one that begins with
    /// another's; or two of the toolsets have artifacts of their own.
    pub fn merge(toolsets: impl IntoIterator<Item = Self>) -> Result<Self, Error> {
        let mut merged: Option<Self> = None;
        for toolset in toolsets {
            let Some(merged) = &mut merged else {
                merged = Some(toolset);
                continue;
            };
            if merged.has_own_artifacts && toolset.has_own_artifacts {
                return Err(Error::invalid(
                    "two toolsets have artifacts of their own\ncall `artifacts` on the merged toolset",
                ));
            }
            if toolset.has_own_artifacts {
                merged.artifacts = toolset.artifacts;
                merged.has_own_artifacts = true;
            }
            merged.list_timeout = merged.list_timeout.max(toolset.list_timeout);
            merged.members.extend(toolset.members);
        }
        let mut merged = merged.ok_or_else(|| Error::invalid("the list of toolsets to merge is empty"))?;
        merged.shared = Arc::default();
        merged.check_names()?;
        Ok(merged)
    }

    /// Names must lead to one server.
    fn check_names(&self) -> Result<(), Error> {
        let prefixes: Vec<_> = self.members.iter().map(Member::prefix).collect();
        for (number, prefix) in prefixes.iter().enumerate() {
            if self.members[number].namespace().is_empty() {
                return Err(Error::invalid("a namespace is empty"));
            }
            let other = prefixes
                .iter()
                .enumerate()
                .find(|(other, with)| *other != number && with.starts_with(prefix));
            if let Some((other, _)) = other {
                let [first, second] = [number, other].map(|number| self.members[number].namespace());
                return Err(Error::invalid(format!(
                    "the namespaces `{first}` and `{second}` collide\nchoose others, or another separator"
                )));
            }
        }
        Ok(())
    }

    pub(super) fn each(mut self, change: impl Fn(&mut Member)) -> Self {
        self.members.iter_mut().for_each(change);
        self
    }

    /// Sets where artifacts are stored, with their scope and limits; in memory by default.
    #[must_use]
    pub fn artifacts(mut self, artifacts: Artifacts) -> Self {
        self.artifacts = artifacts;
        self.has_own_artifacts = true;
        self
    }

    /// Sets how long a server may take to list its tools, and to be connected, before it counts as not there; 30 seconds by
    /// default.
    #[must_use]
    pub fn list_timeout(mut self, limit: Duration) -> Self {
        self.list_timeout = limit;
        self
    }

    /// The tools of all servers that are there; see [`unavailable`](Self::unavailable) for those that are not.
    ///
    /// # Errors
    /// [`Error::Invalid`]: the separator makes namespaces collide.
    pub async fn tools(&self) -> Result<Vec<ToolsetTool>, Error> {
        self.check_names()?;
        let mut listing = JoinSet::new();
        for (number, member) in self.members.iter().enumerate() {
            let listed = member.list(self.list_timeout);
            listing.spawn(async move { (number, listed.await) });
        }
        let mut listed = vec![None; self.members.len()];
        while let Some(joined) = listing.join_next().await {
            // a task that panicked has listed nothing
            if let Ok((number, entries)) = joined {
                listed[number] = entries;
            }
        }
        let with_entries = self.members.iter().zip(listed);
        let tools = with_entries.flat_map(|(member, entries)| {
            let entries = entries.map(|entries| entries.to_vec()).unwrap_or_default();
            let shown = entries.into_iter().filter(|entry| member.shows(&entry.info));
            shown.map(|entry| ToolsetTool {
                name: format!("{}{}", member.prefix(), entry.info.name()),
                info: entry.info,
            })
        });
        Ok(tools.collect())
    }

    /// The namespaces of the servers that were not there when they were last used, and why.
    #[must_use]
    pub fn unavailable(&self) -> Vec<(String, Error)> {
        let failed =
            self.members.iter().filter_map(|member| Some((member.namespace().to_owned(), member.failure()?)));
        failed.collect()
    }

    /// The numbers that this toolset has counted.
    #[must_use]
    pub fn counters(&self) -> ToolsetCounters {
        self.shared.counters.read()
    }

    /// The tools as the `tools` of Anthropic's Messages API. Names have only characters that it takes;
    /// [`call`](Self::call) knows them.
    ///
    /// # Errors
    /// As [`tools`](Self::tools).
    pub async fn anthropic(&self) -> Result<Vec<Value>, Error> {
        self.export(|name, description, schema| {
            json!({ "name": name, "description": description, "input_schema": schema })
        })
        .await
    }

    /// The tools as the `tools` of OpenAI's Responses API. Names have only characters that it takes;
    /// [`call`](Self::call) knows them.
    ///
    /// # Errors
    /// As [`tools`](Self::tools).
    pub async fn openai(&self) -> Result<Vec<Value>, Error> {
        self.export(|name, description, schema| {
            json!({
                "type": "function",
                "name": name,
                "description": description,
                "parameters": schema,
                "strict": false,
            })
        })
        .await
    }

    /// The tools as the `tools` of OpenAI's Chat Completions API; otherwise as [`openai`](Self::openai).
    ///
    /// # Errors
    /// As [`tools`](Self::tools).
    pub async fn openai_chat(&self) -> Result<Vec<Value>, Error> {
        self.export(|name, description, schema| {
            let function = json!({ "name": name, "description": description, "parameters": schema });
            json!({ "type": "function", "function": function })
        })
        .await
    }

    async fn export(&self, write: impl Fn(&str, &str, Value) -> Value) -> Result<Vec<Value>, Error> {
        let tools = self.tools().await?;
        let own_names: Vec<&str> = tools.iter().map(ToolsetTool::name).collect();
        let names = self.shared.names.lock().names(&own_names);
        let (mut cut, mut reduced) = (Vec::new(), Vec::new());
        let exported = tools.iter().zip(&names).map(|(tool, name)| {
            let description = tool.info.description().unwrap_or_else(|| tool.info.title());
            let (description, is_cut) = model_description(description);
            let model = model_schema(tool.info.input_schema());
            if is_cut {
                cut.push(name.as_str());
            }
            if model.is_reduced {
                reduced.push(name.as_str());
            }
            write(name, &description, model.schema)
        });
        let exported: Vec<_> = exported.collect();
        if exported.len() > MAX_TOOLS {
            tracing::warn!(
                tools = exported.len(),
                "OpenAI's API takes {MAX_TOOLS} tools: choose with `only`"
            );
        }
        if !cut.is_empty() {
            let (number, tools) = (cut.len(), beginning_of(&cut));
            tracing::warn!(number, tools, "descriptions of tools were cut to {MAX_DESCRIPTION} characters");
        }
        if !reduced.is_empty() {
            let (number, tools) = (reduced.len(), beginning_of(&reduced));
            tracing::warn!(number, tools, "schemas of tools were reduced to {MAX_SCHEMA} bytes");
        }
        Ok(exported)
    }

    /// Calls a tool by its name in this toolset, or by the name that a model got; the arguments are an object, or its JSON
    /// as text.
    ///
    /// # Errors
    /// [`Error::Invalid`]: the toolset has no such tool, or the arguments are not an object. [`Error::Denied`]: a rule refuses the
    /// call. Others as of [`Client::call`]. A tool that fails is not an error: its result has `is_error`.
    pub async fn call(&self, name: &str, arguments: impl Into<Value>) -> Result<ToolsetResult, Error> {
        let counters = &self.shared.counters;
        counters.calls(1);
        // boxed as an object: the types of callers' futures would become too deep for the compiler
        let call: StoreFuture<'_, _> = Box::pin(self.call_uncounted(name, arguments.into()));
        let result = call.await;
        if result.as_ref().map_or(true, |result| result.is_error) {
            counters.failed_calls(1);
        }
        if matches!(result, Err(Error::Denied { .. })) {
            counters.denied(1);
        }
        result
    }

    async fn call_uncounted(&self, name: &str, arguments: Value) -> Result<ToolsetResult, Error> {
        self.check_names()?;
        let arguments = object_of(arguments)?;
        let name = self.own_name(name).await?;
        let missing = || Error::invalid(format!("the toolset has no tool `{name}`"));
        let (member, own_name) = self.route(&name).ok_or_else(missing)?;
        let entry = in_list_timeout(self.list_timeout, member.entry(own_name)).await?.ok_or_else(missing)?;
        // rules see what the server gets
        let arguments = with_own_keys(entry.info.input_schema(), arguments);
        if !member.allows_call(&name, &arguments) {
            return Err(Error::Denied { what: format!("this call of `{name}`") });
        }
        member.open(self).await?.call(&entry, arguments).await
    }

    /// The name in this toolset, of one that a model may have got.
    async fn own_name(&self, name: &str) -> Result<String, Error> {
        if self.route(name).is_some() {
            return Ok(name.to_owned());
        }
        let known = || self.shared.names.lock().tool(name).map(str::to_owned);
        if let Some(known) = known() {
            return Ok(known);
        }
        // a name of an earlier run of the program
        let tools = self.tools().await?;
        let own_names: Vec<&str> = tools.iter().map(ToolsetTool::name).collect();
        self.shared.names.lock().names(&own_names);
        Ok(known().unwrap_or_else(|| name.to_owned()))
    }

    /// The server that a name belongs to, and the server's name for it.
    fn route<'a>(&self, name: &'a str) -> Option<(&Member, &'a str)> {
        self.members.iter().find_map(|member| Some((member, member.own_name(name)?)))
    }

    /// The content of an artifact. If it came from a resource and is gone, it is fetched again.
    ///
    /// # Errors
    /// [`Error::Denied`]: the reference belongs to another scope, or a rule refuses the resource. [`Error::Invalid`]: the
    /// artifact is gone, and cannot be fetched again.
    pub async fn artifact(&self, reference: &ArtifactRef) -> Result<Artifact, Error> {
        let loaded = self.artifacts.load(reference).await;
        if matches!(loaded, Err(Error::Denied { .. })) {
            self.shared.counters.denied(1);
        }
        if let Some(bytes) = loaded? {
            return Ok(Artifact { reference: reference.clone(), bytes });
        }
        let gone = || Error::invalid("the artifact is gone\ncall the tool again that it came from");
        let source = self.artifacts.source(&reference.id).ok_or_else(gone)?;
        let member = self.members.iter().find(|member| member.namespace() == source.namespace);
        let member = member.ok_or_else(gone)?;
        if !member.allows_uri(&source.uri) {
            self.shared.counters.denied(1);
            return Err(Error::Denied { what: "the resource of this artifact".to_owned() });
        }
        let read = member.open(self).await?.read_again(&source.uri).await?;
        let item = read.contents.get(source.item).ok_or_else(gone)?;
        let bytes = match item.as_text() {
            Some(text) => text.as_bytes().to_vec(),
            None => item.to_bytes().ok_or_else(gone)?.into_owned(),
        };
        let mime = item.mime.clone().unwrap_or_else(|| reference.mime_type.clone());
        let filename = filename_of(item.uri.as_deref().unwrap_or(&source.uri));
        let origin = Origin { filename, source: Some(source) };
        let reference = self.keep_artifact(bytes.clone(), mime, origin).await?;
        self.shared.counters.artifacts_fetched_again(1);
        Ok(Artifact { reference, bytes })
    }

    /// Stores a content of the program itself, so that a model can refer to it.
    ///
    /// # Errors
    /// [`Error::Invalid`]: it exceeds a limit, or the store failed.
    pub async fn store_artifact(
        &self,
        bytes: Vec<u8>,
        mime_type: &str,
        filename: Option<&str>,
    ) -> Result<ArtifactRef, Error> {
        let origin = Origin { filename: filename.and_then(filename_of), source: None };
        self.keep_artifact(bytes, mime_type.to_owned(), origin).await
    }

    async fn keep_artifact(
        &self,
        bytes: Vec<u8>,
        mime: String,
        origin: Origin,
    ) -> Result<ArtifactRef, Error> {
        let kept = self.artifacts.keep(&self.shared.counters, bytes, mime, origin).await;
        kept.map_err(|reason| Error::invalid(format!("the artifact: {reason}")))
    }
}

/// The first of these names, for a line in the log.
fn beginning_of(names: &[&str]) -> String {
    names.get(..names.len().min(MAX_LOGGED)).unwrap_or_default().join(" ")
}

/// Arguments as an object; models send them as text, and send nothing for none.
fn object_of(arguments: Value) -> Result<Value, Error> {
    match arguments {
        Value::Null => Ok(Map::new().into()),
        Value::Object(_) => Ok(arguments),
        Value::String(text) if text.trim().is_empty() => Ok(Map::new().into()),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(arguments @ Value::Object(_)) => Ok(arguments),
            _ => Err(Error::invalid("the arguments are not a JSON object")),
        },
        _ => Err(Error::invalid("the arguments are not an object")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_or_its_text() {
        assert_eq!(object_of(Value::Null).unwrap(), json!({}));
        assert_eq!(object_of(json!("{\"a\":1}")).unwrap(), json!({ "a": 1 }));
        assert_eq!(object_of(json!(" ")).unwrap(), json!({}));
        for wrong in [json!([1]), json!("[1]"), json!("x"), json!(3)] {
            assert!(object_of(wrong).is_err());
        }
    }
}
