//! A description with the choices of a program: which operations become tools, which resources, and how they are called.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt,
    future::Future,
    sync::Arc,
    time::Duration,
};

use http::HeaderName;
use mcp_runtime::{
    Context, Error, ProtocolError, ToolError,
    addition::{Addition, IntoAddition},
    permits::CallerPermits,
    resource::{ResourceCall, ResourceDef},
    tool::{Hints, ToolCall, ToolDef},
};
use mcp_runtime_schema::Validator;
use serde_json::{Map, Value, json};

use crate::{
    api::{Api, HeadersFn, Server},
    document::{Document, Operation, shown},
    operation::{Plan, comparable_header, is_json, plan, tool_name},
    reader::Reader,
    request::{Call, MAX_TARGET, Parameter, Place, header_name},
    route::Route,
};

/// How many operations become tools unless the program chooses them.
const MAX_UNCHOSEN: usize = 50;
/// How many problems and tags an error lists.
const MAX_LISTED: usize = 20;
/// How many bytes of texts and schemas they may have: operations that refer to one part repeat it.
const MAX_SIZE: usize = 32 << 20;
/// How many bytes the references of all operations may lead to.
const MAX_READ: usize = 1 << 30;
/// Of the text that a model reads, roughly.
const BYTES_PER_TOKEN: usize = 4;

/// The operations of an HTTP API, to [add](mcp_runtime::ServerBuilder::add) to a server as tools and resources.
///
/// ```no_run
/// use mcp_runtime_openapi::{OpenApi, Route};
///
/// # fn main() -> mcp_runtime::Result<()> {
/// # let text = "";
/// let shop = OpenApi::parse(text)?
///     .server("https://api.example.com/v1")
///     .include(Route::tag("orders"))
///     .exclude(Route::method("DELETE"))
///     .resource(Route::get("/orders/{id}"));
/// let server = mcp_runtime::server!().add(shop).build()?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a description does nothing before it is added to a server"]
pub struct OpenApi {
    document: Document,
    server: Result<Option<Server>, String>,
    include: Vec<Route>,
    exclude: Vec<Route>,
    resources: Vec<Route>,
    allow_all: bool,
    renames: BTreeMap<String, String>,
    scheme: String,
    headers: Option<HeadersFn>,
    own_headers: Vec<String>,
    has_output_schemas: bool,
    timeout: Duration,
    max_response: usize,
    max_concurrency: usize,
}

impl fmt::Debug for OpenApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenApi").finish_non_exhaustive()
    }
}

impl OpenApi {
    /// Reads a description in OpenAPI 3.0 or 3.1, in JSON or YAML; one of 3.2 is read as 3.1.
    ///
    /// # Errors
    /// It is not a description, or of another version.
    pub fn parse(description: impl Into<String>) -> Result<Self, Error> {
        let failed = |error| Error::other(format!("the OpenAPI description cannot be used: {error}"));
        Ok(Self {
            document: Document::parse(description.into()).map_err(failed)?,
            server: Ok(None),
            include: Vec::new(),
            exclude: Vec::new(),
            resources: Vec::new(),
            allow_all: false,
            renames: BTreeMap::new(),
            scheme: "api".to_owned(),
            headers: None,
            own_headers: Vec::new(),
            has_output_schemas: true,
            timeout: Duration::from_secs(30),
            max_response: 1 << 20,
            max_concurrency: 16,
        })
    }

    /// Reads the description of routes that the program has itself; calls go to the routes, in this process, through their
    /// layers and extractors, with the [principal](mcp_runtime::Principal) of the caller in the request's extensions.
    /// `description` is a value that is serialized as one, such as those of `utoipa` and `aide`.
    ///
    /// # Errors
    /// It is not a description, or of another version.
    #[cfg(feature = "routes")]
    pub fn routes(routes: axum::Router, description: &impl serde::Serialize) -> Result<Self, Error> {
        let json = serde_json::to_string(description).map_err(Error::other)?;
        let server = Ok(Some(Server::Routes(crate::routes::Routes::new(routes))));
        Ok(Self { server, ..Self::parse(json)? })
    }

