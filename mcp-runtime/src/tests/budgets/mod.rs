//! Every budget of a server, in one list a folder: the resource that it limits, its default in the code, the option that sets
//! it, the clients that share it, and the response beyond it. A test compares the lists with that of the page about limits;
//! another test finds bounds that the lists leave out. The numbers are in `docs/limits.md`.

mod auth;
mod core;
mod events;
mod legacy;
mod observers;
mod redis;
mod tasks;
mod transport;

use std::{fs, path::Path};

use self::{BudgetDefault::*, Shared::*};
use crate::core::config::Options;

const FOLDERS: [Folder; 8] = [
    auth::AUTH,
    core::CORE,
    events::EVENTS,
    observers::OBSERVERS,
    legacy::LEGACY,
    redis::REDIS,
    tasks::TASKS,
    transport::TRANSPORT,
];

/// The bounds of the files of a folder.
struct Folder {
    budgets: &'static [Budget],
    /// Constants that look like a budget but are not, or that limit one value: by file.
    others: &'static [(&'static str, &'static [&'static str])],
}

/// A bound on what clients make a server keep, run or wait for.
struct Budget {
    /// The resource that it limits.
    what: &'static str,
    default: BudgetDefault,
    /// The option that sets it; none if it is fixed.
    option: Option<&'static str>,
    shared: Shared,
    /// The response that a client gets beyond it.
    beyond: &'static str,
    /// The file that counts it, below `src`.
    file: &'static str,
}

/// The default of a budget.
enum BudgetDefault {
    /// A number that an option sets.
    Count(fn(&Options) -> usize),
    /// Bytes that an option sets.
    Bytes(fn(&Options) -> usize),
    /// The value of a constant in the budget's file.
    FixedCount(&'static str),
    /// The same, in bytes.
    FixedBytes(&'static str),
    Unlimited,
}

/// The clients that share a budget.
enum Shared {
    /// All clients; one of them uses a share of it, half, and as long as it has some,
    /// an eighth is kept for those that have none: `Quota` in `core/admission/quota.rs`. A client is a principal, or the
    /// address of an anonymous one (of IPv6 its network): `Owner` in `core/admission/owner.rs`. Over stdio there is one
    /// client, and its share is everything. What `auth` and webhooks count has a share that is fixed: half, of cached tokens
    /// a twentieth.
    All,
    /// Each client has its own.
    Client,
    /// Each connection.
    Connection,
    /// Each event stream.
    Stream,
    /// Each subscriber.
    Subscriber,
    /// Each request.
    Request,
}

const fn budget(
    what: &'static str,
    default: BudgetDefault,
    option: &'static str,
    shared: Shared,
    beyond: &'static str,
    file: &'static str,
) -> Budget {
    let option = if option.is_empty() { None } else { Some(option) };
    Budget { what, default, option, shared, beyond, file }
}

/// Files that count for others.
const COUNTERS: &[&str] = &[
    "core/admission/",
    "core/store/memory_tables.rs",
    "core/store/shared/memory.rs",
    "core/store/memory_logs.rs",
    "auth/",
    "client/",
    "core/changes/filter.rs",
    "core/connection/outbound.rs",
];

fn budgets() -> impl Iterator<Item = &'static Budget> {
    FOLDERS.iter().flat_map(|folder| folder.budgets)
}

fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn bytes(n: usize) -> String {
    match n {
        n if n.is_multiple_of(1 << 20) => format!("{} MiB", n >> 20),
        n if n.is_multiple_of(1 << 10) => format!("{} KiB", n >> 10),
        n => format!("{n} bytes"),
    }
}

fn src() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))
}

