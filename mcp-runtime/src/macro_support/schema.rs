//! What generated code names of `schema`.

pub use crate::schema::{
    aliases::lists_aliases,
    derived::{Checked, Field, NotDerived, SchemaNotDerived, SchemaOf, field},
};
