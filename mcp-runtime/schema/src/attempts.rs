//! Bounds what it costs to decode types that contain alternatives inside of alternatives.
//!
//! serde reads a value that has alternatives into a buffer, and an untagged enum copies the part of the buffer that its
//! variants are tried on. Where such enums contain each other, a value inside of 60 lists is copied 60 times, and read twice as
//! often with each level if two variants differ only after the member that contains the next level. Nothing interrupts that,
//! so it is bounded before: by how deep values are nested, and how many variants have a member in common.
//!
//! An example: `[[1,2]]` as an untagged enum of an integer and a list of itself takes 34 steps. The outer list is read (4) and
//! refused by the integer (8); the inner one is copied once more (8 + 8); each number is read, and copied for both lists (3).

use std::sync::Arc;

use serde_json::Value;

use super::{
    alternatives::{are_named, not_null, tells_variant},
    check::Validation,
    duplicate_keys::has_duplicate_keys,
    node::{Applicator, NodeId, SchemaNode, TypeSet},
    sort::sort_by,
    tokens::{Token, Tokens, count_values, decode_key},
};

/// The cost of reading or copying an array or an object, where a scalar costs one: memory is allocated.
const CONTAINER: usize = 4;

/// The cost of a refusal by an alternative: an error is made, with its message.
const REFUSAL: usize = 8;

/// The cost of a value that is built to look at its variants.
const BUILT: usize = 8;

/// The alternatives of a type, if decoding one of its values may cost more than a few times the value.
#[derive(Debug)]
pub struct Attempts {
    nodes: Arc<[SchemaNode]>,
    /// What the root costs, if its alternatives contain others.
    root: Option<Costs>,
    /// What each property of the root costs whose alternatives contain others.
    properties: Vec<(String, Costs)>,
}

/// What it costs to decode the values of one node, at most.
#[derive(Debug, Clone, Copy)]
struct Costs {
    id: NodeId,
    /// How many alternatives of a type may read the same member of an object, if that has such alternatives again ..
    object_readers: usize,
    /// .. or the items of an array ..
    array_readers: usize,
    /// .. and the same member, if it has none.
    readers: usize,
    /// How many alternatives may refuse an array or an object before one accepts it ..
    refusals: usize,
    /// .. and a scalar.
    scalar_refusals: usize,
}

impl Attempts {
    /// The alternatives of a compiled schema; `None` unless one contains others.
    pub(super) fn of(nodes: Arc<[SchemaNode]>) -> Option<Self> {
        let analysis = Analysis::of(&nodes);
        let root = nodes.first()?;
        let properties: Vec<_> = root
            .object
            .iter()
            .flat_map(|rules| &rules.properties)
            .filter_map(|property| Some((property.name.clone(), analysis.costs(property.schema)?)))
            .collect();
        // else its members are decoded one by one
        let is_whole = analysis.is_copied(0) || !root.applicators.is_empty();
        let root = analysis.costs(0).filter(|_| is_whole);
        (root.is_some() || !properties.is_empty()).then_some(Self { nodes, root, properties })
    }

    fn property(&self, name: &str) -> Option<Costs> {
        self.properties.iter().find(|(known, _)| known == name).map(|(_, costs)| *costs)
    }

    /// Whether it may take more steps than this, and one for each byte, to decode a text. A step is to read or copy a scalar; a
    /// value that is read several times takes them each time.
    ///
    /// The text is an object whose members are decoded one by one: a refusal by one does not end the others.
    pub fn exceed(&self, json: &str, most: usize) -> bool {
        self.exceed_as(self.root, json, most)
    }

    /// As [`exceed`](Self::exceed), for a value of this property.
    pub fn exceed_in(&self, property: &str, json: &str, most: usize) -> bool {
        self.property(property).is_some_and(|costs| self.exceed_as(Some(costs), json, most))
    }

    /// `whole` is what the text as a whole costs; else its members are those of the root.
    fn exceed_as(&self, whole: Option<Costs>, json: &str, most: usize) -> bool {
        let most = most.saturating_add(json.len());
        match self.steps(whole, json, most) {
            None => true,
            // alternatives that read the same members are tried if the first one does not accept
            Some(steps) => steps > most && !self.is_read_once(whole, json, most),
        }
    }

