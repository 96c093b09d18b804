//! The capabilities of a server: parts of the protocol that it has only if something in the program names them. The core
//! knows no list of them: a type that names one has a function that opens it, which leads the linker to its code.

use std::{any::Any, borrow::Cow, sync::Arc};

use super::{Assembly, Registry, Server};
use crate::{
    core::{
        arguments::{BoxFuture, CompletionSource},
        changes::Filter,
        connection::{Access, ItemKind, Principal},
        dispatch::{CapabilityStream, ObservedItem, Reply, Request, Response},
        extensions::Extensions,
        jsonrpc::Object,
        protocol::Revision,
    },
    schema::sort_by,
};

/// A part of the protocol that a server has only if something of it is named.
pub(crate) trait Capability: Any + Send + Sync {
    /// Of one with the items of a kind, when all items have been added.
    fn finish(&mut self, _assembly: &mut Assembly<'_>) {}

    /// The methods that it answers.
    fn methods(&self) -> &'static [&'static str] {
        &[]
    }

    /// Adds what the server declares of it.
    fn declare(&self, _declared: &mut Declared) {}

    /// Answers a request for one of its methods. The registry is the one that it is in.
    ///
    /// # Errors
    /// The reply that refuses it.
    fn answer(
        self: Arc<Self>,
        _server: &Server,
        _registry: &Registry,
        request: Request<'_>,
    ) -> Result<Response, Reply> {
        Err(Reply::unknown_method(request.method))
    }

    /// Opens the stream that answers a request for one of its methods.
    ///
    /// # Errors
    /// The reply that refuses it.
    fn open_stream(&self, _server: &Server, request: Request<'_>) -> Result<CapabilityStream, Reply> {
        Err(Reply::unknown_method(request.method))
    }

    /// The item that a request for one of its methods names, for logs.
    fn observed(&self, _registry: &Registry, _request: &Request<'_>) -> ObservedItem {
        ObservedItem::None
    }

    /// How an argument of its item with this name or URI completes; `None` if it has no items of that kind.
    ///
    /// # Errors
    /// The client may not call the item, or it does not exist.
    fn completion<'r>(
        &'r self,
        _server: &Server,
        _request: &Request<'_>,
        _kind: ItemKind,
        _name: &str,
        _argument: &str,
    ) -> Option<Result<CompletionOfItem<'r>, Reply>> {
        None
    }

    /// The parts of it that have `scopes`, for an error message.
    fn scoped(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether what a client subscribes to differs by caller, and nothing decides who is notified of its changes.
    fn differs_by_caller(&self) -> bool {
        false
    }

    /// Subscribes a filter to those of the resources that the client may subscribe to; returns these.
    ///
    /// # Errors
    /// The reply that refuses the subscription.
    fn subscribe_to_resources<'u>(
        &self,
        _server: &Server,
        _request: &Request<'_>,
        _uris: &'u [String],
        _filter: &Filter,
    ) -> Result<Vec<&'u str>, Reply> {
        Ok(Vec::new())
    }

    /// Tells subscribers of an update of one of its resources: those that `concerns` says and that may read it. Without
    /// `concerns`, of a resource that differs by caller, the one whose call `reporter` has made.
    fn publish_update(
        &self,
        _server: &Server,
        _uri: &str,
        _concerns: Option<&dyn Fn(&Principal) -> bool>,
        _reporter: Option<&str>,
    ) {
    }

    /// Whether it has a resource at this URI, which a client with this access may read.
    #[cfg(feature = "shared")]
    fn may_read(&self, _uri: &str, _access: Access<'_>) -> bool {
        false
    }

    /// Checks whether a client may subscribe to what it names by ids in `subscriptions/listen`.
    ///
    /// # Errors
    /// The reply that refuses it.
    fn check_subscriber(&self, _request: &Request<'_>) -> Result<(), Reply> {
        Ok(())
    }

    /// Subscribes a filter to what has one of these ids and belongs to this owner; returns the ids of what exists, and may
    /// change.
    ///
    /// # Errors
    /// The reply that refuses the request, since that cannot be found out.
    fn subscribe_by_id(
        self: Arc<Self>,
        _ids: Vec<String>,
        _owner: Option<Arc<str>>,
        _filter: Arc<Filter>,
    ) -> BoxFuture<Result<Vec<String>, Reply>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Ready when none of its functions runs outside of a request.
    fn wait_until_idle(self: Arc<Self>) -> BoxFuture<()> {
        Box::pin(std::future::ready(()))
    }

    /// Begins what it does besides answering requests, for a server whose replicas share a store; it may be called again.
    fn serve(self: Arc<Self>, _server: &Server) {}

    /// Ends what it does for a principal besides streams, whose authentication was withdrawn.
    fn end_of_principal(self: Arc<Self>, _server: &Server, _principal: &Principal) {}

    /// Cancels the functions that run outside of requests: no client can get their results any more.
    fn stop(&self) {}

    /// After [`stop`](Self::stop), ready when replicas know of it, or after a short time.
    fn settle(self: Arc<Self>) -> BoxFuture<()> {
        Box::pin(std::future::ready(()))
    }
}

