//! Which modules of the crate a program contains, by the symbols that `nm` lists.

use std::process::Command;

/// Fails if something of these modules is in the program. Something of `present` must be: else the list cannot be read.
pub(crate) fn assert_not_linked(program: &str, modules: &[&str], present: &str) {
    let listed = Command::new("nm").arg(program).output();
    let listed = listed.expect("`nm`, which the package `binutils` has");
    let symbols = String::from_utf8_lossy(&listed.stdout);
    // in a mangled name, an identifier stands after its length
    let of_module = |module: &str| {
        let path: String = module.split("::").map(|name| format!("{}{name}", name.len())).collect();
        let in_crate = format!("11mcp_runtime{path}");
        symbols.lines().filter(|line| line.contains(&in_crate)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(!of_module(present).is_empty(), "the symbols cannot be read: {}", listed.status);
    for module in modules {
        assert_eq!(of_module(module), [""; 0], "`{module}` is linked");
    }
}
