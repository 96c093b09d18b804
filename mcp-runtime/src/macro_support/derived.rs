//! The code that `#[mcp_type]` generates around the derives of serde and schemars, so that a field whose type cannot be sent
//! is one error, at the field.
//!
//! The derives are on a copy of the type, and the type's own impls call those of the copy. The copy has a `where` clause
//! with a constant in whose value each field is checked: if that fails, the constant has no value, the clause is an error
//! that rustc has reported, and nothing that depends on it is reported again. The type itself cannot have that clause: a
//! type that contains itself would need its own impls to check its fields.

use std::{borrow::Cow, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _},
    ser::Error as _,
};

/// Types that a field of an argument or a result can have. A message names `Leaf`, which is the `T` of a `Vec<T>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent or received",
    label = "not a type that clients can send or read",
    note = "if `{Leaf}` is your type, put `#[mcp_type]` on it, or derive `serde::Serialize`, `serde::Deserialize` and `schemars::JsonSchema` (1.x)",
    note = "if it is another crate's, enable the feature `serde` of that crate and the feature of `schemars` for it, such as `uuid1`; if there is none, write `#[serde(with = \"..\")]` and `#[schemars(with = \"..\")]`, or use a type of yours that converts it",
    note = "if clients do not see it, write `#[serde(skip)]`"
)]
pub trait Field<Leaf: ?Sized>: Serialize + DeserializeOwned + JsonSchema {}
#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + JsonSchema, Leaf: ?Sized> Field<Leaf> for T {}

/// Requires that a field can have this type.
pub const fn field<T: Field<Leaf>, Leaf: ?Sized>() {}

/// `[(); 1]`: an array whose length is a constant that has a value.
pub trait Checked {
    /// `()`, which has every impl that the copy of a type needs.
    type Unit;
}
impl Checked for [(); 1] {
    type Unit = ();
}

/// Takes the place of functions that a derive of serde, which has reported why, did not generate.
pub trait NotDerived {
    /// Never called.
    ///
    /// # Errors
    /// Always.
    fn serialize<T, S: Serializer>(_: &T, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("not derived"))
    }

    /// Never called.
    ///
    /// # Errors
    /// Always.
    fn deserialize<'de, T, D: Deserializer<'de>>(_: D) -> Result<T, D::Error> {
        Err(D::Error::custom("not derived"))
    }
}
impl<T> NotDerived for T {}

/// The schema of `T`: its inherent functions take precedence over those of [`SchemaNotDerived`].
#[derive(Debug)]
pub struct SchemaOf<T>(PhantomData<T>);

impl<T: JsonSchema> SchemaOf<T> {
    /// As [`JsonSchema::schema_name`].
    #[must_use]
    pub fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    /// As [`JsonSchema::schema_id`].
    #[must_use]
    pub fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    /// As [`JsonSchema::inline_schema`].
    #[must_use]
    pub fn inline_schema() -> bool {
        T::inline_schema()
    }

    /// As [`JsonSchema::json_schema`].
    pub fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Takes the place of functions that a derive of schemars, which has reported why, did not generate.
pub trait SchemaNotDerived {
    /// Never called.
    #[must_use]
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("")
    }

    /// Never called.
    #[must_use]
    fn schema_id() -> Cow<'static, str> {
        Cow::Borrowed("")
    }

    /// Never called.
    #[must_use]
    fn inline_schema() -> bool {
        false
    }

    /// Never called.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::default()
    }
}
impl<T> SchemaNotDerived for SchemaOf<T> {}
