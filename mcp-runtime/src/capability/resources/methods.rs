//! `resources/read`, and `resources/list` of a server with templates that list their instances.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde_json::{Map, Value, json};

use super::{
    ListedPage, PageRequest, ResourceCall, ResourceEntry, ResourceResult, Resources, UriVariables,
    capability::RESOURCES, write_resource_result,
};
use crate::core::{
    arguments::MaybeFuture,
    client_error::ClientError,
    client_request::CallBinding,
    connection::AccessError,
    content::{ResourceContents, ResourceDefaults},
    context::{Context, Retry},
    dispatch::{
        CacheHints, ClientRequestPolicy, CursorScope, ItemCall, Reply, Request, Response, WriteResult,
        into_protocol_error, invalid_cursor, start_with_strings,
    },
    error::Failure,
    extensions::Extensions,
    invoke::{self, Invocation, contain, with_timeout},
    item::ItemSpec,
    item_output::{ItemOutput, wrong_kind},
    jsonrpc::{Object, ProtocolError},
    log_limit::LogLine,
    protocol::{self, Revision},
    reason::Reason,
    server::{EncodedPage, Server, page_of},
    sync::Mutex,
};

impl Resources {
    /// Answers `resources/list`, with the instances of templates after the plain resources.
    pub(super) fn list_with_instances(
        &self,
        server: &Server,
        request: Request<'_>,
    ) -> Result<Response, Reply> {
        let cursor = request.cursor()?;
        let scope = CursorScope::new(server, &request, RESOURCES);
        let position = match server.open_cursor(cursor.as_deref(), &scope)? {
            None => Some(ListPosition::Entries(0)),
            Some(bytes) => ListPosition::from_bytes(&bytes),
        };
        let position = position.ok_or_else(invalid_cursor)?;
        let may_be_empty = position.follows_others();
        let entries = self.entries_of(true, &server.options().lists, request.revision, request.access());
        // the user's code lists the instances, so only callers that may read them may run it
        let visible = self.entries.iter().filter(|r| request.access().allows(r.view()));
        let templates: Vec<_> = visible.filter(|r| r.list.is_some()).cloned().collect();
        let size = server.options().lists.page_size.max(1);
        // the plain resources come first
        let (entries, first) = match position {
            ListPosition::Entries(start) => {
                let rest = entries.get(start..).ok_or_else(invalid_cursor)?;
                if rest.len() > size {
                    let page = page_of(&entries, start, size).ok_or_else(invalid_cursor)?;
                    return Ok(server.page_reply(RESOURCES, page.into(), || scope)?.into());
                }
                let first = templates.first().map(|template| InstancesPosition::start_of(template));
                (rest.to_vec(), first)
            }
            ListPosition::Instances(position) => (Vec::new(), Some(position)),
        };
        let templates = match &first {
            None => Vec::new(),
            Some(position) => {
                let first = templates.iter().position(|template| template.uri == position.template);
                templates[first.ok_or_else(invalid_cursor)?..].to_vec()
            }
        };
        let make_context = |entry: &ResourceEntry| {
            request.make_context(server, &entry.state, ClientRequestPolicy::Forbidden)
        };
        let templates = templates.into_iter().map(|entry| (make_context(&entry), entry)).collect();
        let call = ListInstances {
            room: size - entries.len(),
            entries,
            templates,
            first,
            may_be_empty,
            failures: Arc::default(),
            scope,
            state: Arc::default(),
            timeout: server.options().limits.timeout,
        };
        Ok(server.call_item(request, call))
    }

    /// Answers `resources/read`.
    pub(super) fn read(&self, server: &Server, request: Request<'_>) -> Result<Response, Reply> {
        let uri = request.uri()?;
        if let Some(read) = self.sources.iter().find_map(|source| source.read(server, &request, &uri)) {
            return Ok(read?.into());
        }
        let (entry, variables) = match self.find(&uri, request.access()) {
            Ok(found) => found,
            Err(AccessError::MissingScopes(scopes)) => return Err(server.insufficient_scope(scopes)),
            Err(AccessError::Unknown) => {
                let error = unknown_resource(&uri, request.revision);
                return Err(Reply::from(error).because(Reason::Unknown));
            }
        };
        if !entry.item.requires.is_empty() {
            request.check_features(&entry.item.requires)?;
        }
        let retry = request.retry(server, || CallBinding::new("resources/read", &uri, "{}"))?;
        Ok(server.call_item(request, ReadResource { entry: entry.clone(), variables, uri, retry }))
    }
}

