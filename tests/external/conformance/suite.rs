//! Installs and runs the conformance suite.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use mcp_external_tests::{Missing, manifest_dir, package};
use mcp_tests::programs::{
    cache_dir,
    child::{self, Finished},
};

use crate::verdict::{Verdict, judge};

/// The first Node whose `fs` has what the suite imports.
const LEAST_NODE: u32 = 22;

const LIMIT: Duration = Duration::from_secs(1800);

/// A selection of scenarios that runs at once.
pub(crate) struct Set {
    /// The name under which results are kept.
    pub(crate) name: &'static str,
    run: &'static [&'static str],
    list: &'static [&'static str],
}

pub(crate) const REQUIREMENTS_2025_11_25: Set = Set {
    name: "2025-11-25",
    run: &["--requirements", "2025-11-25"],
    list: &["--requirements", "2025-11-25"],
};
pub(crate) const REQUIREMENTS_2026_07_28: Set = Set {
    name: "2026-07-28",
    run: &["--requirements", "2026-07-28"],
    list: &["--requirements", "2026-07-28"],
};
pub(crate) const ALL: Set = Set { name: "all", run: &["--suite", "all"], list: &["--server"] };
pub(crate) const ALL_2025_06_18: Set = Set {
    name: "all-2025-06-18",
    run: &["--suite", "all", "--spec-version", "2025-06-18"],
    list: &["--server", "--spec-version", "2025-06-18"],
};
pub(crate) const ALL_2025_03_26: Set = Set {
    name: "all-2025-03-26",
    run: &["--suite", "all", "--spec-version", "2025-03-26"],
    list: &["--server", "--spec-version", "2025-03-26"],
};

pub(crate) struct Suite {
    node: PathBuf,
    script: PathBuf,
}

impl Suite {
    /// Installs the release in `package.json`, and a Node that can run it.
    pub(crate) fn install() -> Result<Self, Missing> {
        let manifest = fs::read_to_string(manifest_dir().join("conformance/package.json"))
            .expect("the manifest is here");
        let packages = package::npm(&manifest)?;
        let script = packages.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
        Ok(Self { node: package::node(LEAST_NODE)?, script })
    }

    /// The Node that runs the suite.
    pub(crate) fn node(&self) -> &Path {
        &self.node
    }

    /// The suite's script.
    pub(crate) fn script(&self) -> &Path {
        &self.script
    }

    /// Runs a set and judges each of its scenarios, including those without a result.
    pub(crate) fn run(&self, set: &Set, url: &str) -> BTreeMap<String, Verdict> {
        let scenarios = scenarios(&self.finish(&["list"], set.list).or_panic("listing the scenarios"));
        let out = cache_dir(&format!("conformance/{}", set.name));
        fs::remove_dir_all(&out).expect("an earlier run's results can be removed");
        let place = out.to_str().expect("the target folder's path is text");
        // its exit status is not reliable: warnings, scenarios that are not scored and scenarios that checked
        // nothing end in success
        let Finished { stdout, stderr, .. } = self.finish(&["server", "--url", url, "-o", place], set.run);
        let mut results =
            results(&out).unwrap_or_else(|error| panic!("no results: {error}\n{stdout}\n{stderr}"));
        let verdicts = scenarios.iter().map(|name| (name.clone(), judge(take(&mut results, name)))).collect();
        assert!(
            results.is_empty(),
            "results of scenarios that the suite did not announce: {:?}",
            results.keys()
        );
        verdicts
    }

    /// The client scenarios with their revisions; an extension's has none.
    pub(crate) fn client_scenarios(&self) -> Vec<(String, String)> {
        let printed = self.finish(&["list", "--client"], &[]).or_panic("listing the scenarios");
        let mut scenarios = Vec::new();
        for line in printed.lines() {
            let Some(entry) = line.trim_start().strip_prefix("- ") else { continue };
            let (name, revisions) = entry.split_once(" [").expect("an entry names its revisions");
            for revision in revisions.trim_end_matches(']').split(',') {
                let revision = if revision == "extension" { "" } else { revision };
                scenarios.push((name.to_owned(), revision.to_owned()));
            }
        }
        scenarios
    }

    /// Runs a client scenario; the results are in `out`.
    pub(crate) fn run_client(&self, client: &Path, scenario: &str, version: &str, out: &Path) -> Finished {
        let place = out.to_str().expect("the target folder's path is text");
        let client = client.to_str().expect("the example's path is text");
        let selection =
            ["--scenario", scenario, "--spec-version", version, "--timeout", "120000", "-o", place];
        self.finish(&["client", "--command", client], &selection)
    }

    fn finish(&self, command: &[&str], selection: &[&str]) -> Finished {
        let mut node = Command::new(&self.node);
        node.arg(&self.script).args(command).args(selection);
        child::run(&mut node, "", LIMIT).expect("the installed node can be run")
    }
}

/// The server scenarios that `list` prints, as plain entries of their section or tagged `[server]`.
fn scenarios(printed: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut section = "";
    for line in printed.lines() {
        let Some(entry) = line.trim_start().strip_prefix("- ") else {
            section = line;
            continue;
        };
        if section.starts_with("Server scenarios") || entry.ends_with("[server]") {
            names.extend(entry.split(' ').next().map(str::to_owned));
        }
    }
    assert!(!names.is_empty(), "no scenario in what the suite lists:\n{printed}");
    names
}

/// The results of a run, by the name of their directory, `server-<scenario>-<time>`.
fn results(out: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let entry = |folder: fs::DirEntry| {
        (folder.file_name().to_string_lossy().into_owned(), folder.path().join("checks.json"))
    };
    fs::read_dir(out)?.map(|folder| folder.map(entry)).collect()
}

fn take(results: &mut BTreeMap<String, PathBuf>, scenario: &str) -> Option<String> {
    let prefix = format!("server-{scenario}-2");
    let folder = results.keys().find(|folder| folder.starts_with(&prefix))?.clone();
    let checks = results.remove(&folder)?;
    Some(
        fs::read_to_string(&checks)
            .unwrap_or_else(|error| panic!("cannot read `{}`: {error}", checks.display())),
    )
}
