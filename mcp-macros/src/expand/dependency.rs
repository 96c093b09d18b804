//! The name under which a program depends on the runtime: that of `mcp = { package = "mcp-runtime" }` in its manifest. The
//! manifest is read once for each package; where there is none, or it says nothing, the runtime has its own name.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The package of the runtime.
const PACKAGE: &str = "mcp-runtime";

/// The manifest that was read last, by its folder: a process may expand the macros of several packages.
static LAST: Mutex<Option<(PathBuf, Option<String>)>> = Mutex::new(None);

/// The name, as an identifier, if it is another than the runtime's own.
pub(crate) fn renamed() -> Option<String> {
    let folder = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some((read, name)) if *read == folder => name.clone(),
        _ => {
            let name = read(&folder);
            *last = Some((folder, name.clone()));
            name
        }
    }
}

fn read(folder: &Path) -> Option<String> {
    find(&fs::read_to_string(folder.join("Cargo.toml")).ok()?)
}

/// The key of the dependency that names the runtime as its `package`; `None` if the key is the runtime's name.
///
/// The forms are those that Cargo documents: an inline table, a dotted key and a separate table.
fn find(manifest: &str) -> Option<String> {
    let mut found = None;
    let mut table: Vec<&str> = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.split(']').next()) {
            table = header.split('.').map(unquote).collect();
        }
        let own = match &*table {
            [.., kind, name] if is_dependencies(kind) => Some(*name),
            _ => None,
        };
        if own == Some(PACKAGE) {
            return None;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (unquote(key), value.trim());
        let name = match (own, table.last()) {
            (Some(name), _) if key == "package" && unquote(value) == PACKAGE => name,
            (None, Some(kind)) if is_dependencies(kind) => {
                let (name, rest) = key.split_once('.').unwrap_or((key, ""));
                let name = unquote(name);
                if name == PACKAGE {
                    return None;
                }
                let package = match rest.trim() {
                    "" => inline_package(value),
                    "package" => Some(unquote(value)),
                    _ => None,
                };
                if package != Some(PACKAGE) {
                    continue;
                }
                name
            }
            _ => continue,
        };
        found = Some(name.replace('-', "_"));
    }
    found
}

fn is_dependencies(table: &str) -> bool {
    matches!(table, "dependencies" | "dev-dependencies" | "build-dependencies")
}

/// The `package` of an inline table.
fn inline_package(table: &str) -> Option<&str> {
    let members = table.strip_prefix('{')?.split('}').next()?.split(',');
    let mut packages = members.filter_map(|member| member.split_once('='));
    packages.find(|(key, _)| key.trim() == "package").map(|(_, value)| unquote(value))
}

fn unquote(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_dependency_is_found_in_each_form_that_a_manifest_has() {
        for (manifest, name) in [
            ("[dependencies]\nmcp = { package = \"mcp-runtime\", version = \"0.1\" }", Some("mcp")),
            ("[dependencies]\n'my-mcp' = {version='0.1',package='mcp-runtime'}", Some("my_mcp")),
            ("[dev-dependencies.mcp]\nversion = \"0.1\"\npackage = \"mcp-runtime\"", Some("mcp")),
            ("[target.'cfg(unix)'.dependencies]\nmcp.package = \"mcp-runtime\"", Some("mcp")),
            ("[dependencies]\nmcp-runtime = \"0.1\"", None),
            ("[dependencies]\nmcp-runtime.workspace = true\nmcp = { package = \"mcp-runtime\" }", None),
            ("[dependencies.mcp-runtime]\nversion = \"0.1\"", None),
            ("[dependencies]\nmcp = { package = \"mcp-other\" }", None),
            ("[package]\nname = \"x\"\npackage = \"mcp-runtime\"", None),
            ("# mcp = { package = \"mcp-runtime\" }\n[features]\na = []", None),
            ("not = a manifest [", None),
        ] {
            assert_eq!(find(manifest).as_deref(), name, "{manifest}");
        }
    }
}