/// The result of `resources/read`.
pub(crate) struct ReadResult {
    pub(crate) result: ResourceResult,
    pub(crate) uri: Box<str>,
    /// Provides the defaults of the contents.
    pub(crate) source: ReadSource,
    pub(crate) cache: CacheHints,
}

/// Where the contents of a resource come from.
pub(crate) enum ReadSource {
    Resource(Arc<ResourceEntry>),
    /// Not an item: a file of a skill.
    #[cfg(feature = "skills")]
    Unregistered,
}

impl From<ReadResult> for Reply {
    fn from(result: ReadResult) -> Self {
        WriteResult::into_reply(result)
    }
}

impl WriteResult for ReadResult {
    fn write_members(&self, object: &mut Object<'_>, revision: Revision) {
        let Self { result, uri, source, cache } = self;
        let defaults = match source {
            ReadSource::Resource(entry) => {
                ResourceDefaults { uri, mime: entry.mime.as_deref(), ui: entry.ui.as_deref() }
            }
            #[cfg(feature = "skills")]
            ReadSource::Unregistered => ResourceDefaults { uri, ..ResourceDefaults::default() },
        };
        write_resource_result(object, result, revision, defaults);
        if revision.is_modern() {
            cache.write(object);
        }
    }

    fn meta(&self) -> Option<&Map<String, Value>> {
        self.result.meta.as_deref()
    }
}

/// One `resources/read`.
struct ReadResource<'a> {
    entry: Arc<ResourceEntry>,
    variables: UriVariables,
    uri: Cow<'a, str>,
    retry: Option<Arc<Retry>>,
}

impl ItemCall for ReadResource<'_> {
    fn into_owned(self) -> Arc<dyn ItemCall> {
        let Self { entry, variables, uri, retry } = self;
        Arc::new(ReadResource { entry, variables, uri: Cow::Owned(uri.into_owned()), retry })
    }

    fn item(&self) -> Option<&ItemSpec> {
        Some(&self.entry.item)
    }

    fn state(&self) -> &Arc<Extensions> {
        &self.entry.state
    }

    fn binding(&self) -> CallBinding<'_> {
        CallBinding::new("resources/read", &self.uri, "{}")
    }

    fn client_request_policy(&self) -> ClientRequestPolicy {
        ClientRequestPolicy::Allowed(self.retry.clone())
    }

    fn time_limit(&self) -> Option<Duration> {
        self.entry.item.timeout
    }

    fn start(&self, is_current: bool, context: &dyn Fn() -> Context) -> Invocation {
        let ResourceEntry { item, function, .. } = &*self.entry;
        start_with_strings(item, function, &self.variables, is_current, context, |context| {
            let (uri, variables) = (self.uri.clone().into_owned(), self.variables.clone());
            Ok(ResourceCall { uri, variables, context })
        })
    }

    fn respond(&self, server: &Server, revision: Revision, result: Result<ItemOutput, Failure>) -> Response {
        let (entry, uri) = (&self.entry, &*self.uri);
        let failure = match result {
            Ok(ItemOutput::Resource(result)) => {
                let size = || result.contents.iter().map(ResourceContents::size).sum::<usize>();
                if let Some(limit) = entry.item.max_result
                    && size() > limit
                {
                    let size = size();
                    let text = format!("`{uri}` has {size} bytes, and at most {limit} are sent");
                    let error = ProtocolError::internal(text).with_data(json!({ "uri": uri, "size": size }));
                    return Reply::from(error).because(Reason::ResultSize).into();
                }
                // a result that depends on the client's input is valid for this client and this time only
                let cache = entry.cache.filter(|_| self.retry.is_none());
                let cache = cache.map_or(CacheHints::NONE, |(ttl, public)| CacheHints {
                    ttl: Duration::from_millis(ttl),
                    public: public && !server.options().tells_callers_apart(),
                });
                let source = ReadSource::Resource(entry.clone());
                return Reply::from(ReadResult { result, uri: uri.into(), source, cache }).into();
            }
            Ok(_) => wrong_kind(),
            Err(failure) => failure,
        };
        let subject = server.error_context("resource", &entry.item.name);
        let reason = failure.reason();
        Reply::from(match failure.into_client_error(subject, revision) {
            ClientError::Arguments(report) => {
                ProtocolError::invalid_params(format!("invalid URI `{uri}`: {report}"))
                    .with_data(json!({ "uri": uri }))
            }
            ClientError::NotFound => unknown_resource(uri, revision),
            error => into_protocol_error(error),
        })
        .because(reason)
        .into()
    }
}

