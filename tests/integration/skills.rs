//! Skills in memory: what is listed, read and refused.

use std::{fs, path::Path};

use mcp_runtime::skill::SkillsDir;

use crate::prelude::*;

/// The skills of the examples.
pub(crate) const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/skills");
pub(crate) const MANIFEST: &str = "skill://fixture-skill/SKILL.md";

fn fixture() -> TestServer {
    serve(mcp_runtime::server!().add(SkillsDir::new(FIXTURE)))
}

/// A directory of skills.
struct SkillsFolder(TestFolder);

impl SkillsFolder {
    /// One skill of that name, with these files next to its `SKILL.md`.
    fn of(name: &str, files: &[(&str, &[u8])]) -> Self {
        let shelf = Self(TestFolder::default());
        let manifest = format!("---\nname: {name}\ndescription: The skill {name}.\n---\n# {name}\n");
        shelf.0.write(&format!("{name}/SKILL.md"), manifest.as_bytes());
        for (path, bytes) in files {
            shelf.0.write(&format!("{name}/{path}"), bytes);
        }
        shelf
    }

    fn builder(&self) -> ServerBuilder {
        mcp_runtime::server!().add(SkillsDir::new(&*self.0))
    }
}

/// The URIs of the entries.
fn uris(entries: &Value) -> Vec<&str> {
    entries.as_array().into_iter().flatten().filter_map(|entry| entry["uri"].as_str()).collect()
}

async fn skills(server: &TestServer) -> Value {
    result(&server.request("skills/list", json!({})).await)["skills"].take()
}

async fn directory(server: &TestServer, uri: &str) -> Value {
    result(&server.request("resources/directory/read", json!({ "uri": uri })).await)["resources"].take()
}

#[tokio::test]
async fn skills_are_declared_with_their_methods() {
    let server = fixture();
    assert_eq!(
        server.capabilities().await,
        json!({
            "extensions": { "io.modelcontextprotocol/skills": { "directoryRead": true } },
            "resources": {}
        })
    );
    let without = serve(mcp_runtime::server!().add(ToolDef::builder("t").handler(|_| async { "t" })));
    assert_eq!(without.capabilities().await, json!({ "tools": {} }));
    for method in ["skills/list", "skills/get", "resources/directory/read", "resources/read"] {
        without.request(method, json!({ "uri": MANIFEST })).await.expect_code(-32601);
    }
}

#[tokio::test]
async fn an_entry_lists_every_file_with_its_digest() {
    let server = fixture();
    let list = result(&server.request("skills/list", json!({})).await);
    assert_eq!((&list["ttlMs"], &list["cacheScope"]), (&json!(0), &json!("private")));
    let [entry] = list["skills"].as_array().expect("skills").as_slice() else { panic!("{list}") };
    assert_eq!(entry["uri"], MANIFEST);
    assert_eq!(
        entry["frontmatter"],
        json!({
            "name": "fixture-skill",
            "description": "Writes the release notes of a library from its changelog. Use it when a user asks what is new in a version.",
            "license": "MIT OR Apache-2.0",
            "metadata": { "version": "1.0" }
        })
    );
    let root = "skill://fixture-skill";
    assert_eq!(
        uris(&entry["resources"]),
        [
            MANIFEST,
            &format!("{root}/references/FORM.md"),
            &format!("{root}/references/regional/en-GB.md"),
            &format!("{root}/references/voice.md"),
            &format!("{root}/scripts/check.sh"),
        ]
    );
    for file in entry["resources"].as_array().expect("files") {
        let digest = file["digest"].as_str().and_then(|d| d.strip_prefix("sha256:")).expect("a digest");
        let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        assert!(digest.len() == 64 && digest.chars().all(hex), "{file}");
        let path = file["uri"].as_str().and_then(|uri| uri.strip_prefix("skill://")).expect("a URI");
        let bytes = fs::read(Path::new(FIXTURE).join(path)).expect("the file");
        assert_eq!(file["size"], bytes.len());
        let read = server.read(file["uri"].as_str().expect("a URI")).await;
        assert_eq!(read.text().as_bytes(), bytes);
    }

    let got = result(&server.request("skills/get", json!({ "uri": MANIFEST })).await);
    assert_eq!(got, json!({ "skill": entry, "ttlMs": 0, "cacheScope": "private" }));
}

