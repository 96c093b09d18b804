//! Types that contain alternatives inside of alternatives: what serde would read too often is refused before.

use crate::prelude::*;

/// A number, or lists of them at any depth
#[mcp_type]
#[serde(untagged)]
enum Lists {
    One(u32),
    Many(Vec<Lists>),
}

impl Lists {
    fn sum(&self) -> u32 {
        match self {
            Self::One(number) => *number,
            Self::Many(lists) => lists.iter().map(Self::sum).sum(),
        }
    }
}

/// Differs only in what comes last
#[mcp_type]
#[serde(untagged)]
enum Late {
    One { a: Box<Late>, one: u32 },
    Two { a: Box<Late>, two: u32 },
    Leaf(u32),
}

impl Late {
    fn depth(&self) -> u32 {
        match self {
            Self::One { a, one: number } | Self::Two { a, two: number } => number + a.depth(),
            Self::Leaf(_) => 0,
        }
    }
}

#[mcp_tool]
fn sum(lists: Lists, times: Option<u32>) -> String {
    format!("{}", lists.sum() * times.unwrap_or(1))
}

#[mcp_tool]
fn depth(late: Late) -> String {
    format!("{}", late.depth())
}

fn server() -> ServerBuilder {
    mcp_runtime::server!().tool::<sum>().tool::<depth>()
}

fn lists(values: usize, levels: usize) -> Value {
    (0..levels).fold(json!(vec![1; values]), |inner, _| json!([inner]))
}

fn late(levels: usize, name: &str) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!({ "a": inner, name: 1 }))
}

const REFUSAL: &str = "too many values inside of each other, of which each may have several forms; \
    send fewer at a time, or nest them less deeply";

#[tokio::test]
async fn values_that_an_untagged_enum_would_copy_too_often_are_refused_before_they_are_read() {
    let server = TestServer::new(server()).expect("a server");
    server.call("sum", json!({ "lists": lists(10_000, 4) })).await.expect_text("10000");
    server.call("sum", json!({ "lists": lists(100, 60) })).await.expect_text("100");
    server.call("sum", json!({ "lists": lists(100, 60), "times": "2" })).await.expect_text("200");
    server.call("sum", json!({ "lists": lists(10_000, 60) })).await.expect_failure(REFUSAL);
}

#[tokio::test]
async fn variants_that_differ_late_are_refused_where_they_would_double_with_each_level() {
    let server = TestServer::new(server()).expect("a server");
    server.call("depth", json!({ "late": late(100, "one") })).await.expect_text("100");
    server.call("depth", json!({ "late": late(8, "two") })).await.expect_text("8");
    for name in ["two", "three"] {
        server.call("depth", json!({ "late": late(100, name) })).await.expect_failure(REFUSAL);
    }
}