/// Where a page of `resources/list` begins, if templates list their instances.
enum ListPosition {
    /// After this many plain resources.
    Entries(usize),
    Instances(InstancesPosition),
}

/// Where a page begins among the instances of the templates.
#[derive(Clone, PartialEq)]
struct InstancesPosition {
    /// The URI of the template, since its index may change.
    template: String,
    /// The cursor that its `list` function is called with.
    cursor: Option<String>,
    /// The number of instances from its result that were on earlier pages.
    skip: usize,
}

impl ListPosition {
    /// Whether everything before it was sent on earlier pages, and it is the start of something else.
    fn follows_others(&self) -> bool {
        match self {
            Self::Entries(start) => *start > 0,
            Self::Instances(position) => position.cursor.is_none() && position.skip == 0,
        }
    }

    /// Reads what a cursor has sealed; eight bytes are the start of a page in every list.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk::<8>()?;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
        if rest.is_empty() {
            return Some(Self::Entries(count));
        }
        let (length, rest) = rest.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (template, rest) = rest.split_at_checked(length)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        let cursor = match rest {
            [] => None,
            [_, cursor @ ..] => Some(text(cursor)?),
        };
        Some(Self::Instances(InstancesPosition { template: text(template)?, cursor, skip: count }))
    }
}

impl InstancesPosition {
    fn start_of(template: &ResourceEntry) -> Self {
        Self { template: template.uri.clone(), cursor: None, skip: 0 }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend((self.skip as u64).to_le_bytes());
        bytes.extend((self.template.len() as u64).to_le_bytes());
        bytes.extend(self.template.as_bytes());
        if let Some(cursor) = &self.cursor {
            bytes.push(1);
            bytes.extend(cursor.as_bytes());
        }
        bytes
    }
}

/// One `resources/list` of a server with templates that list their instances.
struct ListInstances {
    /// The plain resources of the page, which come first.
    entries: Vec<Vec<u8>>,
    /// How many instances the page has room for.
    room: usize,
    /// The templates from the first of the page on, and the context of each, since each has its own state.
    templates: Vec<(Context, Arc<ResourceEntry>)>,
    first: Option<InstancesPosition>,
    /// Whether the page does not hide a failure if there is nothing on it.
    may_be_empty: bool,
    /// The templates whose `list` functions have failed, for the log.
    failures: Failures,
    scope: CursorScope,
    state: Arc<Extensions>,
    timeout: Option<Duration>,
}

/// Failures, with the templates that they are of.
type Failures = Arc<Mutex<Vec<(Arc<ResourceEntry>, Failure)>>>;

/// Calls the templates' `list` functions, each at most once and for as long as a call may take, until the page is full. It
/// begins with these `entries`. A template whose function fails has no instances.
async fn list_page(
    templates: Vec<(Context, Arc<ResourceEntry>)>,
    mut first: Option<InstancesPosition>,
    mut room: usize,
    timeout: Option<Duration>,
    failures: Failures,
    mut entries: Vec<Vec<u8>>,
) -> Result<ItemOutput, Failure> {
    let mut next = None;
    for (context, template) in templates.into_iter() {
        let position = first.take().unwrap_or_else(|| InstancesPosition::start_of(&template));
        if room == 0 {
            next = Some(position);
            break;
        }
        let Some(list) = &template.list else { continue };
        let request = PageRequest { cursor: position.cursor.clone(), limit: position.skip + room };
        let revision = context.revision();
        let listed = with_timeout(timeout, contain(list(request, context.clone()), &context)).await;
        let listed = listed.and_then(|listed| checked_page(listed?, position.cursor.as_deref()));
        let ListedPage { mut instances, next_cursor } = match listed {
            Ok(page) => page,
            Err(failure) => {
                failures.lock().push((template, failure));
                continue;
            }
        };
        let shown = position.skip.saturating_add(room).min(instances.len());
        let has_more = instances.len() > shown;
        instances.truncate(shown);
        instances.drain(..position.skip.min(shown));
        room -= instances.len();
        entries.extend(instances.iter().map(|instance| {
            let mut out = Vec::with_capacity(128);
            template.write_instance(&mut out, revision, instance);
            out
        }));
        next = if has_more {
            Some(InstancesPosition { skip: shown, ..position })
        } else {
            next_cursor.map(|cursor| InstancesPosition { cursor: Some(cursor), skip: 0, ..position })
        };
        if next.is_some() {
            break;
        }
    }
    Ok(ItemOutput::Entries(entries, next.map(|next| next.to_bytes())))
}

