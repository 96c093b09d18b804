//! Long outputs: a call returns the end of the output and a link to all of it, which the client reads in parts.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use mcp_runtime::{ServerHandle, ToolResult, content::ResourceLink, prelude::*, resource::ListedResource};

use super::process::Finished;

/// The bytes of output that are sent with the reply itself.
const INLINE: usize = 4 << 10;
/// The outputs that are kept; the oldest go first.
const KEPT: usize = 16;

/// The long outputs of the last runs.
#[derive(Debug, Default)]
pub(crate) struct Outputs(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    next_id: u64,
    outputs: VecDeque<(u64, Arc<str>)>,
}

impl Outputs {
    fn add(&self, output: &str) -> u64 {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.next_id += 1;
        let id = kept.next_id;
        if kept.outputs.len() == KEPT {
            kept.outputs.pop_front();
        }
        kept.outputs.push_back((id, output.into()));
        id
    }

    fn get(&self, id: u64) -> Option<Arc<str>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.outputs.iter().find(|(other, _)| *other == id).map(|(_, output)| output.clone())
    }

    fn all(&self) -> Vec<(u64, usize)> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.outputs.iter().map(|(id, output)| (*id, output.len())).collect()
    }

    /// What a tool returns for a run.
    pub(crate) fn reply(&self, run: Finished, ctx: &Context) -> Result<ToolResult, ToolError> {
        let Finished { status, mut output, is_cut } = run;
        if is_cut {
            output.push_str("\n… and more, which was not kept\n");
        }
        let mut reply = if output.len() <= INLINE {
            ToolResult::text(output)
        } else {
            let start = (output.len() - INLINE..).find(|at| output.is_char_boundary(*at)).unwrap_or_default();
            let id = self.add(&output);
            if let Some(server) = ctx.state::<ServerHandle>() {
                server.resources_changed();
            }
            let link = ResourceLink::new(format!("output://{id}"), format!("the whole output of run {id}"))
                .mime("text/plain")
                .size(output.len() as u64);
            ToolResult::text(format!("[the last {INLINE} bytes]\n{}", &output[start..])).with(link)
        };
        if !status.success() {
            // a model can act on an exit status, so it is shown with the output
            reply = reply.with(format!("the program failed: {status}")).failed();
        }
        Ok(reply)
    }
}

fn outputs(outputs: &Outputs) -> Vec<ListedResource> {
    let listed =
        |(id, size)| ListedResource::new(format!("output://{id}"), format!("run {id}")).size(size as u64);
    outputs.all().into_iter().map(listed).collect()
}

/// The output of a run, or some of its lines.
#[mcp_resource(uri = "output://{id}{?from,lines}", mime = "text/plain", list = outputs)]
pub(crate) fn output(
    id: u64,
    /// The first line
    #[mcp(default = 1, range(1..))]
    from: usize,
    /// How many lines
    #[mcp(default = 100_000, range(1..=100_000))]
    lines: usize,
    outputs: &Outputs,
) -> Option<String> {
    let output = outputs.get(id)?;
    Some(output.split_inclusive('\n').skip(from - 1).take(lines).collect())
}
