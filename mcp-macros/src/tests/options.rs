//! Every option is accepted, and every invalid one is one error.

use std::collections::BTreeSet;

use super::*;
use crate::model::kind::Kind;
use crate::options::known;

#[test]
fn every_tool_option_is_accepted() {
    assert_no_error(&tool(
        r#"name = "x.y-z_1", title = "T", description = DESCRIPTION, read_only, destructive = false, idempotent = true, open_world, icon = ["https://a.example/i.png", "data:image/png;base64,AA"], icon(src = "https://a.example/d.svg", mime = "image/svg+xml", sizes("any"), theme = "dark"), icon(src = "https://a.example/l.png", sizes = ["48x48", "96x96"], theme = "light"), icon("https://a.example/j.png"), meta(model = "m", n = 1), timeout = "5s", max_concurrency = 2, max_concurrency_per_caller = 1, rate = "60/1m", max_result = "50KB", scopes("a", "b"), requires(elicitation, elicitation_url, sampling, sampling_tools, "roots"), tags("x"), strict, output = HashMap<String, u32>, unregistered, ui(resource = "ui://a/b.html", visibility(model, "app")), crate = renamed::runtime,"#,
        "async fn x() {}",
    ));
    assert_no_error(&tool(
        r#"blocking, timeout = "1h", max_concurrency = LIMIT, max_concurrency_per_caller = LIMIT, rate = "5/s""#,
        "fn x() {}",
    ));
}

