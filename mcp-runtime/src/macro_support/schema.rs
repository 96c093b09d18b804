//! What generated code names of schemas.

pub use super::derived::{Checked, Field, NotDerived, SchemaNotDerived, SchemaOf, field};
pub use crate::schema::lists_aliases;
