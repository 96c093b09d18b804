//! `#[serde(alias = "..")]`: other names of fields and variants, which clients do not see and servers accept, also where a
//! schema is enforced and where unknown names are refused.

use crate::prelude::*;

#[mcp_type]
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
enum Colour {
    #[serde(alias = "rot", alias = "rouge")]
    Red,
    Green,
}

#[mcp_type]
#[derive(Debug)]
struct Place {
    #[serde(alias = "town")]
    #[schemars(length(min = 2))]
    city: String,
    #[serde(alias = "area", default)]
    region: Option<String>,
    #[serde(alias = "tint")]
    colour: Colour,
    #[serde(default, alias = "inside")]
    parts: Vec<Place>,
}

#[mcp_type]
#[derive(Debug)]
#[serde(deny_unknown_fields)]
struct Closed {
    #[serde(alias = "number")]
    #[schemars(range(max = 9))]
    n: u32,
}

#[mcp_type]
#[derive(Debug)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Shape {
    #[serde(alias = "ring")]
    Circle {
        #[serde(alias = "r")]
        #[schemars(range(max = 9))]
        radius: u32,
    },
    Square {
        side: u32,
    },
}

#[mcp_type]
#[derive(Debug)]
#[serde(rename_all = "lowercase")]
enum Command {
    #[serde(alias = "go")]
    Move {
        #[serde(alias = "steps")]
        #[schemars(range(max = 9))]
        by: u32,
    },
    #[serde(alias = "halt")]
    Stop,
    #[serde(alias = "rotate")]
    Turn(u8),
}

#[mcp_type]
#[derive(Debug)]
#[serde(tag = "t", content = "c", rename_all = "lowercase")]
enum Adjacent {
    #[serde(alias = "first")]
    A {
        #[schemars(range(max = 9))]
        x: u32,
    },
    B,
}

#[mcp_tool]
fn colours(colour: Colour, more: Option<Vec<Colour>>, #[mcp(range(..=9))] n: u32) -> String {
    format!("{colour:?} {more:?} {n}")
}

#[mcp_tool]
fn any(
    place: Option<Place>,
    closed: Option<Closed>,
    shape: Option<Shape>,
    command: Option<Command>,
    adjacent: Option<Adjacent>,
    keys: Option<BTreeMap<Colour, u32>>,
) -> String {
    format!("{place:?} {closed:?} {shape:?} {command:?} {adjacent:?} {keys:?}")
}

#[mcp_tool(strict)]
fn strict_place(place: Place) -> String {
    format!("{place:?}")
}

#[mcp_tool(strict)]
fn flat_place(#[mcp(flatten)] place: Place) -> String {
    format!("{place:?}")
}

#[mcp_tool(strict)]
fn flat_shape(#[mcp(flatten)] shape: Shape) -> String {
    format!("{shape:?}")
}

