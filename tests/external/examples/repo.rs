//! The `repo` example: what it serves of a tree, what it refuses, and its limits.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use example::{root::Root, search::Query};
use mcp_runtime::testing::{Reply, TestServer};
use mcp_tests::support::{TestFolder, within};
use serde_json::{Value, json};

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/repo/main.rs"]
mod example;

/// A tree of files.
struct Tree(TestFolder);

impl Tree {
    /// An empty tree, next to a file that no client may see.
    fn empty() -> Self {
        let tree = Self(TestFolder::default());
        fs::create_dir_all(tree.root()).unwrap();
        tree.0.write("secret.txt", "the needle of the neighbour");
        tree
    }

    fn root(&self) -> PathBuf {
        self.0.join("tree")
    }

    fn add(&self, path: &str, bytes: impl AsRef<[u8]>) {
        self.0.write(&format!("tree/{path}"), bytes);
    }

    fn server(&self) -> TestServer {
        TestServer::new(example::server(Root::open(self.root()).unwrap())).unwrap()
    }
}

fn sample() -> Tree {
    let tree = Tree::empty();
    for (path, text) in [
        (".gitignore", "/target\n*.log\n"),
        (".hidden/key.txt", "needle"),
        ("README.md", "# Sample\n\nA needle here.\n"),
        ("build.log", "needle"),
        ("docs/how to.md", "# How\n\n```sh\n# no heading\n```\n\n## Why\n"),
        ("src/lib.rs", "//! A crate.\n\npub fn needle() {\n    let x = 1;\n}\n\nstruct Needle;\n"),
        ("src/main.py", "def needle():\n    pass\n\nclass Hay:\n    def method(self): ...\n"),
        ("target/debug/out.txt", "needle"),
    ] {
        tree.add(path, text);
    }
    tree
}

/// `path:line` of every hit.
fn positions(reply: &Reply) -> Vec<String> {
    let found: Value = reply.expect_ok().json();
    let hits = found["hits"].as_array().unwrap();
    hits.iter().map(|hit| format!("{}:{}", hit["path"].as_str().unwrap(), hit["line"])).collect()
}

#[tokio::test]
async fn search_honours_gitignore_and_hidden_files() {
    let reply = sample().server().call("search", json!({ "pattern": "needle" })).await;
    assert_eq!(positions(&reply), ["README.md:3", "src/lib.rs:3", "src/main.py:1"]);
}

#[tokio::test]
async fn search_takes_globs_case_and_a_limit() {
    let tree = sample();
    let server = tree.server();
    let search = async |mut arguments: Value| {
        arguments["pattern"] = "needle".into();
        server.call("search", arguments).await
    };
    assert_eq!(positions(&search(json!({ "include": ["*.py", "/docs/"] })).await), ["src/main.py:1"]);
    assert_eq!(positions(&search(json!({ "exclude": ["src"] })).await), ["README.md:3"]);
    let included = search(json!({ "include": ["*.log", "/target/"] })).await;
    assert_eq!(positions(&included), [""; 0], "globs do not bring back what .gitignore excludes");
    let cased = search(json!({ "ignore_case": true, "include": ["*.rs"] })).await;
    assert_eq!(positions(&cased), ["src/lib.rs:3", "src/lib.rs:7"]);
    let limited = search(json!({ "limit": 2 })).await;
    assert_eq!(positions(&limited), ["README.md:3", "src/lib.rs:3"]);
    assert_eq!(limited.json::<Value>()["truncated"], true);
    search(json!({ "limit": 5000 })).await.expect_failure("limit");
    search(json!({ "exclude": ["a{b"] })).await.expect_failure("globs");
    server.call("search", json!({ "pattern": "fn (" })).await.expect_failure("unclosed group");
}

#[test]
fn a_search_stops_inside_a_file() {
    let tree = Tree::empty();
    tree.add("long.txt", "needle\n".repeat(1000));
    tree.add("wide.txt", "x".repeat(1 << 20) + "needle");
    let query = Query::new("needle", &[], &[], false, 1000).unwrap();
    let mut steps = 0;
    let found = query.run(&Root::open(tree.root()).unwrap(), |_| {
        steps += 1;
        steps <= 10
    });
    assert_eq!((found.hits.len(), found.files, found.truncated), (9, 1, true));
    // what takes one step is bounded: a line, and an expression
    let query = Query::new("needle", &["wide.txt".into()], &[], false, 1000).unwrap();
    let found = query.run(&Root::open(tree.root()).unwrap(), |_| true);
    assert_eq!((found.hits.len(), found.files, found.truncated), (0, 1, false));
    assert!(Query::new(&"\\w{1000}".repeat(10), &[], &[], false, 1).is_err());
}

