//! Replicas of a server, each a process that can be killed and started again at its address.

use std::{
    fs::{File, OpenOptions},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicU16, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use mcp_tests::{
    programs::{cache_dir, child::Guard},
    support::PATIENCE,
};

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
/// If nothing does.
pub fn until_accepted(at: SocketAddr) {
    let started = Instant::now();
    while std::net::TcpStream::connect_timeout(&at, Duration::from_secs(1)).is_err() {
        assert!(started.elapsed() < PATIENCE, "nothing listens at {at}");
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