    /// Gives the routes of the program these headers of the client's request, over HTTP. None are given by default.
    #[cfg(feature = "routes")]
    pub fn forward_headers<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let Ok(Some(Server::Routes(routes))) = &mut self.server else {
            self.server =
                Err("only routes of the program itself get headers of the client's request".to_owned());
            return self;
        };
        let wrong = names.into_iter().find_map(|name| routes.forward(name.as_ref()).err());
        if let Some(error) = wrong {
            self.server = Err(error);
        }
        self
    }

    /// Gives the routes of the program the client's `Authorization`, so that their own checks of it run. The program is the
    /// resource that the access token is for; the protocol forbids to pass it on to any other one.
    #[cfg(feature = "routes")]
    pub fn forward_authorization(self) -> Self {
        self.forward_headers(["authorization"])
    }

    /// Sets the URL of the API, to which the paths of operations are appended. Requests go to its scheme, host and port, and
    /// nowhere else: the `servers` of the description are not used.
    pub fn server(mut self, url: impl AsRef<str>) -> Self {
        self.server = Server::at(url.as_ref()).map(Some);
        self
    }

    /// Adds a rule for operations that become tools; without one, all do, if these are not more than 50.
    pub fn include(mut self, route: Route) -> Self {
        self.include.push(route);
        self
    }

    /// Adds a rule for operations that are left out, whatever other rules say.
    pub fn exclude(mut self, route: Route) -> Self {
        self.exclude.push(route);
        self
    }

    /// Makes `GET` operations resources instead of tools; templates, if their paths have parameters.
    pub fn resource(mut self, route: Route) -> Self {
        self.resources.push(route);
        self
    }

    /// Makes all operations tools, also if these are more than 50.
    pub fn allow_all(mut self) -> Self {
        self.allow_all = true;
        self
    }

    /// Sets the name of the tool or resource for an operation: its `operationId`, or its method and path, as in
    /// `GET /orders`.
    pub fn rename(mut self, operation: impl Into<String>, name: impl Into<String>) -> Self {
        self.renames.insert(operation.into(), name.into());
        self
    }

    /// Sets the scheme of the URIs of resources; `api` by default, for URIs such as `api:///orders/1`.
    pub fn scheme(mut self, scheme: impl Into<String>) -> Self {
        self.scheme = scheme.into();
        self
    }

    /// Keeps headers of these names from being arguments, also where an operation requires them: those that
    /// [`headers`](Self::headers) sets. `cookie` stands for all parameters that are cookies.
    pub fn own_headers<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.own_headers.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the function that returns headers for each request, such as credentials. A call whose arguments give one of them
    /// fails: name those that operations have as parameters in [`own_headers`](Self::own_headers).
    ///
    /// Get them from the [principal](Context::caller) or from [state](Context::state). The access token that a client sent to
    /// this server is for this server: the protocol forbids to pass it on to another one.
    ///
    /// ```
    /// # fn main() -> mcp_runtime::Result<()> {
    /// use mcp_runtime::ToolError;
    /// use mcp_runtime_openapi::OpenApi;
    ///
    /// # let api = OpenApi::parse(r#"{"openapi": "3.1.0", "paths": {}}"#)?;
    /// struct ApiKey(String);
    ///
    /// let api = api.headers(|context| async move {
    ///     let key = context.state::<ApiKey>().ok_or_else(|| ToolError::new("the API has no key"))?;
    ///     Ok(vec![("authorization", format!("Bearer {}", key.0))])
    /// });
    /// # Ok(())
    /// # }
    /// ```
    pub fn headers<F, Fut>(mut self, headers: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<(&'static str, String)>, ToolError>> + Send + 'static,
    {
        self.headers = Some(Arc::new(move |context| Box::pin(headers(context))));
        self
    }

    /// Publishes no schemas of results, for an API that does not keep to its description.
    pub fn without_output_schemas(mut self) -> Self {
        self.has_output_schemas = false;
        self
    }

    /// Sets how long a call may take; 30 seconds by default.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Sets the largest response, in bytes; 1 MiB by default.
    pub fn max_response(mut self, bytes: usize) -> Self {
        self.max_response = bytes;
        self
    }

    /// Sets how many requests are sent at once; 16 by default. Further calls wait. Over HTTP, one caller has half of them at
    /// most, see [`CallerPermits`].
    pub fn max_concurrency(mut self, requests: usize) -> Self {
        self.max_concurrency = requests.max(1);
        self
    }

    /// The tools and resources.
    fn items(mut self) -> Result<Vec<Addition>, String> {
        let server = std::mem::replace(&mut self.server, Ok(None))?.ok_or_else(|| self.missing_server())?;
        let mut errors = self.unmatched();
        let wrong = self.own_headers.iter().filter_map(|name| header_name(name).err());
        errors.extend(wrong.map(|error| error.to_string()));
        let chosen = self.chosen(&mut errors);
        self.check_number(&chosen)?;
        let api = Arc::new(Api {
            server,
            headers: self.headers.clone(),
            permits: CallerPermits::new(self.max_concurrency),
            timeout: self.timeout,
            max_response: self.max_response,
        });
        let own_headers = self.own_headers.iter().map(String::as_str);
        let own_headers = own_headers.chain(api.server.forwarded().iter().map(HeaderName::as_str));
        let own_headers: Vec<String> = own_headers.map(comparable_header).collect();
        let mut reader = Reader::new(&self.document, MAX_READ);
        let (mut items, mut size, mut rules) = (Vec::new(), 0, Vec::new());
        for (operation, name) in chosen {
            let planned = plan(&mut reader, operation, name, &own_headers).and_then(|plan| {
                size += plan.size();
                Ok(if self.is_resource(operation) {
                    resource(operation, plan, &self.scheme, api.clone())?.into_addition()
                } else {
                    tool(plan, self.has_output_schemas, api.clone()).into_addition()
                })
            });
            match planned {
                Ok(item) => items.push(item),
                Err(error) => {
                    errors.push(format!("`{}`: {error}", shown(&operation.to_string())));
                    rules.push(format!(".exclude({})", Route::of(operation).written()));
                }
            }
            if size > MAX_SIZE {
                return Err(format!(
                    "the operations have more than {MAX_SIZE} bytes of schemas\nchoose fewer with `.include(..)`"
                ));
            }
        }
        match errors.is_empty() {
            true => Ok(items),
            false if rules.is_empty() => Err(listed(&errors, "\n")),
            false => {
                let rules = rules.join("\n");
                Err(format!(
                    "{}\nleave out the operations that cannot be called\n{rules}",
                    listed(&errors, "\n")
                ))
            }
        }
    }

    fn missing_server(&self) -> String {
        let servers: Vec<_> = self.document.servers.iter().map(|url| format!("`{}`", shown(url))).collect();
        let known = if servers.is_empty() {
            String::new()
        } else {
            format!("; the description has {}", listed(&servers, ", "))
        };
        format!("the API has no URL\nwrite `.server(\"https://..\")`{known}")
    }

    fn is_resource(&self, operation: &Operation) -> bool {
        self.resources.iter().any(|route| route.matches(operation))
    }

    /// The chosen operations and their names.
    fn chosen(&self, errors: &mut Vec<String>) -> Vec<(&Operation, String)> {
        let mut by_name: BTreeMap<String, &Operation> = BTreeMap::new();
        let mut chosen = Vec::new();
        for operation in &self.document.operations {
            let matches = |routes: &[Route]| routes.iter().any(|route| route.matches(operation));
            let is_included =
                self.include.is_empty() || matches(&self.include) || self.is_resource(operation);
            if !is_included || matches(&self.exclude) {
                continue;
            }
            let keys = [operation.id.clone(), Some(operation.to_string())];
            let renamed = keys.into_iter().flatten().find_map(|key| self.renames.get(&key));
            let name = renamed.cloned().unwrap_or_else(|| tool_name(operation));
            if name.is_empty() {
                let of = shown(&operation.to_string());
                errors.push(format!("`{of}` has no name in ASCII\nwrite `.rename(\"{of}\", \"..\")`"));
                continue;
            }
            if let Some(other) = by_name.insert(name.clone(), operation) {
                errors.push(format!(
                    "`{}` and `{}` are both named `{}`\nwrite `.rename(\"{}\", \"..\")`",
                    shown(&other.to_string()),
                    shown(&operation.to_string()),
                    shown(&name),
                    shown(&operation.to_string()),
                ));
            }
            chosen.push((operation, name));
        }
        chosen
    }

    /// Errors of rules and names that no operation matches.
    fn unmatched(&self) -> Vec<String> {
        let operations = &self.document.operations;
        let routes = [("include", &self.include), ("exclude", &self.exclude), ("resource", &self.resources)];
        let rules =
            routes.into_iter().flat_map(|(method, routes)| routes.iter().map(move |route| (method, route)));
        let unmatched =
            rules.filter(|(_, route)| !operations.iter().any(|operation| route.matches(operation)));
        let rules = unmatched.map(|(method, route)| {
            format!("`.{method}({})` matches no operation{}", route.written(), self.hint(route))
        });
        let is_known = |name: &String| {
            operations
                .iter()
                .any(|operation| operation.id.as_ref() == Some(name) || operation.to_string() == *name)
        };
        let renames = self.renames.keys().filter(|name| !is_known(name));
        rules
            .chain(renames.map(|name| format!("`.rename(\"{}\", ..)` names no operation", shown(name))))
            .collect()
    }

    fn hint(&self, route: &Route) -> String {
        if !route.is_tag() {
            return String::new();
        }
        let tags: BTreeSet<&str> = self
            .document
            .operations
            .iter()
            .flat_map(|operation| &operation.tags)
            .map(String::as_str)
            .collect();
        let tags: Vec<_> = tags.into_iter().map(|tag| format!("`{}`", shown(tag))).collect();
        format!("\nthe tags are {}", listed(&tags, ", "))
    }

    /// Refuses hundreds of tools that the program did not choose.
    fn check_number(&self, chosen: &[(&Operation, String)]) -> Result<(), String> {
        let tools: Vec<_> = chosen.iter().filter(|(operation, _)| !self.is_resource(operation)).collect();
        if tools.len() <= MAX_UNCHOSEN || !self.include.is_empty() || self.allow_all {
            return Ok(());
        }
        let mut by_tag: BTreeMap<&str, usize> = BTreeMap::new();
        for (operation, _) in &tools {
            let tags = operation.tags.iter().map(String::as_str);
            tags.chain(operation.tags.is_empty().then_some(""))
                .for_each(|tag| *by_tag.entry(tag).or_default() += 1);
        }
        let mut by_tag: Vec<_> = by_tag.into_iter().collect();
        by_tag.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let tags = by_tag.into_iter().map(|(tag, count)| match tag {
            "" => format!("without a tag: {count}"),
            tag => format!("`{}`: {count}", shown(tag)),
        });
        let mut reader = Reader::new(&self.document, MAX_READ);
        let planned =
            tools.iter().filter_map(|(operation, name)| plan(&mut reader, operation, name.clone(), &[]).ok());
        Err(format!(
            "the description has {} operations, which a model reads with about {} tokens\n{}\n\
             choose some with `.include(Route::tag(\"..\"))` or another route, or write `.allow_all()`",
            tools.len(),
            planned.map(|plan| plan.size()).sum::<usize>() / BYTES_PER_TOKEN,
            listed(&tags.collect::<Vec<_>>(), ", "),
        ))
    }
}

impl Plan {
    /// The bytes that a model reads of it.
    fn size(&self) -> usize {
        let schemas = [Some(&self.input), self.output.as_ref()].into_iter().flatten();
        let texts = self.name.len() + self.title.as_ref().map_or(0, String::len) + self.description.len();
        texts + schemas.map(|schema| schema.to_string().len()).sum::<usize>()
    }
}

impl IntoAddition for OpenApi {
    fn into_addition(self) -> Addition {
        match self.items() {
            Ok(items) => items.into_iter().fold(Addition::new(), Addition::and),
            Err(error) => Addition::error(format!("the OpenAPI description cannot be added: {error}")),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// The first of some texts.
fn listed(texts: &[String], separator: &str) -> String {
    let more = texts.len().saturating_sub(MAX_LISTED);
    let shown: Vec<_> = texts.iter().take(MAX_LISTED).map(String::as_str).collect();
    let end = if more > 0 { format!("{separator}and {more} more") } else { String::new() };
    format!("{}{end}", shown.join(separator))
}

fn set_hints(method: &str, hints: &mut Hints) {
    match method {
        "GET" => hints.read_only = Some(true),
        "PUT" => hints.idempotent = Some(true),
        "DELETE" => (hints.idempotent, hints.destructive) = (Some(true), Some(true)),
        _ => {}
    }
}

fn tool(plan: Plan, has_output_schema: bool, api: Arc<Api>) -> ToolDef {
    let Plan { name, title, description, input, aliases, output, call } = plan;
    let mut builder = ToolDef::builder(&name).description(description).suited_input_schema(input);
    builder = builder.null_is_absent_except(call.arguments_with_null()).argument_aliases(aliases);
    if let Some(title) = title {
        builder = builder.title(title);
    }
    let output = output.filter(|_| has_output_schema);
    let has_schema = output.is_some();
    if let Some(output) = output {
        builder = builder.trusted_output_schema(output).foreign_results(
            "if the API does not keep to its description, write `.without_output_schemas()`",
        );
    }
    let (call, uri) = (Arc::new(call), format!("response:{name}"));
    builder.hints(|hints| set_hints(call.method, hints)).handler(move |tool_call: ToolCall| {
        let (api, call, uri) = (api.clone(), call.clone(), uri.clone());
        async move {
            let none = Map::new();
            let arguments = tool_call.arguments.as_object().unwrap_or(&none);
            let request = call.request(arguments, api.max_target(), tool_call.context.max_message())?;
            api.send(request, &tool_call.context).await?.into_result(has_schema, &uri)
        }
    })
}

/// The variables of a resource, which are checked like the arguments of a tool. Those that are not in its URI are headers, which
/// only transforms give.
struct Variables {
    /// Their names, and whether their values are lists.
    names: Vec<(String, bool)>,
    /// `None` if nothing of their schemas can be enforced.
    validator: Option<Validator>,
}

impl Variables {
    /// Names the arguments of a call as variables, which have fewer characters. Their other names are added to the aliases.
    fn new(call: &mut Call, input: &Value, aliases: &mut Vec<(String, String)>) -> Self {
        let plain = |name: &str| name.replace('-', "_").trim_start_matches('.').to_owned();
        let arguments = call.parameters.iter().map(|parameter| parameter.argument.clone());
        let mut taken: HashSet<String> = arguments.filter(|name| *name == plain(name)).collect();
        let (mut names, mut properties, mut renamed) = (Vec::new(), Map::new(), BTreeMap::new());
        for Parameter { argument, .. } in &mut call.parameters {
            let schema = input.get("properties").and_then(|properties| properties.get(&*argument));
            let schema = schema.cloned().unwrap_or_default();
            let name = plain(argument);
            let before = argument.clone();
            if name != *argument {
                let numbered = (2..).map(|number| format!("{name}_{number}"));
                let mut candidates = std::iter::once(name.clone()).chain(numbered);
                *argument = candidates.find(|name| taken.insert(name.clone())).unwrap_or_default();
            }
            renamed.insert(before, argument.clone());
            let target = schema.get("$ref").and_then(Value::as_str);
            let target = target.and_then(|reference| input.pointer(reference.trim_start_matches('#')));
            let kind = target.unwrap_or(&schema).get("type");
            let is_list = kind.is_some_and(|kind| match kind {
                Value::Array(kinds) => kinds.iter().any(|kind| kind == "array"),
                kind => kind == "array",
            });
            names.push((argument.clone(), is_list));
            properties.insert(argument.clone(), schema);
        }
        for (_, own) in aliases.iter_mut() {
            if let Some(variable) = renamed.get(own) {
                own.clone_from(variable);
            }
        }
        aliases.extend(renamed);
        let mut schema = json!({ "type": "object", "properties": properties });
        if let Some(defs) = input.get("$defs") {
            schema["$defs"] = defs.clone();
        }
        Self { names, validator: Validator::compile_foreign(&schema).0 }
    }

    /// The arguments of a call.
    ///
    /// # Errors
    /// A variable does not fit its schema.
    fn arguments(&self, read: &ResourceCall) -> Result<Map<String, Value>, ToolError> {
        let mut arguments = Map::new();
        for (name, is_list) in &self.names {
            let value = match is_list {
                true => read.variable::<Option<Vec<String>>>(name)?.map(Value::from),
                false => read.variable::<Option<String>>(name)?.map(Value::from),
            };
            arguments.extend(value.map(|value| (name.clone(), value)));
        }
        let mut arguments = Value::Object(arguments);
        if let Some(validator) = &self.validator {
            validator.repair(&mut arguments, false);
            if let Some(error) = validator.validate(&arguments).first() {
                return Err(
                    ProtocolError::invalid_params(format!("invalid URI `{}`: {error}", read.uri)).into()
                );
            }
        }
        match arguments {
            Value::Object(arguments) => Ok(arguments),
            _ => Ok(Map::new()),
        }
    }
}

/// A resource, whose variables are the parameters of the path and of the query.
fn resource(operation: &Operation, plan: Plan, scheme: &str, api: Arc<Api>) -> Result<ResourceDef, String> {
    let Plan { name, title, description, input, mut aliases, mut call, .. } = plan;
    if operation.method != "GET" {
        return Err("it is not a `GET`, so it cannot be a resource".to_owned());
    }
    if call.path.has_query() {
        return Err("its path has a query, so it cannot be a resource".to_owned());
    }
    let is_required = |parameter: &Parameter| {
        let required = input.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|name| *name == parameter.argument))
    };
    if call.parameters.iter().any(|parameter| parameter.place != Place::Path && is_required(parameter)) {
        return Err("it has a required parameter outside of its path, so it cannot be a resource".to_owned());
    }
    let variables = Variables::new(&mut call, &input, &mut aliases);
    let query: Vec<_> = call.parameters.iter().filter(|parameter| parameter.place == Place::Query).collect();
    let query: Vec<_> = query.iter().map(|parameter| parameter.argument.as_str()).collect();
    let path = call
        .path_with(MAX_TARGET, |parameter, path| path.push(format!("{{{}}}", parameter.argument).as_bytes()));
    let path = path.map_err(|error| error.to_string())?;
    let query = if query.is_empty() { String::new() } else { format!("{{?{}}}", query.join(",")) };
    let mut builder = ResourceDef::builder(format!("{scheme}://{path}{query}"))
        .name(name)
        .description(description)
        .argument_aliases(aliases);
    if let Some(title) = title {
        builder = builder.title(title);
    }
    if is_json(call.accept.split(',').next().unwrap_or_default()) {
        builder = builder.mime("application/json");
    }
    let (call, variables) = (Arc::new(call), Arc::new(variables));
    Ok(builder.handler(move |read: ResourceCall| {
        let (api, call, variables) = (api.clone(), call.clone(), variables.clone());
        async move {
            let arguments = variables.arguments(&read)?;
            let request = call.request(&arguments, api.max_target(), read.context.max_message())?;
            api.send(request, &read.context).await?.into_contents()
        }
    }))
}
