//! The proxies whose word is taken for the address of a client, and the one header in which they write it. Entries
//! that a client writes there itself are never believed: entries are read from the right, where proxies append them, up to
//! the first that no proxy has written. Other headers are ignored. A request has one sender: the one in the header, or the peer if there is
//! no header. A request is refused if its header cannot be parsed.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue};

/// Networks of proxies, and what they write.
#[derive(Clone)]
pub(crate) struct TrustedProxies {
    networks: Vec<Network>,
    header: HeaderName,
}

impl Default for TrustedProxies {
    fn default() -> Self {
        Self { networks: Vec::new(), header: X_FORWARDED_FOR }
    }
}

/// Addresses with a common prefix; those of IPv4 are mapped into IPv6.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Network {
    prefix: u128,
    mask: u128,
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// The header of [RFC 7239](https://www.rfc-editor.org/rfc/rfc7239).
const FORWARDED: HeaderName = http::header::FORWARDED;

/// Entries of a header that are read; no chain of proxies is longer.
const MAX_HOPS: usize = 32;

/// Whom a trusted proxy names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForwardedClient {
    /// The client, or a proxy that does not name its client.
    Address(IpAddr),
    /// The peer is not a trusted proxy, or sends its own request, without the header.
    Peer,
    /// The header contradicts itself or cannot be read.
    Malformed,
}

/// Whom one entry of a header names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Address(IpAddr),
    /// The proxy that wrote the entry does not tell.
    Hidden,
}

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

impl Network {
    /// Whether it is all addresses of IPv4 or IPv6, or half of them.
    fn is_everyone(self) -> bool {
        const IPV4: u128 = 0xFFFF << 32;
        let length = self.mask.count_ones();
        length <= 1 || (length <= 97 && (IPV4 & self.mask) >> 32 == self.prefix >> 32)
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
        if parsed.is_everyone() {
            return Err(format!(
                "`{network}` trusts every address as a proxy, so that clients choose their own address\n\
                 name the networks of your proxies: `10.0.0.0/8`; for one that cannot be named, \
                 `.http(|http| http.client_address(..))` finds the address"
            ));
        }
        self.networks.push(parsed);
        Ok(())
    }

    /// Sets the header that the proxies write.
    ///
    /// # Errors
    /// It is not the name of a header.
    pub(crate) fn set_header(&mut self, name: &str) -> Result<(), String> {
        self.header = HeaderName::try_from(name).map_err(|_| {
            format!("`{name}` is not a header in which a proxy names clients\nwrite `X-Forwarded-For` or `Forwarded`")
        })?;
        Ok(())
    }

    pub(crate) fn header(&self) -> &HeaderName {
        &self.header
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.networks.is_empty()
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let bits = bits(address);
        self.networks.iter().any(|network| bits & network.mask == network.prefix)
    }

    /// The client that sent a request with these headers over a connection from `peer`.
    pub(crate) fn find_client(&self, headers: &HeaderMap, peer: IpAddr) -> ForwardedClient {
        if !headers.contains_key(&self.header) || !self.contains(peer) {
            return ForwardedClient::Peer;
        }
        let mut client = peer;
        let mut hops = 0;
        for line in headers.get_all(&self.header).iter().rev() {
            let Some(nodes) = self.parse_line(line) else { return ForwardedClient::Malformed };
            for node in nodes {
                hops += 1;
                match node {
                    Some(Node::Address(address)) if hops <= MAX_HOPS => client = address.to_canonical(),
                    // its clients are one, which it stands for
                    Some(Node::Hidden) => return ForwardedClient::Address(client),
                    Some(Node::Address(_)) | None => return ForwardedClient::Malformed,
                }
                if !self.contains(client) {
                    return ForwardedClient::Address(client);
                }
            }
        }
        ForwardedClient::Address(client)
    }