#[test]
fn every_resource_and_prompt_option_is_accepted() {
    assert_no_error(&resource(
        r#"uri = "a://b/{id}{?q}", name = "any name", title = "T", description = "d", mime = "text/plain; charset=utf-8", icon = "https://a.example/i.png", audience("user", "assistant"), priority = 1, cache(ttl = "60s"), list = all, subscribe = may, max_concurrency_per_caller = 1, rate = "5/1s", max_result = "2MiB", scopes = "a", requires(roots), meta(x = [1, 2]), crate = crate,"#,
        "fn x(#[mcp(raw)] id: String, q: Option<u32>) -> String {}",
    ));
    assert_no_error(&resource(r#"uri = "a://b", cache(ttl = "60s", public)"#, "fn x() -> String {}"));
    assert_no_error(&resource(r#"uri = "a://b", size = 10"#, "fn x() -> String {}"));
    let page = resource(
        r#"uri = "ui://a/{b}", mime = "text/html;profile=mcp-app", ui(csp(connect("https://a.example", "wss://b.example"), resource = "https://*.a.example", frame = ["https://c.example"], base_uri("https://d.example")), permissions(camera, microphone, geolocation, clipboard_write), prefers_border = false, domain = "a.b"), meta(x = 1)"#,
        "fn x(b: String) -> String {}",
    );
    assert_no_error(&page);
    let ui = r#"{"csp":{"connectDomains":["https://a.example","wss://b.example"],"resourceDomains":["https://*.a.example"],"frameDomains":["https://c.example"],"baseUriDomains":["https://d.example"]},"permissions":{"camera":{},"microphone":{},"geolocation":{},"clipboardWrite":{}},"prefersBorder":false,"domain":"a.b"}"#;
    assert!(flat(&page).contains(&format!("ui:__rt::Option::Some({ui:?})")), "{page}");
    assert_no_error(&prompt(
        r#"
name = "p",
            title = "T",
            description = "d",
            icon = "https://x.example",
            meta(a = 1),
            max_concurrency_per_caller = 1,
            rate = "5/1s",
            scopes("a"),
            crate = a::b"#,
        r#"async fn x(#[mcp(complete = ids, title = TITLE)] a: u32, #[mcp(complete("x", "y"))] b: String) -> String {}"#,
    ));
}

#[test]
fn every_parameter_option_is_accepted() {
    assert_no_error(&tool(
        "",
        r#"
fn x(
                #[mcp(name = "a-b", title = "A", description = "d", default = 10, range(1..=100), example = 5, header = "Region")] a: u32,
                #[mcp(length(1..=200), pattern = "^a$", one_of("a", "b"))] b: String,
                #[mcp(default)] c: Vec<u8>,
                #[mcp(range(-0.5..))] #[mcp(one_of = [1, -2])] d: f64,
                #[mcp(length(8))] e: String,
                #[mcp(length(..10))] f: String,
                #[mcp(range(MIN..MAX))] g: u32,
                #[mcp(inject)] h: Tx,
                i: &Db, j: Option<&Principal>, k: &dyn Store, l: &(dyn Store + Send), _: &Context,
            ) {}"#,
    ));
    assert_no_error(&tool("", r#"fn x(#[mcp(flatten, description = "d")] all: All, c: &Context) {}"#));
}

#[test]
fn a_tool_option_that_is_wrong_is_one_error() {
    assert_errors(
        &[
            (r#"titel = "x""#, "did you mean `title`?"),
            ("readonly", "did you mean `read_only`?"),
            (r#"uri = "a://b""#, "it is an option of `#[mcp_resource]`"),
            ("range(1..2)", "it is an option of a parameter"),
            ("colour", "it takes `name`"),
            ("task = always", "`task` takes nothing, `required` or `manual`"),
            ("task = \"required\"", "`task` takes nothing, `required` or `manual`"),
            ("task()", "a list of words"),
            ("task(restarts)", "did you mean `restart`?"),
            ("idempotent, task(restart, restart)", "is duplicated"),
            ("task(required, manual)", "either `required` or `manual`"),
            ("idempotent, task(manual, restart)", "write `task(restart)`"),
            ("ui", "`ui` takes a list"),
            ("ui()", "`ui` takes a list"),
            (r#"ui = "ui://a/b""#, "`ui` takes a list"),
            ("ui(resource)", "takes a string literal"),
            (r#"ui(resource = "https://a/b")"#, "starts with `ui://`"),
            (r#"ui(resource = "ui://")"#, "starts with `ui://`"),
            (r#"ui(resource = "ui://a/{b}")"#, "is a template"),
            (r#"ui(resource = "ui://a b")"#, "cannot contain"),
            (r#"ui(resouce = "ui://a/b")"#, "did you mean `resource`?"),
            ("ui(prefers_border)", "it is an option of `ui(..)` of a resource"),
            ("ui(colour)", "it takes `resource`, `visibility`"),
            ("visibility(app)", "it is an option of `ui(..)` of a tool"),
            ("ui(visibility)", "a list of words"),
            ("ui(visibility())", "a list of words"),
            ("ui(visibility(1))", "a list of words"),
            ("ui(visibility(apps))", "did you mean `app`?"),
            ("ui(visibility(user))", "it takes `model`, `app`"),
            ("ui(visibility(app, app))", "is duplicated"),
            (r#"ui(resource = "ui://a/b"), meta(ui(resourceUri = "ui://a/c"))"#, "is also a key"),
            (r#"requires("x")"#, "it takes `elicitation`, `elicitation_url`, `sampling`"),
            ("requires(root)", "did you mean `roots`?"),
            ("requires(elicit)", "did you mean `elicitation`?"),
            ("requires()", "a list of words"),
            ("requires = roots", "write `requires(elicitation, sampling)`"),
            ("require(roots)", "did you mean `requires`?"),
            ("requires(roots, roots)", "is duplicated"),
            (r#"title = "a", title = "b""#, "is duplicated"),
            ("title = 5", "takes a string"),
            ("title", "takes a string"),
            ("title =", "has no value"),
            (r#"title "x""#, "expected `=`"),
            (r#""search""#, "write `name = \"search\"`"),
            (r#""Searches the catalogue.""#, "write `description = \"Searches the catalogue.\"`"),
            ("5", "expected an option"),
            (r#"name = """#, "is empty"),
            (r#"name = "a b""#, "a character that is not allowed"),
            (r#"name = "é""#, "a character that is not allowed"),
            (r#"read_only = "yes""#, "`true` or `false`"),
            (r#"icon = "icon.png""#, "not an `https:` or `data:` URI"),
            (r#"icon("https://a.example/i.png", "http://a.example/i.png")"#, "clients reject all others"),
            ("icon = [1]", "string literals"),
            ("icon", "string literals"),
            ("icon()", "either URLs or options"),
            (r#"icon("https://a.example/i.png", sizes("any"))"#, "either URLs or options"),
            (r#"icon(sizes("any"))"#, "has no `src`"),
            (r#"icon(scr = "https://a.example/i.png")"#, "did you mean `src`?"),
            (r#"icon(src = "https://a.example", url = "https://a.example")"#, "did you mean `src`?"),
            (r#"icon(src = "https://a.example", size = "any")"#, "did you mean `sizes`?"),
            (r#"icon(src = "https://a.example", title = "x")"#, "it takes `src`, `mime`, `sizes`, `theme`"),
            (r#"icon(src = "file:///i.png")"#, "clients reject all others"),
            ("icon(src = ICON)", "write `src = \"https://example.org/icon.png\"`"),
            (r#"icon(src = "https://a.example", src = "https://b.example")"#, "is duplicated"),
            (r#"icon(src = "https://a.example", mime = "text/html")"#, "not the type of an image"),
            (r#"icon(src = "https://a.example", sizes("48"))"#, "`48` is not a size"),
            (r#"icon(src = "https://a.example", sizes(48))"#, "write `sizes(\"48x48\", \"any\")`"),
            (r#"icon(src = "https://a.example", theme = "drak")"#, "did you mean `dark`?"),
            (r#"icon(src = "https://a.example", theme = "blue")"#, "it takes `light`, `dark`"),
            ("icon(src = \"https://a.example\", theme = dark)", "write `theme = \"dark\"`"),
            (r#"sizes("48x48")"#, "it is an option of `icon(..)`"),
            ("meta = 1", "list of keys and values"),
            ("meta(a)", "has no value"),
            ("timeout = 5", "takes a string"),
            (r#"timeout = "5 seconds""#, "is not a duration"),
            ("max_concurrency = 0", "would block every call"),
            (r#"max_concurrency = "2""#, "whole number"),
            ("max_concurrency_per_caller = 0", "would block every call"),
            ("rate = 60", "takes a string"),
            (r#"rate = "60""#, "is not a rate"),
            (r#"rate = "60 per minute""#, "how often in which time"),
            (r#"rate = "0/1m""#, "is not a rate"),
            (r#"rate_limit = "60/1m""#, "did you mean `rate`?"),
            ("max_result = 50_000", "takes a string"),
            (r#"max_result = "50kb""#, "is not a size"),
            (r#"max_results = "50KB""#, "did you mean `max_result`?"),
            ("blocking", "for a plain `fn`"),
            ("scopes()", "string literals"),
            (r#"output("x")"#, "takes a type"),
            (r#"crate = "x""#, "takes a path"),
        ],
        |options| tool(options, "async fn x() {}"),
    );
    let long = "x".repeat(129);
    assert_one_error(&tool(&format!("name = {long:?}"), "fn x() {}"), "longer than 128");
    let longest = "x".repeat(128);
    assert_no_error(&tool(&format!("name = {longest:?}"), "fn x() {}"));
    assert_one_error(&tool("", "fn größe() {}"), "with `name = \"..\"`");
    assert_one_error(&tool(r#"timeout = "5s""#, "fn x() {}"), "add `blocking`");
    for expand in [tool, resource, prompt] {
        assert_no_error(&expand("blocking", "fn x(db: &Db) {}"));
        assert_one_error(&expand("blocking", "async fn x() {}"), "for a plain `fn`");
        assert_no_error(&expand("blocking", "fn x(#[mcp(inject)] t: T) {}"));
    }
}

#[test]
fn an_invalid_resource_is_one_error() {
    for (options, parameters, part) in [
        (r#"uri = "a://{x}""#, "", "`{x}` names no parameter"),
        (r#"uri = "a://b""#, "y: u32", "`y` is not in the URI"),
        (r#"uri = "a://{x""#, "x: u32", "is not closed"),
        (r#"uri = "a://{#x}""#, "x: u32", "the supported forms are"),
        (r#"uri = "{x}""#, "x: u32", "has no scheme"),
        ("uri = 5", "", "takes a string"),
        (r#""a://b""#, "", "write `uri = \"a://b\"`"),
        (r#"uri = "a://{x}""#, "x: &str", "write `String`"),
        (r#"mime = "json""#, "", "not a media type"),
        (r#"audience("model")"#, "", "not an audience"),
        ("priority = 2", "", "from 0 to 1"),
        (r#"priority = "1""#, "", "from 0 to 1"),
        (r#"size = "1""#, "", "integer"),
        ("cache(public)", "", "needs a `ttl`"),
        (r#"cache(ttl = "x")"#, "", "not a duration"),
        (r#"cache(ttl = "1s", privat)"#, "", "unknown option `privat` of `cache(..)`"),
        ("cache", "", "takes a list"),
        (
            r#"uri = "a://b", cache(ttl = "1s", public), scopes("a")"#,
            "",
            "cannot keep a resource with `scopes`",
        ),
        (r#"list = "x""#, "", "takes a path"),
        (r#"subscribe = true"#, "", "takes a path"),
        (r#"timeout = "5s""#, "", "it is an option of `#[mcp_tool]`"),
        (r#"max_result = "0B""#, "", "is not a size"),
        (r#"uri = "docs://a", ui(prefers_border)"#, "", "whose URIs start with `ui://`"),
        ("ui(prefers_border)", "", "add a URI"),
        (r#"uri = "a b", ui(prefers_border)"#, "", "has no scheme"),
        (r#"uri = "ui://a", mime = "text/html", ui(prefers_border)"#, "", "remove `mime`"),
        (r#"uri = "ui://a", ui"#, "", "`ui` takes a list"),
        (r#"uri = "ui://a", ui()"#, "", "`ui` takes a list"),
        (r#"uri = "ui://a", ui(resource = "ui://a")"#, "", "unknown option `resource` of `ui(..)`"),
        (r#"uri = "ui://a", ui(prefers_borders)"#, "", "did you mean `prefers_border`?"),
        (r#"uri = "ui://a", ui(prefers_border = "no")"#, "", "`true` or `false`"),
        (r#"uri = "ui://a", ui(csp)"#, "", "`csp` takes a list"),
        (r#"uri = "ui://a", ui(csp(connect))"#, "", "`connect` takes origins"),
        (r#"uri = "ui://a", ui(csp(conect("https://a.example")))"#, "", "did you mean `connect`?"),
        (r#"uri = "ui://a", ui(csp(frame("a.example")))"#, "", "is not an origin"),
        (r#"uri = "ui://a", ui(permissions(camra))"#, "", "did you mean `camera`?"),
        (r#"uri = "ui://a", ui(permissions = "camera")"#, "", "a list of words"),
        (r#"uri = "ui://a", ui(domain)"#, "", "a string literal"),
        (r#"uri = "ui://a", ui(domain = "https://a.example")"#, "", "is not a domain"),
        (r#"uri = "ui://a", ui(prefers_border), meta(ui(prefersBorder = true))"#, "", "is also a key"),
    ] {
        assert_one_error(&resource(options, &format!("fn x({parameters}) -> String {{}}")), part);
    }
    assert_no_error(&resource(
        r#"uri = "a://{user}""#,
        r#"fn x(#[mcp(name = "user")] who: String, db: &Db) {}"#,
    ));
}

#[test]
fn the_documentation_names_every_option_of_settings() {
    let source = include_str!("../lib.rs");
    let before = source.split_once("pub fn mcp_config(").unwrap().0;
    let docs = before.rsplit_once("/// Options: ").unwrap().1;
    let (options, of_fields) = docs.split_once("/// Options of a field").unwrap();
    let names = |text: &str| -> BTreeSet<String> {
        let words = text.split('`').skip(1).step_by(2).filter(|word| !word.starts_with('#'));
        words.map(str::to_owned).collect()
    };
    assert_eq!(names(options), known::CONFIG.iter().map(ToString::to_string).collect());
    let of_settings = [known::VALUE, known::SETTING].concat();
    assert_eq!(names(of_fields), of_settings.iter().map(ToString::to_string).collect());
}

#[test]
fn every_attribute_has_an_example() {
    let mut attributes = include_str!("../lib.rs").split("#[proc_macro_attribute]\n").map(str::trim_end);
    let mut docs = attributes.next().unwrap();
    for attribute in attributes {
        let (function, next) = attribute.split_once("\n}\n").unwrap_or((attribute, ""));
        assert!(docs.contains("include_str!(\"examples/") || docs.contains("/// ```"), "{function}");
        docs = next;
    }
}

#[test]
fn the_documentation_names_every_option() {
    let source = include_str!("../lib.rs");
    for kind in [Kind::Tool, Kind::Resource, Kind::Prompt] {
        let (attribute, known) = (kind.attribute(), kind.known_options());
        let before = source.split_once(&format!("pub fn {attribute}(")).unwrap().0;
        let docs = before.rsplit_once("/// Options: ").unwrap().1;
        let (options, of_parameters) = docs.split_once("/// Options of a parameter").unwrap();
        let names = |text: &str| -> BTreeSet<String> {
            let words = text.split('`').skip(1).step_by(2).filter(|word| !word.starts_with('#'));
            words.map(|word| word.split([' ', '(']).next().unwrap().to_owned()).collect()
        };
        assert_eq!(names(options), known.iter().map(ToString::to_string).collect(), "{attribute}");
        let of_parameters = names(of_parameters);
        assert!(
            of_parameters.iter().all(|name| kind.known_parameter_options().contains(&&**name)),
            "{of_parameters:?}"
        );
    }
}
