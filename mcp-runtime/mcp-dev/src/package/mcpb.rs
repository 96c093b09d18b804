//! A bundle (`.mcpb`): the programs of all targets, and a manifest that the server itself has written for the most part. The
//! format has no key for processors, so that a script chooses where a system has several. Windows on Arm runs the program
//! for x64.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{Input, Kind, Setting, Source, archive::Archive, program::Program, settings};
use crate::Failure;

/// The version of the manifest's format, the newest that is documented.
const FORMAT: &str = "0.3";

/// The width and height of an icon.
const ICON: u32 = 512;

/// A file of the bundle.
struct Entry {
    path: String,
    bytes: Vec<u8>,
    is_program: bool,
}

/// Makes the bundles; returns their paths.
///
/// # Errors
/// Something is missing, or a file cannot be written.
pub(super) fn make(input: &Input, each: bool, mut problems: Vec<String>) -> Result<Vec<String>, Failure> {
    let icon = input.info.icon.as_deref().map(read_icon).transpose();
    let icon = icon.map_err(|problem| problems.push(problem)).ok().flatten();
    super::check(problems)?;
    let icon = icon.as_deref();
    let all: Vec<&Program> = input.programs.iter().collect();
    let mut made = Vec::new();
    match (each, all.as_slice()) {
        (true, programs) => {
            for program in programs {
                made.push(make_one(input, icon, &[program], &format!("-{}", program.platform()))?);
            }
        }
        (false, [one]) => made.push(make_one(input, icon, &[one], &format!("-{}", one.platform()))?),
        (false, programs) => made.push(make_one(input, icon, programs, "")?),
    }
    Ok(made)
}

/// # Errors
/// It cannot be read, or is not one of bundles.
fn read_icon(path: &Path) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let bytes =
        mcp_runtime::__dev::read_file(path).map_err(|error| format!("`{shown}` cannot be read: {error}"))?;
    match size_of_png(&bytes) {
        Some((ICON, ICON)) => Ok(bytes),
        Some((width, height)) => {
            Err(format!("`{shown}` is {width} by {height}, and an icon is {ICON} by {ICON}"))
        }
        None => Err(format!("`{shown}` is not a PNG")),
    }
}

fn make_one(
    input: &Input,
    icon: Option<&[u8]>,
    programs: &[&Program],
    ending: &str,
) -> Result<String, Failure> {
    let info = &input.info;
    let mut entries = Vec::new();
    let is_of =
        |system: &'static str| programs.iter().copied().filter(move |program| program.system == system);
    let windows: Vec<&Program> = is_of("win32").collect();
    // the one for x64 runs on both
    let windows = windows.iter().find(|program| program.processors.contains(&"x64")).or(windows.first());
    let unix: Vec<&Program> = programs.iter().copied().filter(|program| program.system != "win32").collect();
    let unix_path = format!("server/{}", info.bin);
    match unix.as_slice() {
        [] => {}
        // one program, which runs on every processor that the bundle is for
        [one] => entries.push(Entry { path: unix_path.clone(), bytes: one.bytes.clone(), is_program: true }),
        several => {
            entries.push(Entry {
                path: unix_path.clone(),
                bytes: launcher(&info.bin, several)?,
                is_program: true,
            });
            for program in several {
                let path = format!("server/{}-{}", info.bin, program.platform());
                entries.push(Entry { path, bytes: program.bytes.clone(), is_program: true });
            }
        }
    }
    let windows_path = windows.map(|program| {
        let path = format!("server/{}.exe", info.bin);
        entries.push(Entry { path: path.clone(), bytes: program.bytes.clone(), is_program: true });
        path
    });
    let first = if unix.is_empty() { windows_path.clone().unwrap_or_default() } else { unix_path };
    if let Some(icon) = icon {
        entries.push(Entry { path: "icon.png".to_owned(), bytes: icon.to_owned(), is_program: false });
    }
    let mut systems: Vec<&str> = programs.iter().map(|program| program.system).collect();
    systems.dedup();
    let manifest = manifest(
        input,
        &first,
        windows_path.as_deref().filter(|path| **path != first),
        &systems,
        icon.is_some(),
    );
    let bytes = format!("{manifest:#}\n").into_bytes();
    entries.insert(0, Entry { path: "manifest.json".to_owned(), bytes, is_program: false });
    std::fs::create_dir_all(mcp_runtime::__dev::resolve(&input.out)?)?;
    let path = input.out.join(format!("{}-{}{ending}.mcpb", info.name, info.version));
    let written = mcp_runtime::__dev::replace_file(&path, &archive(&entries)?);
    written.map_err(|error| format!("`{}` cannot be written: {error}", path.display()))?;
    Ok(path.display().to_string())
}

/// Width and height of an image, by its first chunk.
fn size_of_png(bytes: &[u8]) -> Option<(u32, u32)> {
    let header = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR")?;
    let number = |at: usize| Some(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?));
    Some((number(0)?, number(4)?))
}

fn archive(entries: &[Entry]) -> Result<Vec<u8>, Failure> {
    let mut archive = Archive::default();
    for Entry { path, bytes, is_program } in entries {
        archive.add(path, bytes, if *is_program { 0o755 } else { 0o644 })?;
    }
    archive.finish()
}

