//! Replicas of a server, each a process that can be killed and started again at its address, and a proxy that sends each
//! request to one of them by chance.

use std::{
    fs::{File, OpenOptions},
    hash::{BuildHasher as _, RandomState},
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU16, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy},
    net::{TcpListener as AsyncListener, TcpStream},
    runtime::Runtime,
};

use super::{cache_dir, child::Guard};

/// Far longer than a start takes on a busy machine.
const START: Duration = Duration::from_secs(30);

/// Addresses that no other process takes while their process is restarted, since the system does not give these ports to
/// programs that ask for any.
///
/// # Panics
///
/// If there are not so many.
#[must_use]
pub fn free_addresses<const N: usize>() -> [SocketAddr; N] {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 8_000).expect("a small number");
    std::array::from_fn(|_| {
        (0..4000)
            .map(|_| {
                SocketAddr::from((Ipv4Addr::LOCALHOST, first + GIVEN.fetch_add(1, Ordering::Relaxed) % 4000))
            })
            .find(|address| TcpListener::bind(address).is_ok())
            .expect("a port")
    })
}

/// Waits until something accepts connections at an address.
///
/// # Panics
///
/// If nothing does for half a minute.
pub fn until_accepted(at: SocketAddr) {
    let started = Instant::now();
    while std::net::TcpStream::connect_timeout(&at, Duration::from_secs(1)).is_err() {
        assert!(started.elapsed() < START, "nothing listens at {at}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Processes of one program, each at an address of its own; they are killed when they are dropped.
#[derive(Debug)]
pub struct Replicas {
    program: PathBuf,
    folder: PathBuf,
    environment: Vec<(String, String)>,
    places: Vec<Place>,
}

#[derive(Debug)]
struct Place {
    address: SocketAddr,
    process: Mutex<Option<Guard>>,
}

impl Replicas {
    /// Three of them, which accept requests: `program --http ADDRESS`, in a folder and with these variables.
    ///
    /// # Panics
    ///
    /// If one does not start.
    #[must_use]
    pub fn start(program: PathBuf, folder: PathBuf, environment: &[(&str, &str)]) -> Self {
        let places = free_addresses::<3>().map(|address| Place { address, process: Mutex::default() });
        let environment =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let replicas = Self { program, folder, environment, places: places.into() };
        for n in 0..replicas.places.len() {
            replicas.restart(n);
        }
        replicas
    }

    /// Their addresses.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.places.iter().map(|place| place.address).collect()
    }

    /// The process of one that runs.
    ///
    /// # Panics
    ///
    /// If it does not run.
    #[must_use]
    pub fn id(&self, n: usize) -> u32 {
        self.places[n].process.lock().expect("no panic").as_ref().expect("it runs").0.id()
    }

    /// Ends one at once, as `kill -9` does.
    ///
    /// # Panics
    ///
    /// If another thread has panicked.
    pub fn kill(&self, n: usize) {
        drop(self.places[n].process.lock().expect("no panic").take());
    }

    /// Starts one again, and waits until it accepts requests.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn restart(&self, n: usize) {
        self.kill(n);
        let place = &self.places[n];
        let at = place.address;
        let log = self.log(n);
        let stderr = OpenOptions::new().create(true).append(true).open(&log).and_then(|log: File| {
            let second = log.try_clone()?;
            Ok((log, second))
        });
        let (stdout, stderr) = stderr.unwrap_or_else(|error| panic!("`{}`: {error}", log.display()));
        let process = Command::new(&self.program)
            .args(["--http", &at.to_string()])
            .current_dir(&self.folder)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start `{}`: {error}", self.program.display()));
        *place.process.lock().expect("no panic") = Some(Guard(process));
        until_accepted(at);
    }

    /// What one has written, over all its starts.
    #[must_use]
    pub fn log(&self, n: usize) -> PathBuf {
        let program = self.program.file_stem().map(|name| name.to_string_lossy().into_owned());
        let name = program.unwrap_or_default();
        cache_dir("logs").join(format!("{name}-replica-{}.txt", self.places[n].address.port()))
    }
}

/// A proxy on a free port of the loopback interface. It sends each request to a replica that is chosen by chance, over a
/// connection of its own; a replica that refuses the connection has another one take its place.
#[derive(Debug)]
pub struct RandomProxy {
    address: SocketAddr,
    /// `None` when it is dropped.
    runtime: Option<Runtime>,
    forwarded: Arc<Vec<AtomicUsize>>,
}

impl Drop for RandomProxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl RandomProxy {
    /// Starts it before these replicas.
    ///
    /// # Panics
    ///
    /// If no port is free.
    #[must_use]
    pub fn start(replicas: Vec<SocketAddr>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(AsyncListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        let forwarded: Arc<Vec<AtomicUsize>> =
            Arc::new(replicas.iter().map(|_| AtomicUsize::new(0)).collect());
        let counts = forwarded.clone();
        runtime.spawn(async move {
            let replicas = Arc::new(replicas);
            while let Ok((client, _)) = listener.accept().await {
                let (replicas, counts) = (replicas.clone(), counts.clone());
                // a connection that breaks concerns no other
                tokio::spawn(async move { drop(forward(client, &replicas, &counts).await) });
            }
        });
        Self { address, runtime: Some(runtime), forwarded }
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the endpoint.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// How many requests each replica has got.
    #[must_use]
    pub fn forwarded(&self) -> Vec<usize> {
        self.forwarded.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

/// At most this many bytes of a request's head.
const MAX_HEAD: usize = 64 * 1024;

/// Forwards one request and its response, both with `Connection: close`.
async fn forward(mut client: TcpStream, replicas: &[SocketAddr], counts: &[AtomicUsize]) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut read = Vec::new();
    let end = loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if read.len() > MAX_HEAD || client.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    };
    let (head, body) = read.split_at(end);
    let head = String::from_utf8_lossy(head);
    let kept = head.split("\r\n").filter(|line| {
        let name = line.split(':').next().unwrap_or_default();
        !["connection", "keep-alive"].contains(&name.to_ascii_lowercase().as_str())
    });
    let mut request = kept.collect::<Vec<_>>().join("\r\n").into_bytes();
    request.extend_from_slice(b"\r\nConnection: close");
    request.extend_from_slice(body);
    let Some(mut replica) = connect(replicas, counts).await else {
        return client
            .write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .await;
    };
    replica.set_nodelay(true)?;
    replica.write_all(&request).await?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_replica, mut to_replica) = replica.split();
    let mut first = vec![0; 16 * 1024];
    let response = async {
        let length = from_replica.read(&mut first).await.unwrap_or_default();
        if length == 0 {
            // it was killed before it said anything
            return to_client
                .write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                .await;
        }
        to_client.write_all(&first[..length]).await?;
        copy(&mut from_replica, &mut to_client).await.map(drop)
    };
    tokio::select! {
        sent = response => sent,
        // a client that leaves is gone for the replica as well
        _ = copy(&mut from_client, &mut to_replica) => Ok(()),
    }
}

/// A connection to one of them, by chance.
async fn connect(replicas: &[SocketAddr], counts: &[AtomicUsize]) -> Option<TcpStream> {
    // each `RandomState` has other keys
    let chance = usize::try_from(RandomState::new().hash_one(0) % 1_000_003).ok()?;
    for step in 0..replicas.len() {
        let n = (chance + step) % replicas.len();
        if let Ok(stream) = TcpStream::connect(replicas[n]).await {
            counts[n].fetch_add(1, Ordering::Relaxed);
            return Some(stream);
        }
    }
    None
}
