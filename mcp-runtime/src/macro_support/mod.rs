//! Everything that generated code names, and nothing else. Not part of the public API: it changes with the macros, which
//! are pinned to this exact version. A file for each folder of the crate lists what it names there.

mod capability;
mod core;
mod derived;
mod features;
mod schema;
#[cfg(feature = "config")]
mod settings;

pub use ::core::{
    clone::Clone, concat, convert::Into, default::Default, env, file, module_path, ops::Bound,
    option::Option, result::Result,
};

pub use std::{borrow::Cow, boxed::Box};

pub use inventory;
#[cfg(feature = "macros")]
pub use mcp_runtime_macros::TypeAttributes;
pub use schemars;
pub use serde;

pub use self::{capability::*, core::*, features::*, schema::*};
pub use crate::core::layer::item_layer as layer;

#[cfg(feature = "config")]
pub use self::settings::*;

/// Runs an async `main`.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            #[cfg(feature = "client")]
            let future = async {
                crate::client::manage_main();
                let output = future.await;
                // the runtime does not wait for the tasks that would end them
                crate::client::end_children().await;
                output
            };
            let output = runtime.block_on(future);
            // a thread of a `blocking` function that outlives its call must not delay the exit
            runtime.shutdown_background();
            output
        }
        // `main` may have any error type, and nothing runs without a runtime
        Err(e) => panic!("the async runtime cannot be started: {e}"),
    }
}
