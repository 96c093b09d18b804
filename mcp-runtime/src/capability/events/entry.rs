//! An event of a server: its function, whose arguments are those of its subscriptions, its entry in `events/list`, and
//! the form of an occurrence that a subscription gets.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use serde_json::Value;

use super::{
    Delivery, EventDescriptor, EventResult, PayloadFns,
    payload::{CurrentPayload, NoPayload},
    ring::{EventRing, Occurrence},
};
use crate::{
    core::{
        arguments::{ArgumentChange, CallParts, Inject, Input, MAX_VALUES},
        build_error::BuildError,
        connection::{Access, AccessRules, ItemKind, Principal, RequestContext},
        context::{CallCancellation, ClientRequests, Context, ContextInner, Delivery as Unreachable},
        error::Failure,
        extensions::Extensions,
        invoke::{self, Ended, Invocation},
        item::ItemSpec,
        item_function::ItemFunction,
        item_output::{ItemOutput, wrong_kind},
        jsonrpc::{Object, write_array, write_string},
        protocol::Revision,
        server::{Entry, RegisteredItem, Server},
        sync::Mutex,
        tool::{Hints, ToolEntry, ToolSpec, conforming_output},
    },
    schema::{generator_for_output, link_patterns},
};

/// Why the function of an event cannot send requests to a client.
const NO_REQUEST: &str = "an event has no request";

/// The party that subscribes.
#[derive(Clone, Default)]
pub(crate) struct EventSubscriber {
    pub(crate) caller: Option<Arc<Principal>>,
    /// `None` if the server does not tell callers apart.
    pub(crate) access_rules: Option<Arc<AccessRules>>,
}

impl EventSubscriber {
    pub(super) fn of(context: &RequestContext) -> Self {
        Self { caller: context.caller.clone(), access_rules: context.access_rules.clone() }
    }

    pub(super) fn access(&self) -> Access<'_> {
        Access::new(self.caller.as_deref(), self.access_rules.as_deref())
    }
}

/// An event as the server offers it.
pub(crate) struct EventEntry {
    /// Its function, with arguments as those of a tool.
    pub(super) function: ToolEntry,
    payload: PayloadFns,
    payload_schema: Value,
    /// How it is delivered.
    pub(super) delivery: Vec<Delivery>,
    /// Whether its function takes `&Principal`, so that it is not for anonymous callers.
    pub(super) needs_caller: bool,
    /// Identifies the event that it is of, which may be registered under several names.
    pub(super) key: usize,
    pub(super) ring: Arc<EventRing>,
}

impl Entry for EventEntry {
    const KIND: ItemKind = ItemKind::Event;

    fn item(&self) -> &ItemSpec {
        &self.function.spec.item
    }

    fn item_mut(&mut self) -> (&mut ItemSpec, Option<&mut Hints>) {
        (&mut self.function.spec.item, None)
    }

    fn argument_names(&self) -> Vec<String> {
        self.function.argument_names()
    }

    fn change_arguments(&mut self, changes: &[(String, ArgumentChange)]) -> Result<(), BuildError> {
        self.function.change_arguments(changes)
    }
}

impl EventEntry {
    /// The entry of an annotated event.
    ///
    /// # Errors
    /// It is declared in a way that cannot be served.
    pub(super) fn annotated(
        def: &'static EventDescriptor,
        item: &RegisteredItem,
        ring: Arc<EventRing>,
        strict: bool,
    ) -> Result<Self, BuildError> {
        let state = item.state.clone();
        let mut spec = ToolSpec::new(item.name(), &def.function);
        spec.noun = Some("event");
        spec.strict |= strict;
        let function = ToolEntry::described(spec, &def.function, item.this.clone(), state)?;
        let error = |text: String| function.spec.build_error(text);
        let Some(payload) = def.payload else {
            return Err(error("it has no payload\nmark a parameter with `#[mcp(payload)]`".into()));
        };
        let injects = def.function.item.injects;
        let takes = injects.iter().copied().chain(def.function.item.rules.injects());
        let of_request: Vec<_> = takes.filter_map(|inject| needs_request(&inject, item)).map(error).collect();
        BuildError::check_all(of_request)?;
        let needs_caller = injects.iter().any(|inject| inject.is::<Principal>() && !inject.optional);
        link_patterns();
        let mut generator = generator_for_output();
        let seen = def.output.and_then(|schema| schema(&mut generator));
        let schema = seen.unwrap_or_else(|| (payload.schema)(&mut generator));
        let (mut payload_schema, _) = conforming_output(schema, generator).map_err(error)?;
        if !is_object(&payload_schema, &payload_schema) {
            let text = "its payload is not a JSON object\nput the values into a struct";
            return Err(error(text.into()));
        }
        if let Some(root) = payload_schema.as_object_mut() {
            root.entry("type").or_insert_with(|| "object".into());
        }
        let delivery = def.deliver.to_vec();
        Ok(Self { function, payload, payload_schema, delivery, needs_caller, key: def.key(), ring })
    }

