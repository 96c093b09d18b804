//! What the most expensive requests of a size cost: no more than a few times what an `echo` of that size costs, so that
//! the size of a message bounds the work it causes.
//!
//! ```text
//! cargo test --release -p mcp-tests --test costs -- --ignored --nocapture --test-threads 1
//! ```
//!
//! prints tables in CPU time and, with valgrind, in instructions. Instructions are what decides: at the size at which the
//! most expensive valid calls are, an echo takes 0.2 ms, and its CPU time differs by a third with the state of the machine
//! and of the allocator.

#![cfg(unix)]

mod answers;
mod api;
mod descriptions;
mod keys;
mod nested;
mod pieces;
mod requests;
mod server;
mod texts;
mod waiting;

use std::{
    io::{Cursor, Read, Write},
    process::{Command, Stdio},
};

use mcp_runtime::Server;
use requests::{Outcome, Request, requests};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use tokio::io::{AsyncReadExt, duplex};

/// The size of a message that a server accepts by default, with room for its envelope.
const MOST_BYTES: usize = (4 << 20) - (8 << 10);

/// How many times the instructions of an echo a request may take.
const FACTOR: f64 = 20.0;

/// A value takes two bytes at least: before a request of this size reaches the limit on values, valid calls are the most
/// expensive ones.
const MANY_VALUES: usize = 280 << 10;

/// How many times the CPU time of an echo a request of these bytes may take.
const CPU_FACTORS: [(usize, f64); 4] =
    [(4 << 10, 20.0), (64 << 10, 20.0), (MANY_VALUES, 25.0), (MOST_BYTES, 20.0)];

/// What a request over HTTP takes beside its bytes, in milliseconds of CPU time: added to the cost of an echo of few bytes,
/// which takes a tenth of that in memory.
const REQUEST: f64 = 0.1;

/// Part of the names of requests, to measure those alone.
const ONLY: &str = "MCP_TEST_ONLY";

fn is_wanted(request: &Request) -> bool {
    request.name == "echo" || std::env::var(ONLY).map_or(true, |only| request.name.contains(&only))
}

/// Serves a connection on which these lines arrive; returns what it writes.
async fn exchange(server: &Server, lines: Vec<u8>) -> Vec<u8> {
    let (mut ours, theirs) = duplex(1 << 16);
    let mut replies = Vec::new();
    let read = ours.read_to_end(&mut replies);
    let (served, read) = tokio::join!(server.serve(Cursor::new(lines), theirs), read);
    served.expect("served");
    read.expect("read");
    replies
}

/// What the last reply is.
fn outcome(replies: &[u8]) -> Outcome {
    let last = replies.trim_ascii_end().split(|byte| *byte == b'\n').next_back().unwrap_or_default();
    let reply: Value = serde_json::from_slice(last).expect("a reply");
    let reply = reply.as_array().and_then(|batch| batch.last()).unwrap_or(&reply);
    match reply.get("result") {
        Some(result) if result["isError"] == true => Outcome::ToolError,
        Some(_) => Outcome::Result,
        None => Outcome::Error,
    }
}

fn cpu_time() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

/// What a request costs as multiples of the first, which is the echo.
#[derive(Default)]
struct Table {
    echo: Option<f64>,
    /// What is added to the first.
    floor: f64,
    /// The lines of those that cost too much.
    offenders: Vec<String>,
}

impl Table {
    /// Adds a line, and prints it if `is_printed`.
    fn add(&mut self, name: &str, cost: f64, unit: &str, factor: f64, is_printed: bool) {
        let times = cost / *self.echo.get_or_insert(cost + self.floor);
        let line = format!("{times:6.2} times an echo: {name} ({cost:.1} {unit})");
        if is_printed {
            eprintln!("{line}");
        }
        if times > factor {
            self.offenders.push(line);
        }
    }
}