/// Checks the cursor that a `list` function returned, so that a client which follows it comes to an end.
fn checked_page(page: ListedPage, last: Option<&str>) -> Result<ListedPage, Failure> {
    let text = match page.next_cursor.as_deref() {
        Some(cursor) if cursor.len() > ListedPage::MAX_CURSOR => {
            format!("its `next_cursor` is longer than {} bytes", ListedPage::MAX_CURSOR)
        }
        Some(cursor) if last == Some(cursor) => {
            "its `next_cursor` is the cursor of this page, so the list would not end\ntake a `&PageRequest` and continue at its `cursor`".to_owned()
        }
        _ => return Ok(page),
    };
    Err(Failure::private(text))
}

/// Logs a failure, which leaves the instances of a template out of a list.
fn log_failure(server: &Server, template: &ResourceEntry, failure: Failure, revision: Revision) {
    let name = &*template.item.name;
    // the causes of private failures are in the log then
    let error = failure.into_client_error(server.error_context("list of", name), revision);
    let error = into_protocol_error(error).message;
    if let Some(LogLine { suppressed }) = server.log_limits().failures.line("instances of", name) {
        tracing::warn!(name, suppressed, %error, "`resources/list` has no instances of this template");
    }
}

impl ItemCall for ListInstances {
    fn into_owned(self) -> Arc<dyn ItemCall> {
        Arc::new(self)
    }

    fn state(&self) -> &Arc<Extensions> {
        &self.state
    }

    fn binding(&self) -> CallBinding<'_> {
        CallBinding::new("resources/list", "", "{}")
    }

    fn start(&self, _: bool, context: &dyn Fn() -> Context) -> Invocation {
        let (failures, entries) = (self.failures.clone(), self.entries.clone());
        let (templates, first) = (self.templates.clone(), self.first.clone());
        let page = list_page(templates, first, self.room, self.timeout, failures, entries);
        invoke::start_with(|| Ok(MaybeFuture::Pending(Box::pin(page))), &context(), None)
    }

    fn respond(&self, server: &Server, revision: Revision, result: Result<ItemOutput, Failure>) -> Response {
        let mut failures = std::mem::take(&mut *self.failures.lock());
        let mut name = "resources".to_owned();
        let failure = match result {
            Ok(ItemOutput::Entries(entries, None))
                if !self.may_be_empty && entries.is_empty() && !failures.is_empty() =>
            {
                let (template, failure) = failures.remove(0);
                name.clone_from(&template.item.name);
                failure
            }
            Ok(ItemOutput::Entries(entries, next)) => {
                for (template, failure) in failures {
                    log_failure(server, &template, failure, revision);
                }
                let cursor = next.map(|next| server.seal_cursor(&next, &self.scope)).transpose();
                let page = EncodedPage::of(&entries).into();
                let reply: Reply = match cursor {
                    Ok(cursor) => server.page_with_cursor(RESOURCES, page, cursor),
                    Err(error) => error.into(),
                };
                return reply.into();
            }
            Ok(_) => wrong_kind(),
            Err(failure) => failure,
        };
        let subject = server.error_context("list of", &name);
        let reason = failure.reason();
        Reply::from(match failure.into_client_error(subject, revision) {
            // the client has not sent any
            ClientError::Arguments(report) => ProtocolError::internal(report),
            error => into_protocol_error(error),
        })
        .because(reason)
        .into()
    }
}

/// `-32602` in 2026-07-28, `-32002` before.
pub(super) fn unknown_resource(uri: &str, revision: Revision) -> ProtocolError {
    let code = if revision.is_modern() { protocol::INVALID_PARAMS } else { protocol::RESOURCE_NOT_FOUND };
    let has_slash = uri.as_bytes().windows(3).any(|escape| escape.eq_ignore_ascii_case(b"%2F"));
    let hint = if has_slash { "\n`%2F` is a slash, which only `{+x}` in a template matches" } else { "" };
    ProtocolError::new(code, format!("unknown resource `{uri}`{hint}")).with_data(json!({ "uri": uri }))
}