    /// Appends its entry in `events/list`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let item = self.item();
        let mut entry = Object::new(out);
        entry.str("name", &item.name).opt_str("description", item.description.as_deref());
        write_array(entry.key("delivery"), &self.delivery, |out, mode| write_string(out, mode.as_str()));
        self.function.write_input(entry.key("inputSchema"));
        entry.value("payloadSchema", &self.payload_schema);
        if let Some(meta) = &item.meta {
            entry.raw("_meta", meta);
        }
        entry.end();
    }

    /// The arguments as the function gets them, of those that a client has sent.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) fn given<'a>(&self, arguments: &'a str) -> Result<Cow<'a, str>, Failure> {
        let Some(before) = &self.function.before else { return Ok(Cow::Borrowed(arguments)) };
        before
            .given
            .apply(&self.function.input, arguments, self.function.spec.strict)
            .map(Cow::Owned)
            .map_err(Failure::Arguments)
    }

    /// Checks the arguments of a subscription.
    ///
    /// # Errors
    /// They are invalid, or a rule has failed; the text is the report.
    pub(super) async fn check_arguments(
        &self,
        server: &Server,
        subscriber: &EventSubscriber,
        arguments: &str,
    ) -> Result<(), Failure> {
        match finished(self.start(server, subscriber, arguments, &Arc::default())).await {
            // the function was called without an event
            Err(failure) if NoPayload::is(&failure) => Ok(()),
            Err(failure) => Err(failure),
            Ok(_) => Err(wrong_kind()),
        }
    }

    /// The form of an occurrence that a subscription with these arguments gets.
    ///
    /// # Errors
    /// The function failed.
    pub(super) async fn look(
        &self,
        server: &Server,
        subscriber: &EventSubscriber,
        arguments: &str,
        occurrence: &Occurrence,
    ) -> Result<EventResult, Failure> {
        if occurrence.is_empty() || !occurrence.is_for(subscriber) {
            return Ok(EventResult::Nothing);
        }
        let payload = occurrence.payload(self.payload).ok_or_else(|| {
            Failure::private("the payload was emitted as JSON that its type does not accept".to_owned())
        })?;
        let mut extensions = Extensions::default();
        extensions.insert(CurrentPayload(payload));
        let started = self.start(server, subscriber, arguments, &Arc::new(extensions));
        let output = finished(started).await?;
        let ItemOutput::Other(seen) = output else { return Err(wrong_kind()) };
        match seen.downcast::<EventResult>().map(|seen| *seen) {
            Ok(EventResult::Json(json)) if !json.starts_with('{') => {
                Err(Failure::private("the return value of the function is not a JSON object".to_owned()))
            }
            Ok(seen) => Ok(seen),
            Err(_) => Err(wrong_kind()),
        }
    }

    /// Calls the function, once its rules have been checked.
    fn start(
        &self,
        server: &Server,
        subscriber: &EventSubscriber,
        arguments: &str,
        extensions: &Arc<Extensions>,
    ) -> Invocation {
        let ToolEntry { spec, function, input, input_validator, state, .. } = &self.function;
        let context = || {
            let EventSubscriber { caller, access_rules } = subscriber.clone();
            let request = RequestContext {
                caller,
                access_rules,
                extensions: extensions.clone(),
                ..RequestContext::default()
            };
            Context::new(ContextInner {
                revision: Revision::LATEST,
                state: state.clone(),
                request,
                client: Default::default(),
                meta: None,
                progress: None,
                log_level: None,
                cancel: CallCancellation::default(),
                client_requests: ClientRequests::new(Unreachable::Unavailable(NO_REQUEST), None),
                continuation: OnceLock::new(),
                suspension: Mutex::default(),
                settings: server.settings().clone(),
                parent: None,
            })
        };
        let needs_check = arguments.len() > MAX_VALUES || input.attempts.is_some();
        if needs_check && let Err(failure) = input.check_size(arguments) {
            return Ended::Returned(Err(failure)).into();
        }
        let ItemFunction::Annotated(function) = function else {
            return Ended::Returned(Err(wrong_kind())).into();
        };
        let parts = CallParts {
            input: Input::Json(arguments),
            args: function.args,
            rules: &function.rules,
            strict: spec.strict,
            tool: Some(input),
            validator: input_validator.as_ref(),
            this: function.this.as_ref(),
            context: &context,
        };
        invoke::start(&spec.item.name, function, &parts, spec.item.timeout, false)
    }
}

/// The output of the function.
async fn finished(started: Invocation) -> Result<ItemOutput, Failure> {
    match started.finish().await {
        Ended::Returned(result) => result,
        Ended::Suspended(..) => Err(Failure::private(NO_REQUEST)),
    }
}

impl Occurrence {
    /// Whether it is for a subscriber, whatever the function says.
    fn is_for(&self, subscriber: &EventSubscriber) -> bool {
        let Some(recipients) = &self.recipients else { return true };
        if subscriber.access_rules.is_none() {
            // the one client of a server that does not tell callers apart
            return true;
        }
        subscriber.caller.as_deref().is_some_and(|caller| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| recipients(caller))).unwrap_or(false)
        })
    }
}

/// The problem with an injected value that only a request has.
fn needs_request(inject: &Inject, item: &RegisteredItem) -> Option<String> {
    let ty = inject.name();
    if inject.is::<Context>() {
        let text = "it takes `&Context`, and an event has no request\ntake `Option<&Principal>` to see who subscribes, and state as `&T`";
        return Some(text.to_owned());
    }
    let of_request = item.requested.contains(&inject.target()) && !inject.is_provided(&item.state, &[]);
    of_request.then(|| {
        format!(
            "it takes `&{ty}`, which middleware puts into requests, and an event has no request\nregister a value with `.state(..)`, or take `Option<&Principal>`"
        )
    })
}

/// Whether a schema accepts objects only.
fn is_object(root: &Value, schema: &Value) -> bool {
    let reference = schema.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix("#/$defs/"));
    if let Some(definition) = reference.and_then(|name| root.get("$defs")?.get(name)) {
        // one that refers to itself is a struct
        return definition.get("$ref").is_none() && is_object(root, definition);
    }
    let alternatives = ["oneOf", "anyOf"].iter().find_map(|keyword| schema.get(*keyword)?.as_array());
    match (schema.get("type"), alternatives) {
        (Some(ty), _) => *ty == "object",
        (None, Some(all)) => !all.is_empty() && all.iter().all(|one| is_object(root, one)),
        (None, None) => schema.get("properties").is_some(),
    }
}
