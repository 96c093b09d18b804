//! Sessions that bytes describe, as `cargo fuzz` plays them: those that were found, and random changes of them.

use std::{fs, panic::catch_unwind, path::Path};

#[path = "../../mcp-runtime/src/tests/fuzzing/changes.rs"]
pub(crate) mod changes;
#[path = "../fuzz/session/mod.rs"]
mod session;

use changes::{Numbers, change};

/// How many changes of each session are played.
const CHANGES: usize = 4;

#[test]
fn every_request_of_a_random_session_gets_one_response_and_no_permit_is_lost() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/sessions");
    let files = fs::read_dir(folder).expect("the seeds");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    let seeds: Vec<_> = paths.iter().map(|path| fs::read(path).expect("a seed")).collect();
    assert!(!seeds.is_empty());
    let mut numbers = Numbers(1);
    for seed in &seeds {
        session::play(seed);
        for _ in 0..CHANGES {
            let data = change(seed, &seeds, &mut numbers);
            assert!(catch_unwind(|| session::play(&data)).is_ok(), "the session {data:?}");
        }
    }
}