    /// The entries of one line, the last first; `None` inside for one that cannot be read.
    fn parse_line<'a>(&self, line: &'a HeaderValue) -> Option<Box<dyn Iterator<Item = Option<Node>> + 'a>> {
        let line = line.to_str().ok()?;
        Some(if self.header == FORWARDED {
            // an open quotation mark would be ended from its left, so the line is read from its start
            Box::new(split_quoted(line, ',')?.into_iter().rev().map(parse_element))
        } else {
            Box::new(line.rsplit(',').map(|entry| parse_entry(entry.trim())))
        })
    }

    /// The header of the two usual ones that a request has instead of the one that the proxies are said to write.
    pub(crate) fn other_header(
        &self,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> Option<(&HeaderName, HeaderName)> {
        if headers.contains_key(&self.header) || !self.contains(peer) {
            return None;
        }
        let other = [X_FORWARDED_FOR, FORWARDED].into_iter().find(|name| headers.contains_key(name))?;
        Some((&self.header, other))
    }
}

/// An entry of `X-Forwarded-For`.
fn parse_entry(entry: &str) -> Option<Node> {
    if entry.eq_ignore_ascii_case("unknown") {
        return Some(Node::Hidden);
    }
    parse_address(entry).map(Node::Address)
}

/// The address in `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`.
fn parse_address(text: &str) -> Option<IpAddr> {
    if let Some(rest) = text.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
            return None;
        }
        return parse_plain(address).filter(IpAddr::is_ipv6);
    }
    parse_plain(text).or_else(|| {
        let (address, port) = text.rsplit_once(':')?;
        address.parse().ok().filter(|address: &IpAddr| address.is_ipv4() && is_port(port))
    })
}

/// An address without a port; the zone of a link-local one, which only its proxy knows, is left out.
fn parse_plain(text: &str) -> Option<IpAddr> {
    match text.split_once('%') {
        Some((address, zone)) => address.parse().ok().filter(|a: &IpAddr| a.is_ipv6() && !zone.is_empty()),
        None => text.parse().ok(),
    }
}

/// Whether it is a port: a number, or a name that a proxy has made up (RFC 7239).
fn is_port(text: &str) -> bool {
    match text.strip_prefix('_') {
        Some(name) => is_obfuscated(name),
        None => text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok(),
    }
}

/// Whether it is what follows the `_` of a name that a proxy has made up.
fn is_obfuscated(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// The node in the `for` of an element of `Forwarded`; an element without it does not tell.
fn parse_element(element: &str) -> Option<Node> {
    let mut found = None;
    for pair in split_quoted(element, ';')? {
        let pair = pair.trim();
        if pair.is_empty() {
            continue;
        }
        let (key, value) = pair.split_once('=')?;
        if !key.eq_ignore_ascii_case("for") {
            continue;
        }
        if found.replace(parse_node(&unquote(value)?)?).is_some() {
            return None;
        }
    }
    match found {
        None if element.trim().is_empty() => None,
        found => Some(found.unwrap_or(Node::Hidden)),
    }
}

fn parse_node(node: &str) -> Option<Node> {
    // a name may have a port as well
    let name = node.split_once(':').map_or(node, |(name, port)| if is_port(port) { name } else { node });
    if name.eq_ignore_ascii_case("unknown") || name.strip_prefix('_').is_some_and(is_obfuscated) {
        return Some(Node::Hidden);
    }
    parse_address(node).map(Node::Address)
}

/// The parts between separators that are not in quotation marks; `None` if one is not closed.
fn split_quoted(text: &str, separator: char) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if c == separator && !quoted => {
                parts.push(text.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..)?);
    (!quoted).then_some(parts)
}

