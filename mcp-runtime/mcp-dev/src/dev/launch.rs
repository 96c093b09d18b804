//! The program behind the sessions, and when it is another one: a crate that is built again on every save, or a command
//! whose files are watched. A build that fails changes nothing but what the author reads.

use std::{
    collections::{HashSet, VecDeque},
    fs, io,
    path::{Path, PathBuf},
    process::{self, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use mcp_runtime::__dev::random_id;
use notify::{
    Config, Event, EventKind, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode},
};
use serde_json::{Value, json};
use tokio::{
    io::BufReader,
    process::Command,
    sync::{Notify, watch},
    time::{Instant, timeout},
};

use super::{child::read_line, trace::Trace};
use crate::{Failure, report};

/// Saves that follow each other within this time are one.
const QUIET: Duration = Duration::from_millis(100);
const LONGEST_QUIET: Duration = Duration::from_secs(2);
/// How often files are looked at where the system does not tell.
const POLL: Duration = Duration::from_secs(1);
/// The end of what a compiler says, as it is kept.
const DIAGNOSTICS: usize = 64 << 10;
/// The longest line of cargo's messages.
const CARGO_LINE: usize = 64 << 20;

/// What is started.
#[derive(Debug, PartialEq)]
pub(super) struct Program {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) env: Vec<(String, String)>,
}

impl Program {
    pub(super) fn name(&self) -> String {
        self.program.display().to_string()
    }

    pub(super) fn to_command(&self) -> process::Command {
        let mut command = process::Command::new(&self.program);
        command.args(&self.arguments).envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}

#[derive(Default)]
struct State {
    program: Option<Arc<Program>>,
    generation: u64,
    failure: Option<String>,
}

/// The newest program.
#[derive(Clone)]
pub(super) struct Launcher(watch::Receiver<State>);

impl Launcher {
    pub(super) fn program(&self) -> Option<Arc<Program>> {
        self.0.borrow().program.clone()
    }

    pub(super) fn is_ready(&self) -> bool {
        self.0.borrow().program.is_some()
    }

    /// Changes with the program.
    pub(super) fn generation(&self) -> u64 {
        self.0.borrow().generation
    }

    /// Why the last build is not what runs.
    pub(super) fn failure(&self) -> Option<String> {
        self.0.borrow().failure.clone()
    }

    /// Waits until the program, or the reason why there is none, is another one.
    pub(super) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Where the program comes from.
pub(super) enum Source {
    /// Arguments of `cargo build`.
    Crate { build: Vec<String>, arguments: Vec<String>, env: Vec<(String, String)> },
    /// A command, and the files and folders whose changes start it again.
    Command { program: Program, paths: Vec<PathBuf> },
}

/// Builds, and builds again, until it is dropped.
pub(super) fn watch(source: Source, trace: Trace) -> Launcher {
    let (sender, receiver) = watch::channel(State::default());
    tokio::spawn(async move {
        match source {
            Source::Crate { build, arguments, env } => {
                Crate { build, arguments, env, sender, trace, last: None }.run().await;
            }
            Source::Command { program, paths } => run_command(program, paths, sender, trace).await,
        }
    });
    Launcher(receiver)
}

/// The files whose changes count.
#[derive(Default)]
struct Watched {
    files: HashSet<PathBuf>,
    folders: Vec<PathBuf>,
    /// Nothing below these counts.
    ignored: Vec<PathBuf>,
    is_rust: bool,
}

impl Watched {
    fn counts(&self, path: &Path) -> bool {
        if self.files.contains(path) {
            return true;
        }
        if self.ignored.iter().any(|folder| path.starts_with(folder)) {
            return false;
        }
        let Some(folder) = self.folders.iter().find(|folder| path.starts_with(folder)) else { return false };
        let below = path.strip_prefix(folder).unwrap_or(path);
        let is_hidden = below.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'));
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let is_backup = name.ends_with('~') || name.starts_with('#');
        let is_source = !self.is_rust
            || path.extension().is_some_and(|extension| extension == "rs")
            || matches!(&*name, "Cargo.toml" | "Cargo.lock");
        !is_hidden && !is_backup && is_source
    }
}

/// Reports changes of files.
struct FileWatcher {
    watcher: Box<dyn Watcher + Send>,
    watched: Arc<Mutex<Watched>>,
    changed: Arc<Notify>,
    known: HashSet<PathBuf>,
}

impl FileWatcher {
    fn new(watched: Watched) -> Result<Self, Failure> {
        let watched = Arc::new(Mutex::new(watched));
        let changed = Arc::new(Notify::new());
        let handler = {
            let (watched, changed) = (watched.clone(), changed.clone());
            move |event: notify::Result<Event>| {
                let Ok(event) = event else { return };
                let is_change = match event.kind {
                    EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
                    EventKind::Access(_) => false,
                    _ => true,
                };
                let watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
                // the system has lost some
                if event.need_rescan() || (is_change && event.paths.iter().any(|path| watched.counts(path))) {
                    changed.notify_one();
                }
            }
        };
        let watcher: Box<dyn Watcher + Send> =
            match RecommendedWatcher::new(handler.clone(), Config::default()) {
                Ok(watcher) => Box::new(watcher),
                Err(_) => Box::new(PollWatcher::new(handler, Config::default().with_poll_interval(POLL))?),
            };
        Ok(Self { watcher, watched, changed, known: HashSet::new() })
    }

