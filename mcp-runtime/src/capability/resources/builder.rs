//! Resources and templates made at run time: a URI and a closure.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    DynList, DynSubscribe, ListedPage, PageRequest, ResourceResult, ResourceSpec, Subscription, UriVariables,
};
use crate::core::{
    arguments::{Completion, CompletionSource, attribute_fn::IntoReturned, parse_text_argument},
    bound::Configure,
    callback::Callback,
    content::Annotations,
    context::Context,
    error::ToolError,
    item::{ItemSpec, impl_item_setters},
    item_function::{AsyncReply, DynHandler, async_handler, blocking_handler},
    item_output::IntoOutput,
    jsonrpc::ProtocolError,
    unix_time::millis,
};

/// One read of a resource made at run time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResourceCall {
    /// The URI, as the client wrote it.
    pub uri: String,
    /// The context of the request.
    pub context: Context,
    pub(crate) variables: UriVariables,
}

impl ResourceCall {
    /// The template's variable `name` as a `T`, percent-decoded and parsed like a parameter of that type; an absent one of
    /// a query is `None` for an `Option`.
    ///
    /// # Errors
    /// It is absent, or not a `T`: `-32602`, with a message that names it.
    pub fn variable<T: DeserializeOwned>(&self, name: &str) -> Result<T, ToolError> {
        let value = self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        parse_text_argument(value).map_err(|error| {
            let text = format!("invalid URI `{}`: `{name}`: {error}", self.uri);
            ProtocolError::invalid_params(text).with_data(serde_json::json!({ "uri": self.uri })).into()
        })
    }
}

/// A resource or template made at run time, to [add](crate::ServerBuilder::add) to a server.
///
/// ```
/// use mcp_runtime::{ToolError, resource::{ResourceCall, ResourceDef}};
///
/// let report = ResourceDef::builder("reports://{year}")
///     .name("report")
///     .mime("text/markdown")
///     .list(|_, _| async { ["reports://2025", "reports://2026"] })
///     .handler(|call: ResourceCall| async move {
///         let year: u16 = call.variable("year")?;
///         Ok::<_, ToolError>(format!("# {year}"))
///     });
/// assert_eq!(report.uri(), "reports://{year}");
/// ```
#[derive(Debug, Clone)]
pub struct ResourceDef {
    pub(crate) spec: ResourceSpec,
    pub(crate) list: Option<Callback<DynList>>,
    pub(crate) subscribe: Option<Callback<DynSubscribe>>,
    pub(crate) completions: BTreeMap<String, CompletionSource>,
    pub(crate) handler: DynHandler<ResourceCall>,
}

impl ResourceDef {
    /// Starts building the resource with this URI, or a template if it has variables.
    pub fn builder(uri: impl Into<String>) -> ResourceBuilder {
        let spec = ResourceSpec { uri: uri.into(), ..ResourceSpec::default() };
        ResourceBuilder { spec, list: None, subscribe: None, completions: BTreeMap::new() }
    }

    /// The URI or template.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.spec.uri
    }
}

/// Builds a [`ResourceDef`](crate::resource::ResourceDef); its handler is the last step.
#[derive(Debug, Clone)]
#[must_use = "a resource is complete with its handler"]
pub struct ResourceBuilder {
    spec: ResourceSpec,
    list: Option<Callback<DynList>>,
    subscribe: Option<Callback<DynSubscribe>>,
    completions: BTreeMap<String, CompletionSource>,
}

impl_item_setters!(ResourceBuilder, "resource");

impl ResourceBuilder {
    pub(crate) fn item_mut(&mut self) -> &mut ItemSpec {
        &mut self.spec.item
    }

    /// Sets `annotations` on the wire: `.annotated(|hints| hints.priority(0.5))`.
    pub fn annotated(mut self, set: impl Configure<Annotations>) -> Self {
        self.spec.annotations = set(self.spec.annotations);
        self
    }

    /// Sets `name` on the wire; the URI if not set.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.spec.item.name = name.into();
        self
    }

    /// Sets `mimeType` on the wire; by default that of what the handler returns.
    pub fn mime(mut self, mime: impl Into<String>) -> Self {
        self.spec.mime = Some(mime.into());
        self
    }

    /// Sets `size` on the wire, in bytes; not of a template.
    pub fn size(mut self, bytes: u64) -> Self {
        self.spec.size = Some(bytes);
        self
    }

    /// Sets how long a client may cache the contents.
    pub fn cache(mut self, ttl: Duration) -> Self {
        self.spec.cache = Some((millis(ttl), false));
        self
    }

    /// Adds a member to the entry's `_meta`.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.spec.item.insert_meta(key.into(), value.into());
        self
    }

    /// Sets the async function that lists the instances of a template: all of them, or the requested page.
    pub fn list<F, Fut, N>(mut self, list: F) -> Self
    where
        F: Fn(PageRequest, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoReturned<ListedPage, N>> + Send + 'static,
    {
        let list = Arc::new(list);
        self.list = Some(Callback(Arc::new(move |page, context| {
            let list = list.clone();
            Box::pin(async move { list(page, context).await.into_returned() })
        })));
        self
    }

    /// Sets the check that decides who may subscribe; it has to return at once.
    pub fn subscribe<F, R, N>(mut self, check: F) -> Self
    where
        F: Fn(&Subscription, &Context) -> R + Send + Sync + 'static,
        R: IntoReturned<bool, N>,
    {
        let check = move |wanted, context| check(&wanted, &context).into_returned();
        self.subscribe = Some(Callback(Arc::new(check)));
        self
    }

    /// Sets the values that completion of a variable offers; they match by prefix, ignoring case.
    pub fn complete<S: Into<String>>(
        mut self,
        variable: impl Into<String>,
        values: impl IntoIterator<Item = S>,
    ) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.completions.insert(variable.into(), CompletionSource::Choices(values));
        self
    }

    /// Sets the async function that completes a variable, and which does its own matching.
    pub fn complete_with<F, Fut, N>(mut self, variable: impl Into<String>, complete: F) -> Self
    where
        F: Fn(Completion, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoReturned<Vec<String>, N>> + Send + 'static,
    {
        self.completions.insert(variable.into(), CompletionSource::function(complete));
        self
    }

    /// Sets the handler and builds the resource.
    pub fn handler<F, Fut>(self, handler: F) -> ResourceDef
    where
        F: Fn(ResourceCall) -> Fut + Send + Sync + 'static,
        Fut: AsyncReply + Send + 'static,
        Fut::Reply: IntoOutput<ResourceResult>,
    {
        self.build(async_handler(handler, Fut::Reply::into_output), Fut::Reply::MIME)
    }

    /// Sets a plain handler, which runs on the blocking pool, and builds the resource.
    pub fn blocking_handler<F, R>(self, handler: F) -> ResourceDef
    where
        F: Fn(ResourceCall) -> R + Send + Sync + 'static,
        R: IntoOutput<ResourceResult> + 'static,
    {
        self.build(blocking_handler(handler, R::into_output), R::MIME)
    }

    fn build(self, handler: DynHandler<ResourceCall>, mime: Option<&'static str>) -> ResourceDef {
        let Self { mut spec, list, subscribe, completions } = self;
        spec.set_default_mime(mime);
        ResourceDef { spec, list, subscribe, completions, handler }
    }
}
