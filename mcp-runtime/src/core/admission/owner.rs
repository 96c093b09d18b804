//! Whose share of a limit a request uses: the principal's if callers are identified, else that of the client's address.

use std::{
    net::IpAddr,
    sync::{Arc, LazyLock},
};

/// The owner of a share of each limit. Owners say nothing about permissions: clients behind one address are one owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Owner(Arc<str>);

static LOCAL: LazyLock<Owner> = LazyLock::new(|| Owner("local".into()));
static ANONYMOUS: LazyLock<Owner> = LazyLock::new(|| Owner("anonymous".into()));

impl Owner {
    /// The only owner there is: the host on stdio, the peers of byte streams, and HTTP clients where neither principals
    /// nor addresses are known. Its share is everything.
    pub(crate) fn local() -> Self {
        LOCAL.clone()
    }

    /// All anonymous clients together, where callers are identified, but addresses are not known.
    pub(crate) fn anonymous() -> Self {
        ANONYMOUS.clone()
    }

    /// A principal, by its digest.
    pub(crate) fn principal(digest: Arc<str>) -> Self {
        Self(digest)
    }

    /// The clients behind an address. Of an IPv6 address the network counts: one host has all of its addresses.
    pub(crate) fn address(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.to_string().into()),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self(format!("{a:x}:{b:x}:{c:x}:{d:x}::/64").into())
            }
        }
    }

    /// The owner that [`as_str`](Self::as_str) was called on, as a store read it back.
    pub(crate) fn from_text(text: Arc<str>) -> Self {
        Self(text)
    }

    pub(crate) fn as_str(&self) -> &Arc<str> {
        &self.0
    }

    /// Whether no limit is shared with others.
    pub(super) fn is_alone(&self) -> bool {
        *self == *LOCAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_is_one_owner_whichever_of_its_addresses_it_uses() {
        let of = |address: &str| Owner::address(address.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::7"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
