//! Which addresses a document's URL may lead to: those of the same kind of network as the server that named it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// Which addresses are connected to, and by which schemes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Public addresses, by `https:`.
    #[default]
    Public,
    /// Those of private networks as well.
    Private,
    /// This machine's loopback besides public addresses, also by `http:`.
    Loopback,
    /// Every address, also by `http:`.
    Any,
}

impl Reach {
    /// The addresses that a server at that URL may refer to, as far as the URL says: a server on this machine may name
    /// others on it.
    pub fn of(url: &Url) -> Self {
        if is_loopback_host(url) { Self::Loopback } else { Self::Public }
    }

    /// The addresses that a server at that URL may refer to, given the address that was connected to. `peer` is `None`
    /// where a proxy made the connection.
    pub fn of_server(url: &Url, peer: Option<IpAddr>) -> Self {
        peer.or_else(|| literal(url)).map_or_else(|| Self::of(url), Self::of_address)
    }

    fn of_address(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Self::Loopback,
            address if is_private(address) => Self::Private,
            _ => Self::Public,
        }
    }

    /// Whether an address is connected to.
    pub(super) fn admits(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        match self {
            Self::Any => true,
            Self::Loopback => address.is_loopback() || is_public(address),
            Self::Private => is_private(address) || is_public(address),
            Self::Public => is_public(address),
        }
    }

    /// Whether the text of a URL is refused, and why. Names are checked when they are resolved.
    pub fn refusal(self, url: &Url) -> Option<&'static str> {
        let is_plain = url.scheme() == "http"
            && match self {
                Self::Any => true,
                Self::Loopback => is_loopback_host(url),
                _ => false,
            };
        if url.scheme() != "https" && !is_plain {
            return Some("is not an `https:` URL");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Some("contains credentials");
        }
        match literal(url) {
            Some(address) if !self.admits(address) => Some("is not an address that the server may name"),
            None if self != Self::Any && self != Self::Loopback && is_loopback_host(url) => {
                Some("is not an address that the server may name")
            }
            _ => None,
        }
    }
}

/// Whether a URL's host is this machine's loopback, by name or address.
pub(super) fn is_loopback_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name.strip_suffix('.').unwrap_or(name) == "localhost",
        None => false,
    }
}

/// The address that a URL contains in place of a name.
fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

/// Where clouds have services that give their credentials to every program that asks.
const CLOUD_SERVICES: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Whether an address is of a private network: one that other machines have.
fn is_private(address: IpAddr) -> bool {
    let is_private = match address {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            address.is_private() || (a == 100 && (64..128).contains(&b))
        }
        IpAddr::V6(address) => address.is_unique_local(),
    };
    is_private && !CLOUD_SERVICES.contains(&address)
}

/// Whether an address is reachable from everywhere, as far as it is assigned for that: not one of this machine, of a
/// private network, or of a special purpose.
fn is_public(address: IpAddr) -> bool {
    if CLOUD_SERVICES.contains(&address) {
        return false;
    }
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (b == 18 || b == 19));
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, _, _, g, h] = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b, c, d) {
        // addresses of IPv4 behind a translator, and 6to4
        (0x64, 0xff9b, 0, 0) => embedded(g, h),
        (0x2002, high, low, _) => embedded(high, low),
        // documentation, and the special purposes of 2001::/23
        (0x2001, 0xdb8, ..) => false,
        (0x2001, b, ..) => b >= 0x200,
        (0x3fff, b, ..) => b >= 0x1000,
        // public addresses are assigned from 2000::/3
        _ => a & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_private_networks_and_special_purposes_are_not_public() {
        for private in [
            "127.0.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "168.63.129.16",
            "0.0.0.0",
            "100.64.0.1",
            "192.0.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a00:1",
            "2002:a00:1::1",
            "2001:db8::1",
            "3fff::1",
            "ff02::1",
            "fec0::1",
        ] {
            let address = private.parse().unwrap();
            assert!(!Reach::Public.admits(address) && Reach::Any.admits(address), "{private}");
        }
        for public in ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822", "::ffff:93.184.216.34"] {
            assert!(Reach::Public.admits(public.parse().unwrap()), "{public}");
        }
        assert!(Reach::Loopback.admits("127.0.0.1".parse().unwrap()));
        assert!(!Reach::Loopback.admits("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn a_server_of_a_private_network_may_name_others_of_private_networks_and_no_more() {
        for (server, reach) in [
            ("10.0.0.1", Reach::Private),
            ("::ffff:192.168.1.1", Reach::Private),
            ("fd12::1", Reach::Private),
            ("100.64.0.1", Reach::Private),
            ("127.0.0.1", Reach::Loopback),
            ("::1", Reach::Loopback),
            ("93.184.216.34", Reach::Public),
            ("169.254.169.254", Reach::Public),
        ] {
            assert_eq!(Reach::of_address(server.parse().unwrap()), reach, "{server}");
        }
        for admitted in ["10.9.8.7", "fd00::1", "100.64.0.1", "93.184.216.34"] {
            assert!(Reach::Private.admits(admitted.parse().unwrap()), "{admitted}");
        }
        for refused in ["127.0.0.1", "::1", "169.254.169.254", "fe80::1", "100.100.100.200", "fd00:ec2::254"]
        {
            assert!(!Reach::Private.admits(refused.parse().unwrap()), "{refused}");
        }
    }

    #[test]
    fn urls_are_https_without_credentials_and_of_addresses_that_are_admitted() {
        let is_refused = |reach: Reach, url: &str| reach.refusal(&url.parse().unwrap()).is_some();
        assert!(!is_refused(Reach::Public, "https://id.example.com/jwks"));
        for bad in [
            "http://id.example.com/jwks",
            "https://ada:secret@id.example.com/",
            "https://ada@id.example.com/",
            "https://10.0.0.1/jwks",
            "https://10.1/jwks",
            "https://0xa.0.0.1/jwks",
            "https://[::1]/jwks",
            "https://[::ffff:a9fe:a9fe]/",
            "https://2130706433/jwks",
            "https://127.0.0.1./jwks",
            "https://localhost/jwks",
            "https://localhost./jwks",
            "https://LOCALHOST/jwks",
            "http://127.0.0.1/jwks",
            "http://localhost/jwks",
            "file:///etc/passwd",
            "javascript:alert(1)",
        ] {
            assert!(is_refused(Reach::Public, bad), "{bad}");
        }
        assert!(!is_refused(Reach::Loopback, "http://127.0.0.1:8080/jwks"));
        assert!(!is_refused(Reach::Loopback, "http://localhost:8080/jwks"));
        assert!(is_refused(Reach::Loopback, "http://id.example.com/jwks"));
        assert!(is_refused(Reach::Loopback, "http://10.0.0.1/jwks"));
        assert!(is_refused(Reach::Loopback, "https://192.168.0.1/jwks"));
        assert!(!is_refused(Reach::Any, "https://192.168.0.1/jwks"));
    }
}