#[tokio::test]
async fn aliases_are_accepted_wherever_serde_accepts_them() {
    let server = serve(mcp_runtime::server!().discover_from([module_path!()]));
    let rome = r#"Place { city: "Rome", region: None, colour: Red, parts: [] }"#;
    let inner = r#"Place { city: "Rome", region: Some("Lazio"), colour: Green, parts: [Place { city: "Ostia", region: None, colour: Red, parts: [] }] }"#;
    let sent = json!({ "town": "Rome", "tint": "rot" });
    let nested = json!({
        "town": "Rome", "area": "Lazio", "colour": "green", "inside": [{ "town": "Ostia", "tint": "rouge" }]
    });
    let calls: [(&str, Value, &str); 17] = [
        (
            "colours",
            json!({ "colour": "rot", "more": ["rouge", "red", "green"], "n": 3 }),
            "Red Some([Red, Red, Green]) 3",
        ),
        // another argument is repaired
        ("colours", json!({ "colour": "rot", "n": "3" }), "Red None 3"),
        ("any", json!({ "place": sent }), rome),
        ("any", json!({ "place": nested }), inner),
        ("any", json!({ "place": sent.to_string() }), rome),
        ("strict_place", json!({ "place": nested }), inner),
        ("flat_place", sent.clone(), rome),
        ("flat_place", nested.clone(), inner),
        ("any", json!({ "closed": { "number": 3 } }), "Closed { n: 3 }"),
        ("any", json!({ "shape": { "kind": "ring", "r": 3 } }), "Circle { radius: 3 }"),
        ("any", json!({ "shape": { "kind": "circle", "radius": 3 } }), "Circle { radius: 3 }"),
        ("flat_shape", json!({ "kind": "ring", "r": 3 }), "Circle { radius: 3 }"),
        ("any", json!({ "command": { "go": { "steps": 3 } } }), "Move { by: 3 }"),
        ("any", json!({ "command": "halt" }), "Stop"),
        ("any", json!({ "command": { "rotate": 3 } }), "Turn(3)"),
        ("any", json!({ "adjacent": { "t": "first", "c": { "x": 3 } } }), "A { x: 3 }"),
        ("any", json!({ "keys": { "rot": 1, "green": 2 } }), "{Red: 1, Green: 2}"),
    ];
    for (tool, arguments, text) in calls {
        let reply = server.call(tool, arguments.clone()).await;
        assert!(!reply.is_error() && reply.text().contains(text), "{tool} {arguments}: {reply}");
    }
}

#[tokio::test]
async fn constraints_hold_for_values_under_an_alias() {
    let server = serve(mcp_runtime::server!().discover_from([module_path!()]));
    for (tool, arguments, line) in [
        ("any", json!({ "place": { "town": "R", "tint": "rot" } }), "- place.town: \"R\" has 1 character"),
        (
            "any",
            json!({ "closed": { "number": 10 } }),
            "- closed.number: 10 is greater than the maximum of 9",
        ),
        ("any", json!({ "shape": { "kind": "ring", "r": 10 } }), "10 is greater than the maximum of 9"),
        (
            "any",
            json!({ "command": { "go": { "steps": 10 } } }),
            "- command.go.steps: 10 is greater than the maximum of 9",
        ),
        ("any", json!({ "command": { "og": {} } }), "- command: the key `og` is not one of `move`, `turn`"),
        ("any", json!({ "closed": { "number": 1, "other": 2 } }), "unknown field `other`"),
        ("strict_place", json!({ "place": { "tint": "rot" } }), "- place: missing field `city`"),
    ] {
        server.call(tool, arguments.clone()).await.expect_failure(line);
    }
}

#[tokio::test]
async fn an_alias_is_neither_published_nor_suggested() {
    let server = serve(mcp_runtime::server!().discover_from([module_path!()]));
    let tools = Value::from(server.list_tools().await).to_string();
    for name in ["rot", "rouge", "town", "area", "tint", "inside", "ring", "steps", "halt", "first", "x-mcp"]
    {
        assert!(!tools.contains(&format!("\"{name}")), "{name}: {tools}");
    }
    let text = failure(&server.call("colours", json!({ "colour": "blue", "n": 1 })).await);
    assert!(
        text.contains("- colour: \"blue\" is not one of \"red\", \"green\"") && !text.contains("rot"),
        "{text}"
    );
}

#[tokio::test]
async fn prompts_and_uris_accept_aliases() {
    #[mcp_prompt]
    fn paint(colour: Colour, place: Option<Place>) -> String {
        format!("{colour:?} {place:?}")
    }
    #[mcp_resource(uri = "colour://{colour}{?more}")]
    fn read(colour: Colour, more: Option<Colour>) -> String {
        format!("{colour:?} {more:?}")
    }
    let server = serve(mcp_runtime::server!().prompt::<paint>().resource::<read>());
    let arguments = json!({ "colour": "rot", "place": r#"{"town": "Rome", "tint": "rouge"}"# });
    let text = server.prompt("paint", arguments).await.text();
    assert!(text.contains("Red Some(Place") && text.contains("Rome"), "{text}");
    server.read("colour://rouge?more=rot").await.expect_text("Red Some(Red)");
}
