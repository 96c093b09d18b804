//! The load: each connection calls the three tools in turn, and each answer is checked.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    task::JoinSet,
    time::{sleep_until, timeout},
};

use crate::{Failure, api, seed::USERS};

/// After which a call counts as an error.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Options {
    port: u16,
    is_modern: bool,
    server_type: String,
    seconds: f64,
    warmup: f64,
    connections: u64,
    rate: Option<f64>,
}

impl Options {
    pub(crate) fn new(port: u16, mode: &str, server_type: &str, options: &[&str]) -> Result<Self, Failure> {
        let is_modern = match mode {
            "modern" => true,
            "sessions" => false,
            other => return Err(format!("`{other}` is neither `sessions` nor `modern`").into()),
        };
        let server_type = server_type.to_owned();
        let mut read =
            Self { port, is_modern, server_type, seconds: 10.0, warmup: 2.0, connections: 1, rate: None };
        for option in options.chunks(2) {
            match *option {
                ["--seconds", value] => read.seconds = value.parse()?,
                ["--warmup", value] => read.warmup = value.parse()?,
                ["--connections", value] => read.connections = value.parse()?,
                ["--rate", value] => read.rate = Some(value.parse()?),
                _ => return Err(format!("{option:?} is not an option").into()),
            }
        }
        Ok(read)
    }
}

/// One connection to the server, kept alive.
struct Connection {
    options: Arc<Options>,
    stream: Option<BufReader<TcpStream>>,
    next_id: u64,
}

struct Reply {
    status: u16,
    session: Option<String>,
    body: Vec<u8>,
    is_stream: bool,
}

impl Connection {
    async fn send(&mut self, method: &str, headers: &str, body: &str) -> Result<Reply, Failure> {
        let port = self.options.port;
        let stream = match &mut self.stream {
            Some(stream) => stream,
            empty => {
                let stream = TcpStream::connect(("127.0.0.1", port)).await?;
                stream.set_nodelay(true)?;
                empty.insert(BufReader::new(stream))
            }
        };
        let request = format!(
            "{method} /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n{headers}\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await?;
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let status = line.split(' ').nth(1).ok_or("the server has closed the connection")?.parse()?;
        let mut reply = Reply { status, session: None, body: Vec::new(), is_stream: false };
        let (mut length, mut is_chunked, mut closes) = (0, false, false);
        loop {
            line.clear();
            stream.read_line(&mut line).await?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse()?,
                "transfer-encoding" => is_chunked = value.contains("chunked"),
                "content-type" => reply.is_stream = value.starts_with("text/event-stream"),
                "mcp-session-id" => reply.session = Some(value.to_owned()),
                "connection" => closes = value.eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        if is_chunked {
            loop {
                line.clear();
                stream.read_line(&mut line).await?;
                let size = usize::from_str_radix(line.trim(), 16)?;
                let mut chunk = vec![0; size + 2];
                stream.read_exact(&mut chunk).await?;
                if size == 0 {
                    break;
                }
                reply.body.extend_from_slice(&chunk[..size]);
            }
        } else {
            reply.body.resize(length, 0);
            stream.read_exact(&mut reply.body).await?;
        }
        if closes {
            self.stream = None;
        }
        Ok(reply)
    }

    async fn call(&mut self, number: u64) -> Result<(), Failure> {
        let (tool, arguments) = call(number);
        self.next_id += 1;
        let id = self.next_id;
        let mut params = json!({ "name": tool, "arguments": arguments });
        let (reply, session) = if self.options.is_modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "shop-driver", "version": "1.0.0" },
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            let headers =
                format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n");
            let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
            (self.send("POST", &headers, &body.to_string()).await?, None)
        } else {
            let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "shop-driver", "version": "1.0.0" },
            } });
            let opened = self.send("POST", "", &hello.to_string()).await?;
            let result = opened.message(0)?;
            if result["result"]["protocolVersion"] != "2025-11-25" {
                return Err(format!("the session was not opened: {result}").into());
            }
            let mut headers = "mcp-protocol-version: 2025-11-25\r\n".to_owned();
            if let Some(session) = &opened.session {
                headers += &format!("mcp-session-id: {session}\r\n");
            }
            let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            let accepted = self.send("POST", &headers, &ready.to_string()).await?;
            if accepted.status != 202 {
                return Err(format!("a notification was answered with {}", accepted.status).into());
            }
            let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
            let reply = self.send("POST", &headers, &body.to_string()).await?;
            (reply, opened.session.is_some().then_some(headers))
        };
        check(tool, &reply.message(id)?, &self.options.server_type)?;
        if let Some(headers) = session {
            self.send("DELETE", &headers, "").await?;
        }
        Ok(())
    }
}

