//! A folder is written beside its place, and appears whole or not at all.

use std::{fs, io, path::Path};

/// A file of a folder: its path there, what is in it, and whether it is a program.
pub(crate) type Entry<'f> = (&'f str, Vec<u8>, bool);

/// Writes a folder, or replaces the one that is there.
///
/// # Errors
/// It cannot be written; it is as it was then.
pub(crate) fn write<'f>(folder: &Path, files: impl IntoIterator<Item = Entry<'f>>) -> io::Result<()> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let new = folder.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let written = files.into_iter().try_for_each(|file| write_file(&new, file));
    let written = written.and_then(|()| replace(&new, folder));
    // of a failure the new one, of a success the old one
    let _result = fs::remove_dir_all(&new);
    written
}

fn write_file(folder: &Path, (path, bytes, is_program): Entry<'_>) -> io::Result<()> {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap_or(folder))?;
    fs::write(&path, bytes)?;
    #[cfg(unix)]
    if is_program {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    #[cfg(not(unix))]
    let _ = is_program;
    Ok(())
}

/// Puts a folder into the place of another one, which need not be there: whenever the process is killed, there is the old one
/// or the new one. What was there is at the path of the new one afterwards, or gone.
///
/// File systems and Windows that cannot exchange two folders need two steps; of a kill between these the old folder is left
/// beside its place.
///
/// # Errors
/// It cannot be replaced, and is as it was.
fn replace(new: &Path, folder: &Path) -> io::Result<()> {
    if !folder.exists() {
        return fs::rename(new, folder);
    }
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, new, CWD, folder, RenameFlags::EXCHANGE).is_ok() {
            return Ok(());
        }
    }
    let mut name = new.file_name().unwrap_or_default().to_owned();
    name.push(".old");
    let old = new.with_file_name(name);
    fs::rename(folder, &old)?;
    if let Err(error) = fs::rename(new, folder) {
        fs::rename(&old, folder)?;
        return Err(error);
    }
    // what is left of it is only in the way
    let _result = fs::remove_dir_all(&old);
    Ok(())
}
