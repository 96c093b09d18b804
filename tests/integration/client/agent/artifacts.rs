//! What is too large for a model, or not text, is stored; a reference to it is good for one scope.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use mcp_runtime::client::{
    Client, Error,
    agent::{ArtifactRef, Artifacts, ResultPart, Toolset},
};
use mcp_tests::support::TestFolder;
use serde_json::{Value, json};

use super::{call, scripted};
use crate::client::within;

/// `/wA=`
const BYTES: [u8; 2] = [0xff, 0];

/// A server whose tool returns its argument `content`, and whose resources have these contents.
async fn echoing(contents: impl Fn(&str) -> Value + Send + 'static) -> Client {
    scripted(move |method, params| match method {
        "tools/call" => params["arguments"].clone(),
        "resources/read" => json!({ "contents": contents(params["uri"].as_str().unwrap()) }),
        _ => panic!("{method}"),
    })
    .await
}

async fn parts(toolset: &Toolset, result: Value) -> Vec<ResultPart> {
    call(toolset, "x.t", result).await.unwrap().parts
}

/// The only artifact of a result.
async fn artifact(toolset: &Toolset, result: Value) -> ArtifactRef {
    match &parts(toolset, result).await[..] {
        [ResultPart::Artifact(artifact)] => artifact.clone(),
        other => panic!("{other:?}"),
    }
}

async fn read(toolset: &Toolset, uri: &str) -> Vec<ResultPart> {
    call(toolset, "x.resources_read", json!({ "uri": uri })).await.unwrap().parts
}

fn of_text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// The files of artifacts in a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    entries(directory).iter().flat_map(|folder| entries(folder)).collect()
}

#[tokio::test]
async fn small_text_is_in_line_and_large_text_and_bytes_are_stored() {
    let toolset = echoing(|uri| match uri {
        "x://binary" => json!([{ "uri": uri, "blob": "/wA=", "mimeType": "image/png" }]),
        _ => json!([{ "uri": uri, "text": "ä".repeat(10_001), "mimeType": "text/markdown" }]),
    });
    let toolset = toolset.await.toolset("x");
    // characters, not bytes
    let small = "ä".repeat(10_000);
    assert_eq!(parts(&toolset, of_text(&small)).await, [ResultPart::Text(small)]);
    let large = "ä".repeat(10_001);
    let stored = artifact(&toolset, of_text(&large)).await;
    assert_eq!((stored.mime_type.as_str(), stored.size_bytes), ("text/plain", 20_002));
    assert_eq!(within(toolset.artifact(&stored)).await.unwrap().bytes, large.as_bytes());

    for block in [
        json!({ "type": "image", "data": "/wA=", "mimeType": "image/png" }),
        json!({ "type": "audio", "data": "/wA=", "mimeType": "image/png" }),
        json!({ "type": "resource", "resource": { "uri": "x://a", "blob": "/wA=", "mimeType": "image/png" } }),
    ] {
        let stored = artifact(&toolset, json!({ "content": [block] })).await;
        assert_eq!((stored.mime_type.as_str(), stored.size_bytes), ("image/png", 2));
        assert_eq!(within(toolset.artifact(&stored)).await.unwrap().bytes, BYTES);
    }
    for (uri, mime) in [("x://binary", "image/png"), ("x://text.md", "text/markdown")] {
        let read = read(&toolset, uri).await;
        assert!(matches!(&read[..], [ResultPart::Artifact(stored)] if stored.mime_type == mime), "{read:?}");
    }

    // nothing passes beside it: structured values, blocks of unknown kinds, many small texts
    let result = call(&toolset, "x.t", json!({ "structuredContent": { "x": large } })).await.unwrap();
    assert_eq!(result.structured, None);
    assert_eq!(result.artifacts().next().unwrap().mime_type, "application/json");
    let unknown = json!({ "content": [{ "type": "hologram", "x": large }] });
    assert_eq!(artifact(&toolset, unknown).await.mime_type, "application/json");
    let block = json!({ "type": "text", "text": "x".repeat(9000) });
    let result = call(&toolset, "x.t", json!({ "content": vec![block; 100] })).await.unwrap();
    assert!(result.text().len() < 45_000, "{}", result.text().len());
}

