//! Changes of items as they are registered: one module of functions serves as many tools that are configured differently.
//! Clients cannot reach hidden or fixed values; schemas, signatures and reports follow.

use std::{
    any::{Any, type_name},
    collections::HashMap,
    fmt,
    panic::Location as Caller,
    sync::Arc,
};

use serde_json::Value;

use super::{
    item::RegisteredItem,
    service_block::{FoundService, find_service},
};
use crate::{
    core::{
        arguments::ArgumentChange, bound::Texts, build_error::BuildError, connection::ItemKind,
        content::Icon, item::ItemSpec, tool::Hints,
    },
    schema::{nearest, sort_by},
};

/// Changes each item of a service, a mount or a server.
#[derive(Clone)]
pub(crate) struct Transform {
    change: Arc<dyn Fn(ItemChanges) -> ItemChanges + Send + Sync>,
    at: &'static Caller<'static>,
}

impl Transform {
    #[track_caller]
    pub(super) fn new(change: impl Fn(ItemChanges) -> ItemChanges + Send + Sync + 'static) -> Self {
        Self { change: Arc::new(change), at: Caller::caller() }
    }

    fn id(&self) -> usize {
        Arc::as_ptr(&self.change).cast::<()>().addr()
    }
}

/// A service whose items are changed, for [`service`](crate::ServerBuilder::service) and
/// [`service_as`](crate::ServerBuilder::service_as).
///
/// ```
/// use mcp_runtime::{prelude::*, transform::Transformed};
///
/// struct Weather {
///     source: &'static str,
/// }
///
/// #[mcp_service]
/// impl Weather {
///     /// The weather in a city.
///     #[mcp_tool]
///     fn forecast(&self, region: String, city: String) -> String {
///         format!("{} of {region}, says {}", city, self.source)
///     }
/// }
///
/// # fn main() -> mcp_runtime::Result<()> {
/// let europe = Transformed::service(Weather { source: "the north" }, |item| {
///     item.describe("The weather in a city of Europe.").fix("region", "eu")
/// });
/// let server = mcp_runtime::server!()
///     .service_as("eu", europe)
///     .service_as("world", Weather { source: "all" })
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[must_use = "give it to `.service(..)` or `.service_as(..)`"]
pub struct Transformed {
    pub(super) found: Option<FoundService>,
    pub(super) type_name: &'static str,
    pub(super) transforms: Vec<Transform>,
}

impl fmt::Debug for Transformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transformed").field("type_name", &self.type_name).finish_non_exhaustive()
    }
}

impl Transformed {
    /// The annotated methods of a service, each with these changes.
    #[track_caller]
    pub fn service<S: Any>(
        service: S,
        change: impl Fn(ItemChanges) -> ItemChanges + Send + Sync + 'static,
    ) -> Self {
        Self {
            found: find_service(service),
            type_name: type_name::<S>(),
            transforms: vec![Transform::new(change)],
        }
    }

    /// Takes the argument of `service` or `service_as`, if it is a transform.
    pub(super) fn from_any<S: Any>(service: S) -> Self {
        let mut service = Some(service);
        let given = (&mut service as &mut dyn Any).downcast_mut::<Option<Self>>().and_then(Option::take);
        given.unwrap_or_else(|| Self {
            found: service.and_then(find_service),
            type_name: type_name::<S>(),
            transforms: Vec::new(),
        })
    }
}

/// One item as [`transform`](crate::ServerBuilder::transform) sees it, with the changes so far.
#[derive(Debug, Clone)]
#[must_use = "return it"]
pub struct ItemChanges {
    kind: ItemKind,
    name: String,
    prefix: String,
    /// The arguments that clients see.
    arguments: Vec<String>,
    /// Other names, each with the argument that has it.
    aliases: Vec<(String, String)>,
    title: Option<String>,
    description: Option<String>,
    hints: Hints,
    icons: Vec<Icon>,
    meta: Vec<(String, Value)>,
    scopes: Vec<String>,
    of_arguments: Vec<(String, ArgumentChange)>,
    named: Vec<NamedPart>,
}

