//! Assembles a registry: prefixes names, finds duplicates and missing state, and reports every error at once.

use std::{any::TypeId, collections::HashMap, sync::Arc};

use super::{
    AnnotatedItem, Capabilities, Opening, Registry,
    item::{ItemSource, RegisteredItem, RuntimeItem, comparable_uri},
    ui::Pages,
};
use crate::{
    admission::{CallLimits, CallerConcurrency, Rate, RateLimiter},
    arguments::Inject,
    config::Options,
    connection::Access,
    events::Hub,
    item::{BuildError, ItemSpec, Location},
    prompt::PromptEntry,
    resource::ResourceEntry,
    skill::SkillCatalog,
    tool::ToolEntry,
};

/// What the server's options say about all of its items.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ItemRules<'a> {
    pub(crate) options: &'a Options,
    /// How many calls one caller may run at once.
    pub(crate) caller_concurrency: &'a Option<Arc<CallerConcurrency>>,
    /// Where capabilities publish changes.
    pub(crate) hub: &'a Hub,
}

/// Builds the registry of these items; the server itself provides `server_types`, and has capabilities that are `open`.
///
/// # Errors
/// Every error, with its item and location.
pub(crate) fn assemble(
    server: &str,
    items: &[RegisteredItem],
    skills: &Arc<SkillCatalog>,
    server_types: &[TypeId],
    rules: ItemRules<'_>,
    open: Capabilities,
) -> Result<Registry, Vec<BuildError>> {
    let mut opening = Opening { options: rules.options, hub: rules.hub, capabilities: open };
    let require_descriptions = rules.options.lists.require_descriptions;
    let (mut tools, mut resources, mut prompts) = (Vec::new(), Vec::new(), Vec::new());
    let mut errors = Vec::new();
    let mut resource_failed = false;
    let mut names = NamesInUse::default();
    for item in items {
        let name = item.name();
        let (this, state) = (item.this.clone(), item.state.clone());
        let linked = match &item.source {
            ItemSource::Runtime(made) => {
                if require_descriptions && made.spec().description.is_none() {
                    let text = format!("{} has no description\nset one with `.description(..)`", made.key());
                    errors.push(BuildError::new(text));
                }
                if let Some(text) = rules.options.check_scopes(&made.spec().scopes) {
                    errors.push(BuildError::new(format!("{} {text}", made.key())));
                }
                if let Some(Err(text)) = &made.spec().rate {
                    errors.push(BuildError::new(format!("{}: {text}", made.key())));
                }
                let added = match &**made {
                    RuntimeItem::Tool(tool) => {
                        names.insert("tool", &name, &name, None, &mut errors);
                        ToolEntry::runtime(name, tool, state, rules.options.lists.strict).map(|entry| {
                            let entry = rules.apply_to_tool(item, entry, &mut opening);
                            tools.push((entry, &item.prefix));
                        })
                    }
                    RuntimeItem::Resource(resource) => ResourceEntry::runtime(&item.prefix, resource, state)
                        .map(|mut entry| {
                            rules.apply_to_resource(item, &mut entry);
                            add_resource(entry, None, skills, &mut names, &mut resources, &mut errors);
                        }),
                    RuntimeItem::Prompt(prompt) => {
                        names.insert("prompt", &name, &name, None, &mut errors);
                        PromptEntry::runtime(name, prompt, state)
                            .map(|entry| prompts.push(Arc::new(rules.apply_to_prompt(item, entry))))
                    }
                };
                resource_failed |= added.is_err() && matches!(**made, RuntimeItem::Resource(_));
                errors.extend(added.err());
                continue;
            }
            ItemSource::Annotated(linked) => *linked,
        };
        let descriptor = linked.descriptor();
        let missing = |inject: &&Inject| {
            !server_types.contains(&inject.target()) && !inject.is_provided(&item.state, &item.requested)
        };
        for inject in descriptor.injects.iter().filter(missing) {
            let (ty, fix) = (inject.name(), inject.fix(&item.state));
            errors.push(BuildError::at(
                descriptor.location,
                format!(
                    "{} `{name}` takes `&{ty}`, and no state of that type is registered\n{fix}",
                    linked.kind(),
                ),
            ));
        }
        for (option, takes) in linked.named() {
            for inject in takes.iter().filter(missing) {
                let (ty, fix) = (inject.name(), inject.fix(&item.state));
                errors.push(BuildError::at(
                    descriptor.location,
                    format!(
                        "the `{option}` function of {} `{name}` takes `&{ty}`, and no state of that type is registered\n{fix}",
                        linked.kind(),
                    ),
                ));
            }
        }
        if require_descriptions && descriptor.description.is_none() {
            let text = format!("{} `{name}` has no description\nwrite a doc comment on it", linked.kind());
            errors.push(BuildError::at(descriptor.location, text));
        }
        let scopes: Vec<String> = descriptor.scopes.iter().map(|&scope| scope.to_owned()).collect();
        if let Some(text) = rules.options.check_scopes(&scopes) {
            let kind = linked.kind();
            errors.push(BuildError::at(descriptor.location, format!("{kind} `{name}` {text}")));
        }
        let added = match linked {
            AnnotatedItem::Tool(def) => {
                names.insert("tool", &name, &name, Some(descriptor.location), &mut errors);
                ToolEntry::annotated(name, def, this, state, rules.options.lists.strict)
                    .map(|entry| tools.push((rules.apply_to_tool(item, entry, &mut opening), &item.prefix)))
            }
            AnnotatedItem::Resource(def) => {
                ResourceEntry::annotated(name, &item.prefix, server, def, this, state).map(|mut entry| {
                    rules.apply_to_resource(item, &mut entry);
                    // middleware puts what it knows of the caller into requests
                    entry.sees_caller |=
                        descriptor.injects.iter().any(|inject| item.requested.contains(&inject.target()));
                    let at = Some(descriptor.location);
                    add_resource(entry, at, skills, &mut names, &mut resources, &mut errors);
                })
            }
            AnnotatedItem::Prompt(def) => {
                names.insert("prompt", &name, &name, Some(descriptor.location), &mut errors);
                PromptEntry::annotated(name, def, this, state)
                    .map(|entry| prompts.push(Arc::new(rules.apply_to_prompt(item, entry))))
            }
        };
        resource_failed |= added.is_err() && matches!(linked, AnnotatedItem::Resource(_));
        errors.extend(added.err());
    }
    let pages = Pages::new(&resources);
    for (tool, prefix) in &mut tools {
        match pages.page_uri(tool, prefix) {
            Ok(page) => tool.page = page,
            // the missing page may be the resource with an error
            Err(_) if resource_failed => {}
            Err(error) => errors.push(error),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let tools = tools.into_iter().map(|(tool, _)| Arc::new(tool)).collect();
    Ok(Registry::new(tools, resources, prompts, skills.clone(), opening.capabilities))
}

/// Adds a resource, or reports that its URI is in use.
fn add_resource(
    entry: ResourceEntry,
    at: Option<Location>,
    skills: &SkillCatalog,
    names: &mut NamesInUse,
    resources: &mut Vec<Arc<ResourceEntry>>,
    errors: &mut Vec<BuildError>,
) {
    names.insert("resource", &comparable_uri(&entry.uri), &entry.uri, at, errors);
    if entry.template.is_exact()
        && let Ok(found) = skills.find(&entry.uri, Access::TRUSTED)
    {
        let folder = found.skill().directory.display();
        let text = format!("`{}` is a URI of the skill in `{folder}`", entry.uri);
        errors.push(entry.item.build_error(text));
    }
    resources.push(Arc::new(entry));
}

/// Sets in an entry the layers of its item, what the options of the server say, and the permits and limits that its item
/// had in registries before.
impl ItemRules<'_> {
    fn apply_to_tool(
        &self,
        item: &RegisteredItem,
        mut entry: ToolEntry,
        opening: &mut Opening<'_>,
    ) -> ToolEntry {
        let limits = &self.options.limits;
        entry.spec.item.layers = item.layers.clone();
        entry.input.max_values = limits.max_argument_values;
        entry.input.max_attempts = limits.max_alternatives;
        if let Some(permits) = entry.permits.take() {
            entry.permits = Some(item.permits.get_or_init(|| permits).clone());
        }
        let permits = entry.permits.clone();
        entry.continuation = entry.spec.task.map(|task| (task.open)(opening, task.mode, permits));
        // what continues outside of its request is meant to take long
        if entry.continuation.is_none() {
            entry.spec.timeout = entry.spec.timeout.or(limits.timeout);
        }
        entry.spec.item.max_result = entry.spec.item.max_result.or(limits.max_result);
        entry.spec.item.call_limits = self.call_limits(item, &entry.spec.item);
        entry
    }

    fn apply_to_resource(&self, item: &RegisteredItem, entry: &mut ResourceEntry) {
        entry.item.layers = item.layers.clone();
        entry.item.timeout = self.options.limits.timeout;
        entry.item.max_result = entry.item.max_result.or(self.options.limits.max_result);
        entry.item.call_limits = self.call_limits(item, &entry.item);
        entry.function.set_max_alternatives(self.options.limits.max_alternatives);
    }

    fn apply_to_prompt(&self, item: &RegisteredItem, mut entry: PromptEntry) -> PromptEntry {
        entry.item.layers = item.layers.clone();
        entry.item.max_result = entry.item.max_result.or(self.options.limits.max_result);
        entry.function.set_max_alternatives(self.options.limits.max_alternatives);
        entry.item.timeout = self.options.limits.timeout;
        entry.item.call_limits = self.call_limits(item, &entry.item);
        entry
    }

    /// The limits on the callers of an item.
    fn call_limits(&self, item: &RegisteredItem, spec: &ItemSpec) -> Option<Arc<CallLimits>> {
        let make = || {
            let limiter = |rate: Rate| Arc::new(RateLimiter::new(rate, self.options.limits.max_rate_callers));
            let own = spec.rate.iter().flatten().copied().map(limiter);
            let concurrency =
                spec.max_concurrency_per_caller.map(|calls| Arc::new(CallerConcurrency::new(calls)));
            let limits = CallLimits {
                rates: own.chain(item.mount_rates.iter().cloned()).collect(),
                concurrency: concurrency.into_iter().chain(self.caller_concurrency.clone()).collect(),
            };
            (!limits.is_empty()).then(|| Arc::new(limits))
        };
        item.call_limits.get_or_init(make).clone()
    }
}

/// Names and URIs that are in use, with the location of their items.
#[derive(Default)]
struct NamesInUse(HashMap<(&'static str, String), Option<Location>>);

impl NamesInUse {
    /// Adds a name, or reports that it is in use.
    fn insert(
        &mut self,
        kind: &'static str,
        key: &str,
        display: &str,
        at: Option<Location>,
        errors: &mut Vec<BuildError>,
    ) {
        if let Some(first) = self.0.insert((kind, key.to_owned()), at) {
            let location =
                |at: Option<Location>| at.map_or("made at run time".to_owned(), |at| at.to_string());
            let option = if kind == "resource" { "uri" } else { "name" };
            errors.push(BuildError::new(format!(
                "two {kind}s are `{display}`\n  --> {}\n  --> {}\ngive one of them another `{option}`",
                location(first),
                location(at)
            )));
        }
    }
}
