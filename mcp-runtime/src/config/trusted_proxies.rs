//! The proxies whose word is taken for the address of a client. What a client writes into a header itself is never
//! believed: entries are read from the right, where proxies append them, up to the first that no proxy has written.

use std::net::IpAddr;

use http::HeaderMap;

/// Networks of proxies.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrustedProxies(Vec<Network>);

/// Addresses with a common prefix; those of IPv4 are mapped into IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    prefix: u128,
    mask: u128,
}

/// Entries of a header that are read; no chain of proxies is longer.
const MAX_HOPS: usize = 32;

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl Network {
    /// `10.0.0.0/8`, `2001:db8::/32`, or one address.
    fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/').map_or((text, None), |(address, n)| (address, Some(n)));
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Some(most), |n| n.parse().ok().filter(|n| *n <= most))?;
        let host_bits = most - length;
        let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
        Some(Self { prefix: bits(address) & mask, mask })
    }
}

impl TrustedProxies {
    /// Adds a network.
    ///
    /// # Errors
    /// It is neither an address nor a network.
    pub(crate) fn add(&mut self, network: &str) -> Result<(), String> {
        let parsed = Network::parse(network).ok_or_else(|| {
            format!("`{network}` is not the address of a proxy\nwrite an address or a network: `10.0.0.0/8`, `2001:db8::1`")
        })?;
        self.0.push(parsed);
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let bits = bits(address);
        self.0.iter().any(|network| bits & network.mask == network.prefix)
    }

    /// The address of the client that sent a request with these headers over a connection from `peer`.
    ///
    /// If both headers are there and name different clients, neither is believed: a proxy writes one of them, and passes
    /// on what a client wrote into the other.
    pub(crate) fn find_client(&self, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
        if !self.contains(peer) {
            return peer;
        }
        let plain = self.follow(headers, "x-forwarded-for", parse_address, peer);
        let forwarded = self.follow(headers, "forwarded", parse_forwarded, peer);
        match (plain, forwarded) {
            (Some(client), None) | (None, Some(client)) => client,
            (Some(client), Some(other)) if client == other => client,
            _ => peer,
        }
    }

    /// Follows the entries of a header from proxy to proxy; `None` without such a header.
    fn follow(
        &self,
        headers: &HeaderMap,
        name: &str,
        parse: fn(&str) -> Option<IpAddr>,
        peer: IpAddr,
    ) -> Option<IpAddr> {
        let lines = headers.get_all(name).iter();
        headers.get(name)?;
        let entries = lines.rev().flat_map(|line| line.to_str().unwrap_or("unreadable").rsplit(','));
        let mut client = peer;
        for entry in entries.take(MAX_HOPS) {
            match parse(entry.trim()) {
                Some(address) => client = address.to_canonical(),
                // the proxy that wrote it did not want to tell, so that its clients are one
                None => break,
            }
            if !self.contains(client) {
                break;
            }
        }
        Some(client)
    }
}

/// The address in `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`.
fn parse_address(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0.parse().ok().filter(IpAddr::is_ipv6),
        None => text.rsplit_once(':')?.0.parse().ok().filter(IpAddr::is_ipv4),
    }
}

