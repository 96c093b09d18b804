//! The program is built with no more features than its own by `cargo test -p mcp-feature-client`.

use std::process::Command;

#[test]
fn a_client_with_no_other_feature_starts_a_server_and_calls_it() {
    let output = Command::new(env!("CARGO_BIN_EXE_mcp-feature-client")).output().expect("the client");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "feature-client 3\n");
}