    fn add(&mut self, path: &Path, mode: RecursiveMode) {
        if self.known.contains(path) || !path.is_dir() {
            return;
        }
        match self.watcher.watch(path, mode) {
            Ok(()) => {
                self.known.insert(path.to_owned());
            }
            Err(error) => report(&format!("mcp-dev: `{}` cannot be watched: {error}", path.display())),
        }
    }

    /// A folder with what is in it, but for hidden folders and build results, whose watches would cost.
    fn add_folder(&mut self, folder: &Path) {
        self.add(folder, RecursiveMode::NonRecursive);
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_ignored = {
                let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
                watched.ignored.iter().any(|ignored| path.starts_with(ignored))
            };
            let is_skipped =
                name.starts_with('.') || name == "target" || name == "node_modules" || is_ignored;
            if !is_skipped {
                self.add(&path, RecursiveMode::Recursive);
            }
        }
    }
}

/// Waits for a change, and until no other one has come for a moment.
async fn wait(changed: &Notify) {
    changed.notified().await;
    let end = Instant::now() + LONGEST_QUIET;
    while Instant::now() < end && timeout(QUIET, changed.notified()).await.is_ok() {}
}

/// A path as its folder names it: a link to a file stays one.
fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (path.parent().and_then(|folder| folder.canonicalize().ok()), path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// Time and size of a file, and which one it is.
type Fingerprint = Option<(SystemTime, u64, u64)>;

fn fingerprint(path: &Path) -> Fingerprint {
    let metadata = fs::metadata(path).ok()?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let number = 0;
    Some((metadata.modified().ok()?, metadata.len(), number))
}

async fn run_command(program: Program, paths: Vec<PathBuf>, sender: watch::Sender<State>, trace: Trace) {
    let program = Arc::new(program);
    let publish = || {
        sender.send_modify(|state| {
            state.program = Some(program.clone());
            state.generation += 1;
        });
    };
    let paths: Vec<PathBuf> = paths.iter().map(|path| absolute(path)).collect();
    let (folders, files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_dir());
    let watched =
        Watched { files: files.iter().cloned().collect(), folders: folders.clone(), ..Watched::default() };
    let mut watcher = match FileWatcher::new(watched) {
        Ok(watcher) => watcher,
        Err(error) => {
            report(&format!("mcp-dev: files cannot be watched: {error}"));
            publish();
            return sender.closed().await;
        }
    };
    for file in &files {
        if let Some(folder) = file.parent() {
            watcher.add(folder, RecursiveMode::NonRecursive);
        }
    }
    for folder in &folders {
        watcher.add(folder, RecursiveMode::Recursive);
    }
    let prints = || files.iter().map(|file| fingerprint(file)).collect::<Vec<_>>();
    let mut last = prints();
    publish();
    let changed = watcher.changed.clone();
    loop {
        tokio::select! {
            () = wait(&changed) => {}
            () = sender.closed() => return,
        }
        let now = prints();
        // a file that is gone is about to be replaced
        if now.contains(&None) || (now == last && folders.is_empty()) {
            continue;
        }
        last = now;
        report("mcp-dev: a file has changed: the server starts again");
        trace.event("build", json!({ "state": "changed" }));
        publish();
    }
}

/// A crate in this folder.
struct Crate {
    build: Vec<String>,
    arguments: Vec<String>,
    env: Vec<(String, String)>,
    sender: watch::Sender<State>,
    trace: Trace,
    last: Option<(PathBuf, Fingerprint)>,
}

impl Crate {
    async fn run(mut self) {
        let mut watcher: Option<FileWatcher> = None;
        loop {
            report("mcp-dev: building");
            self.trace.event("build", json!({ "state": "building" }));
            let since = Instant::now();
            // what changes from now on is built again
            if watcher.is_none() {
                watcher = self.watch().await;
                if let Some(watcher) = &mut watcher {
                    self.refresh(watcher);
                }
            }
            match self.build().await {
                Ok(program) => self.publish(program, since),
                Err(failure) => {
                    // clients get it with the calls that are not answered
                    let failure = self.trace.masked(&failure);
                    report(&format!("mcp-dev: the build has failed{}", self.running()));
                    self.trace.event("build", json!({ "state": "failed", "text": failure }));
                    self.sender.send_modify(|state| {
                        state.failure = Some(format!("the build has failed\n{failure}"));
                    });
                }
            }
            let Some(watcher) = &mut watcher else { return self.sender.closed().await };
            self.refresh(watcher);
            let changed = watcher.changed.clone();
            tokio::select! {
                () = wait(&changed) => {}
                () = self.sender.closed() => return,
            }
        }
    }

    fn running(&self) -> &'static str {
        if self.last.is_some() { ": the server of before goes on" } else { "" }
    }

    fn publish(&mut self, program: PathBuf, since: Instant) {
        let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or_default();
        let now = (program.clone(), fingerprint(&program));
        let is_new = self.last.as_ref() != Some(&now);
        self.trace.event("build", json!({ "state": "built", "ms": ms, "changed": is_new }));
        report(&format!("mcp-dev: built in {ms} ms{}", if is_new { "" } else { ": nothing has changed" }));
        self.last = Some(now);
        // Windows locks a running program, and cargo could not write the next one
        let program = if cfg!(windows) && is_new { copy_beside(&program) } else { program };
        let program = Program { program, arguments: self.arguments.clone(), env: self.env.clone() };
        self.sender.send_if_modified(|state| {
            let had_failed = state.failure.take().is_some();
            if is_new {
                state.program = Some(Arc::new(program));
                state.generation += 1;
            }
            is_new || had_failed
        });
    }

    /// Runs `cargo build`.
    ///
    /// # Errors
    /// What cargo and the compiler say.
    async fn build(&self) -> Result<PathBuf, String> {
        let mut command = cargo();
        command.arg("build").arg("--message-format=json-render-diagnostics").args(&self.build);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let not_run = |error: io::Error| format!("cargo cannot be run: {error}");
        let mut child = command.spawn().map_err(not_run)?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err("cargo has no pipes".to_owned());
        };
        let (programs, said) =
            tokio::join!(read_programs(BufReader::new(stdout)), pass_on(BufReader::new(stderr)));
        let status = child.wait().await.map_err(not_run)?;
        if !status.success() {
            return Err(said);
        }
        let names = || programs.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        match programs.as_slice() {
            [(_, program)] => Ok(program.clone()),
            [] => Err("this crate has no program: name one with `--bin NAME` or `--example NAME`".to_owned()),
            _ => Err(format!("this crate has the programs {}: name one with `--bin NAME`", names())),
        }
    }

