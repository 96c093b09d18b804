//! Where Redis is: what a URL says, and the way there. That is TCP, TLS or a socket of Unix; where there are sentinels, one
//! of them is asked first which server is the primary.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, ProtocolVersion,
    RedisConnectionInfo, RedisError, aio::MultiplexedConnection,
};
use tokio::{net::TcpStream, time::timeout};

use super::tls::Tls;
use crate::core::{admission::Owner, resolver::Resolver, spawn::spawn};

/// How long one sentinel may take, of the time for a connection.
const SENTINEL: Duration = Duration::from_millis(300);

/// The content of a URL.
#[derive(Clone)]
pub(super) struct Target {
    place: Place,
    settings: RedisConnectionInfo,
    pub(super) tls: Option<Tls>,
}

#[derive(Clone)]
enum Place {
    Tcp(String, u16),
    #[cfg(unix)]
    Unix(std::path::PathBuf),
    Sentinels(Sentinels),
}

#[derive(Clone)]
struct Sentinels {
    addresses: Vec<(String, u16)>,
    settings: RedisConnectionInfo,
    /// The name under which they know the primary.
    service: String,
    /// The one to ask first: the last one that answered, or the one after it.
    first: Arc<AtomicUsize>,
}

/// Why a connection was not opened.
#[derive(Clone)]
pub(super) struct OpenError {
    pub(super) message: String,
    /// Whether another attempt fails as well: a wrong password, an unknown authority.
    pub(super) is_final: bool,
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self { message: format!("Redis cannot be reached: {error}"), is_final: false }
    }
}

impl From<RedisError> for OpenError {
    fn from(error: RedisError) -> Self {
        if error.is_io_error() {
            return Self { message: format!("Redis cannot be reached: {error}"), is_final: false };
        }
        // one that is starting, stopping or busy refuses for a while
        let is_crowded = error.detail().is_some_and(|detail| detail.contains("max number of clients"));
        match error.code() {
            Some("LOADING" | "MASTERDOWN" | "TRYAGAIN" | "BUSY") => {
                Self { message: format!("Redis is not ready: {error}"), is_final: false }
            }
            Some("ERR") if is_crowded => {
                Self { message: format!("Redis is not ready: {error}"), is_final: false }
            }
            _ => Self { message: format!("Redis refuses the connection: {error}"), is_final: true },
        }
    }
}

impl OpenError {
    /// Another attempt may succeed.
    pub(super) fn passing(message: String) -> Self {
        Self { message, is_final: false }
    }
}

/// The hint for URLs of another kind.
const EXAMPLE: &str = "write one such as `redis://10.0.0.5:6379`";

impl Target {
    /// # Errors
    /// It is something else than a URL of Redis, or of a kind that is not supported; the message does not contain it,
    /// since it may contain a password.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let (scheme, rest) =
            url.split_once(':').ok_or_else(|| format!("the URL of Redis has no scheme\n{EXAMPLE}"))?;
        let (scheme, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        let is_tls = matches!(scheme, "rediss" | "valkeys");
        if rest.contains('#') {
            return Err("the URL of Redis has a fragment, which means nothing\n\
                 a `#` in a password is written `%23`"
                .into());
        }
        let tls = if is_tls { Some(Tls::new()?) } else { None };
        let scheme = if is_tls { "redis" } else { scheme };
        let (place, settings) = match kind {
            "cluster" => {
                return Err("clusters of Redis are not supported\n\
                     use one primary with replicas, behind one address or with sentinels: `redis+sentinel://`"
                    .into());
            }
            "sentinel" => sentinels(scheme, rest)?,
            _ => {
                // such as `redis+unix:`
                let kind = if kind.is_empty() { String::new() } else { format!("+{kind}") };
                let info = parse_one(&format!("{scheme}{kind}:{rest}"))?;
                let place = match info.addr() {
                    ConnectionAddr::Tcp(host, port) => Place::Tcp(host.clone(), *port),
                    #[cfg(unix)]
                    ConnectionAddr::Unix(path) => Place::Unix(path.clone()),
                    _ => {
                        return Err(format!(
                            "the URL of Redis has an address that is not supported\n{EXAMPLE}"
                        ));
                    }
                };
                (place, info.redis_settings().clone())
            }
        };
        let settings = settings.set_protocol(ProtocolVersion::RESP3).set_skip_set_lib_name();
        Ok(Self { place, settings, tls })
    }