    /// The most steps that it may take; `None` if they are too many even where each value is read by one alternative.
    fn steps(&self, whole: Option<Costs>, json: &str, most: usize) -> Option<usize> {
        let (mut costs, mut steps, mut least) = (whole, 0_usize, 0_usize);
        // how often the values in each open array and object may be read
        let mut open: Vec<usize> = Vec::new();
        for token in Tokens::new(json) {
            let times = open.last().copied().unwrap_or(1);
            let depth = open.len().saturating_sub(usize::from(whole.is_none()));
            let each = match (&token, costs) {
                (Token::Key { range, is_escaped }, _) if open.len() == 1 && whole.is_none() => {
                    costs = self.property(&decode_key(json, range, *is_escaped));
                    0
                }
                (Token::Open { is_object, .. }, Some(costs)) => {
                    let readers = if *is_object { costs.object_readers } else { costs.array_readers };
                    open.push(times.saturating_mul(readers));
                    CONTAINER * (depth + costs.readers) + REFUSAL * costs.refusals
                }
                (Token::Open { .. }, None) => {
                    open.push(1);
                    0
                }
                (Token::Close { .. }, _) => {
                    open.pop();
                    0
                }
                (Token::Scalar(_), Some(costs)) => depth + costs.readers + REFUSAL * costs.scalar_refusals,
                _ => 0,
            };
            least += each;
            steps = steps.saturating_add(times.saturating_mul(each));
            if least > most {
                return None;
            }
        }
        Some(steps)
    }

    /// Whether no alternative is tried after another that has read the value.
    fn is_read_once(&self, whole: Option<Costs>, json: &str, most: usize) -> bool {
        // a value that is built has no keys that are given twice
        if count_values(json) > most / BUILT || has_duplicate_keys(json) {
            return false;
        }
        let Ok(value) = serde_json::from_str::<Value>(json) else { return false };
        let mut validation = Validation::new(&self.nodes, true);
        validation.reads_once = true;
        match whole {
            Some(costs) => validation.check(costs.id, &value),
            None => value.as_object().into_iter().flatten().all(|(name, member)| {
                self.property(name).is_none_or(|costs| validation.check(costs.id, member))
            }),
        }
    }
}

impl Costs {
    /// A value of this node, which is copied, costs as much as the others at least. Its members may have these names.
    fn include(&mut self, nodes: &Analysis<'_>, id: NodeId, names: &[&str]) {
        let Some(node) = nodes.nodes.get(id) else { return };
        let leads = |id: NodeId| nodes.leads_to_copied.get(id) == Some(&true);
        for name in names {
            let member = |node: &SchemaNode| nodes.member(node, name);
            let again = |node: &SchemaNode| member(node).is_some_and(leads);
            self.object_readers = self.object_readers.max(nodes.readers(id, &again));
            self.readers = self.readers.max(nodes.readers(id, &|node| member(node).is_some()));
        }
        let items = |node: &SchemaNode| {
            let rules = node.array.iter();
            rules.flat_map(|rules| rules.prefix_items.iter().chain(&rules.items)).any(|id| leads(*id))
        };
        self.array_readers = self.array_readers.max(nodes.readers(id, &items));
        let attempts = nodes.readers(id, &|node| node.applicators.is_empty());
        self.refusals = self.refusals.max(attempts.saturating_sub(1));
        let scalars = TypeSet::ANY.without(TypeSet::ARRAY.union(TypeSet::OBJECT));
        let takes_scalars =
            |id: &NodeId| nodes.nodes.get(*id).is_some_and(|node| !node.refuses.contains(scalars));
        let before_last = nodes.alternatives(node).iter().rposition(takes_scalars).unwrap_or(0);
        self.scalar_refusals = self.scalar_refusals.max(before_last);
    }
}

/// What the nodes of a schema tell about decoding.
struct Analysis<'n> {
    nodes: &'n [SchemaNode],
    /// Of each node, whether a value of it, or one in that, is copied: others are read once.
    leads_to_copied: Vec<bool>,
}