/// The files that take minutes to search if nothing interrupts it.
#[tokio::test]
async fn searches_inside_a_file_end_when_their_clients_have_left() {
    let tree = Tree::empty();
    tree.add("slow.txt", format!("{}\n", "aB3_".repeat(500)).repeat(2000));
    let server = tree.server();
    // more than the concurrency limit
    for _ in 0..8 {
        let search = server.call("search", json!({ "pattern": "(?:[aB3_]{0,40}\\w){0,3}!" }));
        let _cancelled = tokio::time::timeout(Duration::from_millis(20), search).await;
    }
    let search = server.call("search", json!({ "pattern": "aB3", "limit": 1 }));
    let reply = within(search).await;
    assert_eq!(positions(&reply), ["slow.txt:1"]);
}

#[tokio::test]
async fn outlines_support_six_languages() {
    let tree = sample();
    tree.add("a.ts", "import x from 'y';\nexport default class A {\n  b() {}\n}\nexport const c = 1;\n");
    tree.add("a.go", "package a\n\nfunc (a A) B() {\n\treturn\n}\n");
    tree.add("a.js", "async function a() {}\n");
    tree.add("a.c", "int main() {}\n");
    let server = tree.server();
    let outline = async |path: &str| {
        let items: Vec<Value> = server.call("outline", json!({ "path": path })).await.expect_ok().json();
        let shown = |item: &Value| format!("{} {}", item["line"], item["text"].as_str().unwrap());
        items.iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(outline("src/lib.rs").await, ["3 pub fn needle()", "7 struct Needle;"]);
    assert_eq!(outline("src/main.py").await, ["1 def needle():", "4 class Hay:"]);
    assert_eq!(outline("docs/how to.md").await, ["1 # How", "7 ## Why"]);
    assert_eq!(outline("a.ts").await, ["2 export default class A", "5 export const c = 1;"]);
    assert_eq!(outline("a.go").await, ["3 func (a A) B()"]);
    assert_eq!(outline("a.js").await, ["1 async function a() {}"]);
    server.call("outline", json!({ "path": "a.c" })).await.expect_failure("Markdown");
    server.call("outline", json!({ "path": "src/none.rs" })).await.expect_failure("no file `src/none.rs`");
}

#[tokio::test]
async fn files_are_read_as_text_or_bytes() {
    let tree = sample();
    tree.add("logo.png", b"\x89PNG\0\xff");
    tree.add("zero.txt", "a\0b");
    let server = tree.server();
    let read = async |uri: &str| server.read(uri).await.expect_ok().value()["contents"][0].clone();
    let file = read("repo:///src/main.py").await;
    assert_eq!((&file["mimeType"], &file["uri"]), (&json!("text/x-python"), &json!("repo:///src/main.py")));
    let file = read("repo:///docs/how%20to.md").await;
    assert!(file["text"].as_str().unwrap().starts_with("# How"));
    assert_eq!(file["uri"], "repo:///docs/how%20to.md");
    let logo = read("repo:///logo.png").await;
    assert_eq!((&logo["mimeType"], &logo["blob"]), (&json!("image/png"), &json!("iVBORwD/")));
    assert_eq!(read("repo:///zero.txt").await["blob"], "YQBi");
}

#[tokio::test]
async fn files_over_the_bound_are_refused_with_advice() {
    let tree = Tree::empty();
    tree.add("edge.txt", vec![b'a'; 1 << 20]);
    tree.add("big.txt", vec![b'a'; (1 << 20) + 1]);
    let server = tree.server();
    server.read("repo:///edge.txt").await.expect_ok();
    let reply = server.read("repo:///big.txt").await;
    reply.expect_code(-32603);
    assert!(reply.error().unwrap().message.contains("use `search`"), "{reply}");
}

/// No URI or argument reaches a file that is not listed.
#[tokio::test]
async fn nothing_outside_the_root_is_readable() {
    let tree = sample();
    let outside = tree.0.join("secret.txt");
    let outside = outside.to_str().unwrap();
    let server = tree.server();
    let paths = [
        "../secret.txt",
        "src/../../secret.txt",
        "src/../README.md",
        "%2E%2E%2Fsecret.txt",
        "..%2fsecret.txt",
        "%252e%252e/secret.txt",
        "..\\secret.txt",
        "README.md%00",
        "/etc/passwd",
        outside,
        ".gitignore",
        ".hidden/key.txt",
        "build.log",
        "target/debug/out.txt",
        "src",
    ];
    for path in paths {
        let reply = server.read(&format!("repo:///{path}")).await;
        assert!(reply.expect_code(-32602).error().unwrap().data.is_some(), "{path}");
        let decoded = path.replace("%2e", ".").replace("%2E", ".").replace("%2f", "/").replace("%2F", "/");
        for path in [path, &decoded, "README.md\0.rs", "../tree/src/lib.rs", "src/./../src/lib.rs"] {
            // an extension that has outlines, so that the path is the reason for the refusal
            let path = if path.ends_with(".rs") { path.to_owned() } else { format!("{path}/x.rs") };
            server.call("outline", json!({ "path": path })).await.expect_failure("no file");
            server
                .prompt("explain", json!({ "path": path, "audience": "reviewer" }))
                .await
                .expect_code(-32603);
        }
    }
    let absolute = tree.root().join("src/lib.rs");
    server.call("outline", json!({ "path": absolute.to_str() })).await.expect_failure("no file");
}

#[cfg(unix)]
#[tokio::test]
async fn symlinks_are_followed_inside_the_root_only() {
    use std::os::unix::fs::symlink;

    let tree = sample();
    let link = |target: &Path, name: &str| symlink(target, tree.root().join(name)).unwrap();
    link(&tree.0.join("secret.txt"), "out.txt");
    link(Path::new("../secret.txt"), "relative.txt");
    link(&tree.0, "up");
    link(Path::new("src/lib.rs"), "in.rs");
    link(Path::new(".hidden/key.txt"), "hidden.txt");
    link(Path::new("build.log"), "ignored.txt");
    link(Path::new("loop"), "loop");
    let server = tree.server();
    for path in
        ["out.txt", "relative.txt", "up/secret.txt", "up/tree/README.md", "hidden.txt", "ignored.txt", "loop"]
    {
        let reply = server.read(&format!("repo:///{path}")).await;
        // the neighbour's own copy of a served file is that file: it lies in the root once links are resolved
        if path == "up/tree/README.md" {
            reply.expect_ok()
        } else {
            reply.expect_code(-32602)
        };
    }
    server.read("repo:///in.rs").await.expect_ok();
    let reply = server.call("search", json!({ "pattern": "neighbour" })).await;
    assert_eq!(positions(&reply), [""; 0]);
    let reply = server.complete("repo:///{+path}", "path", "up/").await;
    assert_eq!(reply.value()["completion"]["values"], json!([]));
}

#[tokio::test]
async fn the_tree_is_listed() {
    let tree = sample();
    let expected = "README.md\ndocs/\n  how to.md\nsrc/\n  lib.rs\n  main.py\n";
    tree.server().read("repo:///").await.expect_text(expected);
}

#[tokio::test]
async fn paths_are_completed_one_directory_at_a_time() {
    let tree = sample();
    let server = tree.server();
    let complete = async |of: &str, value: &str| {
        server.complete(of, "path", value).await.expect_ok().value()["completion"]["values"].clone()
    };
    assert_eq!(complete("explain", "").await, json!(["README.md", "docs/", "src/"]));
    assert_eq!(complete("explain", "s").await, json!(["src/"]));
    assert_eq!(complete("repo:///{+path}", "src/l").await, json!(["src/lib.rs"]));
    for nowhere in ["../", "../s", "/etc/", "target/", ".hidden/", ".h", "none/", "src/\0"] {
        assert_eq!(complete("explain", nowhere).await, json!([]), "{nowhere}");
    }
    let audience = server.complete("explain", "audience", "").await;
    assert_eq!(audience.value()["completion"]["values"], json!(["newcomer", "reviewer", "maintainer"]));
}

#[tokio::test]
async fn a_file_is_explained() {
    let tree = sample();
    let server = tree.server();
    let reply = server.prompt("explain", json!({ "path": "src/lib.rs", "audience": "newcomer" })).await;
    let messages = &reply.expect_ok().value()["messages"];
    assert_eq!(messages[0]["content"]["resource"]["uri"], "repo:///src/lib.rs");
    assert!(
        messages[1]["content"]["text"].as_str().unwrap().starts_with("Explain `src/lib.rs`: what it is for")
    );
    let reply = server.prompt("explain", json!({ "path": "src/lib.rs", "audience": "robots" })).await;
    reply.expect_code(-32602);
}