impl Reply {
    /// The message with that id.
    fn message(&self, id: u64) -> Result<Value, Failure> {
        if self.status != 200 {
            let text = String::from_utf8_lossy(&self.body);
            return Err(format!("the server answered with {}: {text}", self.status).into());
        }
        if !self.is_stream {
            return Ok(serde_json::from_slice(&self.body)?);
        }
        let text = str::from_utf8(&self.body)?;
        let mut messages = text.lines().filter_map(|line| line.strip_prefix("data:"));
        messages
            .find_map(|data| {
                serde_json::from_str::<Value>(data.trim()).ok().filter(|message| message["id"] == id)
            })
            .ok_or_else(|| format!("no message has the id {id}: {text}").into())
    }
}

fn call(number: u64) -> (&'static str, Value) {
    let user = number / 3 % USERS;
    match number % 3 {
        0 => (
            "search_products",
            json!({ "category": "Electronics", "min_price": 50.0, "max_price": 500.0, "limit": 10 }),
        ),
        1 => ("get_user_cart", json!({ "user_id": user })),
        _ => {
            let items = json!([{ "product_id": 42, "quantity": 1 }, { "product_id": 7, "quantity": 2 }]);
            ("checkout", json!({ "user_id": user, "items": items }))
        }
    }
}

fn check(tool: &str, message: &Value, server_type: &str) -> Result<(), Failure> {
    let result = &message["result"];
    let parsed: Value;
    let value = match &result["structuredContent"] {
        Value::Null => {
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            parsed = serde_json::from_str(text).unwrap_or_default();
            &parsed
        }
        value => value,
    };
    let count = |member: &str| value[member].as_array().map_or(0, Vec::len);
    let is_right = match tool {
        "search_products" => {
            value["total_found"] == api::FOUND && count("products") == 10 && count("popular") == 10
        }
        "get_user_cart" => count("history") == 5 && count("items") == 3,
        _ => value["status"] == "confirmed" && value["order_id"].as_u64() > Some(0),
    };
    match is_right && value["server_type"] == server_type {
        true => Ok(()),
        false => Err(format!("`{tool}` answered with {message}").into()),
    }
}

/// What all connections share.
struct Load {
    options: Arc<Options>,
    /// From which on calls count.
    counts_from: Instant,
    ends: Instant,
    numbers: AtomicU64,
}

#[derive(Default)]
struct Counted {
    micros: Vec<u32>,
    errors: u64,
    first_error: Option<String>,
}

impl Load {
    async fn connection(self: Arc<Self>) -> Counted {
        let mut connection = Connection { options: self.options.clone(), stream: None, next_id: 0 };
        let mut counted = Counted::default();
        loop {
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            let due = match self.options.rate {
                Some(rate) => self.begun() + Duration::from_secs_f64(number as f64 / rate),
                None => Instant::now(),
            };
            let now = Instant::now();
            if due >= self.ends || (self.options.rate.is_none() && now >= self.ends) {
                return counted;
            }
            // a server that cannot keep up is not measured by the calls that it has taken alone
            if now >= self.ends + PATIENCE {
                counted.errors += 1;
                counted.first_error.get_or_insert_with(|| "a call could not be sent in time".to_owned());
                continue;
            }
            sleep_until(due.into()).await;
            let outcome = match timeout(PATIENCE, connection.call(number)).await {
                Ok(outcome) => outcome,
                Err(_) => Err("no answer in time".into()),
            };
            match outcome {
                Ok(()) if due >= self.counts_from => {
                    let micros = due.elapsed().as_micros();
                    counted.micros.push(u32::try_from(micros).unwrap_or(u32::MAX));
                }
                Ok(()) => {}
                Err(error) => {
                    counted.errors += 1;
                    counted.first_error.get_or_insert_with(|| error.to_string());
                    connection.stream = None;
                }
            }
        }
    }

    fn begun(&self) -> Instant {
        self.counts_from - Duration::from_secs_f64(self.options.warmup)
    }
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let counts_from = Instant::now() + Duration::from_secs_f64(options.warmup);
    let ends = counts_from + Duration::from_secs_f64(options.seconds);
    let options = Arc::new(options);
    let load = Arc::new(Load { options: options.clone(), counts_from, ends, numbers: AtomicU64::new(0) });
    let mut counted = Counted::default();
    let mut connections = JoinSet::new();
    for _ in 0..options.connections {
        connections.spawn(load.clone().connection());
    }
    for part in connections.join_all().await {
        counted.micros.extend(part.micros);
        counted.errors += part.errors;
        counted.first_error = counted.first_error.or(part.first_error);
    }
    counted.micros.sort_unstable();
    let micros = &counted.micros;
    let at = |share: f64| match micros.len() {
        0 => 0,
        count => micros[((count as f64 * share) as usize).min(count - 1)],
    };
    let all_calls = load.numbers.load(Ordering::Relaxed).saturating_sub(options.connections);
    let line = json!({
        "calls": micros.len(),
        "all_calls": all_calls,
        "errors": counted.errors,
        "first_error": counted.first_error,
        "per_second": micros.len() as f64 / options.seconds,
        "p50_us": at(0.5), "p99_us": at(0.99), "p999_us": at(0.999), "max_us": at(1.0),
    });
    println!("{line}");
    Ok(())
}
