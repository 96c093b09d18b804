//! What `mcp-dev doctor` says of the examples.

use std::{process::Command, time::Duration};

use mcp_tests::programs::{child, example, workspace_dir};

use crate::interop::swaps::mcp_dev;

const LIMIT: Duration = Duration::from_secs(120);

/// Those with items, which are served over stdio without arguments; but for `everything`, in which a tool of the conformance
/// suite has what clients refuse.
const EXAMPLES: [&str; 10] =
    ["app", "content", "convert", "events", "notes", "repo", "runner", "service", "state", "tenants"];

#[test]
fn the_examples_have_nothing_that_clients_refuse() {
    let dev = mcp_dev();
    for name in EXAMPLES {
        let mut doctor = Command::new(&dev);
        // `runner` reads a file of the workspace
        doctor.args(["doctor", "--"]).arg(example::binary(name)).current_dir(workspace_dir());
        let said = child::run(&mut doctor, "", LIMIT).expect("a program").or_panic(name);
        assert!(said.contains(" in the budget\n"), "{name}: {said}");
    }
}