/// The requests of which the least of some rounds takes more than `factor` times the CPU time of an echo.
async fn offenders_in_cpu_time(bytes: usize, factor: f64, is_printed: bool) -> Vec<String> {
    let server = server::server();
    // A freed block of this size tells the allocator to keep memory. Otherwise each request takes its memory from the system
    // again, which varies with what was freed before.
    drop(std::hint::black_box(vec![1_u8; 31 << 20]));
    // those of few bytes are quick, and their measures vary: not as much as a large factor
    let rounds = if bytes < 1 << 20 && factor < 100.0 { 9 } else { 3 };
    let mut table = Table { floor: REQUEST, ..Table::default() };
    for request in requests(bytes).into_iter().filter(is_wanted) {
        let mut least = f64::INFINITY;
        for _ in 0..rounds {
            let lines = request.lines.clone();
            let start = cpu_time();
            let replies = exchange(&server, lines).await;
            least = least.min(cpu_time() - start);
            let outcome = outcome(&replies);
            if !outcome.is(request.outcome) {
                let excerpt = String::from_utf8_lossy(replies.get(..1000).unwrap_or(&replies));
                let expected = request.outcome;
                table.offenders.push(format!(
                    "{} of {bytes} bytes: {outcome:?} instead of {expected:?}: {excerpt}",
                    request.name
                ));
                break;
            }
        }
        table.add(request.name, least, "ms", factor, is_printed);
    }
    table.offenders
}

/// In a debug build, with a generous factor: what is more than linear costs hundreds of times as much.
#[tokio::test]
async fn no_request_costs_many_times_an_echo_of_its_size() {
    let found = offenders_in_cpu_time(128 << 10, 200.0, false).await;
    assert!(found.is_empty(), "{found:#?}");
}

#[tokio::test]
#[ignore = "measures CPU time: run it with `--release`"]
async fn no_request_costs_many_times_the_cpu_time_of_an_echo() {
    let mut found = Vec::new();
    for (bytes, factor) in CPU_FACTORS {
        eprintln!("{bytes} bytes");
        found.extend(offenders_in_cpu_time(bytes, factor, true).await);
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// How often a program that this test starts is to answer the request on its input.
const REPETITIONS: &str = "MCP_TEST_REPETITIONS";

#[test]
#[ignore = "needs valgrind: run it with `--release`"]
fn no_request_costs_many_times_the_instructions_of_an_echo() {
    if let Ok(repetitions) = std::env::var(REPETITIONS) {
        return answer_input(repetitions.parse().expect("a number"));
    }
    let mut found = Vec::new();
    for bytes in [MANY_VALUES, MOST_BYTES] {
        eprintln!("{bytes} bytes");
        let mut table = Table::default();
        for request in requests(bytes).into_iter().filter(is_wanted) {
            // what the second one costs, without the start of the program
            let cost = std::thread::scope(|scope| {
                let once = scope.spawn(|| instructions(&request, 1));
                instructions(&request, 2) - once.join().expect("measured")
            });
            table.add(request.name, cost / 1e6, "million instructions", FACTOR, true);
        }
        found.extend(table.offenders);
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// The instructions of a process that answers the request that often.
fn instructions(request: &Request, repetitions: usize) -> f64 {
    let name = "no_request_costs_many_times_the_instructions_of_an_echo";
    instructions_of(name, &[(REPETITIONS, &repetitions.to_string())], &request.lines)
}

/// The instructions of a test in a process of its own, with these variables and this input.
fn instructions_of(test: &str, variables: &[(&str, &str)], input: &[u8]) -> f64 {
    let mut child = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--ignored", "--exact", test])
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("valgrind is installed");
    child.stdin.take().expect("a pipe").write_all(input).expect("write");
    let output = child.wait_with_output().expect("it ends");
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{test}: {report}");
    let line = report.lines().find(|line| line.contains("I refs:") || line.contains("I   refs:"));
    let digits = line.and_then(|line| line.rsplit(' ').next()).expect("a count").replace(',', "");
    digits.parse().expect("a number")
}

/// Answers the request on this program's input.
fn answer_input(repetitions: usize) {
    let mut lines = Vec::new();
    std::io::stdin().read_to_end(&mut lines).expect("the request");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let server = server::server();
    for _ in 0..repetitions {
        runtime.block_on(exchange(&server, lines.clone()));
    }
}
