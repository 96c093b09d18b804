//! What a crate says about itself: its manifest, as cargo reads it, with `[package.metadata.mcp]`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use mcp_runtime::__dev::resolve_in;
use serde_json::Value;

use crate::Failure;

pub(super) struct CrateInfo {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) description: String,
    pub(super) license: Option<String>,
    pub(super) repository: Option<String>,
    pub(super) homepage: Option<String>,
    /// Name of its author, and an address if there is one.
    pub(super) author: (String, Option<String>),
    pub(super) title: Option<String>,
    /// The name in the registry of servers.
    pub(super) registry_name: Option<String>,
    pub(super) npm: String,
    /// The kinds of packages that the registry of servers lists.
    pub(super) packages: Vec<String>,
    /// The name of its image.
    pub(super) oci: Option<String>,
    /// Where it runs for everybody.
    pub(super) remotes: Vec<String>,
    /// Whether cargo publishes it.
    pub(super) is_published: bool,
    pub(super) icon: Option<PathBuf>,
    pub(super) readme: Option<PathBuf>,
    pub(super) keywords: Vec<String>,
    /// Its program.
    pub(super) bin: String,
    pub(super) target_folder: PathBuf,
}

impl CrateInfo {
    /// What the manifest lacks of what every package has is added to `problems`.
    ///
    /// # Errors
    /// cargo cannot read the manifest, or the package has no such program.
    pub(super) fn read(
        manifest: &str,
        bin: Option<&str>,
        problems: &mut Vec<String>,
    ) -> Result<Self, Failure> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
            "--manifest-path",
            manifest,
        ]);
        let output = command.output().map_err(|error| format!("cargo cannot be started: {error}"))?;
        if !output.status.success() {
            return Err(format!("`{manifest}`: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
        }
        let all: Value = serde_json::from_slice(&output.stdout)?;
        let path = Path::new(manifest).canonicalize()?;
        let packages = all["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_this = |package: &&Value| {
            package["manifest_path"]
                .as_str()
                .is_some_and(|own| Path::new(own).canonicalize().is_ok_and(|own| own == path))
        };
        let package =
            packages.iter().find(is_this).ok_or_else(|| format!("`{manifest}` is not a package"))?;
        let own = &package["metadata"]["mcp"];
        let text = |value: &Value| value.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
        let name = text(&package["name"]).ok_or("the package has no name")?;
        let bins: Vec<&str> = package["targets"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|target| {
                target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "bin"))
            })
            .filter_map(|target| target["name"].as_str())
            .collect();
        let bin = match (bin, bins.as_slice()) {
            (Some(bin), _) if bins.contains(&bin) => bin.to_owned(),
            (Some(bin), _) => {
                return Err(format!("the package has no program `{bin}`; it has {}", bins.join(", ")).into());
            }
            (None, [one]) => (*one).to_owned(),
            (None, []) => return Err("the package has no program".into()),
            (None, all) if all.contains(&&*name) => name.clone(),
            (None, all) => {
                return Err(format!(
                    "the package has several programs: `--bin` is one of {}",
                    all.join(", ")
                )
                .into());
            }
        };
        let mut required = |value: Option<String>, what: &str, table: &str| {
            value.unwrap_or_else(|| {
                problems.push(format!("`{manifest}` has no {what}\nadd `{what} = \"..\"` to [{table}]"));
                String::new()
            })
        };
        let author = text(&own["author"]).or_else(|| text(&package["authors"][0]));
        let author = author.filter(|author| author != "OWNER");
        let author = required(author, "author", "package.metadata.mcp");
        let description = required(text(&package["description"]), "description", "package");
        let author = match author.split_once('<') {
            Some((name, address)) => {
                (name.trim().to_owned(), Some(address.trim_end_matches('>').trim().to_owned()))
            }
            None => (author, None),
        };
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        // a crate has the README of its workspace, too
        let root = text(&all["workspace_root"]).map_or_else(|| folder.clone(), PathBuf::from);
        let mut file = |key: &str, value: &Value| {
            let file = text(value)?;
            let found = resolve_in(&root, &folder.join(&file));
            found.map_err(|error| problems.push(format!("the {key} `{file}` is left out: {error}"))).ok()
        };
        let (icon, readme) = (file("icon", &own["icon"]), file("README", &package["readme"]));
        let keywords = package["keywords"].as_array().into_iter().flatten().filter_map(text).collect();
        let texts =
            |value: &Value| value.as_array().map(|all| all.iter().filter_map(text).collect::<Vec<_>>());
        let remotes = texts(&own["remotes"]).unwrap_or_default();
        let packages = texts(&own["packages"]);
        // what is not said to be elsewhere is a crate
        let packages = packages.unwrap_or_else(|| match remotes.as_slice() {
            [] => vec!["cargo".to_owned()],
            _ => Vec::new(),
        });
        Ok(Self {
            packages,
            oci: text(&own["oci"]),
            remotes,
            is_published: package["publish"].as_array().is_none_or(|registries| !registries.is_empty()),
            version: text(&package["version"]).ok_or("the package has no version")?,
            description,
            license: text(&package["license"]),
            repository: text(&package["repository"]),
            homepage: text(&package["homepage"]),
            author,
            title: text(&own["title"]),
            registry_name: text(&own["name"]).filter(|name| !name.contains("OWNER")),
            npm: text(&own["npm"]).unwrap_or_else(|| name.clone()),
            icon,
            readme,
            keywords,
            bin,
            target_folder: text(&all["target_directory"]).ok_or("cargo names no target directory")?.into(),
            name,
        })
    }
}
