//! Form mode: the form for a type `T`, its params in each revision, and the check of what the user filled in.

use std::{any::type_name, borrow::Cow, marker::PhantomData};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{
    answer::{Answer, decode_result},
    field::{FieldKind, FormField},
    field_order::list_fields,
};
use crate::{
    core::{
        client_request::engine::{ResponseFuture, with_meta},
        context::{ClientFeature, ClientRequestError, Context, PendingRequest},
        jsonrpc::{Object, write_array, write_string},
        protocol::Revision,
    },
    schema::{Direction, Validator, cap_patterns, generator, minimize, sort_by},
};

/// Types that a form can request.
///
/// A struct of strings, numbers, booleans, enums without data and lists of such enums; or a single one of these.
/// `()` requests nothing but agreement.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be elicited",
    label = "not a type that a form can request",
    note = "put `#[mcp_type]` on `{Self}`, or derive `serde::Deserialize` and `schemars::JsonSchema` (1.x)",
    note = "a form is a struct of strings, numbers, booleans, enums without data and lists of such enums, or a single one of these"
)]
pub trait Elicitable: DeserializeOwned + JsonSchema + Send + 'static {}
#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> Elicitable for T {}

impl Context {
    /// Requests that the user fills in a form, which is made of `T`: a struct, or a single value.
    ///
    /// The fields of a struct may be strings, numbers, booleans, enums without data and lists (or sets) of such enums,
    /// each of them optional. `message` says what the form is for. The key identifies the client request within its
    /// call, in which it must be unique.
    ///
    /// Everything before a client request may run again when the response arrives, unless it is inside
    /// [`once`](Self::once).
    ///
    /// # Errors
    /// The user declined or dismissed the form ([`ClientRequestError::Declined`], [`ClientRequestError::Cancelled`]; see
    /// [`Elicit::answer`] for a result without an error), no request can be sent to the client, or `T` does not fit
    /// into a form.
    ///
    /// See [elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation).
    ///
    /// ```
    /// use mcp_runtime::prelude::*;
    ///
    /// #[mcp_type]
    /// enum Size {
    ///     /// Small (30 cm)
    ///     S,
    ///     /// Large (45 cm)
    ///     L,
    /// }
    ///
    /// #[mcp_type]
    /// struct Delivery {
    ///     /// Where to
    ///     address: String,
    ///     size: Size,
    ///     /// Anything else?
    ///     note: Option<String>,
    /// }
    ///
    /// /// Orders a pizza.
    /// #[mcp_tool]
    /// async fn order(pizza: String, ctx: &Context) -> Result<String, ToolError> {
    ///     let delivery: Delivery = ctx.elicit("delivery", "How shall we deliver it?").await?;
    ///     Ok(format!("{pizza} goes to {}", delivery.address))
    /// }
    /// ```
    pub fn elicit<'c, T: Elicitable>(
        &'c self,
        key: impl Into<Cow<'c, str>>,
        message: impl Into<Cow<'c, str>>,
    ) -> Elicit<'c, T> {
        let (key, message) = (key.into(), message.into());
        Elicit { ctx: self, key, message, meta: Map::new(), value: PhantomData }
    }
}

/// A form for the user to fill in, of [`Context::elicit`].
///
/// Awaited, it gives the value, or an error if the user declined or dismissed it; [`answer`](Self::answer)
/// distinguishes these without an error. Nothing is sent before it is polled.
#[derive(Debug)]
#[must_use = "nothing is sent before `.await`"]
pub struct Elicit<'c, T> {
    ctx: &'c Context,
    key: Cow<'c, str>,
    message: Cow<'c, str>,
    meta: Map<String, Value>,
    value: PhantomData<fn() -> T>,
}

impl<'c, T: Elicitable> Elicit<'c, T> {
    /// Adds a member to the `_meta` of the request, which only clients of 2025-11-25 see.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// The same elicitation, in which declining is an answer and not an error.
    ///
    /// ```
    /// # use mcp_runtime::{client_request::{Answer, ClientRequestError}, prelude::*};
    /// # async fn ask(ctx: &Context) -> Result<&'static str, ClientRequestError> {
    /// Ok(match ctx.elicit::<bool>("overwrite", "Overwrite the file?").answer().await? {
    ///     Answer::Accept(true) => "overwritten",
    ///     Answer::Accept(false) | Answer::Decline => "kept",
    ///     Answer::Cancel => "dismissed",
    /// })
    /// # }
    /// ```
    pub fn answer(self) -> ResponseFuture<'c, Answer<T>> {
        Box::pin(self.request())
    }

    async fn request(self) -> Result<Answer<T>, ClientRequestError> {
        let Self { ctx, key, message, meta, .. } = self;
        let form = ElicitationForm::of::<T>(&key)?;
        let params = form.params(&message, ctx.revision())?;
        let request = PendingRequest {
            key: key.into(),
            requires: ClientFeature::Elicitation,
            method: "elicitation/create",
            params: with_meta(params, &meta, ctx.revision()),
        };
        ctx.request_client(request, |result| decode_result(result, |content| form.decode(content))).await
    }
}

