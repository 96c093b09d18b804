//! `cargo test -p mcp-feature-neighbours` builds the program with no more features than its own. Those of the whole
//! workspace show the same: no other member chooses a provider of rustls.

use std::process::Command;

#[test]
fn other_users_of_tls_do_not_notice_the_features_auth_and_client() {
    let output = Command::new(env!("CARGO_BIN_EXE_mcp-feature-neighbours")).output().expect("the program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "hello\n");
}