/// Something that a transform has named.
#[derive(Debug, Clone)]
struct NamedPart {
    /// `argument` or `item`.
    what: &'static str,
    name: String,
    exists: bool,
    known: Vec<String>,
}

impl ItemChanges {
    fn new(
        kind: ItemKind,
        item: &RegisteredItem,
        spec: &ItemSpec,
        hints: Hints,
        arguments: Vec<String>,
    ) -> Self {
        let prefix = item.prefix.clone();
        let own = spec.name.strip_prefix(prefix.as_str()).and_then(|rest| rest.strip_prefix('_'));
        Self {
            kind,
            name: own.filter(|_| !prefix.is_empty()).unwrap_or(&spec.name).to_owned(),
            prefix,
            arguments,
            aliases: spec.aliases.clone(),
            title: spec.title.clone(),
            description: spec.description.clone(),
            hints,
            icons: spec.icons.clone(),
            meta: Vec::new(),
            scopes: spec.scopes.clone(),
            of_arguments: Vec::new(),
            named: Vec::new(),
        }
    }

    /// The kind of the item.
    #[must_use]
    pub fn kind(&self) -> ItemKind {
        self.kind
    }

    /// Its name, without the prefix of its service and its mounts.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The prefix of its service and its mounts, joined; empty without one.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Changes only the item of this name, without or with its prefix. A name that no item has is an error of
    /// [`build`](crate::ServerBuilder::build).
    pub fn only(mut self, name: &str, change: impl FnOnce(Self) -> Self) -> Self {
        let exists = self.name == name
            || (!self.prefix.is_empty() && format!("{}_{}", self.prefix, self.name) == name);
        let known = vec![self.name.clone()];
        self.named.push(NamedPart { what: "item", name: name.to_owned(), exists, known });
        if exists { change(self) } else { self }
    }

    /// Sets its name, to which prefixes are added.
    pub fn rename(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets `title` on the wire.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets `description` on the wire.
    pub fn describe(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Sets the `annotations` of a tool: `.hints(|hints| hints.read_only = Some(true))`.
    pub fn hints(mut self, set: impl FnOnce(&mut Hints)) -> Self {
        set(&mut self.hints);
        self
    }

    /// Sets its icon, in place of those that it has.
    pub fn icon(mut self, icon: impl Into<Icon>) -> Self {
        self.icons = vec![icon.into()];
        self
    }

    /// Sets a member of `_meta`.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.push((key.into(), value.into()));
        self
    }

    /// Sets the scopes that a caller needs, in place of those that the item has.
    pub fn scopes(mut self, scopes: impl Texts) -> Self {
        self.scopes = scopes.into_texts();
        self
    }

    /// Sets the description of an argument.
    pub fn describe_argument(self, name: &str, text: impl Into<String>) -> Self {
        self.argument(name, &ArgumentChange::Describe(text.into()))
    }

    /// Sets what an argument is where the client leaves it out.
    pub fn default(self, name: &str, value: impl Into<Value>) -> Self {
        self.argument(name, &ArgumentChange::Default(value.into()))
    }

    /// Hides an argument from clients, and gives the function this value whatever they send. A variable in the path of a
    /// resource's URI becomes this value there: `notes://{tenant}/{id}` is `notes://own/{id}` then.
    ///
    /// Items of the transform without this argument are unchanged.
    pub fn fix(self, name: &str, value: impl Into<Value>) -> Self {
        self.argument(name, &ArgumentChange::Fix(value.into()))
    }

    /// Hides an argument that may be absent, which it always is then.
    pub fn hide(self, name: &str) -> Self {
        self.argument(name, &ArgumentChange::Hide)
    }

    fn argument(mut self, name: &str, change: &ArgumentChange) -> Self {
        let own = self.arguments.iter().filter(|known| *known == name);
        let mut found: Vec<String> = own.cloned().collect();
        if found.is_empty() {
            let named = self.aliases.iter().filter(|(alias, _)| alias == name);
            found.extend(named.map(|(_, argument)| argument.clone()));
        }
        // variables of a URI have no description
        if self.kind == ItemKind::Resource && matches!(change, ArgumentChange::Describe(_)) {
            found.clear();
        }
        let (exists, known) = (!found.is_empty(), self.arguments.clone());
        self.named.push(NamedPart { what: "argument", name: name.to_owned(), exists, known });
        self.of_arguments.extend(found.into_iter().map(|argument| (argument, change.clone())));
        self
    }
}

/// The outcome of looking up a name in a transform.
#[derive(Default)]
struct FoundName {
    exists: bool,
    /// The names that exist.
    known: Vec<String>,
    at: Option<&'static Caller<'static>>,
}

/// Runs the transforms of all items, and finds the names that no item has.
#[derive(Default)]
pub(crate) struct Transforms {
    require_descriptions: bool,
    /// By transform, and by what it names.
    named: HashMap<(usize, &'static str, String), FoundName>,
    /// The transforms of items that may come later.
    awaiting: Vec<usize>,
}

impl Transforms {
    pub(super) fn new(require_descriptions: bool) -> Self {
        Self { require_descriptions, named: HashMap::new(), awaiting: Vec::new() }
    }

