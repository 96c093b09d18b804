//! nginx before replicas, with the settings of docs/deploy.md.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::Path,
    process::Command,
};

use mcp_tests::{programs::child::Guard, support::TestFolder};

use super::{Missing, replicas::until_accepted};

/// A running nginx, and the folder with its files, which is removed with it.
#[derive(Debug)]
pub struct Nginx {
    _process: Guard,
    folder: TestFolder,
    address: SocketAddr,
}

impl Nginx {
    /// Starts it at an address, which must be free, before these replicas, which take turns; those of a session, or of
    /// the address of a client of HTTP+SSE, are sent to the same one.
    ///
    /// # Errors
    ///
    /// If it is not installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(address: SocketAddr, replicas: &[SocketAddr]) -> Result<Self, Missing> {
        Self::start_with(address, &[], |_| {
            let servers: String = replicas.iter().map(|at| format!("server {at} max_fails=0; ")).collect();
            format!(
                r#"
    upstream replicas {{ hash $http_mcp_session_id consistent; {servers}keepalive 32; }}
    upstream replicas_by_address {{ hash $remote_addr consistent; {servers}keepalive 32; }}
    server {{
        listen {address};
        proxy_http_version 1.1;
        proxy_set_header Host $host; proxy_set_header Connection "";
        proxy_buffering off; proxy_request_buffering off; proxy_connect_timeout 2s;
        location /mcp {{ proxy_pass http://replicas; }}
        location /sse {{ proxy_pass http://replicas_by_address; }}
    }}"#
            )
        })
    }

    /// Starts it with these files, and with the blocks of `http` that are made for the folder with them; one listens at the
    /// address, which must be free.
    ///
    /// # Errors
    ///
    /// If it is not installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start_with(
        address: SocketAddr,
        files: &[(&str, String)],
        blocks: impl FnOnce(&Path) -> String,
    ) -> Result<Self, Missing> {
        let missing = || Missing("`nginx` is not installed: the Debian package `nginx-light` has it".into());
        // not on the path of every user
        let program = ["nginx", "/usr/sbin/nginx"]
            .into_iter()
            .find(|program| Command::new(program).arg("-v").output().is_ok())
            .ok_or_else(missing)?;
        let folder = TestFolder::default();
        for (name, text) in files {
            folder.write(name, text);
        }
        let blocks = blocks(&folder);
        let path = folder.display();
        let config = format!(
            r#"daemon off; master_process off; pid {path}/pid; error_log {path}/error.log;
events {{}}
http {{
    access_log off; keepalive_requests 1000000;
    client_body_temp_path {path}/body; proxy_temp_path {path}/proxy; fastcgi_temp_path {path}/fastcgi;
    uwsgi_temp_path {path}/uwsgi; scgi_temp_path {path}/scgi;{blocks}
}}"#
        );
        let file = folder.write("nginx.conf", config);
        let log = File::create(folder.join("stderr.log")).expect("a log");
        let process = Command::new(program)
            .arg("-c")
            .arg(&file)
            .arg("-e")
            .arg(folder.join("error.log"))
            .stderr(log)
            .spawn();
        let started = Self { _process: Guard(process.expect("nginx starts")), folder, address };
        until_accepted(address);
        Ok(started)
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

    /// Its log of errors.
    #[must_use]
    pub fn errors(&self) -> String {
        fs::read_to_string(self.folder.join("error.log")).unwrap_or_default()
    }
}
