//! Functions that feed arbitrary bytes to the code that reads untrusted input. `cargo fuzz` (`tests/fuzz`) calls them, and
//! a test calls them with the recorded findings and with random changes of those. Each function is beside the code that it
//! checks, or in the folder `tests` beside that, and panics if a promise is broken.
//!
//! Compiled for tests, and with the feature `_fuzzing`, which no other feature has.

#[cfg(test)]
mod changes;
mod envelope;
mod schema;

/// A function to call with any bytes.
#[derive(Debug)]
pub struct Target {
    /// The name of the folder of its seeds, and of its program in `tests/fuzz`.
    pub name: &'static str,
    /// Panics if a promise is broken.
    pub run: fn(&[u8]),
}

inventory::collect!(Target);

/// Calls the target of this name.
///
/// # Panics
/// The target does not exist, or a promise is broken.
pub fn run(name: &str, data: &[u8]) {
    let target = inventory::iter::<Target>().find(|target| target.name == name);
    (target.unwrap_or_else(|| panic!("the target `{name}` does not exist")).run)(data);
}

/// Text, and what follows its first NUL.
#[must_use]
pub fn halves(data: &[u8]) -> Option<(&str, &str)> {
    std::str::from_utf8(data).ok()?.split_once('\0')
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::{
        changes::{Numbers, change},
        *,
    };

    /// How many changes of each seed are tried.
    const CHANGES: usize = 150;

    #[test]
    fn every_target_keeps_its_promises_for_its_seeds_and_for_changes_of_them() {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/fuzzing/seeds");
        for target in inventory::iter::<Target>() {
            let folder = seeds.join(target.name);
            let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
            paths.sort();
            let found: Vec<_> = paths.iter().map(|path| fs::read(path).expect("a seed")).collect();
            assert!(!found.is_empty(), "`{}` has no seeds", target.name);
            let mut numbers = Numbers(1);
            for seed in &found {
                (target.run)(seed);
                for _ in 0..CHANGES {
                    let data = change(seed, &found, &mut numbers);
                    let text = data.clone();
                    // the panic's message names the promise; this one names the bytes
                    let kept = std::panic::catch_unwind(|| (target.run)(&data));
                    assert!(kept.is_ok(), "`{}` with {:?}", target.name, String::from_utf8_lossy(&text));
                }
            }
        }
    }
}