#[tokio::test]
async fn a_reference_says_what_it_is_and_not_where_it_came_from() {
    let secret = "x://host/private/report.pdf?token=secret";
    let toolset = echoing(|uri| json!([{ "uri": uri, "blob": "/wA=", "mimeType": "application/pdf" }]));
    let toolset = toolset.await.toolset("x");
    let result = call(&toolset, "x.resources_read", json!({ "uri": secret })).await.unwrap();
    let reference = result.artifacts().next().unwrap().clone();
    let json = serde_json::to_value(&reference).unwrap();
    let members: HashSet<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, HashSet::from(["id", "mime_type", "size_bytes", "filename", "sha256", "scope"]));
    assert_eq!(json["filename"], "report.pdf");
    assert!(!result.text().contains("secret") && !result.text().contains("private"), "{}", result.text());
    assert_eq!(serde_json::from_value::<ArtifactRef>(json).unwrap(), reference);

    // equal contents have one id, whatever their name
    let same = json!({ "content": [{ "type": "image", "data": "/wA=", "mimeType": "application/pdf" }] });
    let same = artifact(&toolset, same).await;
    assert_eq!((&same.id, &same.sha256), (&reference.id, &reference.sha256));
    assert!(reference.sha256.starts_with(&reference.id));
    let counters = toolset.counters();
    assert_eq!((counters.artifacts, counters.artifact_bytes), (1, 2));
}

#[tokio::test]
async fn artifacts_have_a_limit_each_and_one_for_all() {
    let artifacts = Artifacts::memory().inline_limit(0).max_artifact(100).max_total(250);
    let toolset = echoing(|_| Value::Null).await.toolset("x").artifacts(artifacts.clone());
    let omitted = |parts: Vec<ResultPart>, size: u64| match &parts[..] {
        [ResultPart::Omitted { size_bytes, reason, .. }] if *size_bytes == size => reason.clone(),
        other => panic!("{other:?}"),
    };
    assert!(omitted(parts(&toolset, of_text(&"x".repeat(101))).await, 101).contains("100 bytes"));
    let first = artifact(&toolset, of_text(&"a".repeat(100))).await;
    artifact(&toolset, of_text(&"b".repeat(100))).await;
    assert!(omitted(parts(&toolset, of_text(&"c".repeat(100))).await, 100).contains("250 bytes"));
    // what is there already takes no more room, and what is deleted none at all
    artifact(&toolset, of_text(&"b".repeat(100))).await;
    artifacts.delete(&first).await.unwrap();
    artifact(&toolset, of_text(&"c".repeat(100))).await;
    artifacts.clear().await.unwrap();
    for text in ["d", "e"] {
        artifact(&toolset, of_text(&text.repeat(100))).await;
    }
}

#[tokio::test]
async fn links_stay_links_unless_the_program_wants_small_ones_read() {
    let client = echoing(|uri| match uri {
        "x://lies" => json!([{ "uri": uri, "text": "x".repeat(20_000) }]),
        _ => json!([{ "uri": uri, "text": "read" }]),
    });
    let client = client.await;
    let link =
        |uri: &str, size: Value| json!({ "type": "resource_link", "uri": uri, "name": "n", "size": size });
    let result = json!({ "content": [
        link("x://small", json!(100)), link("x://large", json!(101)), link("x://unknown", Value::Null),
        link("x://forbidden", json!(1)), link("x://lies", json!(1)),
    ] });
    let kinds = async |toolset: &Toolset| {
        let parts = parts(toolset, result.clone()).await;
        let kind = |part: &ResultPart| match part {
            ResultPart::Link(link) => link.uri.clone(),
            ResultPart::Text(text) => text.clone(),
            ResultPart::Artifact(_) => "stored".to_owned(),
            other => panic!("{other:?}"),
        };
        parts.iter().map(kind).collect::<Vec<_>>()
    };
    let stubs = client.toolset("x");
    assert_eq!(kinds(&stubs).await, ["x://small", "x://large", "x://unknown", "x://forbidden", "x://lies"]);
    assert_eq!(stubs.counters().cache_misses, 0, "nothing is read");
    let read = client.toolset("x").read_links(100).allow_resources(|uri| uri != "x://forbidden");
    assert_eq!(kinds(&read).await, ["read", "x://large", "x://unknown", "x://forbidden", "stored"]);
}

