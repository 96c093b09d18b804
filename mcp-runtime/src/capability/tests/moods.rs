//! `moods/list`, of servers whose builder adds a mood: the example of the page about the architecture, which quotes it, and
//! compiled for tests only.

use std::sync::Arc;

use crate::core::{
    dispatch::{Reply, Request, Response, WriteResult},
    jsonrpc::{Object, write_array, write_string},
    protocol::Revision,
    server::{Assembly, Capability, Declared, Named, Registry, Server, ServerBuilder},
};

/// The moods that a builder was given, and so those of its server: they stay the same while it runs.
#[derive(Debug, Clone, Default)]
struct Moods(Vec<String>);

const MOODS: Named =
    Named { key: "moods", open: |assembly| drop(assembly.open(Moods::open)), mount: |_, _, _| {} };

impl ServerBuilder {
    /// Adds a mood.
    pub fn mood(mut self, name: &str) -> Self {
        let mut moods = self.options.of_capabilities.get::<Moods>().cloned().unwrap_or_default();
        moods.0.push(name.to_owned());
        self.options.of_capabilities.insert(moods);
        self.open_on_build(MOODS);
        self
    }
}

impl Moods {
    fn open(assembly: &mut Assembly<'_>) -> Arc<Self> {
        Arc::new(assembly.parts.options.of_capabilities.get::<Self>().cloned().unwrap_or_default())
    }
}

impl Capability for Moods {
    fn methods(&self) -> &'static [&'static str] {
        &["moods/list"]
    }

    fn declare(&self, declared: &mut Declared) {
        declared.extension("com.example/moods", "{}");
    }

    fn answer(self: Arc<Self>, _: &Server, _: &Registry, _: Request<'_>) -> Result<Response, Reply> {
        Ok(Self::clone(&self).into_reply().into())
    }
}

impl WriteResult for Moods {
    fn write_members(&self, object: &mut Object<'_>, _: Revision) {
        write_array(object.key("moods"), &self.0, |out, mood| write_string(out, mood));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::TestServer;

    #[tokio::test]
    async fn a_server_with_a_mood_answers_the_method_and_declares_the_extension() {
        let server = TestServer::new(crate::server!().mood("calm").mood("\"wild\"")).unwrap();
        let reply = server.request("moods/list", json!({})).await;
        assert_eq!(reply.value()["moods"], json!(["calm", "\"wild\""]));
        let declared = server.request("server/discover", json!({})).await;
        assert_eq!(declared.value()["capabilities"]["extensions"]["com.example/moods"], json!({}));
    }

    #[tokio::test]
    async fn without_one_the_method_is_unknown() {
        let server = TestServer::new(crate::server!()).unwrap();
        let reply = server.request("moods/list", json!({})).await;
        assert!(reply.is_error(), "{reply:?}");
        let declared = server.request("server/discover", json!({})).await;
        assert_eq!(declared.value()["capabilities"]["extensions"], Value::Null);
    }
}
