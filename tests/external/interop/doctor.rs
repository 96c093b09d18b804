//! What `mcp-dev doctor` says of the examples.

use std::process::Command;

use mcp_tests::programs::{child, example, workspace_dir};
use mcp_tests::support::PATIENCE;

use crate::interop::swaps::mcp_dev;

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
        let said = child::run(&mut doctor, "", PATIENCE).expect("a program").or_panic(name);
        assert!(said.contains(" in the budget\n"), "{name}: {said}");
    }
}
