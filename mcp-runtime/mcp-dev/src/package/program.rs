//! A built program, and what it runs on. A file for another system or processor than its target is refused by its header,
//! since most of them cannot be started on the machine that packages them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::ArgMatches;
use serde_json::Value;
use tokio::{process::Command, runtime::Runtime};

use crate::{Failure, server::printed_schema};

pub(super) struct Program {
    /// As Node names it: `darwin`, `linux` or `win32`.
    pub(super) system: &'static str,
    /// As Node names them: `x64` and `arm64`, one or both.
    pub(super) processors: &'static [&'static str],
    pub(super) is_musl: bool,
    pub(super) bytes: Vec<u8>,
    path: PathBuf,
}

/// The target of this machine.
pub(super) fn this_machine() -> String {
    let arch = std::env::consts::ARCH;
    match std::env::consts::OS {
        "macos" => format!("{arch}-apple-darwin"),
        "windows" => format!("{arch}-pc-windows-msvc"),
        _ if cfg!(target_env = "musl") => format!("{arch}-unknown-linux-musl"),
        _ => format!("{arch}-unknown-linux-gnu"),
    }
}

/// A profile of cargo.
#[derive(Clone, Copy)]
pub(super) struct Profile<'a>(&'a str);

impl<'a> Profile<'a> {
    pub(super) fn of(arguments: &'a ArgMatches) -> Self {
        Self(arguments.get_one::<String>("profile").map_or("release", String::as_str))
    }

    /// Its folder in that of a target.
    pub(super) fn folder(self) -> &'a str {
        match self.0 {
            "dev" | "test" => "debug",
            "bench" => "release",
            other => other,
        }
    }
}

impl Program {
    /// # Errors
    /// The target is not known, or the file cannot be read or is another target's.
    pub(super) fn read(triple: &str, path: &Path, profile: Profile<'_>) -> Result<Self, Failure> {
        let processors: &[&str] = match triple.split('-').next().unwrap_or_default() {
            "x86_64" => &["x64"],
            "aarch64" => &["arm64"],
            "universal" if triple == "universal-apple-darwin" => &["arm64", "x64"],
            _ => return Err(unknown(triple)),
        };
        let system = match triple {
            _ if triple.ends_with("-apple-darwin") => "darwin",
            _ if triple.contains("-pc-windows-") => "win32",
            _ if triple.contains("-linux-gnu") || triple.contains("-linux-musl") => "linux",
            _ => return Err(unknown(triple)),
        };
        let bytes = fs::read(path).map_err(|error| {
            format!(
                "`{}` cannot be read: {error}\n`cargo build --profile {} --target {triple}` makes it",
                path.display(),
                profile.0
            )
        })?;
        match header(&bytes) {
            Some((found, of)) if found == system && processors.iter().all(|own| of.contains(own)) => {}
            Some((found, of)) => {
                return Err(format!(
                    "`{}` is for {found} on {}, not for {triple}",
                    path.display(),
                    of.join(" and ")
                )
                .into());
            }
            None => return Err(format!("`{}` is not a program for {triple}", path.display()).into()),
        }
        Ok(Self { system, processors, is_musl: triple.contains("-musl"), bytes, path: path.to_owned() })
    }

    /// Such as `linux-x64`, `linux-x64-musl` and `darwin-universal`.
    pub(super) fn platform(&self) -> String {
        let processor = match self.processors {
            [one] => one,
            _ => "universal",
        };
        format!("{}-{processor}{}", self.system, if self.is_musl { "-musl" } else { "" })
    }

    pub(super) fn suffix(&self) -> &'static str {
        if self.system == "win32" { ".exe" } else { "" }
    }

    pub(super) fn is_of_this_machine(&self) -> bool {
        let system = match std::env::consts::OS {
            "macos" => "darwin",
            "windows" => "win32",
            other => other,
        };
        let processor = match std::env::consts::ARCH {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            other => other,
        };
        self.system == system && self.processors.contains(&processor)
    }

    /// What the server says about itself.
    ///
    /// # Errors
    /// It fails, takes too long, or prints something else.
    pub(super) fn schema(&self) -> Result<Value, Failure> {
        let command = Command::new(self.path.canonicalize()?);
        Runtime::new()?.block_on(printed_schema(command))
    }
}

fn unknown(triple: &str) -> Failure {
    format!("`{triple}` is not a target that packages are made for: x86_64 and aarch64 of macOS, Windows and Linux (gnu, musl), and universal-apple-darwin").into()
}

/// System and processors of a program, by its first bytes.
fn header(bytes: &[u8]) -> Option<(&'static str, Vec<&'static str>)> {
    let at = |place: usize, length: usize| bytes.get(place..place.checked_add(length)?);
    let little = |place: usize| Some(u32::from_le_bytes(at(place, 4)?.try_into().ok()?));
    let big = |place: usize| Some(u32::from_be_bytes(at(place, 4)?.try_into().ok()?));
    let of_mac = |processor: u32| match processor {
        0x0100_0007 => Some("x64"),
        0x0100_000c => Some("arm64"),
        _ => None,
    };
    if at(0, 4)? == b"\x7fELF" {
        let processor = match at(18, 2)? {
            [0x3e, 0] => "x64",
            [0xb7, 0] => "arm64",
            _ => return None,
        };
        return Some(("linux", vec![processor]));
    }
    if at(0, 2)? == b"MZ" {
        let place = little(0x3c)? as usize;
        let processor = match at(place, 6)? {
            [b'P', b'E', 0, 0, 0x64, 0x86] => "x64",
            [b'P', b'E', 0, 0, 0x64, 0xaa] => "arm64",
            _ => return None,
        };
        return Some(("win32", vec![processor]));
    }
    match big(0)? {
        0xcffa_edfe => Some(("darwin", vec![of_mac(little(4)?)?])),
        0xcafe_babe => {
            let count = big(4)?.min(8) as usize;
            let all: Option<Vec<_>> = (0..count).map(|n| of_mac(big(8 + 20 * n)?)).collect();
            Some(("darwin", all?))
        }
        _ => None,
    }
}
