//! Replicas behind nginx that are restarted one by one, while clients send requests over connections that are kept open.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_tests::{
    external::{Missing, child::Guard, skip},
    support::{HttpConnection, HttpRequest, LineConnection, text_of},
};
use serde_json::json;
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::process::fixture;

const CLIENTS: usize = 8;
const REQUESTS: usize = 10_000;
const RESTARTS: usize = 10;
/// Far longer than it takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

/// Some addresses that no other process takes while a replica is restarted, since the system does not give these ports to
/// those who ask for any.
fn addresses<const N: usize>() -> [SocketAddr; N] {
    let first = 20_000 + u16::try_from(std::process::id() % 8_000).expect("a small number");
    let mut free = (first..).map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    std::array::from_fn(|_| free.find(|address| TcpListener::bind(address).is_ok()).expect("a port"))
}

/// A replica that accepts requests.
async fn replica(at: SocketAddr) -> LineConnection {
    let server =
        LineConnection::spawn(fixture().args(["--http", &at.to_string()]).env("FIXTURE_DELAY_MS", "200"));
    until_accepted(at).await;
    server
}

async fn until_accepted(at: SocketAddr) {
    while TcpStream::connect(at).await.is_err() {
        sleep(Duration::from_millis(5)).await;
    }
}

/// nginx, and the folder with its files, which is removed with it.
struct Nginx {
    _process: Guard,
    folder: PathBuf,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _best_effort = std::fs::remove_dir_all(&self.folder);
    }
}

/// Starts nginx with the settings of docs/deploy.md.
async fn nginx(at: SocketAddr, replicas: [SocketAddr; 2]) -> Result<Nginx, Missing> {
    let missing = || Missing("`nginx` is not installed: the Debian package `nginx-light` has it".into());
    // not on the path of every user
    let program = ["nginx", "/usr/sbin/nginx"]
        .into_iter()
        .find(|program| Command::new(program).arg("-v").output().is_ok())
        .ok_or_else(missing)?;
    let folder = std::env::temp_dir().join(format!("mcp-nginx-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let [one, other] = replicas;
    let path = folder.display();
    let config = format!(
        r#"daemon off; master_process off; pid {path}/pid; error_log {path}/error.log;
events {{}}
http {{
    access_log off; keepalive_requests 1000000;
    client_body_temp_path {path}/body; proxy_temp_path {path}/proxy; fastcgi_temp_path {path}/fastcgi;
    uwsgi_temp_path {path}/uwsgi; scgi_temp_path {path}/scgi;
    upstream replicas {{ server {one} max_fails=0; server {other} max_fails=0; keepalive 32; }}
    server {{
        listen {at};
        location /mcp {{
            proxy_pass http://replicas; proxy_http_version 1.1;
            proxy_set_header Host $host; proxy_set_header Connection "";
            proxy_buffering off; proxy_request_buffering off; proxy_connect_timeout 2s;
        }}
    }}
}}"#
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, config).expect("a configuration");
    let log = std::fs::File::create(folder.join("stderr.log")).expect("a log");
    let process = Command::new(program)
        .arg("-c")
        .arg(&file)
        .arg("-e")
        .arg(folder.join("error.log"))
        .stderr(log)
        .spawn();
    let started = Nginx { _process: Guard(process.expect("nginx starts")), folder };
    until_accepted(at).await;
    Ok(started)
}

/// Sends requests until there were enough of them and the restarts are over; counts them, and those without a result.
async fn send(at: SocketAddr, sent: Arc<AtomicUsize>, restarted: Arc<AtomicBool>) -> Vec<String> {
    let mut lost = Vec::new();
    let mut connection = HttpConnection::open(at).await;
    let call = HttpRequest::modern(1, "tools/call", json!({"name": "echo", "arguments": {"message": "m"}}));
    while sent.fetch_add(1, Ordering::Relaxed) < REQUESTS || !restarted.load(Ordering::Relaxed) {
        connection.send(&call).await;
        let response = connection.response().await;
        if response.status != 200 || text_of(&response.json()) != "m" {
            lost.push(format!("{} {}", response.status, response.text()));
        }
        if response.header("connection") == Some("close") {
            connection = HttpConnection::open(at).await;
        }
    }
    lost
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_behind_nginx_loses_no_request() {
    let [at, one, other] = addresses();
    let proxy = match nginx(at, [one, other]).await {
        Ok(proxy) => proxy,
        Err(missing) => return skip("a_rolling_restart_behind_nginx_loses_no_request", &missing),
    };
    let test = async {
        let mut replicas = [(one, replica(one).await), (other, replica(other).await)];
        let (sent, restarted) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let clients: Vec<_> =
            (0..CLIENTS).map(|_| tokio::spawn(send(at, sent.clone(), restarted.clone()))).collect();
        for n in 0..RESTARTS {
            let (address, running) = &mut replicas[n % 2];
            running.terminate();
            while TcpStream::connect(*address).await.is_ok() {
                sleep(Duration::from_millis(20)).await;
            }
            let stopped = std::mem::replace(running, replica(*address).await);
            let (status, log) = stopped.exit().await;
            assert!(status.success(), "{log}");
        }
        restarted.store(true, Ordering::Relaxed);
        let mut lost = Vec::new();
        for client in clients {
            lost.extend(client.await.expect("no panic"));
        }
        let sent = sent.load(Ordering::Relaxed);
        let log = std::fs::read_to_string(proxy.folder.join("error.log")).unwrap_or_default();
        // refused connections are expected: nginx sends the request to the other replica
        let log: Vec<_> = log.lines().filter(|line| !line.contains("Connection refused")).collect();
        assert!(lost.is_empty(), "{} of {sent} requests: {lost:?}\n{}", lost.len(), log.join("\n"));
        assert!(sent >= REQUESTS);
    };
    timeout(LIMIT, test).await.expect("it takes too long");
    drop(proxy);
}