#[tokio::test]
async fn a_manifest_is_a_resource() {
    let server = fixture();
    let [listed] = server.list_resources().await.try_into().expect("one resource");
    let size = fs::metadata(Path::new(FIXTURE).join("fixture-skill/SKILL.md")).expect("the file").len();
    assert_eq!(
        listed,
        json!({
            "uri": MANIFEST,
            "name": "fixture-skill",
            "description": "Writes the release notes of a library from its changelog. Use it when a user asks what is new in a version.",
            "mimeType": "text/markdown",
            "size": size
        })
    );
    let read = result(&server.read(MANIFEST).await);
    let [contents] = read["contents"].as_array().expect("contents").as_slice() else { panic!("{read}") };
    assert_eq!((&contents["uri"], &contents["mimeType"]), (&json!(MANIFEST), &json!("text/markdown")));
    assert!(contents["text"].as_str().is_some_and(|text| text.starts_with("---\nname: fixture-skill\n")));
    assert_eq!((&read["ttlMs"], &read["cacheScope"]), (&json!(0), &json!("private")));
}

#[tokio::test]
async fn directories_are_read_one_level_at_a_time() {
    let server = fixture();
    let size = |path: &str| fs::metadata(Path::new(FIXTURE).join(path)).expect("the file").len();
    let root = directory(&server, "skill://fixture-skill").await;
    assert_eq!(root[0]["name"], "fixture-skill");
    assert_eq!(
        root.as_array().expect("children")[1..],
        [
            json!({"uri": "skill://fixture-skill/references", "name": "references", "mimeType": "inode/directory"}),
            json!({"uri": "skill://fixture-skill/scripts", "name": "scripts", "mimeType": "inode/directory"}),
        ]
    );
    assert_eq!(
        directory(&server, "skill://fixture-skill/references").await,
        json!([
            {
                "uri": "skill://fixture-skill/references/FORM.md",
                "name": "FORM.md",
                "mimeType": "text/markdown",
                "size": size("fixture-skill/references/FORM.md")
            },
            {
                "uri": "skill://fixture-skill/references/regional",
                "name": "regional",
                "mimeType": "inode/directory"
            },
            {
                "uri": "skill://fixture-skill/references/voice.md",
                "name": "voice.md",
                "mimeType": "text/markdown",
                "size": size("fixture-skill/references/voice.md")
            },
        ])
    );
}

#[tokio::test]
async fn unknown_skills_and_files_are_invalid_params() {
    let server = fixture();
    let refused =
        async |method: &str, uri: &str| refusal(&server.request(method, json!({ "uri": uri })).await);
    for uri in [
        "skill://other/SKILL.md",
        "skill://fixture-skill",
        "skill://fixture-skill/references/FORM.md",
        "file:///etc/passwd",
        "",
    ] {
        let (code, text) = refused("skills/get", uri).await;
        assert_eq!((code, text.starts_with(&format!("unknown skill `{uri}`\n"))), (-32602, true), "{text}");
    }
    for uri in ["skill://other", "skill://fixture-skill/nothing", "skill://fixture-skill/", "skill://", "x"] {
        assert_eq!(
            refused("resources/directory/read", uri).await,
            (-32602, format!("unknown directory `{uri}`"))
        );
    }
    let file = refused("resources/directory/read", MANIFEST).await;
    assert_eq!(file, (-32602, format!("`{MANIFEST}` is a file\nread it with `resources/read`")));
    let folder = refused("resources/read", "skill://fixture-skill/scripts").await;
    assert!(folder.0 == -32602 && folder.1.contains("read it with `resources/directory/read`"), "{folder:?}");
    for method in ["skills/get", "resources/directory/read"] {
        server.request(method, json!({})).await.expect_code(-32602);
        server.request(method, json!({ "uri": 1 })).await.expect_code(-32602);
    }
    for params in [json!({ "cursor": "nonsense" }), json!({ "cursor": 1 })] {
        server.request("skills/list", params).await.expect_code(-32602);
    }
}

#[tokio::test]
async fn no_uri_leads_out_of_the_snapshot() {
    let shelf = SkillsFolder::of("x", &[("a/b.txt", b"b"), ("a/100%.txt", b"p"), ("caf\u{e9} ?#.txt", b"c")]);
    shelf.0.write("secret.txt", b"secret");
    let server = serve(shelf.builder());
    for uri in [
        "skill://x/../secret.txt",
        "skill://x/a/../../secret.txt",
        "skill://x/%2e%2e/secret.txt",
        "skill://x/..%2fsecret.txt",
        "skill://secret.txt",
        "skill://../x/SKILL.md",
        "skill://x/./SKILL.md",
        "skill://x/a/./b.txt",
        "skill://x/a%2Fb.txt",
        "skill://x//a/b.txt",
        "skill://x/a//b.txt",
        "skill://x/a/b.txt/",
        "skill://x/a/b.txt?",
        "skill://x/a/b.txt#x",
        "skill://x/a/%2562.txt",
        "skill://x/a/%zz",
        "skill://x/skill.md",
    ] {
        assert_eq!(server.read(uri).await.error().map(|error| error.code), Some(-32602), "{uri}");
    }
    // an escape is decoded once; scheme and host are compared ignoring case
    for (uri, text) in [
        ("skill://x/a/%62.txt", "b"),
        ("SKILL://X/a/b.txt", "b"),
        ("skill://x/a/100%25.txt", "p"),
        ("skill://x/caf%C3%A9%20%3F%23.txt", "c"),
    ] {
        server.read(uri).await.expect_text(text);
    }
    let entry = skills(&server).await[0].take();
    assert_eq!(
        uris(&entry["resources"]),
        [
            "skill://x/SKILL.md",
            "skill://x/a/100%25.txt",
            "skill://x/a/b.txt",
            "skill://x/caf%C3%A9%20%3F%23.txt"
        ]
    );
}

