//! The shop without a framework: axum and serde_json, with the checks that a conforming server cannot leave out.
//! `shop-raw PORT`, with `SHOP_TOOLS=N` further tools.

use std::{
    collections::HashSet,
    env, fmt,
    sync::{
        Arc, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
    serve::ListenerExt as _,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use shop_backend::{CartItem, Failure, Shop};
use tokio::net::TcpListener;

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Default, Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<&'a str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a str>,
}

#[derive(Deserialize)]
struct Search {
    category: String,
    min_price: f64,
    max_price: f64,
    #[serde(default = "ten")]
    limit: u32,
}

const fn ten() -> u32 {
    10
}

#[derive(Deserialize)]
struct OfUser {
    user_id: u64,
}

#[derive(Deserialize)]
struct Checkout {
    user_id: u64,
    items: Vec<CartItem>,
}

#[derive(Clone)]
struct App {
    shop: Shop,
    tools: Arc<str>,
    sessions: Arc<RwLock<HashSet<String>>>,
    next: Arc<AtomicU64>,
}

fn tools(more: u32) -> Arc<str> {
    let number = json!({ "type": "number" });
    let integer = json!({ "type": "integer", "minimum": 0 });
    let item = json!({ "type": "object", "properties": { "product_id": integer, "quantity": integer }, "required": ["product_id", "quantity"] });
    let tool = |name: &str, description: &str, properties: Value, required: Value| json!({ "name": name, "description": description, "inputSchema": { "type": "object", "properties": properties, "required": required } });
    let mut tools = vec![
        tool(
            "search_products",
            "Searches products by category and price",
            json!({ "category": { "type": "string" }, "min_price": number, "max_price": number, "limit": integer }),
            json!(["category", "min_price", "max_price"]),
        ),
        tool(
            "get_user_cart",
            "Returns the cart and the last orders of a user",
            json!({ "user_id": integer }),
            json!(["user_id"]),
        ),
        tool(
            "checkout",
            "Orders items for a user",
            json!({ "user_id": integer, "items": { "type": "array", "items": item } }),
            json!(["user_id", "items"]),
        ),
    ];
    tools.extend(
        (0..more).map(|number| tool(&format!("tool_{number}"), "Does nothing", json!({}), json!([]))),
    );
    Value::from(tools).to_string().into()
}

/// The members of a result, or a code and a message.
async fn result(app: &App, request: &Request<'_>, params: &Params<'_>) -> Result<String, (i32, String)> {
    const BAD: (i32, &str) = (-32602, "bad arguments");
    let arguments = params.arguments.map_or("{}", RawValue::get);
    fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, (i32, String)> {
        serde_json::from_str(text).map_err(|_| (BAD.0, BAD.1.to_owned()))
    }
    fn text<T: Serialize>(value: Result<T, Failure>) -> String {
        match value {
            Ok(value) => {
                let json = serde_json::to_string(&value).expect("JSON");
                let text = serde_json::to_string(&json).expect("JSON");
                format!(
                    r#""content":[{{"type":"text","text":{text}}}],"structuredContent":{json},"isError":false"#
                )
            }
            Err(error) => {
                format!(r#""content":[{{"type":"text","text":{:?}}}],"isError":true"#, error.to_string())
            }
        }
    }
    Ok(match (request.method, params.name) {
        ("tools/call", Some("search_products")) => {
            let Search { category, min_price, max_price, limit } = read(arguments)?;
            text(app.shop.search(&category, min_price, max_price, limit).await)
        }
        ("tools/call", Some("get_user_cart")) => {
            text(app.shop.cart(read::<OfUser>(arguments)?.user_id).await)
        }
        ("tools/call", Some("checkout")) => {
            let Checkout { user_id, items } = read(arguments)?;
            text(app.shop.checkout(user_id, &items).await)
        }
        ("tools/list", _) => format!(r#""ttlMs":0,"cacheScope":"public","tools":{}"#, app.tools),
        ("initialize", _) => format!(
            r#""protocolVersion":"{LEGACY}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"shop","version":"1.0.0"}}"#
        ),
        ("ping", _) => String::new(),
        _ => return Err((-32601, "Method not found".to_owned())),
    })
}

fn has(headers: &HeaderMap, name: &str, value: Option<&str>) -> bool {
    headers.get(name).map(|value| value.as_bytes()) == value.map(str::as_bytes)
}

async fn mcp(State(app): State<App>, headers: HeaderMap, body: Bytes) -> Response {
    if headers.contains_key(header::ORIGIN) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let Ok(request) = serde_json::from_slice::<Request<'_>>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let none = Params::default();
    let params = request.params.as_ref().unwrap_or(&none);
    let is_modern = has(&headers, "mcp-protocol-version", Some(MODERN));
    let session = headers.get("mcp-session-id").and_then(|id| id.to_str().ok());
    if is_modern {
        let is_named = request.method == "tools/call";
        let says_so = params.meta.as_ref().and_then(|meta| meta.version) == Some(MODERN);
        let mirrors = has(&headers, "mcp-method", Some(request.method))
            && (!is_named || has(&headers, "mcp-name", params.name));
        if !says_so || !mirrors {
            return StatusCode::BAD_REQUEST.into_response();
        }
    } else if request.method != "initialize"
        && !session.is_some_and(|id| app.sessions.read().expect("no panic").contains(id))
    {
        return StatusCode::NOT_FOUND.into_response();
    }
    let Some(id) = request.id else { return StatusCode::ACCEPTED.into_response() };
    let kind = if is_modern { r#""resultType":"complete","# } else { "" };
    let body = match result(&app, &request, params).await {
        Ok(members) => {
            let object = format!(r#"{kind}{members}"#);
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{}}}}}"#, object.trim_end_matches(','))
        }
        Err((code, message)) => {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message:?}}}}}"#)
        }
    };
    let mut response = ([(header::CONTENT_TYPE, "application/json")], body).into_response();
    if request.method == "initialize" {
        let id = format!("s{:016x}", app.next.fetch_add(1, Ordering::Relaxed));
        app.sessions.write().expect("no panic").insert(id.clone());
        response.headers_mut().insert("mcp-session-id", id.parse().expect("a header"));
    }
    response
}

async fn end(State(app): State<App>, headers: HeaderMap) -> StatusCode {
    let session = headers.get("mcp-session-id").and_then(|id| id.to_str().ok());
    match session.is_some_and(|id| app.sessions.write().expect("no panic").remove(id)) {
        true => StatusCode::NO_CONTENT,
        false => StatusCode::NOT_FOUND,
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("App")
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let port: u16 = env::args().nth(1).ok_or("usage: shop-raw PORT")?.parse()?;
    let more = env::var("SHOP_TOOLS").map_or(Ok(0), |more| more.parse())?;
    let app = App {
        shop: Shop::connect("raw").await?,
        tools: tools(more),
        sessions: Arc::default(),
        next: Arc::default(),
    };
    let router = Router::new().route("/mcp", post(mcp).delete(end)).with_state(app);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?.tap_io(|io| {
        let _ = io.set_nodelay(true);
    });
    Ok(axum::serve(listener, router).await?)
}