impl<'n> Analysis<'n> {
    fn of(nodes: &'n [SchemaNode]) -> Self {
        let mut analysis = Self { nodes, leads_to_copied: Vec::new() };
        let leads = |id: NodeId| analysis.reached(id).into_iter().any(|id| analysis.is_copied(id));
        analysis.leads_to_copied = (0..nodes.len()).map(leads).collect();
        analysis
    }

    /// Whether each variant is tried on a copy of the value, or fields beside the alternatives of a flattened field or beside a map
    /// of all others are copied. Where a field tells the variant, the value is read into a buffer, which is moved.
    fn is_copied(&self, id: NodeId) -> bool {
        let Some(node) = self.nodes.get(id) else { return false };
        let alternatives = self.alternatives(node);
        let rules = node.object.as_deref().filter(|rules| !rules.properties.is_empty());
        let other = rules.and_then(|rules| self.nodes.get(rules.additional_properties?));
        let has_others = other.is_some_and(|node| !node.never && !node.is_any());
        has_others
            || !tells_variant(self.nodes, &alternatives)
            || (rules.is_some() && !alternatives.is_empty())
    }

    /// The alternatives of a node, without `null`; empty if there is only one.
    fn alternatives(&self, node: &SchemaNode) -> Vec<NodeId> {
        let of_each = node.applicators.iter().filter_map(Applicator::alternatives);
        of_each.map(|of| not_null(self.nodes, &of.ids)).filter(|ids| ids.len() > 1).flatten().collect()
    }

    /// The nodes of a value of this node, this one first, and of what is in it. It is listed again if it contains its like.
    fn reached(&self, id: NodeId) -> Vec<NodeId> {
        let mut seen = vec![false; self.nodes.len()];
        let mut reached = vec![id];
        let mut next = 0;
        while let Some(id) = reached.get(next).copied() {
            next += 1;
            let mut children = Vec::new();
            self.nodes.get(id).into_iter().for_each(|node| node.children(&mut children));
            children.retain(|id| seen.get_mut(*id).is_some_and(|seen| !std::mem::replace(seen, true)));
            reached.extend(children);
        }
        reached
    }

    /// Whether a value in one of this node is read into a buffer again. An object that contains its like may be, if one of its
    /// fields is flattened, which its schema does not tell.
    fn contains_buffered(&self, id: NodeId) -> bool {
        self.reached(id).into_iter().skip(1).any(|id| {
            let Some(node) = self.nodes.get(id) else { return false };
            let contains_itself = || self.reached(id).into_iter().skip(1).any(|inner| inner == id);
            self.is_copied(id)
                || !are_named(self.nodes, &self.alternatives(node))
                || (node.object.is_some() && contains_itself())
        })
    }

    /// What a node costs; `None` unless there are alternatives in its alternatives.
    fn costs(&self, id: NodeId) -> Option<Costs> {
        let reached = self.reached(id);
        let copied = || reached.iter().copied().filter(|id| self.is_copied(*id));
        if !copied().any(|id| self.contains_buffered(id)) {
            return None;
        }
        let names = self.names(&reached);
        let mut costs =
            Costs { id, object_readers: 1, array_readers: 1, readers: 1, refusals: 0, scalar_refusals: 0 };
        copied().for_each(|id| costs.include(self, id, &names));
        Some(costs)
    }