#[tokio::test]
async fn bytes_and_digests_are_those_at_build_time() {
    let shelf =
        SkillsFolder::of("x", &[("data.bin", &[0, 255]), ("table.csv", b"a,b\n"), ("logo.png", b"png")]);
    let server = serve(shelf.builder());
    let before = skills(&server).await;
    shelf.0.write("x/data.bin", b"changed");
    shelf.0.write("x/new.txt", b"new");
    fs::remove_file(shelf.0.join("x/table.csv")).expect("removed");
    assert_eq!(skills(&server).await, before);
    for (name, mime, member, data) in [
        ("data.bin", "application/octet-stream", "blob", "AP8="),
        ("table.csv", "text/csv", "text", "a,b\n"),
        ("logo.png", "image/png", "blob", "cG5n"),
    ] {
        let uri = format!("skill://x/{name}");
        let read = result(&server.read(&uri).await);
        assert_eq!(read["contents"], json!([{ "uri": uri, "mimeType": mime, member: data }]));
    }
    server.read("skill://x/new.txt").await.expect_code(-32602);
}

#[tokio::test]
async fn the_snapshot_survives_changes_to_tools() {
    let shelf = SkillsFolder::of("x", &[]);
    let server = shelf.builder().build().expect("a server");
    let client = TestServer::of(&server);
    let before = skills(&client).await;
    drop(shelf);
    server.handle().add(ToolDef::builder("t").handler(|_| async { "t" })).expect("a tool");
    assert_eq!(skills(&client).await, before);
    assert_eq!(uris(&before), ["skill://x/SKILL.md"]);
}

#[tokio::test]
async fn lists_are_paged() {
    let (one, two) = (SkillsFolder::of("b", &[("1", b""), ("2", b"")]), SkillsFolder::of("a", &[]));
    let server = serve(one.builder().add(SkillsDir::new(&*two.0)).lists(|lists| lists.page_size(1)));
    let pages = async |method: &str, member: &str, params: Value| {
        let (mut found, mut params) = (Vec::new(), params);
        loop {
            let page = result(&server.request(method, params.clone()).await);
            assert_eq!(page[member].as_array().map(Vec::len), Some(1), "{page}");
            assert!(page["ttlMs"].is_u64() && page["cacheScope"].is_string(), "{page}");
            found.extend(uris(&page[member]).into_iter().map(str::to_owned));
            match page.get("nextCursor") {
                Some(next) => params["cursor"] = next.clone(),
                None => return (found, params["cursor"].clone()),
            }
        }
    };
    let (listed, cursor) = pages("skills/list", "skills", json!({})).await;
    assert_eq!(listed, ["skill://a/SKILL.md", "skill://b/SKILL.md"]);
    let (children, inside) =
        pages("resources/directory/read", "resources", json!({"uri": "skill://b"})).await;
    assert_eq!(children, ["skill://b/1", "skill://b/2", "skill://b/SKILL.md"]);
    assert_eq!(server.list_resources().await.len(), 2);
    // a cursor is valid only for its list, and its directory
    server.request("resources/list", json!({ "cursor": cursor })).await.expect_code(-32602);
    server.request("skills/list", json!({ "cursor": inside })).await.expect_code(-32602);
    let other = json!({ "uri": "skill://a", "cursor": inside });
    server.request("resources/directory/read", other).await.expect_code(-32602);
}

#[tokio::test]
async fn legacy_clients_see_no_skills() {
    /// Notes
    #[mcp_resource(uri = "notes://all")]
    fn notes() -> &'static str {
        "notes"
    }
    for revision in LEGACY {
        let server = fixture().legacy(revision);
        assert_eq!(server.capabilities().await, json!({}), "{revision:?}");
        for method in
            ["skills/list", "skills/get", "resources/directory/read", "resources/list", "resources/read"]
        {
            server.request(method, json!({ "uri": MANIFEST })).await.expect_code(-32601);
        }
        let server =
            serve(mcp_runtime::server!().add(SkillsDir::new(FIXTURE)).resource::<notes>()).legacy(revision);
        assert_eq!(server.capabilities().await, json!({ "resources": {} }), "{revision:?}");
        assert_eq!(uris(&server.list_resources().await.into()), ["notes://all"]);
        server.read(MANIFEST).await.expect_code(-32002);
    }
}

