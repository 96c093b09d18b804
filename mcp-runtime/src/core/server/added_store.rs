//! What an addition keeps in the store of its server, in tables of its own, and what it seals with the server's keys. Both
//! are there as soon as the server is built, and hold also for replicas that share a store.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use super::{Addition, Assembly, Error, Named, Result, Server, ServerHandle};
use crate::core::{
    build_error::BuildError,
    config::LONGEST,
    connection::Principal,
    crypto::{KeyRing, Seal},
    store::{Found, SealedStore, Table, Value, Write, Written},
};

/// Purpose of the key that seals for additions.
const PURPOSE: &str = "mcp-runtime addition 1";

/// The store and the keys of a server for one addition, see [`Addition::with_store`]; clones are the same.
///
/// Before the server is built, nothing can be kept or sealed. It does not keep the server alive.
#[derive(Clone)]
pub struct AddedStore(Arc<Place>);

struct Place {
    name: String,
    built: OnceLock<Built>,
}

/// What a server has when it is built.
struct Built {
    store: SealedStore,
    keys: KeyRing,
    seal: Seal,
    handle: ServerHandle,
}

const OF_STORES: Named =
    Named { key: "stores", open: check, mount: |outer, _, inner| outer.add_all::<AddedStore>(inner.added()) };

/// Adds what is wrong with the names to the errors.
fn check(assembly: &mut Assembly<'_>) {
    let stores = assembly.parts.options.added::<AddedStore>();
    for (number, AddedStore(place)) in stores.iter().enumerate() {
        let (name, before) = (&place.name, stores.get(..number).unwrap_or_default());
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !name.bytes().all(is_plain) || before.iter().any(|other| other.0.name == *name) {
            assembly.errors.push(BuildError::new(format!(
                "`{name}` cannot be the name of the store of an addition\n\
                 give it one of letters, digits and `-_.` that no other addition has"
            )));
        }
    }
}

impl Addition {
    /// Adds what `make` makes of the addition's part of the server's store and keys: values in tables of its own, which are
    /// in memory, or in the [store](crate::ServerBuilder::shared) that replicas share; and texts that clients keep, sealed
    /// with the [keys](crate::config::Stores::keys) of the server. `name` is that of the addition, once in a server; with
    /// another name, nothing that was kept or sealed before is found.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use mcp_runtime::{
    ///     addition::Addition,
    ///     store::{Condition, Table, Write},
    ///     testing::TestServer,
    ///     tool::{ToolCall, ToolDef},
    /// };
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> mcp_runtime::Result<()> {
    /// let once = Addition::with_store("once", |store| {
    ///     let table = Table::new("claims", 1_000, 64 << 10, 10);
    ///     let claim = ToolDef::builder("claim").handler(move |_: ToolCall| {
    ///         let (store, table) = (store.clone(), table.clone());
    ///         async move {
    ///             let day = Duration::from_secs(24 * 60 * 60);
    ///             let write = Write { bytes: b"", owner: "all", expires_in: day, condition: Condition::Absent };
    ///             store.put(&table, "today", write).await.map(|written| format!("{written:?}"))
    ///         }
    ///     });
    ///     Addition::new().and(claim)
    /// });
    /// let server = TestServer::new(mcp_runtime::server!().add(once))?;
    /// server.call("claim", json!({})).await.expect_text("Stored");
    /// server.call("claim", json!({})).await.expect_text("Conflict");
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_store(name: impl Into<String>, make: impl FnOnce(AddedStore) -> Self) -> Self {
        let store = AddedStore(Arc::new(Place { name: name.into(), built: OnceLock::new() }));
        let made = make(store.clone());
        Self::of(|builder| {
            builder.open_on_build(OF_STORES);
            builder.options.add_all(vec![store]);
        })
        .and(made)
    }
}

impl AddedStore {
    /// Gives additions the store and the keys of a server that is built.
    pub(super) fn fill_all(server: &Server) {
        for Self(place) in server.options().added::<Self>() {
            let (store, keys) = (server.store().clone(), server.keys().clone());
            let handle = ServerHandle::new(Arc::downgrade(&server.0));
            let _first = place.built.set(Built { seal: Seal::new(&keys, PURPOSE), store, keys, handle });
        }
    }

