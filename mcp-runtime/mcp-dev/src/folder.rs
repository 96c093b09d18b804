//! A folder is written beside its place, and appears whole or not at all. The path where it is written cannot be guessed, and
//! nothing is written through what is there already.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

use mcp_runtime::__dev::random_id;

/// A file of a folder: its path there, what is in it, and whether it is a program.
pub(crate) type Entry<'f> = (&'f str, Vec<u8>, bool);

/// Writes a folder, or replaces the one that is there.
///
/// # Errors
/// It cannot be written; it is as it was then.
pub(crate) fn write<'f>(folder: &Path, files: impl IntoIterator<Item = Entry<'f>>) -> io::Result<()> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let random = random_id()?;
    let new = folder.with_file_name(format!(".{name}.{random}.tmp"));
    fs::create_dir_all(folder.parent().unwrap_or(folder))?;
    // an error if there is anything, a link too
    fs::create_dir(&new)?;
    let written = files.into_iter().try_for_each(|file| write_file(&new, file));
    let written = written.and_then(|()| replace(&new, folder));
    // of a failure the new one, of a success the old one
    let _result = fs::remove_dir_all(&new);
    written
}

fn write_file(folder: &Path, (path, bytes, is_program): Entry<'_>) -> io::Result<()> {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap_or(folder))?;
    let mut file = File::create_new(path)?;
    file.write_all(&bytes)?;
    #[cfg(unix)]
    if is_program {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(fs::Permissions::from_mode(0o755))?;
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

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_written_through_links_that_were_planted_beside_the_folder() {
        let root = std::env::temp_dir().join(format!("mcp-dev-{}", random_id().expect("a name")));
        let (outside, inside) = (root.join("outside"), root.join("inside"));
        for folder in [&outside, &inside] {
            fs::create_dir_all(folder).expect("a folder");
        }
        // names with the number of the process, and that of a file that comes twice
        let process = std::process::id();
        for name in [format!(".crate.{process}.tmp"), format!("crate.{process}.tmp"), "crate.tmp".to_owned()]
        {
            symlink(&outside, inside.join(name)).expect("a link");
        }
        let file = |text: &str| ("src/lib.rs", text.as_bytes().to_vec(), false);
        let folder = inside.join("crate");
        for text in ["old", "new"] {
            write(&folder, [file(text)]).expect("the folder");
            assert_eq!(fs::read_to_string(folder.join("src/lib.rs")).expect("the file"), text);
        }
        let refused = write(&folder, [file("once"), file("twice")]).expect_err("two files of one name");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(folder.join("src/lib.rs")).expect("the file"), "new");
        assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 0);
        assert_eq!(fs::read_dir(&inside).expect("a folder").count(), 4, "nothing is left beside it");
        fs::remove_dir_all(&root).expect("the folder");
    }
}