#[tokio::test]
async fn skills_coexist_with_resources_and_mounts() {
    /// Anything
    #[mcp_resource(uri = "skill://{name}/{+path}")]
    fn anything(name: String, path: String) -> String {
        format!("{name}: {path}")
    }
    let shelf = SkillsFolder::of("x", &[("a b/c.txt", b"c")]);
    let inner = mcp_runtime::server!().add(SkillsDir::new(&*shelf.0));
    let server = serve(shelf.builder().mount("Team", inner).resource::<anything>());
    assert_eq!(uris(&skills(&server).await), ["skill://Team/x/SKILL.md", "skill://x/SKILL.md"]);
    server.read("skill://x/a%20b/c.txt").await.expect_text("c");
    server.read("skill://team/x/a%20b/c.txt").await.expect_text("c");
    assert_eq!(uris(&directory(&server, "skill://Team/x/a%20b").await), ["skill://Team/x/a%20b/c.txt"]);
    // a URI that is not a skill's file is read through the template
    server.read("skill://x/other").await.expect_text("x: other");
    server.read("skill://Team/y").await.expect_text("Team: y");
}

#[tokio::test]
async fn invalid_skills_are_build_errors() {
    let (one, two) =
        (SkillsFolder::of("x", &[]), SkillsFolder::of("x", &[("y/SKILL.md", b"no skill of its own")]));
    let (first, second) = (one.0.join("x"), two.0.join("x"));
    let error = build_error(one.builder().add(SkillsDir::new(&*two.0)));
    let places = format!("  --> {}\n  --> {}\n", first.display(), second.display());
    assert!(error.contains("two skills are `skill://x`\n") && error.contains(&places), "{error}");

    let inner = SkillsFolder::of("y", &[]);
    let error = build_error(two.builder().mount("x", inner.builder()));
    assert!(error.contains("is mounted inside the skill in"), "{error}");

    /// Taken
    #[mcp_resource(uri = "skill://x/SKILL.md")]
    fn taken() -> &'static str {
        "taken"
    }
    let error = build_error(one.builder().resource::<taken>());
    assert!(error.contains("`skill://x/SKILL.md` is a URI of the skill in"), "{error}");
    assert!(error.contains("skills.rs"), "{error}");

    let error = build_error(mcp_runtime::server!().add(SkillsDir::new("no/such/directory")));
    assert!(error.contains("`no/such/directory` cannot be read as a directory of skills"), "{error}");

    // every problem of every directory is reported at once
    let bad = SkillsFolder::of("good", &[(".env", b"secret")]);
    bad.0.write("untold/SKILL.md", b"# no frontmatter");
    let error = build_error(bad.builder().add(SkillsDir::new("no/such/directory")));
    for part in ["hidden files are not served", "does not begin with frontmatter", "no/such/directory"] {
        assert!(error.contains(part), "{error}");
    }
}

#[tokio::test]
async fn skills_with_scopes_are_hidden_from_callers_without_them() {
    const FOLDER: &str = "skill://internal/fixture-skill";
    let internal = Server::builder("internal", "1").add(SkillsDir::new(FIXTURE).scopes(["staff", "read"]));
    let builder = mcp_runtime::server!().add(SkillsDir::new(FIXTURE)).mount("internal", internal);
    let server = builder.build().expect("a server");
    let manifest = format!("{FOLDER}/SKILL.md");
    for (scopes, sees) in [(vec!["staff", "read"], true), (vec!["staff"], false), (vec![], false)] {
        let client = TestServer::of(&server).caller(Principal::new("test", "ada").with_scopes(scopes));
        for method in ["skills/list", "resources/list"] {
            let list = client.request(method, json!({})).await.value().to_string();
            assert!(list.contains(MANIFEST), "{list}");
            assert_eq!(list.contains(FOLDER), sees, "{list}");
        }
        for (method, uri) in [
            ("skills/get", &*manifest),
            ("resources/directory/read", FOLDER),
            ("resources/read", &manifest),
            ("resources/read", &format!("{FOLDER}/scripts/check.sh")),
        ] {
            let code = client.request(method, json!({ "uri": uri })).await.error().map(|error| error.code);
            let other = client.request(method, json!({ "uri": "skill://internal/none/SKILL.md" })).await;
            let expected = if sees { None } else { other.error().map(|error| error.code) };
            assert_eq!(code, expected, "{method} {uri}");
        }
        client.read(MANIFEST).await.expect_ok();
    }
    let refused = server.into_service().expect_err("refused").to_string();
    assert!(refused.contains(&format!("skill `{manifest}`")), "{refused}");
}
