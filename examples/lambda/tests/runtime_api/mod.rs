//! The part of Lambda that a function's process asks for its next event, and sends the response to.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// How long a process may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Ends when this is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait().map(|_| ()));
    }
}

/// Starts a process of the function for one event; returns its id and its response.
pub fn invoke(program: &str, variables: &[(&str, &str)], event: &Value) -> (u32, Value) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (sender, responses) = mpsc::channel();
    let event: Arc<str> = event.to_string().into();
    // it ends with the test
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let (event, sender) = (event.clone(), sender.clone());
            thread::spawn(move || serve(connection, &event, &sender));
        }
    });
    let mut command = Command::new(program);
    command.env("AWS_LAMBDA_RUNTIME_API", address.to_string()).envs(variables.iter().copied());
    command.envs([
        ("AWS_LAMBDA_FUNCTION_NAME", "mcp"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "1"),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "stream"),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "group"),
    ]);
    let mut process = Process(command.stdin(Stdio::null()).spawn().expect("the function's program"));
    let end = Instant::now() + LIMIT;
    loop {
        if let Ok(response) = responses.recv_timeout(Duration::from_millis(100)) {
            return (process.0.id(), response);
        }
        let ended = process.0.try_wait().expect("the state of a process");
        assert!(ended.is_none() && Instant::now() < end, "no response of the function: {ended:?}");
    }
}

/// Answers the requests of one connection: for the next event, and with a response.
fn serve(connection: TcpStream, event: &str, responses: &mpsc::Sender<Value>) -> Option<()> {
    let mut writer = connection.try_clone().ok()?;
    let mut reader = BufReader::new(connection);
    loop {
        let mut first = String::new();
        reader.read_line(&mut first).ok().filter(|length| *length > 0)?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let reply = if first.starts_with("GET") {
            format!(
                "HTTP/1.1 200 OK\r\nLambda-Runtime-Aws-Request-Id: 1\r\nLambda-Runtime-Deadline-Ms: 99999999999999\r\n\
                 Lambda-Runtime-Invoked-Function-Arn: arn\r\nLambda-Runtime-Trace-Id: Root=1\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{event}",
                event.len()
            )
        } else {
            // the reader may have its response already
            let _first = responses.send(serde_json::from_slice(&body).ok()?);
            "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned()
        };
        writer.write_all(reply.as_bytes()).ok()?;
    }
}
