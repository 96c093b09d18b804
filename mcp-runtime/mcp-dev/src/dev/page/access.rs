//! Who may use the page: the browser that was opened with the link that was printed last. A link is good for one browser tab;
//! it is the fragment of a URL, so no server gets it, and is exchanged for a key that the tab sends with each request.

use std::{
    collections::VecDeque,
    io,
    sync::{Mutex, PoisonError},
};

use hyper::{
    HeaderMap,
    header::{AUTHORIZATION, HOST, HeaderName, ORIGIN},
};
use mcp_runtime::__dev::random_id;
use subtle::ConstantTimeEq as _;

/// Tabs that are known; the oldest is forgotten first.
const MAX_KEYS: usize = 16;
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Why a request is refused.
pub(super) struct Refusal(pub(super) &'static str);

pub(super) struct Access {
    hosts: [String; 2],
    keys: Mutex<Keys>,
}

struct Keys {
    link: String,
    known: VecDeque<String>,
}

impl Access {
    /// # Errors
    /// The system has no random numbers.
    pub(super) fn new(port: u16) -> io::Result<Self> {
        let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{port}"));
        Ok(Self { hosts, keys: Mutex::new(Keys { link: random_id()?, known: VecDeque::new() }) })
    }

    /// The link for the next browser.
    pub(super) fn link(&self) -> String {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        self.url(&keys.link)
    }

    fn url(&self, link: &str) -> String {
        format!("http://{}/#{link}", self.hosts[0])
    }

    /// # Errors
    /// The request is for another host, such as a name that leads here, or another page has made it.
    pub(super) fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut hosts = headers.get_all(HOST).iter();
        let (host, None) = (hosts.next(), hosts.next()) else { return Err(Refusal("several hosts")) };
        let is_own = |host: &[u8]| self.hosts.iter().any(|own| own.as_bytes() == host);
        if !host.is_some_and(|host| is_own(host.as_bytes())) {
            return Err(Refusal("another host"));
        }
        let is_own_origin = |origin: &[u8]| origin.strip_prefix(b"http://").is_some_and(is_own);
        if headers.get_all(ORIGIN).iter().any(|origin| !is_own_origin(origin.as_bytes())) {
            return Err(Refusal("another origin"));
        }
        let site = headers.get(SEC_FETCH_SITE).map(|site| site.as_bytes());
        match site {
            None | Some(b"none" | b"same-origin") => Ok(()),
            Some(_) => Err(Refusal("another site")),
        }
    }

    /// The key of a tab and the next link, if the link is the one that was printed.
    pub(super) fn exchange(&self, link: &str) -> Option<(String, String)> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_same(&keys.link, link) {
            return None;
        }
        let (key, next) = (random_id().ok()?, random_id().ok()?);
        keys.link = next;
        if keys.known.len() == MAX_KEYS {
            keys.known.pop_front();
        }
        keys.known.push_back(key.clone());
        Some((key, self.url(&keys.link)))
    }

    pub(super) fn knows(&self, headers: &HeaderMap) -> bool {
        let Some(key) =
            headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "))
        else {
            return false;
        };
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.known.iter().fold(false, |found, known| found | is_same(known, key))
    }
}

fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}