/// The value of a token or a quoted string.
fn unquote(value: &str) -> Option<String> {
    let Some(inner) = value.strip_prefix('"') else {
        return (!value.is_empty() && !value.contains(['"', ' ', '\t'])).then(|| value.to_owned());
    };
    let (mut out, mut chars) = (String::new(), inner.strip_suffix('"')?.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.push(chars.next()?),
            '"' => return None,
            c => out.push(c),
        }
    }
    Some(out)
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
    fn client(proxies: &TrustedProxies, peer: &str, lines: &[(&'static str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        match proxies.find_client(&headers, peer.parse().unwrap()) {
            ForwardedClient::Address(address) => address.to_string(),
            ForwardedClient::Peer => "peer".into(),
            ForwardedClient::Malformed => "malformed".into(),
        }
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
        assert!(self::proxies(&["128.0.0.0/2"]).contains("172.16.0.9".parse().unwrap()));
        assert!(!self::proxies(&["128.0.0.0/2"]).contains("2001:db8::1".parse().unwrap()));
        for everyone in
            ["0.0.0.0/0", "::/0", "0.0.0.0/1", "128.0.0.0/1", "::ffff:0:0/96", "8000::/1", "::/64"]
        {
            assert!(
                TrustedProxies::default().add(everyone).unwrap_err().contains("every address"),
                "{everyone}"
            );
        }
        for text in ["", "10.0.0.0/33", "10.0.0/8", "example.com", "10.0.0.1:80", "::/129", "10.0.0.0/-1"] {
            assert!(TrustedProxies::default().add(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_client_is_the_last_entry_that_no_proxy_has_written() {
        let proxies = proxies(&["10.0.0.0/8", "fd00::/8"]);
        let xff = "x-forwarded-for";
        for (lines, found) in [
            (vec![(xff, "203.0.113.5")], "203.0.113.5"),
            (vec![(xff, "203.0.113.5:4711")], "203.0.113.5"),
            (vec![(xff, "2001:db8::5")], "2001:db8::5"),
            (vec![(xff, "[2001:db8::5]")], "2001:db8::5"),
            (vec![(xff, "[2001:db8::5]:80")], "2001:db8::5"),
            (vec![(xff, "::ffff:203.0.113.5")], "203.0.113.5"),
            (vec![(xff, "[::ffff:203.0.113.5]:80")], "203.0.113.5"),
            (vec![(xff, "fe80::7%eth0")], "fe80::7"),
            // the client's own entries are further left, whatever they are
            (vec![(xff, "1.2.3.4, 203.0.113.5")], "203.0.113.5"),
            (vec![(xff, "nonsense,, 203.0.113.5")], "203.0.113.5"),
            (vec![(xff, "1.2.3.4"), (xff, "203.0.113.5")], "203.0.113.5"),
            (vec![(xff, "\"nonsense"), (xff, "203.0.113.5")], "203.0.113.5"),
            // two proxies
            (vec![(xff, "1.2.3.4, 203.0.113.5, 10.9.9.9")], "203.0.113.5"),
            (vec![(xff, "203.0.113.5, ::ffff:10.9.9.9")], "203.0.113.5"),
            (vec![(xff, "203.0.113.5"), (xff, "fd00::7")], "203.0.113.5"),
            // a client inside of the network
            (vec![(xff, "10.3.3.3")], "10.3.3.3"),
            // a proxy that does not tell
            (vec![(xff, "203.0.113.5, unknown")], "10.0.0.1"),
            (vec![(xff, "203.0.113.5, unknown, 10.9.9.9")], "10.9.9.9"),
            // an entry that a client has written into the other header
            (vec![(xff, "203.0.113.5"), ("forwarded", "for=1.2.3.4")], "203.0.113.5"),
            (vec![(xff, "203.0.113.5"), ("forwarded", "for=\"")], "203.0.113.5"),
            // a request of the proxy's own
            (vec![], "peer"),
            (vec![("forwarded", "for=1.2.3.4")], "peer"),
            (vec![(xff, "")], "malformed"),
            (vec![(xff, "203.0.113.5,")], "malformed"),
            (vec![(xff, "203.0.113.5"), (xff, "")], "malformed"),
            (vec![(xff, "203.0.113.5, nonsense")], "malformed"),
            (vec![(xff, "203.0.113.5, nonsense, 10.9.9.9")], "malformed"),
            (vec![(xff, "203.0.113.5:")], "malformed"),
            (vec![(xff, "203.0.113.5:99999")], "malformed"),
            (vec![(xff, "203.0.113.5:+80")], "malformed"),
            (vec![(xff, "203.0.113.05")], "malformed"),
            (vec![(xff, "[203.0.113.5]")], "malformed"),
            (vec![(xff, "[2001:db8::5]x")], "malformed"),
            (vec![(xff, "_hidden")], "malformed"),
            (vec![(xff, "for=203.0.113.5")], "malformed"),
        ] {
            assert_eq!(client(&proxies, "10.0.0.1", &lines), found, "{lines:?}");
        }
    }

    #[test]
    fn elements_of_forwarded_are_read_as_the_rfc_has_them() {
        let mut proxies = proxies(&["10.0.0.0/8"]);
        proxies.set_header("Forwarded").unwrap();
        for (line, found) in [
            ("for=1.2.3.4, for=203.0.113.5;proto=https;by=10.0.0.1", "203.0.113.5"),
            ("proto=https;For=\"[2001:db8::5]:4711\"", "2001:db8::5"),
            ("for=\"[2001:db8::5]:_port\"", "2001:db8::5"),
            ("for=\"203.0.113.5:80\";ext=\"a, for=1.2.3.4; for=1.2.3.4\"", "203.0.113.5"),
            ("for=\"203.0.113\\.5\"", "203.0.113.5"),
            ("for=1.2.3.4, for=203.0.113.5, for=10.9.9.9", "203.0.113.5"),
            ("nonsense, for=203.0.113.5", "203.0.113.5"),
            // a proxy that does not tell
            ("for=203.0.113.5, for=_hidden", "10.0.0.1"),
            ("for=203.0.113.5, for=\"_hidden:_port\"", "10.0.0.1"),
            ("for=203.0.113.5, for=unknown", "10.0.0.1"),
            ("for=203.0.113.5, for=unknown, for=10.9.9.9", "10.9.9.9"),
            ("for=203.0.113.5, proto=https", "10.0.0.1"),
            // the client's entries must not hide those of the proxy
            ("for=\"1.2.3.4, for=203.0.113.5", "malformed"),
            ("for=\", for=\"203.0.113.5\"", "malformed"),
            ("x=\"\\, for=\"203.0.113.5\"", "malformed"),
            ("for=203.0.113.5;for=203.0.113.6", "malformed"),
            ("for=203.0.113.5;for=203.0.113.5", "malformed"),
            ("for=203.0.113.5, for=", "malformed"),
            ("for=203.0.113.5, ", "malformed"),
            ("for=203.0.113.5, 203.0.113.6", "malformed"),
            ("for=\"203.0.113.5\"x", "malformed"),
            ("for=\"_\"", "malformed"),
            ("", "malformed"),
        ] {
            assert_eq!(client(&proxies, "10.0.0.1", &[("forwarded", line)]), found, "{line}");
            let both = [("forwarded", line), ("x-forwarded-for", "192.0.2.7")];
            assert_eq!(client(&proxies, "10.0.0.1", &both), found, "{line}");
        }
    }

    #[test]
    fn what_a_client_writes_itself_is_not_believed_without_a_proxy_in_between() {
        let proxies = proxies(&["10.0.0.0/8"]);
        for line in ["1.2.3.4", "10.0.0.1", "nonsense"] {
            let forged = ("x-forwarded-for", line);
            assert_eq!(client(&proxies, "203.0.113.5", &[forged]), "peer");
            assert_eq!(client(&TrustedProxies::default(), "203.0.113.5", &[forged]), "peer");
        }
    }

    #[test]
    fn the_other_usual_header_is_noticed_where_the_named_one_is_missing() {
        let mut proxies = proxies(&["10.0.0.0/8"]);
        let peer: IpAddr = "10.0.0.1".parse().unwrap();
        let mut headers = HeaderMap::new();
        assert!(proxies.other_header(&headers, peer).is_none());
        headers.append("forwarded", "for=203.0.113.5".parse().unwrap());
        assert_eq!(proxies.other_header(&headers, peer).unwrap().1, FORWARDED);
        assert!(proxies.other_header(&headers, "203.0.113.5".parse().unwrap()).is_none());
        proxies.set_header("forwarded").unwrap();
        assert!(
            proxies.other_header(&headers, peer).is_none() && proxies.set_header("not a header").is_err()
        );
    }

    #[test]
    fn a_chain_of_any_length_is_read_in_a_bounded_time_and_names_no_client() {
        let proxies = proxies(&["10.0.0.0/8"]);
        let chain = |hops| format!("203.0.113.5,{}", vec!["10.0.0.2"; hops].join(","));
        let find = |hops: usize| {
            let mut headers = HeaderMap::new();
            headers.append("x-forwarded-for", chain(hops).parse().unwrap());
            proxies.find_client(&headers, "10.0.0.1".parse().unwrap())
        };
        assert_eq!(find(MAX_HOPS - 1), ForwardedClient::Address("203.0.113.5".parse().unwrap()));
        assert_eq!((find(MAX_HOPS), find(10_000)), (ForwardedClient::Malformed, ForwardedClient::Malformed));
    }
}
