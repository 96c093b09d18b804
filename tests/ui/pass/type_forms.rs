//! `#[mcp_type]` on every form of type, with the attributes of serde and schemars, and without warnings.

#![deny(warnings, clippy::all, clippy::pedantic)]
#![allow(clippy::disallowed_names)]

use std::{cell::Cell, collections::HashMap, time::Instant};

use mcp_runtime::{prelude::*, serde_json};

#[mcp_type]
#[derive(Debug, Clone, PartialEq, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct Filter {
    /// Who wrote it.
    first_author: Option<u32>,
    pub parts: Vec<Self>,
    #[serde(skip)]
    cached: Cell<u8>,
    pub(crate) names: HashMap<String, Box<Filter>>,
}

#[mcp_type]
#[derive(Debug)]
struct Pair(u32, String);

#[mcp_type]
#[derive(Debug)]
struct Wrapped(Option<u32>);

#[mcp_type]
#[derive(Debug)]
struct Unit;

#[mcp_type]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
enum Color {
    #[default]
    Red = 1,
    Green = 4,
}

#[mcp_type]
#[derive(Debug)]
#[serde(tag = "kind")]
enum Step {
    Move {
        color: Color,
        #[serde(default)]
        then: Option<Box<Step>>,
    },
    Stop(Filter),
    #[cfg(any())]
    Never(Missing),
}

#[mcp_type]
#[derive(Debug)]
#[schemars(rename = "AllParts", description = "Everything.")]
struct All {
    r#type: Wrapped,
    #[serde(with = "seconds")]
    #[schemars(with = "u64")]
    since: Instant,
    #[serde(flatten)]
    filter: Filter,
    #[deprecated]
    old: Option<Color>,
    #[cfg(any())]
    never: Missing,
}

mod seconds {
    use std::time::{Duration, Instant};

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(at: &Instant, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(at.elapsed().as_secs())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Instant, D::Error> {
        let seconds = u64::deserialize(deserializer)?;
        Ok(Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap_or_else(Instant::now))
    }
}

#[mcp_type]
#[serde(default = "standard")]
struct Limits {
    low: u32,
    high: u32,
}

fn standard() -> Limits {
    Limits { low: 4, high: 5 }
}

/// Everything.
#[mcp_tool]
fn everything(all: All, pair: Pair, unit: Option<Unit>, steps: Vec<Step>, limits: Limits) -> Json<Filter> {
    let _ = format!("{all:?} {pair:?} {unit:?} {steps:?} {} {}", limits.low, limits.high);
    Json(all.filter)
}

pub(crate) fn main() {
    #[mcp_type]
    struct Local {
        inside: Vec<Local>,
    }
    let local: Local = serde_json::from_str(r#"{"inside":[{"inside":[]}]}"#).expect("a value");
    assert_eq!(local.inside.len(), 1);
    let limits: Limits = serde_json::from_str(r#"{"low":1}"#).expect("limits");
    assert_eq!((limits.low, limits.high), (1, 5));
    mcp_runtime::server!().tool::<everything>().build().expect("a server");
}
