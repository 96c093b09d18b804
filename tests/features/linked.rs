//! What a program contains: modules of the crate, by the symbols that `nm` lists, and bytes, by what `size` counts.

use std::process::Command;

/// Fails if the program has more than 3 % more code and data, without its symbols, than so many bytes: then look for what it
/// contains and does not name, or write the new number here if it does. 10 % less is worth writing down as well.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) fn assert_size(program: &str, bytes: u64) {
    let listed = Command::new("size").arg(program).output();
    let listed = listed.expect("`size`, which the package `binutils` has");
    let listed = String::from_utf8_lossy(&listed.stdout);
    // two lines: the names of the columns, of which the first ones are `text` and `data`, and the numbers
    let numbers = listed.lines().nth(1).unwrap_or_default().split_whitespace();
    let found: u64 = numbers.take(2).map(|number| number.parse::<u64>().expect("a number")).sum();
    let bounds = bytes - bytes / 10..=bytes + bytes * 3 / 100;
    assert!(bounds.contains(&found), "{found} bytes, and {bytes} are expected");
}

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
