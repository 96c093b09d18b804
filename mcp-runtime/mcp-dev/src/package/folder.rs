//! A folder is replaced whole by another one beside it.

use std::{fs, io, path::Path};

/// Puts a folder into the place of another one, which need not be there: whenever the process is killed, there is the old one
/// or the new one. What was there is at the path of the new one afterwards, or gone.
///
/// File systems and Windows that cannot exchange two folders need two steps; of a kill between these the old folder is left
/// beside its place.
///
/// # Errors
/// It cannot be replaced, and is as it was.
pub(crate) fn replace(new: &Path, folder: &Path) -> io::Result<()> {
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
