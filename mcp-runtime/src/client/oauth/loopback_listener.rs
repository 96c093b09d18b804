//! Receives the redirect of an authorization server on this machine: one request with the right `state`, from a browser.

use std::{io, net::Ipv4Addr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use url::Url;

/// How long a browser may take to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest head of a request, which has the answer in its first line.
const MAX_HEAD: usize = 16 << 10;
const PATH: &str = "/callback";

/// A listener on 127.0.0.1.
pub(super) struct LoopbackListener {
    listener: std::net::TcpListener,
    port: u16,
    show: Box<dyn Fn(&str) + Send + Sync>,
}

impl LoopbackListener {
    pub(super) fn bind(port: u16, show: impl Fn(&str) + Send + Sync + 'static) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port, show: Box::new(show) })
    }

    pub(super) fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Shows the URL, and waits for the redirect that answers the request with this `state`.
    pub(super) async fn visit(&self, url: &Url, state: &str) -> Result<String, String> {
        let listener = self.listener.try_clone().and_then(TcpListener::from_std);
        let listener = listener.map_err(|error| error.to_string())?;
        (self.show)(url.as_str());
        let answer = async {
            loop {
                let Ok((mut stream, _)) = listener.accept().await else { continue };
                // one that sends nothing holds up the others for some seconds only
                let answer = timeout(REQUEST_TIMEOUT, self.receive(&mut stream, state)).await;
                if let Ok(Some(answer)) = answer {
                    return answer;
                }
            }
        };
        Ok(answer.await)
    }

    /// The URL of a request, if it is the redirect; anything else gets 404.
    async fn receive(&self, stream: &mut TcpStream, state: &str) -> Option<String> {
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            if head.len() > MAX_HEAD || stream.read_buf(&mut head).await.ok()? == 0 {
                return None;
            }
        }
        let line = std::str::from_utf8(&head).ok()?.lines().next()?;
        let target = line.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
        let url = target
            .and_then(|target| Url::parse(&format!("http://127.0.0.1:{}{target}", self.port)).ok())
            .filter(|url| url.path() == PATH)
            .filter(|url| url.query_pairs().any(|(name, value)| name == "state" && value == state));
        let (status, text) = match &url {
            Some(_) => ("200 OK", "You can close this window and return to the program."),
            None => ("404 Not Found", "There is nothing here."),
        };
        let response = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n{text}",
            text.len()
        );
        // the answer is known even if the browser does not wait for this
        let _written = stream.write_all(response.as_bytes()).await;
        let _closed = stream.shutdown().await;
        url.map(String::from)
    }
}
