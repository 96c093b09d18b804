//! A ZIP archive of files with modes: the same bytes for the same files, since all have the first time that an archive can
//! have. A crate for archives would bring ten others, a second `syn` among them, for these two records.

use std::io::Write as _;

use flate2::{Compression, Crc, write::DeflateEncoder};

use crate::Failure;

/// What reads it must know: version 2.0, for deflate.
const VERSION: u16 = 20;
/// Made by version 2.0 on Unix, whose modes the directory has.
const MADE_BY: u16 = (3 << 8) | VERSION;
const DEFLATED: u16 = 8;
/// The first of January 1980.
const DATE: u16 = (1 << 5) | 1;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
/// That a mode is of a file.
const REGULAR_FILE: u32 = 0o100_000;

#[derive(Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    count: u16,
}

impl Archive {
    /// # Errors
    /// The archive is larger than 4 GiB, which needs another format.
    pub(super) fn add(&mut self, path: &str, bytes: &[u8], mode: u32) -> Result<(), Failure> {
        let mut crc = Crc::new();
        crc.update(bytes);
        let mut deflated = DeflateEncoder::new(Vec::new(), Compression::default());
        deflated.write_all(bytes)?;
        let deflated = deflated.finish()?;
        let mut shared = Vec::new();
        for number in [VERSION, FLAGS, DEFLATED, 0, DATE] {
            shared.extend(number.to_le_bytes());
        }
        for number in [crc.sum(), size(deflated.len())?, size(bytes.len())?] {
            shared.extend(number.to_le_bytes());
        }
        shared.extend(u16::try_from(path.len())?.to_le_bytes());
        // nothing extra
        shared.extend(0_u16.to_le_bytes());
        let start = size(self.bytes.len())?;
        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(&shared);
        self.bytes.extend(path.as_bytes());
        self.bytes.extend(&deflated);
        self.directory.extend(b"PK\x01\x02");
        self.directory.extend(MADE_BY.to_le_bytes());
        self.directory.extend(&shared);
        // comment, disk, and inner attributes
        self.directory.extend([0; 6]);
        self.directory.extend(((REGULAR_FILE | mode) << 16).to_le_bytes());
        self.directory.extend(start.to_le_bytes());
        self.directory.extend(path.as_bytes());
        self.count += 1;
        Ok(())
    }

    /// # Errors
    /// The archive is larger than 4 GiB.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, Failure> {
        let (start, length) = (size(self.bytes.len())?, size(self.directory.len())?);
        self.bytes.extend(&self.directory);
        self.bytes.extend(b"PK\x05\x06");
        self.bytes.extend([0; 4]);
        for _on_disk_and_in_all in 0..2 {
            self.bytes.extend(self.count.to_le_bytes());
        }
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend(start.to_le_bytes());
        // no comment
        self.bytes.extend(0_u16.to_le_bytes());
        Ok(self.bytes)
    }
}

fn size(length: usize) -> Result<u32, Failure> {
    u32::try_from(length).map_err(|_| "a bundle larger than 4 GiB cannot be made".into())
}