#[tokio::test]
async fn a_reference_is_good_for_its_own_scope_only() {
    let folder = TestFolder::default();
    let directory = folder.join("artifacts");
    let client = echoing(|_| Value::Null).await;
    let of = |scope: &str| {
        client.toolset("x").artifacts(Artifacts::directory(&directory).scope(scope).inline_limit(0))
    };
    let (ada, ben) = (of("ada"), of("ben"));
    let reference = artifact(&ada, of_text("Ada's")).await;
    assert_eq!(reference.scope, "ada");
    assert!(matches!(within(ben.artifact(&reference)).await, Err(Error::Denied { .. })));
    assert_eq!(ben.counters().denied, 1);
    // Ben's model claims that it is his
    let mut forged = reference.clone();
    forged.scope = "ben".to_owned();
    assert!(matches!(within(ben.artifact(&forged)).await, Err(Error::Invalid { .. })));
    for id in ["", "../../../etc/passwd", "/etc/passwd", &reference.sha256] {
        forged.id = id.to_owned();
        assert!(matches!(within(ben.artifact(&forged)).await, Err(Error::Invalid { .. })), "{id}");
    }
    // another run of the program, in the same scope
    assert_eq!(within(of("ada").artifact(&reference)).await.unwrap().bytes, b"Ada's");
}

#[tokio::test]
async fn an_artifact_that_is_gone_is_fetched_again() {
    let folder = TestFolder::default();
    let directory = folder.join("artifacts");
    let content = Arc::new(Mutex::new("first".to_owned()));
    let served = content.clone();
    let client = echoing(
        move |uri| json!([{ "uri": uri, "text": "index" }, { "uri": uri, "text": *served.lock().unwrap() }]),
    );
    let artifacts = Artifacts::directory(&directory).inline_limit(0);
    let toolset = client.await.toolset("x").read_ttl(std::time::Duration::ZERO).artifacts(artifacts);
    let result = call(&toolset, "x.resources_read", json!({ "uri": "x://a" })).await.unwrap();
    let reference = result.artifacts().nth(1).unwrap().clone();

    // lost, or not what it was
    let damages: [fn(&Path); 2] =
        [|file| fs::remove_file(file).unwrap(), |file| fs::write(file, "bad").unwrap()];
    for (number, damage) in damages.into_iter().enumerate() {
        files(&directory).iter().for_each(|file| damage(file));
        let fetched = within(toolset.artifact(&reference)).await.unwrap();
        assert_eq!((fetched.reference, fetched.bytes), (reference.clone(), b"first".to_vec()));
        assert_eq!(toolset.counters().artifacts_fetched_again, number as u64 + 1);
        assert_eq!(within(toolset.artifact(&reference)).await.unwrap().bytes, b"first", "from the store");
        assert_eq!(toolset.counters().artifacts_fetched_again, number as u64 + 1);
    }
    // the resource has changed since: another content is another artifact
    "second".clone_into(&mut content.lock().unwrap());
    files(&directory).iter().for_each(|file| fs::remove_file(file).unwrap());
    let fetched = within(toolset.artifact(&reference)).await.unwrap();
    assert_eq!(fetched.bytes, b"second");
    assert_ne!(fetched.reference.id, reference.id);

    // what a tool has made cannot be read
    let made = artifact(&toolset, of_text("made")).await;
    files(&directory).iter().for_each(|file| fs::remove_file(file).unwrap());
    let gone = within(toolset.artifact(&made)).await.unwrap_err();
    assert!(gone.to_string().contains("gone"), "{gone}");
}

#[tokio::test]
async fn images_of_results_have_the_form_that_each_api_takes() {
    let image = |mime: &str| json!({ "type": "image", "data": "/wA=", "mimeType": mime });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let client = echoing(|_| json!([])).await;
    let content = json!({ "content": [text("before"), image("image/PNG"), text("after"), image("image/tiff"),
        { "type": "audio", "data": "/wA=", "mimeType": "audio/wav" }] });
    let result = call(&client.toolset("x"), "x.t", content.clone()).await.unwrap();
    let shown = result.anthropic("id")["content"].clone();
    assert_eq!(
        shown[1],
        json!({ "type": "image",
        "source": { "type": "base64", "media_type": "image/png", "data": "/wA=" } })
    );
    assert!(shown[0]["text"].as_str().unwrap().starts_with("before\n{\"artifact\":"), "{shown}");
    let rest = shown[2]["text"].as_str().unwrap();
    assert!(
        rest.starts_with("after\n") && rest.contains("image/tiff") && rest.contains("audio/wav"),
        "{rest}"
    );
    let shown = result.openai("id")["output"].clone();
    assert_eq!(shown[1]["image_url"], "data:image/png;base64,/wA=");
    assert_eq!((&shown[0]["type"], &shown[1]["type"]), (&json!("input_text"), &json!("input_image")));
    assert!(result.openai_chat("id")["content"].is_string());

    let without = client.toolset("x").artifacts(Artifacts::memory().image_limit(1));
    let result = call(&without, "x.t", content).await.unwrap();
    assert!(result.anthropic("id")["content"].is_string());
}
