//! Programs as tools, described by a file: their output is progress, cancelling a call kills them, and a long output is
//! linked instead of sent.
//!
//! ```sh
//! cargo run --example runner -- list
//! cargo run --example runner -- call grep '{"pattern": "fn main", "folder": "examples"}'
//! RUNNER_TOOLS=my-tools.json cargo run --example runner
//! ```
//!
//! The file is `RUNNER_TOOLS`, or else `examples/runner/tools.json`. It is loaded again when it changes.

mod output;
mod process;
mod tools;

use std::{path::PathBuf, sync::Arc, thread, time::Duration};

use mcp_runtime::ServerBuilder;

pub(crate) use output::Outputs;
pub(crate) use tools::ToolFile;

/// How often the file is checked for changes.
const WATCH: Duration = Duration::from_millis(500);

pub(crate) fn server(file: &mut ToolFile, outputs: &Arc<Outputs>) -> Result<ServerBuilder, tools::FileError> {
    let server = mcp_runtime::server!()
        .info(|info| info.name("runner"))
        .resource::<output::output>()
        .state(outputs.clone());
    Ok(file.load(outputs)?.into_iter().fold(server, ServerBuilder::add))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path =
        std::env::var_os("RUNNER_TOOLS").map_or_else(|| "examples/runner/tools.json".into(), PathBuf::from);
    let outputs = Arc::new(Outputs::default());
    let mut file = ToolFile::new(path);
    server(&mut file, &outputs)?
        .with_handle(move |handle| {
            thread::spawn(move || {
                loop {
                    thread::sleep(WATCH);
                    if file.has_changed()
                        && let Err(error) = file.reload(&handle, &outputs)
                    {
                        // the old tools stay
                        eprintln!("{error}");
                    }
                }
            });
        })
        .run()?;
    Ok(())
}
