//! Sends requests to the API: to the server that the program names, or to routes of the program itself.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, Method, header};
use mcp_runtime::{Context, ToolError, permits::CallerPermits};
use mcp_runtime_fetch::{HttpClient, HttpRequest, Network, Reach, system_look_up, tls_config, user_agent};
use tokio::time::timeout;
use url::Url;

use crate::{
    operation::comparable_header,
    request::{MAX_TARGET, Request, header_name, header_value},
    response::Response,
};

/// How long opening a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What `.headers(..)` was given.
pub(crate) type HeadersFn = Arc<dyn Fn(Context) -> HeadersFuture + Send + Sync>;
pub(crate) type HeadersFuture =
    Pin<Box<dyn Future<Output = Result<Vec<(&'static str, String)>, ToolError>> + Send>>;

/// Where requests go.
pub(crate) enum Server {
    Http(Box<HttpClient>, Url),
    #[cfg(feature = "routes")]
    Routes(crate::routes::Routes),
}

impl Server {
    /// The server at a URL, to which the paths of operations are appended.
    ///
    /// # Errors
    /// It is not the URL of a server, or TLS is not available.
    pub(crate) fn at(text: &str) -> Result<Self, String> {
        let base: Url = text.parse().map_err(|_| format!("`{}` is not a URL", text.escape_debug()))?;
        let is_plain = base.username().is_empty() && base.password().is_none() && base.query().is_none();
        if !matches!(base.scheme(), "http" | "https") || !is_plain || base.fragment().is_some() {
            return Err(
                "the server is not a URL of `http:` or `https:` without credentials and query".to_owned()
            );
        }
        // the program chose the host
        let network = Network {
            reach: Reach::Any,
            look_up: system_look_up(),
            tls: tls_config(&[])?,
            uses_proxies: false,
        };
        let client = HttpClient::new(network, CONNECT_TIMEOUT);
        Ok(Self::Http(Box::new(client), base))
    }

    /// The headers that are those of the client's request.
    pub(crate) fn forwarded(&self) -> &[HeaderName] {
        match self {
            Self::Http(..) => &[],
            #[cfg(feature = "routes")]
            Self::Routes(routes) => routes.forwarded(),
        }
    }
}

/// An API, as the handlers of its operations share it.
pub(crate) struct Api {
    pub(crate) server: Server,
    pub(crate) headers: Option<HeadersFn>,
    /// For the requests that are sent at once.
    pub(crate) permits: CallerPermits,
    /// For a call, from waiting for its turn to the last byte of the response.
    pub(crate) timeout: Duration,
    pub(crate) max_response: usize,
}

impl Api {
    /// The most bytes of the path and the query of a request.
    pub(crate) fn max_target(&self) -> usize {
        match &self.server {
            Server::Http(_, base) => MAX_TARGET.saturating_sub(base.as_str().len()),
            #[cfg(feature = "routes")]
            Server::Routes(_) => MAX_TARGET,
        }
    }

    /// The response to a request.
    ///
    /// # Errors
    /// No response arrives before the time limit, or it is too large; or the credentials of the call are refused.
    pub(crate) async fn send(&self, request: Request, context: &Context) -> Result<Response, ToolError> {
        let late = |_| ToolError::new(format!("the API did not answer within {:?}", self.timeout));
        timeout(self.timeout, self.exchange(request, context)).await.map_err(late)?
    }

    async fn exchange(&self, mut request: Request, context: &Context) -> Result<Response, ToolError> {
        let _permit = self.permits.acquire(context).await;
        let (name, version) = context.server();
        request.headers.extend(user_agent(name, version).map(|agent| (header::USER_AGENT, agent)));
        #[cfg(feature = "routes")]
        if let Server::Routes(routes) = &self.server {
            routes.forward_headers(context, &mut request.headers)?;
        }
        if let Some(headers) = &self.headers {
            for (name, value) in headers(context.clone()).await? {
                let name = header_name(name)?;
                let own = comparable_header(name.as_str());
                let mut given = request.of_headers.iter();
                if let Some((argument, _)) = given.find(|(_, sent)| comparable_header(sent.as_str()) == own) {
                    return Err(ToolError::new(format!(
                        "`{argument}` cannot be given: the server sets the header `{name}`\n\
                         the program hides it with `.own_headers([\"{name}\"])`"
                    )));
                }
                if [header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING].contains(&name) {
                    return Err(ToolError::private(format!("`.headers(..)` cannot set `{name}`")));
                }
                let mut value = header_value(name.as_str(), &value)?;
                value.set_sensitive(true);
                request.headers.insert(name, value);
            }
        }
        match &self.server {
            Server::Http(client, base) => self.send_to(client, base, request).await,
            #[cfg(feature = "routes")]
            Server::Routes(routes) => routes.call(request, context, self.max_response).await,
        }
    }

    async fn send_to(
        &self,
        client: &HttpClient,
        base: &Url,
        request: Request,
    ) -> Result<Response, ToolError> {
        let Request { method, path, query, headers, body, .. } = request;
        let mut url = base.clone();
        let path = format!("{}{path}", base.path().trim_end_matches('/'));
        url.set_path(&path);
        url.set_query(Some(query.as_str()).filter(|query| !query.is_empty()));
        // the arguments are encoded so that this cannot be
        if url.path() != path || url.origin() != base.origin() {
            return Err(ToolError::new("the arguments lead to another path"));
        }
        let method = Method::from_bytes(method.as_bytes()).map_err(ToolError::private)?;
        let request = HttpRequest::new(method, url, headers, body);
        let unreachable = |error| ToolError::new(format!("the API cannot be reached: {error}"));
        let mut response = client.send(request).await.map_err(unreachable)?;
        let too_large = || ToolError::new(format!("the API answered more than {} bytes", self.max_response));
        if response.content_length().is_some_and(|length| length > self.max_response as u64) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > self.max_response {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Response { status: response.status(), content_type: content_type(response.headers()), body })
    }
}

/// The header `Content-Type`; empty without one.
pub(crate) fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}