/// How an argument completes, and the state of its item; `None` if it has no values to offer.
pub(crate) type CompletionOfItem<'r> = Option<(&'r CompletionSource, &'r Arc<Extensions>)>;

/// A function that opens what an item, an option or a method of the builder names.
pub(crate) type Open = fn(&mut Assembly<'_>);

/// The capabilities of one server; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Capabilities(pub(super) Vec<Arc<dyn Capability>>);

impl Capabilities {
    pub(crate) fn get<C: Capability>(&self) -> Option<Arc<C>> {
        let found = self.0.iter().find(|capability| (&***capability as &dyn Any).is::<C>())?;
        let found: Arc<dyn Any + Send + Sync> = found.clone();
        found.downcast().ok()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Capability>> {
        self.0.iter()
    }

    /// The one that answers a method.
    pub(crate) fn of_method(&self, method: &str) -> Option<&Arc<dyn Capability>> {
        self.0.iter().find(|capability| capability.methods().contains(&method))
    }
}

/// The capabilities that a server declares.
pub(crate) struct Declared {
    pub(crate) revision: Revision,
    /// Whether changes of lists are declared.
    notifies: bool,
    /// Whether subscriptions to resources are.
    publishes: bool,
    members: Vec<(&'static str, &'static str)>,
    extensions: Vec<(Cow<'static, str>, Cow<'static, str>)>,
}

impl Declared {
    pub(crate) fn new(revision: Revision, notifies: bool, publishes: bool) -> Self {
        Self { revision, notifies, publishes, members: Vec::new(), extensions: Vec::new() }
    }

    /// Adds a member of `capabilities`; the value is JSON.
    pub(crate) fn member(&mut self, key: &'static str, value: &'static str) {
        self.members.push((key, value));
    }

    /// Adds a member whose list changes while the server runs, if it has a handle.
    pub(crate) fn list(&mut self, key: &'static str) {
        self.member(key, if self.notifies { r#"{"listChanged":true}"# } else { "{}" });
    }

    /// Adds such a member whose items can be subscribed to.
    pub(crate) fn list_with_subscriptions(&mut self, key: &'static str) {
        match self.publishes && self.notifies {
            true => self.member(key, r#"{"listChanged":true,"subscribe":true}"#),
            false => self.list(key),
        }
    }

    /// Adds a member of `extensions` whose list changes while the server runs, if it has a handle.
    pub(crate) fn list_extension(&mut self, key: &'static str) {
        self.extension(key, if self.notifies { r#"{"listChanged":true}"# } else { "{}" });
    }

    /// Adds a member of `extensions`; the settings are JSON.
    pub(crate) fn extension(
        &mut self,
        key: impl Into<Cow<'static, str>>,
        settings: impl Into<Cow<'static, str>>,
    ) {
        self.extensions.push((key.into(), settings.into()));
    }

    /// Writes the members, ordered by their keys, whatever order the capabilities were opened in.
    pub(crate) fn write(mut self, object: &mut Object<'_>) {
        sort_by(&mut self.members, |one, other| one.cmp(other));
        sort_by(&mut self.extensions, |one, other| one.cmp(other));
        object.object("capabilities", |c| {
            for (key, value) in self.members {
                c.raw(key, value);
            }
            if !self.extensions.is_empty() {
                c.object("extensions", |e| {
                    for (key, settings) in self.extensions {
                        e.raw(&key, &settings);
                    }
                });
            }
        });
    }
}

impl Server {
    /// Waits until no function runs outside of a request.
    pub(crate) async fn wait_until_idle(&self) {
        for capability in self.registry().capabilities.iter() {
            capability.clone().wait_until_idle().await;
        }
    }

    /// Cancels the functions that run outside of requests, and waits for a short time until replicas know of it.
    pub(crate) async fn stop_background(&self) {
        let registry = self.registry();
        registry.capabilities.iter().for_each(|capability| capability.stop());
        for capability in registry.capabilities.iter() {
            capability.clone().settle().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_is_ordered_whatever_was_opened_first() {
        let written = |keys: [&'static str; 2]| {
            let mut declared = Declared::new(Revision::LATEST, false, false);
            for key in keys {
                declared.member(key, "{}");
                declared.extension(key, "{}");
            }
            let mut out = Vec::new();
            let mut object = Object::new(&mut out);
            declared.write(&mut object);
            object.end();
            String::from_utf8(out).unwrap()
        };
        let expected = r#"{"capabilities":{"prompts":{},"tools":{},"extensions":{"prompts":{},"tools":{}}}}"#;
        for keys in [["tools", "prompts"], ["prompts", "tools"]] {
            assert_eq!(written(keys), expected);
        }
    }
}
