//! Descriptions of APIs and arguments of their calls, as `cargo fuzz` makes them: the seeds, and random changes of them.

use std::{fs, panic::catch_unwind, path::Path};

#[path = "../fuzz/openapi.rs"]
mod openapi;

use super::sessions::changes::{Numbers, change};

/// How many changes of each seed are tried.
const CHANGES: usize = 40;

fn play(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let files = fs::read_dir(folder).expect("the seeds");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    let seeds: Vec<_> = paths.iter().map(|path| fs::read(path).expect("a seed")).collect();
    assert!(!seeds.is_empty());
    let mut numbers = Numbers(1);
    for seed in &seeds {
        run(seed);
        for _ in 0..CHANGES {
            let data = change(seed, &seeds, &mut numbers);
            assert!(catch_unwind(|| run(&data)).is_ok(), "{:?}", String::from_utf8_lossy(&data));
        }
    }
}

#[test]
fn a_random_description_of_an_api_is_refused_or_becomes_a_server() {
    play("descriptions", openapi::descriptions);
}

#[test]
fn random_arguments_change_no_other_part_of_a_request() {
    play("api_requests", openapi::api_requests);
}
