//! Updates of resources: sent to the subscribers of that resource and to no other client.

use super::fixture::{Listener, builder};
use crate::prelude::*;

#[tokio::test]
async fn only_existing_resources_are_acknowledged() {
    for transport in Transport::ALL {
        let server = builder().build().unwrap();
        let wanted = ["item://1", "item://x/y", "nothing://here", "item://1", "http://EXAMPLE.ORG/one"];
        let listener = Listener::open(&server, transport, json!({ "resourceSubscriptions": wanted })).await;
        let honoured = json!({ "resourceSubscriptions": ["item://1", "http://EXAMPLE.ORG/one"] });
        assert_eq!(listener.acknowledged, honoured, "{transport:?}");
        let unknown = json!({ "toolsListChanged": true, "resourceSubscriptions": ["nothing://here"] });
        let listener = Listener::open(&server, transport, unknown).await;
        assert_eq!(listener.acknowledged, json!({ "toolsListChanged": true }), "{transport:?}");
    }
}

#[tokio::test]
async fn scheme_and_host_match_case_insensitively_and_keep_the_clients_spelling() {
    for transport in Transport::ALL {
        let server = builder().build().unwrap();
        let wanted = ["hTTp://example.ORG/one", "item://1", "http://example.org/one"];
        let filter = json!({ "resourceSubscriptions": wanted });
        let mut listener = Listener::open(&server, transport, filter).await;
        // two spellings of one URI are one subscription, with the first of them
        assert_eq!(listener.acknowledged, json!({ "resourceSubscriptions": wanted[..2] }), "{transport:?}");
        // the path is case-sensitive: the next notification is that of another resource
        server.handle().resource_updated("http://example.org/ONE");
        server.handle().resource_updated("item://1");
        listener.expect_updated("item://1").await;
        server.handle().resource_updated("HTTP://Example.org/one");
        listener.expect_updated("hTTp://example.ORG/one").await;
    }
}

#[tokio::test]
async fn unread_updates_of_a_resource_are_merged() {
    let server = builder().build().unwrap();
    let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["item://1", "item://2"] });
    let mut changes = TestServer::of(&server).listen(filter).await;
    for _ in 0..1000 {
        server.handle().resource_updated("item://2");
        server.handle().tools_changed();
        server.handle().resource_updated("item://1");
    }
    assert_eq!(changes.try_next().unwrap()["params"]["uri"], "item://2");
    assert_eq!(changes.try_next().unwrap()["method"], "notifications/tools/list_changed");
    assert_eq!(changes.try_next().unwrap()["params"]["uri"], "item://1");
    assert_eq!(changes.try_next(), None);
}