    /// The names of members that these nodes have, and one that stands for any other.
    fn names(&self, ids: &[NodeId]) -> Vec<&'n str> {
        let rules = ids.iter().filter_map(|id| self.nodes.get(*id)?.object.as_deref());
        let mut names: Vec<&str> =
            rules.flat_map(|rules| &rules.properties).map(|property| property.name.as_str()).collect();
        sort_by(&mut names, Ord::cmp);
        names.dedup();
        names.push("");
        names
    }

    /// The schema of a member of an object.
    fn member(&self, node: &SchemaNode, name: &str) -> Option<NodeId> {
        let rules = node.object.as_deref()?;
        let of_others =
            || rules.additional_properties.or(rules.pattern_properties.first().map(|(_, id)| *id));
        let id = rules.property(name).map(|(_, property)| property.schema).or_else(of_others)?;
        self.nodes.get(id).is_some_and(|node| !node.never).then_some(id)
    }

    /// How many of the nodes that one value is tried on read a part of it. Where a tag or a name tells the variant, one does.
    fn readers(&self, id: NodeId, reads: &dyn Fn(&SchemaNode) -> bool) -> usize {
        let Some(node) = self.nodes.get(id) else { return 0 };
        let mut all = usize::from(reads(node));
        for applicator in &node.applicators {
            let ids = match applicator {
                Applicator::AnyOf(of) | Applicator::OneOf(of) => not_null(self.nodes, &of.ids),
                applicator => applicator.ids(),
            };
            let each = ids.iter().map(|id| self.readers(*id, reads));
            let is_told = applicator.alternatives().is_some() && tells_variant(self.nodes, &ids);
            all += if is_told { each.max().unwrap_or(0) } else { each.sum() };
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::compile::compile, *};

    fn compiled(schema: &Value) -> Option<Attempts> {
        Attempts::of(compile(schema).unwrap_or_else(|error| panic!("{error}")).into())
    }

    fn attempts(schema: &Value) -> Attempts {
        compiled(schema).expect("alternatives in alternatives")
    }

    fn exceed(schema: &Value, json: &str, most: usize) -> bool {
        attempts(schema).exceed(json, most)
    }

    fn lists() -> Value {
        json!({ "anyOf": [{ "type": "integer" }, { "type": "array", "items": { "$ref": "#" } }] })
    }

    fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    }

    #[test]
    fn a_value_is_copied_once_for_each_list_around_it() {
        let ones = vec!["1"; 1000].join(",");
        for (levels, least, most) in [(2, 500, 2000), (60, 50_000, 80_000)] {
            let json = nested("[", &ones, "]", levels);
            assert!(exceed(&lists(), &json, least) && !exceed(&lists(), &json, most), "{levels}");
        }
    }

    #[test]
    fn the_steps_of_the_example_are_those_that_are_counted() {
        let json = "[[1,2]]";
        let most = 34 - json.len();
        assert!(exceed(&lists(), json, most - 1) && !exceed(&lists(), json, most));
    }

    #[test]
    fn variants_that_differ_late_double_with_each_level() {
        let schema = json!({ "anyOf": [
            { "type": "object", "properties": { "a": { "$ref": "#" }, "one": { "type": "integer" } }, "required": ["a", "one"] },
            { "type": "object", "properties": { "a": { "$ref": "#" }, "two": { "type": "integer" } }, "required": ["a", "two"] },
            { "type": "integer" }
        ] });
        let late = |member: &str, levels| nested("{\"a\":", "1", &format!("{member}}}"), levels);
        assert!(exceed(&schema, &late(",\"two\":1", 20), 1_000_000));
        assert!(exceed(&schema, &late("", 120), 1_000_000));
        assert!(!exceed(&schema, &late(",\"two\":1", 8), 100_000));
        // the last member may be the one that is refused
        assert!(exceed(&schema, &late(",\"one\":\"\"", 20), 1_000_000));
        // the first variant is right
        assert!(!exceed(&schema, &late(",\"one\":1", 100), 100_000));
        let optional =
            json!({ "anyOf": [{ "$ref": "#/$defs/T" }, { "type": "null" }], "$defs": { "T": schema } });
        let optional = optional.to_string().replace(r##""$ref":"#"}"##, r##""$ref":"#/$defs/T"}"##);
        let optional: Value = serde_json::from_str(&optional).expect("a schema");
        assert!(exceed(&optional, &late("", 60), 1_000_000));
        // unless the type may refuse what the schema accepts
        assert!(exceed(&schema, &late(",\"one\":1.0,\"two\":1", 20), 1_000_000));
        assert!(exceed(&schema, &late(",\"one\":1,\"one\":1,\"two\":1", 20), 1_000_000));
    }

    #[test]
    fn what_tells_its_variant_is_read_once() {
        let tagged = |rest: &Value| {
            json!({ "oneOf": [
                { "type": "object", "properties": { "kind": { "const": "node" }, "of": { "type": "array", "items": { "$ref": "#" } } }, "required": ["kind", "of"] },
                { "type": "object", "properties": { "kind": { "const": "leaf" }, "of": rest }, "required": ["kind"] }
            ] })
        };
        assert!(compiled(&tagged(&json!(true))).is_none());
        let filter = json!({ "anyOf": [
            { "type": "object", "properties": { "and": { "type": "array", "items": { "$ref": "#" } } }, "required": ["and"] },
            { "type": "object", "properties": { "or": { "type": "array", "items": { "$ref": "#" } } }, "required": ["or"] },
            { "type": "object", "properties": { "field": { "type": "string" }, "value": true }, "required": ["field", "value"] }
        ] });
        let text = nested("{\"or\":[", r#"{"field":"a","value":1}"#, "]}", 10);
        assert!(!exceed(&filter, &text, 5000));
        let is = vec![r#"{"field":"a","value":1}"#; 1000].join(",");
        assert!(!exceed(&filter, &format!("{{\"and\":[{is}]}}"), 80_000));
    }

    #[test]
    fn what_one_argument_refuses_does_not_end_the_count_of_others() {
        let schema = json!({
            "type": "object",
            "properties": { "slip": { "type": "integer" }, "lists": { "$ref": "#/$defs/Lists" } },
            "$defs": { "Lists": { "anyOf": [{ "type": "integer" }, { "type": "array", "items": { "$ref": "#/$defs/Lists" } }] } }
        });
        let lists = nested("[", &vec!["1"; 1000].join(","), "]", 60);
        assert!(attempts(&schema).exceed(&format!(r#"{{"slip":"1","lists":{lists}}}"#), 10_000));
        assert!(!attempts(&schema).exceed(&format!(r#"{{"slip":"1","lists":{lists}}}"#), 100_000));
    }

    #[test]
    fn members_that_are_never_copied_are_not_counted() {
        let schema = json!({
            "type": "object",
            "properties": { "plain": { "type": "array", "items": { "$ref": "#/$defs/Plain" } }, "lists": { "$ref": "#/$defs/Lists" } },
            "$defs": {
                "Plain": { "type": "object", "properties": { "next": { "$ref": "#/$defs/Plain" } } },
                "Lists": { "anyOf": [{ "type": "integer" }, { "type": "array", "items": { "$ref": "#/$defs/Lists" } }] }
            }
        });
        let plain = vec![nested("{\"next\":", "{}", "}", 50); 100].join(",");
        assert!(!attempts(&schema).exceed(&format!(r#"{{"plain":[{plain}],"other":[[]]}}"#), 0));
        assert!(!attempts(&schema).exceed_in("plain", &format!("[{plain}]"), 0));
        let lists = nested("[", &vec!["1"; 1000].join(","), "]", 60);
        for json in [
            format!(r#"{{"plain":[],"lists":{lists}}}"#),
            format!(r#"{{"plain":[],"\u006cists" : {lists}}}"#),
            format!(r#"{{"lists":1,"lists":{lists}}}"#),
        ] {
            assert!(attempts(&schema).exceed(&json, 10_000), "{json}");
        }
    }

    #[test]
    fn flattened_maps_are_copied_with_each_level() {
        let schema = json!({ "type": "object", "properties": { "id": { "type": "integer" } }, "additionalProperties": { "$ref": "#" } });
        let deep = nested("{\"a\":", "{}", "}", 100);
        assert!(exceed(&schema, &deep, 10_000) && !exceed(&schema, &deep, 80_000));
        let map = json!({ "type": "object", "additionalProperties": { "$ref": "#" } });
        assert!(compiled(&map).is_none());
    }

    #[test]
    fn text_that_is_not_json_or_too_deep_is_counted_in_bounded_stack() {
        for text in ["", "[", "]]", "{\"a\"", &"[".repeat(100_000)] {
            attempts(&lists()).exceed(text, 0);
        }
    }
}
