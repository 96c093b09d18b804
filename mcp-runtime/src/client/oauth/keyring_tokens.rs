//! Tokens in the system's keyring, by the `keyring-core` crate: the program chooses which one, such as the Secret Service,
//! Keychain Services or the Windows Credential Manager.

use std::{io, path::PathBuf};

use keyring_core::Entry;
use serde_json::Value;

use super::{TokenStore, token_store::lock_file};

/// Keeps tokens in the system's keyring (feature `client-keyring`), as one password for each server. Before a client uses
/// it, the program sets the keyring: `keyring_core::set_default_store`, with a store of a crate for the platform.
///
/// Some keyrings are small: the Windows Credential Manager takes at most 2,560 bytes, which long tokens exceed.
///
/// ```no_run
/// use mcp_runtime::client::{Client, KeyringTokens, OAuth};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// // keyring_core::set_default_store(..);
/// let tokens = KeyringTokens::new("my-client", "my-client.lock");
/// let oauth = OAuth::loopback(0, |url| eprintln!("visit {url}"))?.store(tokens);
/// let server = Client::builder().oauth(oauth).connect("https://example.com/mcp").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct KeyringTokens {
    service: String,
    lock: PathBuf,
}

impl KeyringTokens {
    /// Uses entries of this service, the program's name in the keyring. `lock` is a file, made when it is needed and left
    /// empty, with which only one process at a time renews tokens: keyrings have no locks.
    pub fn new(service: impl Into<String>, lock: impl Into<PathBuf>) -> Self {
        Self { service: service.into(), lock: lock.into() }
    }

    fn entry(&self, server: &str) -> io::Result<Entry> {
        Entry::new(&self.service, server).map_err(|error| not_kept(&error))
    }
}

/// The kind of an error; its other details may have what was to be kept.
fn not_kept(error: &keyring_core::Error) -> io::Error {
    let what = match error {
        keyring_core::Error::NoDefaultStore => "the program has set no keyring",
        keyring_core::Error::NoStorageAccess(_) => "the keyring cannot be accessed",
        keyring_core::Error::TooLong(..) => "the tokens are too long for the keyring",
        keyring_core::Error::NoEntry => "the keyring has no such entry",
        _ => "the keyring failed",
    };
    io::Error::other(what)
}

impl TokenStore for KeyringTokens {
    fn load(&self, server: &str) -> io::Result<Option<Value>> {
        match self.entry(server)?.get_password() {
            Ok(text) => serde_json::from_str(&text)
                .map(Some)
                .map_err(|_| io::Error::other("the entry of the keyring is not of this program")),
            Err(keyring_core::Error::NoEntry) => Ok(None),
            Err(error) => Err(not_kept(&error)),
        }
    }

    fn save(&self, server: &str, kept: &Value) -> io::Result<()> {
        self.entry(server)?.set_password(&kept.to_string()).map_err(|error| not_kept(&error))
    }

    fn lock(&self) -> io::Result<Box<dyn Send>> {
        Ok(Box::new(lock_file(&self.lock)?))
    }
}