fn source(file: &str) -> String {
    fs::read_to_string(src().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The value of a constant, whose expression is a number or a shift.
fn constant(file: &str, name: &str) -> usize {
    let source = source(file);
    let start = format!("const {name}: usize = ");
    let value = source.split(&start).nth(1).unwrap_or_else(|| panic!("{file} has no constant {name}"));
    let value = value.split(';').next().unwrap().replace('_', "");
    let parts: Vec<usize> = value.split("<<").map(|n| n.trim().parse().expect("a number")).collect();
    parts[0] << parts.get(1).unwrap_or(&0)
}

fn row(budget: &Budget, options: &Options) -> String {
    let Budget { what, default, option, shared, beyond, file } = budget;
    let default = match default {
        Count(of) => count(of(options)),
        Bytes(of) => bytes(of(options)),
        FixedCount(name) => count(constant(file, name)),
        FixedBytes(name) => bytes(constant(file, name)),
        Unlimited => "–".into(),
    };
    let option = option.map_or_else(|| "fixed".into(), |option| format!("`{option}`"));
    let shared = match shared {
        All => "all clients",
        Client => "each client",
        Connection => "each connection",
        Stream => "each stream",
        Subscriber => "each subscriber",
        Request => "each request",
    };
    format!("| {what} | {default} | {option} | {shared} | {beyond} |")
}

#[test]
fn the_page_about_limits_lists_every_budget_with_its_default() {
    let options = Options::default();
    let mut rows: Vec<_> = budgets().map(|budget| row(budget, &options)).collect();
    let page = source("../docs/limits.md");
    let (_, section) = page.split_once("## All budgets\n").expect("the section");
    let table = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let mut listed: Vec<_> = table.take_while(|line| line.starts_with("| ")).collect();
    rows.sort_unstable();
    listed.sort_unstable();
    let missing: Vec<_> = rows.iter().filter(|row| !listed.contains(&&***row)).collect();
    let gone: Vec<_> = listed.iter().filter(|line| !rows.iter().any(|row| row == *line)).collect();
    assert!(missing.is_empty(), "missing in docs/limits.md:\n{missing:#?}\nand not in the code:\n{gone:#?}");
    assert_eq!(listed, rows, "not in the code:\n{gone:#?}");
}

#[test]
fn every_option_that_sets_a_number_is_one_of_a_budget() {
    for (group, file, name) in [
        ("http", "core/config/http.rs", ""),
        ("limits", "core/config/mod.rs", "impl Limits"),
        ("stdio", "core/config/mod.rs", "impl StdioOptions"),
        ("tasks", "capability/tasks/options.rs", "impl TaskOptions"),
        ("limits.events", "capability/events/options.rs", "impl EventLimits"),
    ] {
        let source = source(file);
        let part = source.split(name).nth(1).filter(|_| !name.is_empty()).unwrap_or(&source);
        let part = part.split("\n}\n").next().filter(|_| !name.is_empty()).unwrap_or(&source);
        let knobs = part.split("pub fn max_").skip(1).filter_map(|rest| rest.split('(').next());
        for knob in knobs {
            let option = format!("{group}.max_{knob}");
            let listed = budgets().any(|budget| budget.option == Some(&option));
            assert!(listed, "`{option}` of {file} is missing in the list of budgets");
        }
    }
}

fn visit(folder: &Path, files: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path.strip_prefix(src()).unwrap().to_str().unwrap().replace('\\', "/"));
        }
    }
}

#[test]
fn every_bound_on_what_clients_leave_behind_is_in_the_list() {
    let mut files = Vec::new();
    visit(src(), &mut files);
    for file in files.iter().filter(|file| !file.contains("tests")) {
        let source = source(file);
        let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
        let in_list = budgets().any(|budget| budget.file == file);
        let counts = ["Shares::new(", "OwnedTable::new(", "Usage::new("].iter().any(|new| code.contains(new));
        let elsewhere = COUNTERS.iter().any(|counter| file.starts_with(counter));
        assert!(!counts || in_list || elsewhere, "{file} limits what clients share: add it to the list");
        let waits = [
            "observers/",
            "transport/",
            "core/connection/",
            "core/changes/",
            "core/store/",
            "capability/tasks/",
            "capability/events/",
            "redis/",
        ];
        if !waits.iter().any(|folder| file.starts_with(folder)) {
            continue;
        }
        for line in code.lines().filter(|line| line.contains("const ") && line.contains(": usize = ")) {
            let name = line.split("const ").nth(1).and_then(|rest| rest.split(':').next()).unwrap();
            let is_bound = name.starts_with("MAX_") || name.ends_with("_LIMIT") || name.ends_with("BACKLOG");
            let listed = budgets().any(|budget| {
                budget.file == file && matches!(budget.default, FixedCount(n) | FixedBytes(n) if n == name)
            });
            let other = FOLDERS
                .iter()
                .flat_map(|folder| folder.others)
                .any(|(of, names)| of == file && names.contains(&name));
            assert!(!is_bound || listed || other, "`{name}` of {file} is missing in the list of budgets");
        }
    }
}