    /// Watches the packages of the workspace.
    async fn watch(&self) -> Option<FileWatcher> {
        let output =
            cargo().args(["metadata", "--no-deps", "--format-version=1"]).stdin(Stdio::null()).output().await;
        let metadata: Value = serde_json::from_slice(&output.ok()?.stdout).ok()?;
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        let target = path(&metadata["target_directory"]).into_iter();
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let mut folders: Vec<PathBuf> = packages
            .filter_map(|package| path(&package["manifest_path"])?.parent().map(Path::to_owned))
            .chain(path(&metadata["workspace_root"]))
            .collect();
        folders.sort_unstable();
        folders.dedup();
        let watched = Watched { folders, ignored: target.collect(), is_rust: true, ..Watched::default() };
        FileWatcher::new(watched)
            .inspect_err(|error| report(&format!("mcp-dev: files cannot be watched: {error}")))
            .ok()
    }

    /// Watches what the build was made of, and folders that are new.
    fn refresh(&self, watcher: &mut FileWatcher) {
        let sources = self.last.as_ref().map(|(program, _)| sources_of(program)).unwrap_or_default();
        let folders = {
            let mut watched = watcher.watched.lock().unwrap_or_else(PoisonError::into_inner);
            if !sources.is_empty() {
                watched.files = sources.iter().cloned().collect();
            }
            watched.folders.clone()
        };
        for folder in &folders {
            watcher.add_folder(folder);
        }
        for folder in sources.iter().filter_map(|source| source.parent()) {
            if !folders.iter().any(|known| folder.starts_with(known)) {
                watcher.add(folder, RecursiveMode::NonRecursive);
            }
        }
    }
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.kill_on_drop(true);
    command
}

