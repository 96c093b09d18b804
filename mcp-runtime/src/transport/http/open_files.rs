//! How many connections the process can hold: each is a file to the operating system, which limits those.

/// Files that the rest of the program may need at least.
const MIN_RESERVED: usize = 32;

/// How many connections can be accepted, at most `configured`.
pub(super) fn max_connections(configured: usize) -> usize {
    let connections = open_file_limit().map_or(configured, |limit| within(limit, configured));
    if connections < configured {
        tracing::info!(
            connections,
            configured,
            "fewer connections are accepted than configured: the process may not open more files\n\
             raise its limit on open files (`ulimit -n`)"
        );
    }
    connections
}

/// An eighth of the files is reserved for the rest of the program.
fn within(limit: usize, configured: usize) -> usize {
    let reserved = (limit / 8).max(MIN_RESERVED);
    configured.min(limit.saturating_sub(reserved)).max(1)
}

/// How many files the process may have open; `None` if that is not limited, or not known.
fn open_file_limit() -> Option<usize> {
    #[cfg(unix)]
    {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        limit.current.and_then(|limit| usize::try_from(limit).ok())
    }
    #[cfg(not(unix))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_files_are_left_for_the_rest_of_the_program() {
        assert_eq!((within(1024, 4096), within(256, 4096), within(64, 4096)), (896, 224, 32));
        assert_eq!((within(1 << 20, 4096), within(1024, 100), within(10, 100)), (4096, 100, 1));
    }
}