    /// Lets these transforms name what is not there yet.
    pub(super) fn await_names(&mut self, transforms: &[Transform]) {
        self.awaiting.extend(transforms.iter().map(Transform::id));
    }

    /// Runs the transforms of an item, whose arguments these are; returns how they change.
    ///
    /// # Errors
    /// It has no description, and needs one.
    pub(crate) fn run(
        &mut self,
        item: &RegisteredItem,
        kind: ItemKind,
        spec: &mut ItemSpec,
        hints: &mut Hints,
        arguments: Vec<String>,
    ) -> Result<Vec<(String, ArgumentChange)>, BuildError> {
        let mut changes = ItemChanges::new(kind, item, spec, *hints, arguments);
        for transform in &*item.transforms {
            changes = (transform.change)(changes);
            let id = transform.id();
            for NamedPart { what, name, exists, known } in changes.named.drain(..) {
                let found = self.named.entry((id, what, name)).or_default();
                found.exists |= exists;
                found.known.extend(known);
                found.at = Some(transform.at);
            }
        }
        *hints = changes.hints;
        change_spec(spec, &changes);
        if self.require_descriptions && spec.description.is_none() {
            let text = format_args!("`{}` has no description\nset one with `.describe(..)`", spec.name);
            return Err(spec.build_error(text));
        }
        Ok(changes.of_arguments)
    }

    /// The names that exist nowhere.
    pub(super) fn errors(self) -> Vec<BuildError> {
        let mut errors: Vec<_> = self
            .named
            .into_iter()
            .filter(|((transform, ..), found)| !found.exists && !self.awaiting.contains(transform))
            .map(|((_, what, name), FoundName { mut known, at, .. })| {
                sort_by(&mut known, Ord::cmp);
                known.dedup();
                let fix = match nearest(&name, known.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if known.is_empty() => "nothing that it changes has arguments".to_owned(),
                    None => format!("there is {}", known.join(", ")),
                };
                let at = at.map(ToString::to_string).unwrap_or_default();
                format!("a transform names the {what} `{name}`, which nothing that it changes has\n{fix}\n  --> {at}")
            })
            .collect();
        sort_by(&mut errors, Ord::cmp);
        errors.into_iter().map(BuildError::new).collect()
    }
}

fn change_spec(spec: &mut ItemSpec, changes: &ItemChanges) {
    let ItemChanges { name, prefix, title, description, icons, meta, scopes, .. } = changes;
    spec.name = if prefix.is_empty() { name.clone() } else { format!("{prefix}_{name}") };
    spec.title.clone_from(title);
    spec.description.clone_from(description);
    spec.icons.clone_from(icons);
    spec.scopes.clone_from(scopes);
    for (key, value) in meta {
        spec.insert_meta(key.clone(), value.clone());
    }
}
