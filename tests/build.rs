//! Takes the blocks with `#[test]` functions (`rust,test_harness`) out of the pages of the guide: rustdoc compiles each of them alone,
//! with the runtime. Here they become modules of the test `integration`; `lib.rs` has the pages without them.

use std::{env, fs, path::Path};

/// The pages that have such blocks; those of others are left to rustdoc.
const PAGES: [&str; 7] =
    ["additions", "authentication", "behind-a-proxy", "deploy", "from-rmcp", "server-card", "testing"];
const START: &str = "```rust,test_harness\n";

fn main() {
    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    let out = Path::new(&out);
    let mut modules = String::new();
    for page in PAGES {
        let path = format!("../docs/{page}.md");
        println!("cargo::rerun-if-changed={path}");
        let text = fs::read_to_string(&path).expect("a page");
        for (at, _) in text.match_indices(START) {
            let line = 1 + text[..at].lines().count();
            let (block, _) = text[at + START.len()..].split_once("\n```\n").expect("the end of a block");
            let name = page.replace('-', "_");
            modules += &format!(
                "/// Line {line} of the page.\n#[allow(unused)]\nmod {name}_{line} {{\n{block}\n}}\n"
            );
        }
        // every line keeps its number
        fs::write(out.join(page).with_extension("md"), text.replace(START, "```text\n")).expect("a page");
    }
    fs::write(out.join("pages.rs"), modules).expect("the modules");
}