/// The script that starts the program for a machine.
fn launcher(bin: &str, programs: &[&Program]) -> Result<Vec<u8>, Failure> {
    let mut cases = String::new();
    let mut known = Vec::new();
    for program in programs {
        for processor in program.processors {
            let names = match (program.system, *processor) {
                ("darwin", "x64") => "Darwin-x86_64",
                ("darwin", _) => "Darwin-arm64",
                (_, "x64") => "Linux-x86_64 | Linux-amd64",
                _ => "Linux-aarch64 | Linux-arm64",
            };
            if known.contains(&names) {
                return Err(format!("there are two programs for {}: a bundle cannot choose between glibc and musl, of which musl runs on both", names.replace(" | ", ", ")).into());
            }
            known.push(names);
            cases += &format!("  {names}) program={bin}-{} ;;\n", program.platform());
        }
    }
    Ok(format!(
        "#!/bin/sh\n\
         # Starts the program for this machine.\n\
         here=$(CDPATH= cd -- \"$(dirname -- \"$0\")\" && pwd) || exit 1\n\
         case \"$(uname -s)-$(uname -m)\" in\n\
         {cases}  *) echo \"{bin}: no program for $(uname -s) on $(uname -m)\" >&2; exit 1 ;;\n\
         esac\n\
         # not every client keeps modes\n\
         [ -x \"$here/$program\" ] || chmod +x \"$here/$program\" || exit 1\n\
         exec \"$here/$program\" \"$@\"\n"
    )
    .into_bytes())
}

fn manifest(input: &Input, first: &str, windows: Option<&str>, systems: &[&str], has_icon: bool) -> Value {
    let Input { info, schema, .. } = input;
    let settings = settings(schema);
    let (mut env, mut arguments) = (Map::new(), Vec::new());
    for Setting { key, source, .. } in &settings {
        let value = format!("${{user_config.{key}}}");
        match source {
            Source::Variable(name) => drop(env.insert(name.clone(), value.into())),
            Source::Flag(flag) => arguments.push(format!("{flag}={value}")),
        }
    }
    let mut launch = json!({ "command": format!("${{__dirname}}/{first}"), "args": arguments });
    if !env.is_empty() {
        launch["env"] = env.into();
    }
    if let Some(windows) = windows {
        launch["platform_overrides"] = json!({ "win32": { "command": format!("${{__dirname}}/{windows}") } });
    }
    let mut author = json!({ "name": info.author.0 });
    if let Some(address) = &info.author.1 {
        author["email"] = address.as_str().into();
    }
    let mut all = json!({
        "manifest_version": FORMAT,
        "name": info.name,
        "version": info.version,
        "description": info.description,
        "author": author,
        "server": { "type": "binary", "entry_point": first, "mcp_config": launch },
        "compatibility": { "platforms": systems },
    });
    let optional = [("display_name", &info.title), ("homepage", &info.homepage), ("license", &info.license)];
    for (key, value) in optional {
        if let Some(value) = value {
            all[key] = value.as_str().into();
        }
    }
    if let Some(url) = &info.repository {
        all["repository"] = json!({ "type": "git", "url": url });
    }
    if has_icon {
        all["icon"] = "icon.png".into();
    }
    if !info.keywords.is_empty() {
        all["keywords"] = json!(info.keywords);
    }
    let list = |name: &str| schema[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let tools = list("tools").iter().map(|tool| {
        let mut shown = json!({ "name": tool["name"] });
        if let Some(text) = tool["description"].as_str() {
            shown["description"] = text.into();
        }
        shown
    });
    let tools: Vec<Value> = tools.collect();
    if !tools.is_empty() {
        all["tools"] = tools.into();
    }
    // a list of prompts would need the text of each
    if !list("prompts").is_empty() {
        all["prompts_generated"] = true.into();
    }
    if !settings.is_empty() {
        let asked = settings.iter().map(|setting| (setting.key.clone(), question(setting)));
        all["user_config"] = asked.collect::<Map<_, _>>().into();
    }
    all
}

/// What the client asks its user.
fn question(setting: &Setting) -> Value {
    let Setting { key, kind, schema, is_required, is_secret, .. } = setting;
    let words = key.replace('_', " ");
    let mut letters = words.chars();
    let title =
        letters.next().map_or_else(String::new, |first| first.to_uppercase().to_string() + letters.as_str());
    let title = schema["title"].as_str().map_or(title, str::to_owned);
    let mut description = schema["description"].as_str().unwrap_or(&title).to_owned();
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        description += &format!(" (one of {})", values.join(", "));
    }
    let mut asked = json!({ "type": kind.in_bundle(), "title": title, "description": description });
    if *is_secret {
        asked["sensitive"] = true.into();
    }
    if *is_required {
        asked["required"] = true.into();
    }
    match &schema["default"] {
        value @ (Value::String(_) | Value::Number(_) | Value::Bool(_)) => asked["default"] = value.clone(),
        // one without a value would be the name of its variable; a variable without a text is not set
        _ if !is_required && !matches!(kind, Kind::Number | Kind::Boolean) => asked["default"] = "".into(),
        _ => {}
    }
    if *kind == Kind::Number {
        for (bound, keyword) in [("min", "minimum"), ("max", "maximum")] {
            if let Some(value) = schema.get(keyword).filter(|value| value.is_number()) {
                asked[bound] = value.clone();
            }
        }
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_with_a_secret_part_is_asked_for_as_a_secret() {
        let key = json!({ "type": "string", "writeOnly": true });
        let hosts = json!({ "type": "array", "x-env": "HOSTS", "items": { "type": "object", "properties": { "key": key } } });
        let names = json!({ "type": "array", "x-env": "NAMES", "items": { "type": "string" } });
        let schema = json!({ "settings": { "properties": { "hosts": hosts, "names": names } } });
        let asked: Vec<Value> = settings(&schema).iter().map(question).collect();
        let sensitive: Vec<_> = asked.iter().map(|asked| (&asked["title"], asked.get("sensitive"))).collect();
        assert_eq!(sensitive, [(&json!("Hosts"), Some(&json!(true))), (&json!("Names"), None)]);
    }
}
