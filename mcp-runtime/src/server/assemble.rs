//! From what a builder was told to a registry: names prefixed, duplicates and missing state found, every problem
//! reported at once. Called by the server's `build` and by its handle.

use std::{any::TypeId, collections::HashMap, sync::Arc};

use super::{
    AnnotatedItem, Registry,
    item::{ItemSource, RegisteredItem},
    ui::Pages,
};
use crate::{
    arguments::Inject,
    item::{BuildError, Location},
    prompt::PromptEntry,
    protocol::normalize_uri,
    resource::ResourceEntry,
    skill::SkillCatalog,
    tool::ToolEntry,
};

/// Builds the registry of these items; `own` are types that the server itself provides.
///
/// # Errors
/// Every problem found, each naming its item and place.
pub(crate) fn assemble(
    server: &str,
    items: &[RegisteredItem],
    skills: &Arc<SkillCatalog>,
    own: &[TypeId],
    require_docs: bool,
) -> Result<Registry, Vec<BuildError>> {
    let (mut tools, mut resources, mut prompts) = (Vec::new(), Vec::new(), Vec::new());
    let mut problems = Vec::new();
    let mut broken = false;
    let mut seen = Seen::default();
    for item in items {
        let name = item.name();
        let (this, state) = (item.this.clone(), item.state.clone());
        let linked = match &item.source {
            ItemSource::Runtime(tool) => {
                seen.check("tool", &name, &name, None, &mut problems);
                match ToolEntry::runtime(name, tool, state) {
                    Ok(entry) => tools.push((entry, &item.prefix)),
                    Err(problem) => problems.push(problem),
                }
                continue;
            }
            ItemSource::Annotated(linked) => *linked,
        };
        let common = linked.descriptor();
        let missing = |inject: &&Inject| {
            !own.contains(&inject.target()) && !inject.is_provided(&item.state, &item.requested)
        };
        for inject in common.injects.iter().filter(missing) {
            let ty = inject.name();
            let or =
                if ty.starts_with("dyn ") { "" } else { "\nif the client should send it, take it by value" };
            problems.push(BuildError::at(
                common.location,
                format!(
                    "{} `{name}` takes `&{ty}`, and no state of that type is registered\nadd `.state(..)` to the server, or `.http(|http| http.from_request::<{ty}>())` if middleware provides it{or}",
                    linked.kind(),
                ),
            ));
        }
        for (option, takes) in linked.named() {
            for inject in takes.iter().filter(missing) {
                let ty = inject.name();
                problems.push(BuildError::at(
                    common.location,
                    format!(
                        "the `{option}` function of {} `{name}` takes `&{ty}`, and no state of that type is registered\nadd `.state(..)` to the server, or `.http(|http| http.from_request::<{ty}>())` if middleware provides it",
                        linked.kind(),
                    ),
                ));
            }
        }
        if require_docs && common.description.is_none() {
            let text = format!("{} `{name}` has no description\nwrite a doc comment on it", linked.kind());
            problems.push(BuildError::at(common.location, text));
        }
        let added = match linked {
            AnnotatedItem::Tool(def) => {
                seen.check("tool", &name, &name, Some(common.location), &mut problems);
                ToolEntry::annotated(name, def, this, state).map(|entry| tools.push((entry, &item.prefix)))
            }
            AnnotatedItem::Resource(def) => ResourceEntry::new(name, &item.prefix, server, def, this, state)
                .map(|entry| {
                    let key = normalize_uri(&entry.uri).to_lowercase();
                    seen.check("resource", &key, &entry.uri, Some(common.location), &mut problems);
                    if entry.template.is_exact()
                        && let Some(found) = skills.find(&entry.uri)
                    {
                        let folder = found.skill().directory.display();
                        let text = format!("`{}` is a URI of the skill in `{folder}`", entry.uri);
                        problems.push(BuildError::at(common.location, text));
                    }
                    resources.push(Arc::new(entry));
                }),
            AnnotatedItem::Prompt(def) => {
                seen.check("prompt", &name, &name, Some(common.location), &mut problems);
                PromptEntry::new(name, def, this, state).map(|entry| prompts.push(Arc::new(entry)))
            }
        };
        broken |= added.is_err() && matches!(linked, AnnotatedItem::Resource(_));
        problems.extend(added.err());
    }
    let pages = Pages::new(&resources);
    for (tool, prefix) in &mut tools {
        match pages.of(tool, prefix) {
            Ok(page) => tool.page = page,
            // one that failed itself may be the one that is missed
            Err(_) if broken => {}
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let tools = tools.into_iter().map(|(tool, _)| Arc::new(tool)).collect();
    Ok(Registry::new(tools, resources, prompts, skills.clone()))
}

/// Names and URIs that are taken, and by what.
#[derive(Default)]
struct Seen(HashMap<(&'static str, String), Option<Location>>);

impl Seen {
    fn check(
        &mut self,
        kind: &'static str,
        key: &str,
        shown: &str,
        at: Option<Location>,
        problems: &mut Vec<BuildError>,
    ) {
        if let Some(first) = self.0.insert((kind, key.to_owned()), at) {
            let place = |at: Option<Location>| at.map_or("made at run time".to_owned(), |at| at.to_string());
            problems.push(BuildError::new(format!(
                "two {kind}s are `{shown}`\n  --> {}\n  --> {}",
                place(first),
                place(at)
            )));
        }
    }
}