/// The address in the `for` of an element of `Forwarded` ([RFC 7239](https://www.rfc-editor.org/rfc/rfc7239)).
fn parse_forwarded(element: &str) -> Option<IpAddr> {
    let mut pairs = element.split(';').filter_map(|pair| pair.trim().split_once('='));
    let (_, node) = pairs.find(|(key, _)| key.eq_ignore_ascii_case("for"))?;
    parse_address(node.strip_prefix('"').and_then(|node| node.strip_suffix('"')).unwrap_or(node))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(networks: &[&str]) -> TrustedProxies {
        let mut proxies = TrustedProxies::default();
        networks.iter().for_each(|network| proxies.add(network).unwrap());
        proxies
    }

    /// The client that is found, of a request with these header lines from that peer.
    fn client(proxies: &TrustedProxies, peer: &str, lines: &[(&'static str, &'static str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        proxies.find_client(&headers, peer.parse().unwrap()).to_string()
    }

    #[test]
    fn networks_are_compared_by_their_prefix() {
        let proxies = proxies(&["10.0.0.0/8", "192.0.2.7", "2001:db8::/33", "0.0.0.0/32"]);
        for inside in ["10.255.0.1", "192.0.2.7", "::ffff:10.1.1.1", "2001:db8:7fff::1"] {
            assert!(proxies.contains(inside.parse().unwrap()), "{inside}");
        }
        for outside in ["11.0.0.1", "192.0.2.8", "2001:db8:8000::1", "::a00:1", "0.0.0.1"] {
            assert!(!proxies.contains(outside.parse().unwrap()), "{outside}");
        }
        assert!(self::proxies(&["0.0.0.0/0"]).contains("203.0.113.9".parse().unwrap()));
        assert!(!self::proxies(&["0.0.0.0/0"]).contains("2001:db8::1".parse().unwrap()));
        for text in ["", "10.0.0.0/33", "10.0.0/8", "example.com", "10.0.0.1:80", "::/129", "10.0.0.0/-1"] {
            assert!(TrustedProxies::default().add(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_client_is_the_last_entry_that_no_proxy_has_written() {
        let proxies = proxies(&["10.0.0.0/8", "fd00::/8"]);
        let xff = "x-forwarded-for";
        for (lines, found) in [
            (vec![], "10.0.0.1"),
            (vec![(xff, "203.0.113.5")], "203.0.113.5"),
            (vec![(xff, "203.0.113.5:4711")], "203.0.113.5"),
            (vec![(xff, "2001:db8::5")], "2001:db8::5"),
            (vec![(xff, "[2001:db8::5]:80")], "2001:db8::5"),
            (vec![(xff, "::ffff:203.0.113.5")], "203.0.113.5"),
            // what the client has written is further left
            (vec![(xff, "1.2.3.4, 203.0.113.5")], "203.0.113.5"),
            (vec![(xff, "1.2.3.4"), (xff, "203.0.113.5")], "203.0.113.5"),
            // two proxies
            (vec![(xff, "1.2.3.4, 203.0.113.5, 10.9.9.9")], "203.0.113.5"),
            (vec![(xff, "203.0.113.5"), (xff, "fd00::7")], "203.0.113.5"),
            // a client inside of the network
            (vec![(xff, "10.3.3.3")], "10.3.3.3"),
            // a proxy that does not tell
            (vec![(xff, "203.0.113.5, unknown")], "10.0.0.1"),
            (vec![(xff, "203.0.113.5, unknown, 10.9.9.9")], "10.9.9.9"),
            (vec![(xff, "")], "10.0.0.1"),
            (vec![("forwarded", "for=1.2.3.4, for=203.0.113.5;proto=https;by=10.0.0.1")], "203.0.113.5"),
            (vec![("forwarded", "proto=https;For=\"[2001:db8::5]:4711\"")], "2001:db8::5"),
            (vec![("forwarded", "for=_hidden")], "10.0.0.1"),
            (vec![("forwarded", "proto=https")], "10.0.0.1"),
        ] {
            assert_eq!(client(&proxies, "10.0.0.1", &lines), found, "{lines:?}");
        }
    }

    #[test]
    fn what_a_client_writes_itself_is_not_believed() {
        let proxies = proxies(&["10.0.0.0/8"]);
        let forged = ("x-forwarded-for", "1.2.3.4");
        // without a proxy in between
        assert_eq!(client(&proxies, "203.0.113.5", &[forged]), "203.0.113.5");
        assert_eq!(client(&TrustedProxies::default(), "203.0.113.5", &[forged]), "203.0.113.5");
        // through a proxy that writes the other header
        assert_eq!(client(&proxies, "10.0.0.1", &[forged, ("forwarded", "for=203.0.113.5")]), "10.0.0.1");
        let forged = ("forwarded", "for=1.2.3.4");
        assert_eq!(client(&proxies, "10.0.0.1", &[forged, ("x-forwarded-for", "203.0.113.5")]), "10.0.0.1");
        // a proxy that writes both
        let both = [("forwarded", "for=203.0.113.5"), ("x-forwarded-for", "203.0.113.5")];
        assert_eq!(client(&proxies, "10.0.0.1", &both), "203.0.113.5");
    }

    #[test]
    fn a_chain_of_any_length_is_read_in_a_bounded_time() {
        let proxies = proxies(&["10.0.0.0/8"]);
        let chain = vec!["10.0.0.2"; 10_000].join(",");
        let mut headers = HeaderMap::new();
        headers.append("x-forwarded-for", format!("203.0.113.5,{chain}").parse().unwrap());
        assert_eq!(proxies.find_client(&headers, "10.0.0.1".parse().unwrap()).to_string(), "10.0.0.2");
    }
}