impl<'c, T: Elicitable> IntoFuture for Elicit<'c, T> {
    type Output = Result<T, ClientRequestError>;
    type IntoFuture = ResponseFuture<'c, T>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let key = self.key.clone();
            self.request().await?.into_result(&key)
        })
    }
}

/// The field's name in the form for a type that is not a struct.
const VALUE: &str = "value";

/// The last line of messages about types that do not fit.
const FITS: &str = "forms have strings, numbers, booleans, enums without data and lists of such enums";

/// Keywords that are not checked: annotations, and what decoding repairs.
const UNCHECKED: [&str; 2] = ["enumNames", "uniqueItems"];

/// Keywords of objects that are not a flat list of members.
const NOT_FLAT: [&str; 5] = ["$ref", "oneOf", "anyOf", "allOf", "patternProperties"];

/// How the content of a form becomes a `T`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormShape {
    /// A struct: the content is its members.
    Members,
    /// A bare value, which is the content's member `value`.
    Value,
    /// `()`: the user only agrees.
    Unit,
}

/// The form for one type.
#[derive(Debug)]
pub(super) struct ElicitationForm {
    fields: Vec<FormField>,
    shape: FormShape,
    /// Checks content against the whole schema of the type, not only the part that forms can show.
    validator: Validator,
}

impl ElicitationForm {
    /// The form for a `T`, for the request with that key.
    ///
    /// # Errors
    /// Forms cannot express the type.
    pub(super) fn of<T: Elicitable>(key: &str) -> Result<Self, ClientRequestError> {
        let mut root = generator().into_root_schema_for::<T>().to_value();
        minimize(&mut root, Direction::Input);
        Self::read(root, &list_fields::<T>()).map_err(|what| {
            let reason = format!("`{}` does not fit into a form: {what}\n{FITS}", type_name::<T>());
            ClientRequestError::Unfit { key: key.into(), reason }
        })
    }

    fn read(root: Value, declared: &[&str]) -> Result<Self, String> {
        let Value::Object(mut root) = root else { return Err("it may be any value".to_owned()) };
        let shape = match root.get("type").and_then(Value::as_str) {
            Some("null") => FormShape::Unit,
            Some("object") => FormShape::Members,
            _ => FormShape::Value,
        };
        let (properties, required) = match shape {
            FormShape::Unit => (Map::new(), Vec::new()),
            FormShape::Value => {
                let required = if is_nullable(&root) { Vec::new() } else { vec![VALUE.to_owned()] };
                root.remove("title");
                let definitions = root.remove("$defs");
                let mut whole = json!({ "properties": { VALUE: root }, "required": required });
                if let Some(definitions) = definitions {
                    whole["$defs"] = definitions;
                }
                // again: a nullable value may also be absent now
                minimize(&mut whole, Direction::Input);
                (take_members(&mut whole), required)
            }
            FormShape::Members => {
                check_flat(&root)?;
                let required = root.get("required").and_then(Value::as_array).into_iter().flatten();
                let required = required.filter_map(Value::as_str).map(str::to_owned).collect();
                (take_members(&mut Value::Object(root)), required)
            }
        };
        let mut fields = Vec::with_capacity(properties.len());
        for (name, property) in &properties {
            let field =
                FormField::read(name, property, required.contains(name)).map_err(|what| match shape {
                    FormShape::Members => format!("its field `{name}` is {what}"),
                    _ => format!("it is {what}"),
                })?;
            fields.push(field);
        }
        let position = |name: &str| {
            let by_type = declared.iter().position(|known| *known == name);
            let by_schema = required.iter().position(|known| known == name);
            (by_type.unwrap_or(usize::MAX), by_schema.unwrap_or(usize::MAX))
        };
        sort_by(&mut fields, |one, other| position(&one.name).cmp(&position(&other.name)));
        let schema = content_schema(properties, &required);
        let validator =
            Validator::compile(&schema).map_err(|error| error.to_string())?.null_is_absent().check_formats();
        Ok(Self { fields, shape, validator })
    }