    fn built(&self) -> Result<&Built> {
        let unbuilt =
            || Error::from(format!("the server of the addition `{}` is not built yet", self.0.name));
        self.0.built.get().ok_or_else(unbuilt)
    }

    fn table(&self, table: &Table) -> Table {
        table.renamed(&format!("added/{}/{}", self.0.name, table.name()))
    }

    /// The value that a table of the addition has for a key, and its version.
    ///
    /// # Errors
    /// The store cannot be read, or another version of this crate has written the value; or the server is not built.
    pub async fn get(&self, table: &Table, key: &str) -> Result<Option<Value>> {
        match self.built()?.store.find(&self.table(table), key).await? {
            Found::Value(value) => Ok(Some(value)),
            Found::Nothing => Ok(None),
            Found::OtherVersion => Err("another version has written the value".into()),
        }
    }

    /// Puts a value into a table of the addition, if its condition and the limits of the table allow that. Of the table,
    /// each owner may have the share that it names. A value is kept for a year at most.
    ///
    /// # Errors
    /// The store cannot be reached: it is not known whether the value was put. Or the server is not built.
    pub async fn put(&self, table: &Table, key: &str, write: Write<'_>) -> Result<Written> {
        // no owner is the only one, which would have all of a table
        let (owner, expires_in) = (format!("of {}", write.owner), write.expires_in.min(LONGEST));
        let write = Write { owner: &owner, expires_in, ..write };
        Ok(self.built()?.store.put(&self.table(table), key, write).await?)
    }

    /// Removes a value from a table of the addition, if there is one.
    ///
    /// # Errors
    /// The store cannot be reached, or the server is not built.
    pub async fn remove(&self, table: &Table, key: &str) -> Result<()> {
        Ok(self.built()?.store.remove(&self.table(table), key).await?)
    }

    /// Seals bytes as text of letters, digits, `-` and `_`: it cannot be read or changed without the keys of the server, and
    /// it opens for this purpose and this owner alone. The same bytes give another text each time.
    ///
    /// # Errors
    /// The operating system provides no randomness, or the server is not built.
    pub fn seal(&self, purpose: &str, owner: &str, plain: &[u8]) -> Result<String> {
        let sealed = self.built()?.seal.seal(plain, &self.bound(purpose, owner));
        sealed.map_err(|_| "the bytes cannot be sealed".into())
    }

    /// Opens what [`seal`](Self::seal) has sealed for the same purpose and owner, with any of the server's keys; `None` for
    /// everything else. A text can be opened any number of times: what it is good for once, or until when, is for the caller
    /// to say.
    #[must_use]
    pub fn open(&self, purpose: &str, owner: &str, sealed: &str) -> Option<Vec<u8>> {
        let opened = self.0.built.get()?.seal.open(sealed.as_bytes(), &self.bound(purpose, owner));
        opened.map(|opened| opened.plain)
    }

    /// The data that a text is bound to.
    fn bound(&self, purpose: &str, owner: &str) -> Vec<u8> {
        let mut bound = Vec::new();
        for part in [self.0.name.as_str(), purpose, owner] {
            bound.extend((part.len() as u64).to_le_bytes());
            bound.extend(part.as_bytes());
        }
        bound
    }

    /// Whether replicas share what is kept.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.0.built.get().is_some_and(|built| built.store.is_shared())
    }

    /// Whether the server has [keys](crate::config::Stores::keys): with the random one that it has otherwise, nothing that
    /// was sealed opens after a restart.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        self.0.built.get().is_some_and(|built| !built.keys.is_random())
    }

    /// Ends the open streams of a principal, see [`ServerHandle::end_streams_of`].
    pub fn end_streams_of(&self, principal: &Principal) {
        if let Some(built) = self.0.built.get() {
            built.handle.end_streams_of(principal);
        }
    }
}

impl fmt::Debug for AddedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddedStore").field("name", &self.0.name).finish_non_exhaustive()
    }
}
