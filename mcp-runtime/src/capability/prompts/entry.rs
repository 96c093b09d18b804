//! A prompt of a server, its entry in `prompts/list`, and the completions of its arguments.

use std::{any::Any, sync::Arc};

use super::{PromptArgument, PromptCall, PromptDef, PromptDescriptor};
use crate::core::{
    arguments::{ArgumentChange, CompletionSource, GivenArguments, declaration_errors, text_of_value},
    build_error::BuildError,
    connection::ItemKind,
    extensions::Extensions,
    item::ItemSpec,
    item_function::{Function, ItemFunction},
    jsonrpc::{Object, write_array},
    protocol::Revision,
    server::Entry,
    tool::Hints,
};

/// A prompt as the server offers it.
pub(crate) struct PromptEntry {
    pub(crate) item: ItemSpec,
    pub(crate) function: ItemFunction<PromptCall>,
    pub(crate) arguments: Vec<PromptArgument>,
    /// Arguments that its function gets from the server.
    pub(crate) given: GivenArguments,
    pub(crate) state: Arc<Extensions>,
}

impl Entry for PromptEntry {
    const KIND: ItemKind = ItemKind::Prompt;

    fn item(&self) -> &ItemSpec {
        &self.item
    }

    fn item_mut(&mut self) -> (&mut ItemSpec, Option<&mut Hints>) {
        (&mut self.item, None)
    }

    fn argument_names(&self) -> Vec<String> {
        self.arguments.iter().map(|argument| argument.name().to_owned()).collect()
    }

    fn change_arguments(&mut self, changes: &[(String, ArgumentChange)]) -> Result<(), BuildError> {
        let mut errors = Vec::new();
        for (name, change) in changes {
            if let ArgumentChange::Default(value) | ArgumentChange::Fix(value) = change
                && let Some(arg) = self.function.args().iter().find(|arg| arg.name() == name)
                && let Some(error) = arg.text_error(&text_of_value(value))
            {
                errors.push(format!("a transform gives it another value than it takes: `{name}`: {error}"));
            }
            let Some(argument) = self.arguments.iter_mut().find(|argument| argument.name() == name) else {
                continue;
            };
            match change {
                ArgumentChange::Describe(text) => argument.description = Some(text.clone()),
                ArgumentChange::Default(value) => {
                    argument.required = false;
                    self.given.defaults.push((name.clone(), value.clone()));
                }
                ArgumentChange::Fix(value) => self.given.hidden.push((name.clone(), Some(value.clone()))),
                ArgumentChange::Hide => {
                    if argument.required {
                        errors.push(format!("`{name}` is required, so it cannot be hidden\ngive it a value with `.fix(\"{name}\", ..)`"));
                    }
                    self.given.hidden.push((name.clone(), None));
                }
            }
        }
        if self.function.args().is_empty() {
            // one that is made at run time gets what it declares
            for argument in &mut self.arguments {
                argument.required &= !self.given.hidden.iter().any(|(name, _)| argument.name() == name);
            }
        }
        let error = |text: String| self.item.build_error(format_args!("prompt `{}`: {text}", self.item.name));
        BuildError::check_all(errors.into_iter().map(error).collect())
    }
}

impl PromptEntry {
    /// The entry of an annotated prompt.
    pub(crate) fn annotated(
        name: String,
        def: &'static PromptDescriptor,
        this: Option<Arc<dyn Any + Send + Sync>>,
        state: Arc<Extensions>,
    ) -> Result<Self, BuildError> {
        let item = ItemSpec::new(name, &def.item);
        let args = def.item.args;
        let mut errors = declaration_errors(args);
        let rules = def.item.rules.bind(args).unwrap_or_else(|found| {
            errors.extend(found);
            Vec::new()
        });
        let error = |text: String| item.build_error(format_args!("prompt `{}`: {text}", item.name));
        BuildError::check_all(errors.into_iter().map(error).collect())?;
        let function = ItemFunction::Annotated(Function::new(def.handler, args, rules, this));
        let arguments = args.iter().map(|arg| PromptArgument::of(*arg)).collect();
        Ok(Self { item, function, arguments, given: GivenArguments::default(), state })
    }

    /// The entry of a prompt made at run time.
    pub(crate) fn runtime(name: String, def: &PromptDef, state: Arc<Extensions>) -> Result<Self, BuildError> {
        let item = ItemSpec { name, ..def.item.clone() };
        let error = |text: String| item.build_error(format_args!("prompt `{}`: {text}", item.name));
        if item.name.is_empty() {
            return Err(error("its name is empty\nwrite `PromptDef::builder(\"name\")`".into()));
        }
        if let Some(text) = item.icons.iter().find_map(|icon| icon.validate().err()) {
            return Err(error(text));
        }
        for (index, argument) in def.arguments.iter().enumerate() {
            let name = argument.name();
            if name.is_empty() {
                return Err(error("the name of an argument is empty\nwrite one".into()));
            }
            if def.arguments[..index].iter().any(|other| other.name() == name) {
                return Err(error(format!("two arguments are named `{name}`\nrename one of them")));
            }
        }
        let function = ItemFunction::Runtime(def.handler.clone());
        Ok(Self { item, function, arguments: def.arguments.clone(), given: GivenArguments::default(), state })
    }

    /// The arguments that clients see.
    fn shown(&self) -> impl Iterator<Item = &PromptArgument> {
        self.arguments
            .iter()
            .filter(|argument| !self.given.hidden.iter().any(|(name, _)| argument.name() == name))
    }

    pub(crate) fn completes(&self) -> bool {
        self.shown().any(|argument| argument.completion.completes())
    }

    /// How an argument completes, if the prompt has one of that name.
    pub(crate) fn completion(&self, argument: &str) -> Option<&CompletionSource> {
        self.shown().find(|known| known.name() == argument).map(|known| &known.completion.source)
    }

    /// Appends its entry in `prompts/list`.
    pub(crate) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let mut entry = Object::new(out);
        entry.str("name", &self.item.name);
        self.item.write_texts(&mut entry, revision);
        let shown: Vec<_> = self.shown().collect();
        if !shown.is_empty() {
            write_array(entry.key("arguments"), &shown, |out, argument| {
                let mut object = Object::new(out);
                object.str("name", argument.name());
                if revision >= Revision::V2025_06_18 {
                    object.opt_str("title", argument.title.as_deref());
                }
                object.opt_str("description", argument.description.as_deref());
                object.value("required", &argument.required);
                object.end();
            });
        }
        if let Some(meta) = self.item.meta.as_deref().filter(|_| revision >= Revision::V2025_06_18) {
            entry.raw("_meta", meta);
        }
        self.item.write_members(&mut entry, &["arguments"]);
        entry.end();
    }
}
