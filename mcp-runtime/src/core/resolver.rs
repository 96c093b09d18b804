//! Looks names up, by the operating system, which takes as long as the servers of a name like, and cannot be stopped. Each
//! look-up has a thread of its own. A few run at once, and each holds its turn until its thread returns, even if no one
//! waits for the answer any more.

use std::{
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs as _},
    pin::Pin,
    sync::{Arc, LazyLock},
    thread,
};

use tokio::sync::oneshot;

use crate::core::admission::{Owner, Turns};

/// Look-ups that run at once, in the whole process.
const MAX_LOOK_UPS: usize = 16;

tokio::task_local! {
    /// Who looks names up, if that is not the program: set while a request of theirs is sent.
    static PAYER: Owner;
}

/// The function of a [`Resolver`].
type Resolve =
    dyn Fn(&str) -> Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>> + Send + Sync;

/// Runs what looks names up for an owner, of whose look-ups these are some.
pub(crate) async fn look_up_for<F: Future>(owner: &Owner, request: F) -> F::Output {
    PAYER.scope(owner.clone(), request).await
}

type LookUp = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// Looks names up; clones share their turns.
#[derive(Clone)]
pub(crate) struct Resolver {
    look_up: Arc<LookUp>,
    turns: Arc<Turns>,
}

impl Resolver {
    /// The operating system's, the same for everything in this process.
    pub(crate) fn system() -> Self {
        static SYSTEM: LazyLock<Resolver> =
            LazyLock::new(|| Resolver::new(|name| Ok((name, 0).to_socket_addrs()?.collect())));
        SYSTEM.clone()
    }

    /// One that looks names up by this function, with turns of its own.
    pub(crate) fn new(look_up: impl Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static) -> Self {
        Self { look_up: Arc::new(look_up), turns: Turns::new(MAX_LOOK_UPS, 50) }
    }

    /// The resolver as a function. Its look-ups are the program's, except inside of [`look_up_for`].
    pub(crate) fn into_function(self) -> Arc<Resolve> {
        Arc::new(move |name| {
            let payer = PAYER.try_with(Owner::clone).unwrap_or_else(|_| Owner::local());
            let (resolver, name) = (self.clone(), name.to_owned());
            Box::pin(async move { resolver.addresses(&payer, &name).await })
        })
    }

    /// The addresses of a name, when it is the owner's turn; their ports are zero.
    ///
    /// # Errors
    /// The look-up fails.
    pub(crate) async fn addresses(&self, owner: &Owner, name: &str) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = name.parse::<IpAddr>() {
            return Ok(vec![(address, 0).into()]);
        }
        let turn = self.turns.wait(owner, name).await;
        let (look_up, name) = (self.look_up.clone(), name.to_owned());
        let (sender, answer) = oneshot::channel();
        thread::Builder::new().name("mcp-look-up".into()).spawn(move || {
            let _turn = turn;
            // the one who asked may have gone
            drop(sender.send(look_up(&name)));
        })?;
        answer.await.unwrap_or_else(|_| Err(io::Error::other("the look-up has panicked")))
    }
}