/// Copies a program into its own folder, where the libraries are that it needs, and returns the copy; the program itself if it
/// cannot be copied. Copies of before that do not run any more are removed.
fn copy_beside(program: &Path) -> PathBuf {
    let stem = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let extension =
        program.extension().map(|extension| format!(".{}", extension.to_string_lossy())).unwrap_or_default();
    let folder = program.parent().unwrap_or(Path::new("."));
    let prefix = format!("{stem}.mcp-dev-");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            // one that runs stays
            let _running = fs::remove_file(entry.path());
        }
    }
    // a name that can be guessed could be that of a link
    let copied = random_id().and_then(|random| {
        let copy = folder.join(format!("{prefix}{random}{extension}"));
        fs::copy(program, &copy).map(|_| copy)
    });
    match copied {
        Ok(copy) => copy,
        Err(error) => {
            report(&format!("mcp-dev: `{}` cannot be copied: {error}", program.display()));
            program.to_owned()
        }
    }
}

/// The files that a program was built of, as cargo has written them beside it.
fn sources_of(program: &Path) -> Vec<PathBuf> {
    let Ok(text) = fs::read_to_string(program.with_extension("d")) else { return Vec::new() };
    let Some((_, files)) = text.lines().next().and_then(|line| line.split_once(": ")) else {
        return Vec::new();
    };
    let files = files.replace("\\ ", "\0");
    files
        .split(' ')
        .filter(|file| !file.is_empty())
        .map(|file| PathBuf::from(file.replace('\0', " ")))
        .collect()
}

/// Name and path of every program that cargo has built.
async fn read_programs(mut pipe: BufReader<tokio::process::ChildStdout>) -> Vec<(String, PathBuf)> {
    let mut programs = Vec::new();
    while let Ok(Some((line, _))) = read_line(&mut pipe, CARGO_LINE).await {
        let Ok(message) = serde_json::from_slice::<Value>(&line) else { continue };
        let program = message["executable"].as_str().filter(|_| message["reason"] == "compiler-artifact");
        if let Some(program) = program.filter(|_| message["profile"]["test"] != true) {
            let name = message["target"]["name"].as_str().unwrap_or_default();
            programs.push((name.to_owned(), PathBuf::from(program)));
        }
    }
    programs
}

/// Prints what cargo says, and returns the end of it.
async fn pass_on(mut pipe: BufReader<tokio::process::ChildStderr>) -> String {
    let mut kept: VecDeque<u8> = VecDeque::new();
    while let Ok(Some((line, _))) = read_line(&mut pipe, CARGO_LINE).await {
        report(String::from_utf8_lossy(&line).trim_end());
        kept.extend(&line);
        kept.push_back(b'\n');
        let excess = kept.len().saturating_sub(DIAGNOSTICS);
        kept.drain(..excess);
    }
    let kept: Vec<u8> = kept.into();
    String::from_utf8_lossy(&kept).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_a_program_takes_the_place_of_the_last_one() {
        let folder = std::env::temp_dir().join(format!("mcp-dev-copies-{}", process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let program = folder.join("server.exe");
        for text in ["1", "2"] {
            fs::write(&program, text).expect("a file");
            let copy = copy_beside(&program);
            assert_ne!(copy, program);
            assert_eq!(copy.parent(), program.parent());
            assert_eq!(copy.extension(), program.extension());
            assert_eq!(fs::read_to_string(&copy).expect("a file"), text);
            assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 2);
        }
        fs::remove_dir_all(&folder).expect("a folder");
    }
}