    /// Whether the user may agree without any content.
    fn may_be_empty(&self) -> bool {
        self.fields.iter().all(|field| !field.required)
    }

    /// Decodes what the user filled in.
    ///
    /// # Errors
    /// The reason why it is invalid, by path, without quoting the user.
    pub(super) fn decode<T: Elicitable>(&self, content: Option<Value>) -> Result<T, String> {
        let value = self.repair(content)?;
        serde_json::from_value(value).map_err(|_| {
            // the decoder's message would quote the user
            format!("`content` fits the form, but is not a valid `{}`", type_name::<T>())
        })
    }

    fn repair(&self, content: Option<Value>) -> Result<Value, String> {
        let mut content = match content {
            Some(Value::Object(content)) => content,
            None | Some(Value::Null) if self.may_be_empty() => Map::new(),
            None | Some(Value::Null) => return Err("`content` is missing".to_owned()),
            Some(_) => return Err("`content` is not an object".to_owned()),
        };
        content.retain(|name, value| {
            let field = self.fields.iter().find(|field| field.name == *name);
            field.is_some_and(|field| field.required || !value.is_null())
        });
        let mut content = Value::Object(content);
        self.validator.repair(&mut content, true);
        let violations = self.validator.validate(&content);
        if !violations.is_empty() {
            let wrong = violations.iter().map(|one| format!("`{}`: expected {}", one.path, one.expected));
            return Err(wrong.collect::<Vec<_>>().join("; "));
        }
        Ok(match self.shape {
            FormShape::Members => content,
            FormShape::Value => content.get_mut(VALUE).map_or(Value::Null, Value::take),
            FormShape::Unit => Value::Null,
        })
    }

    /// The params of the request, encoded for a revision.
    ///
    /// # Errors
    /// The revision does not have forms, or a kind of field.
    pub(super) fn params(&self, message: &str, revision: Revision) -> Result<Vec<u8>, ClientRequestError> {
        if revision < Revision::V2025_06_18 {
            return Err(ClientRequestError::Revision("elicitation"));
        }
        let rich = revision >= Revision::V2025_11_25;
        if !rich && self.fields.iter().any(|field| matches!(field.kind, FieldKind::Choices { .. })) {
            return Err(ClientRequestError::Revision("fields for several values of a list"));
        }
        let mut out = Vec::with_capacity(256);
        let mut params = Object::new(&mut out);
        if rich {
            params.raw("mode", "\"form\"");
        }
        params.str("message", message).object("requestedSchema", |schema| {
            schema.raw("type", "\"object\"").object("properties", |properties| {
                for field in &self.fields {
                    let mut property = Object::new(properties.escaped_key(&field.name));
                    field.write(&mut property, rich);
                    property.end();
                }
            });
            let required: Vec<&FormField> = self.fields.iter().filter(|field| field.required).collect();
            if !required.is_empty() {
                write_array(schema.key("required"), required, |out, field| write_string(out, &field.name));
            }
        });
        params.end();
        Ok(out)
    }
}

/// Whether a schema of a single value allows `null`.
fn is_nullable(schema: &Map<String, Value>) -> bool {
    let is_null = |name: &Value| name == "null";
    let among = |types: &Value| types.as_array().is_some_and(|types| types.iter().any(is_null));
    let branch = |one: &Value| one.get("type").is_some_and(is_null);
    schema.get("type").is_some_and(among)
        || schema.get("anyOf").and_then(Value::as_array).is_some_and(|list| list.iter().any(branch))
}

fn take_members(root: &mut Value) -> Map<String, Value> {
    match root.get_mut("properties").map(Value::take) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn check_flat(root: &Map<String, Value>) -> Result<(), String> {
    let open = root.get("additionalProperties").is_some_and(|rest| *rest != Value::Bool(false));
    if open {
        return Err("it has members of any name".to_owned());
    }
    match NOT_FLAT.iter().find(|keyword| root.contains_key(**keyword)) {
        Some(_) => Err("its members depend on its variant, or refer to itself".to_owned()),
        None => Ok(()),
    }
}

/// The schema of content. Unknown members are ignored, so it has no `additionalProperties`.
fn content_schema(mut properties: Map<String, Value>, required: &[String]) -> Value {
    for property in properties.values_mut().filter_map(Value::as_object_mut) {
        property.retain(|keyword, _| !UNCHECKED.contains(&keyword.as_str()) && !keyword.starts_with("x-"));
    }
    let mut schema = json!({ "type": "object", "properties": properties, "required": required });
    cap_patterns(&mut schema);
    schema
}