    /// For the log: the host and port, the path, or the sentinels.
    pub(super) fn address(&self) -> String {
        match &self.place {
            Place::Tcp(host, port) => format!("{host}:{port}"),
            #[cfg(unix)]
            Place::Unix(path) => path.display().to_string(),
            Place::Sentinels(sentinels) => {
                let addresses = sentinels.addresses.iter().map(|(host, port)| format!("{host}:{port}"));
                format!("{} of {}", sentinels.service, addresses.collect::<Vec<_>>().join(","))
            }
        }
    }

    /// Opens one connection.
    ///
    /// # Errors
    /// Redis cannot be reached, or refuses the connection.
    pub(super) async fn connect(
        &self,
        config: AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, OpenError> {
        match &self.place {
            Place::Tcp(host, port) => self.connect_to(host, *port, &self.settings, config).await,
            #[cfg(unix)]
            Place::Unix(path) => {
                start(&self.settings, tokio::net::UnixStream::connect(path).await?, config).await
            }
            Place::Sentinels(sentinels) => {
                let (host, port) = self.primary(sentinels).await?;
                let mut connection = self.connect_to(&host, port, &self.settings, config).await?;
                // sentinels may not have noticed yet, and a primary may have become a replica again
                let role: Vec<redis::Value> = redis::cmd("ROLE").query_async(&mut connection).await?;
                let role = role.into_iter().next().map(redis::from_redis_value::<String>);
                match role {
                    Some(Ok(role)) if role == "master" => Ok(connection),
                    _ => Err(OpenError::passing("Redis is not ready: the server is not the primary".into())),
                }
            }
        }
    }

    /// The address of the primary, as the first sentinel that answers knows it.
    async fn primary(&self, sentinels: &Sentinels) -> Result<(String, u16), OpenError> {
        let count = sentinels.addresses.len();
        let mut last = OpenError::passing("no sentinel answers".into());
        for _ in 0..count {
            let n = sentinels.first.load(Ordering::Relaxed) % count;
            let Some((host, port)) = sentinels.addresses.get(n) else { break };
            let asked = async {
                let config =
                    AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
                let mut connection = self.connect_to(host, *port, &sentinels.settings, config).await?;
                let mut question = redis::cmd("SENTINEL");
                question.arg("GET-MASTER-ADDR-BY-NAME").arg(&sentinels.service);
                Ok(question.query_async::<Option<(String, u16)>>(&mut connection).await?)
            };
            match timeout(SENTINEL, asked).await {
                Ok(Ok(Some(address))) => return Ok(address),
                Ok(Ok(None)) => {
                    let message = format!("the sentinel {host}:{port} does not know `{}`", sentinels.service);
                    last = OpenError { message, is_final: true };
                }
                Ok(Err(error)) => {
                    let OpenError { message, is_final } = error;
                    last =
                        OpenError { message: format!("of the sentinel {host}:{port}: {message}"), is_final };
                }
                Err(_) => {
                    last = OpenError::passing(format!("the sentinel {host}:{port} does not answer"));
                }
            }
            sentinels.first.store(n.wrapping_add(1) % count, Ordering::Relaxed);
        }
        Err(last)
    }

    async fn connect_to(
        &self,
        host: &str,
        port: u16,
        settings: &RedisConnectionInfo,
        config: AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, OpenError> {
        let mut addresses = Resolver::system().addresses(&Owner::local(), host).await?;
        addresses.iter_mut().for_each(|address| address.set_port(port));
        let stream = TcpStream::connect(&*addresses).await?;
        stream.set_nodelay(true)?;
        if let Some(tls) = &self.tls {
            return start(settings, tls.secure(host, stream).await?, config).await;
        }
        start(settings, stream, config).await
    }
}

/// Greets the server at the other end of a stream.
async fn start(
    settings: &RedisConnectionInfo,
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    config: AsyncConnectionConfig,
) -> Result<MultiplexedConnection, OpenError> {
    let (connection, driver) = MultiplexedConnection::new_with_config(settings, stream, config).await?;
    // it ends with the connection
    let _driver = spawn(driver);
    Ok(connection)
}

fn parse_one(url: &str) -> Result<ConnectionInfo, String> {
    url.into_connection_info().map_err(|error| format!("the URL of Redis is invalid: {error}\n{EXAMPLE}"))
}

/// Parses the part after the scheme of `redis+sentinel://user:password@host:26379,host:26379/service/database`.
fn sentinels(scheme: &str, rest: &str) -> Result<(Place, RedisConnectionInfo), String> {
    const SENTINELS: &str = "write one such as `redis+sentinel://10.0.0.5:26379,10.0.0.6:26379/mymaster`";
    let wrong = |what: &str| format!("the URL of Redis {what}\n{SENTINELS}");
    let rest = rest.strip_prefix("//").ok_or_else(|| wrong("names no sentinel"))?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').ok_or_else(|| wrong("names no service"))?;
    let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (service, database) = path.split_once('/').unwrap_or((path, ""));
    if service.is_empty() {
        return Err(wrong("names no service"));
    }
    let (mut sentinel_user, mut sentinel_password) = ("", "");
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=').unwrap_or((pair, "")) {
            ("sentinel_user", value) => sentinel_user = value,
            ("sentinel_password", value) => sentinel_password = value,
            _ => return Err(wrong("has a parameter besides `sentinel_user` and `sentinel_password`")),
        }
    }
    let credentials = match (sentinel_user, sentinel_password) {
        ("", "") => String::new(),
        (user, password) => format!("{user}:{password}@"),
    };
    let (mut addresses, mut settings) = (Vec::new(), RedisConnectionInfo::default());
    for host in hosts.split(',') {
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let port = if has_port { "" } else { ":26379" };
        let info = parse_one(&format!("{scheme}://{credentials}{host}{port}"))?;
        let ConnectionAddr::Tcp(host, port) = info.addr() else { return Err(wrong("names no sentinel")) };
        addresses.push((host.clone(), *port));
        settings = info.redis_settings().clone().set_skip_set_lib_name();
    }
    let user = if user.is_empty() { String::new() } else { format!("{user}@") };
    let of_redis = parse_one(&format!("{scheme}://{user}primary/{database}"))?.redis_settings().clone();
    let service = service.to_owned();
    Ok((Place::Sentinels(Sentinels { addresses, settings, service, first: Arc::default() }), of_redis))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        let error = Target::parse(url).err().unwrap_or_else(|| panic!("{url} is accepted"));
        assert!(error.contains('\n') && !error.contains("sesame"), "{error}");
        error
    }

    #[test]
    fn urls_that_cannot_work_are_refused_with_what_to_write_and_without_their_password() {
        for (url, part) in [
            ("redis+cluster://:sesame@10.0.0.5", "clusters of Redis are not supported"),
            (
                "rediss+cluster://:sesame@10.0.0.5",
                if cfg!(feature = "redis-tls") { "clusters" } else { "`redis-tls`" },
            ),
            ("redis+sentinel://:sesame@10.0.0.5", "names no service"),
            ("redis+sentinel://:sesame@10.0.0.5/", "names no service"),
            ("redis+sentinel://10.0.0.5/main?sentinel_pass=sesame", "has a parameter besides"),
            ("redis+sentinel://:sesame@10.0.0.5/main/first", "Invalid database number"),
            ("redis+sentinel://:sesame@,/main", "invalid"),
            ("http://:sesame@10.0.0.5", "invalid"),
            ("sesame", "has no scheme"),
            ("redis://", "invalid"),
            ("redis://:sesame#1@10.0.0.5", "fragment"),
            ("redis://:sesame@10.0.0.5/first", "Invalid database number"),
        ] {
            let error = refused(url);
            assert!(error.contains(part), "{url}: {error}");
        }
    }

    #[test]
    fn a_url_of_sentinels_names_them_their_service_and_who_may_use_them() {
        let url = "redis+sentinel://ada:pass%40word@10.0.0.5,[::1]:1234,example.com:26380/main/3\
                   ?sentinel_user=eve&sentinel_password=s%3Aecret";
        let target = Target::parse(url).unwrap();
        assert_eq!(target.address(), "main of 10.0.0.5:26379,::1:1234,example.com:26380");
        assert_eq!(target.settings.username(), Some("ada"));
        assert_eq!(target.settings.password(), Some("pass@word"));
        assert_eq!(target.settings.db(), 3);
        let Place::Sentinels(sentinels) = &target.place else { panic!("sentinels") };
        assert_eq!(sentinels.settings.username(), Some("eve"));
        assert_eq!(sentinels.settings.password(), Some("s:ecret"));
        assert_eq!((sentinels.settings.db(), sentinels.service.as_str()), (0, "main"));
    }
}
