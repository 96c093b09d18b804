//! Bounds what it costs to decode types that contain alternatives inside of alternatives.
//!
//! serde reads a value that has alternatives into a buffer, and an untagged enum copies the part of the buffer that its
//! variants are tried on. Where such enums contain each other, a value inside of 60 lists is copied 60 times, and read twice as
//! often with each level if two variants differ only after the member that contains the next level. Nothing interrupts that,
//! so it is bounded before: by how deep values are nested, and where that could be too much only because variants have
//! members in common, by trying the variants as serde does.

use std::sync::Arc;

use serde_json::{Number, Value};

use super::{
    alternatives::{Intended, intended, is_tagged, not_null, variant_name},
    duplicate_keys::has_duplicate_keys,
    equality,
    node::{Alternatives, Applicator, NodeId, SchemaNode, TypeSet},
    tokens::{Token, Tokens, count_values, decode_key},
};

/// The cost of reading or copying an array or an object, where a scalar costs one: memory is allocated.
const CONTAINER: usize = 4;

/// The cost of a refusal by an alternative: an error is made, with its message.
const REFUSAL: usize = 8;

/// The cost of a value that is built to try variants on it.
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
        let root_rules = nodes.first().and_then(|node| node.object.as_deref());
        let properties: Vec<_> = root_rules
            .into_iter()
            .flat_map(|rules| &rules.properties)
            .filter_map(|property| Some((property.name.clone(), analysis.costs(property.schema)?)))
            .collect();
        // else its members are decoded one by one
        let is_whole =
            nodes.first().is_some_and(|node| is_copied(&nodes, node) || !node.applicators.is_empty());
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
        let Some(branches) = self.exceed_by_depth(whole, json, most) else { return false };
        // a value that is built has neither keys that are given twice nor numbers beyond all types
        if !branches || count_values(json) > most / BUILT || has_duplicate_keys(json) {
            return true;
        }
        let Ok(value) = serde_json::from_str::<Value>(json) else { return true };
        let mut count = Count { nodes: &self.nodes, left: most };
        match whole {
            Some(costs) => _ = count.read(costs.id, &value),
            None => {
                for (name, member) in value.as_object().into_iter().flatten() {
                    if let Some(costs) = self.property(name) {
                        count.read(costs.id, member);
                    }
                }
            }
        }
        count.left == 0
    }

    /// Whether values are nested so deep that they may take more steps; if they may, whether that is only because
    /// alternatives have members in common.
    fn exceed_by_depth(&self, whole: Option<Costs>, json: &str, most: usize) -> Option<bool> {
        let (mut costs, mut steps, mut branches) = (whole, 0_usize, false);
        // how often the values in each open array and object may be read
        let mut open: Vec<usize> = Vec::new();
        for token in Tokens::new(json) {
            let times = open.last().copied().unwrap_or(1);
            let depth = open.len().saturating_sub(usize::from(whole.is_none()));
            match (&token, costs) {
                (Token::Key { range, is_escaped }, _) if open.len() == 1 && whole.is_none() => {
                    costs = self.property(&decode_key(json, range, *is_escaped));
                }
                (Token::Close { .. }, _) => drop(open.pop()),
                (Token::Open { .. }, None) => open.push(1),
                (Token::Open { is_object, .. }, Some(costs)) => {
                    let each = CONTAINER * (depth + costs.readers) + REFUSAL * costs.refusals;
                    steps = steps.saturating_add(times.saturating_mul(each));
                    let readers = if *is_object { costs.object_readers } else { costs.array_readers };
                    open.push(times.saturating_mul(readers));
                    branches |= readers > 1;
                }
                (Token::Scalar(_), Some(costs)) => {
                    let each = depth + costs.readers + REFUSAL * costs.scalar_refusals;
                    steps = steps.saturating_add(times.saturating_mul(each));
                }
                _ => {}
            }
            if steps > most {
                return Some(branches);
            }
        }
        None
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

    fn is_copied(&self, id: NodeId) -> bool {
        self.nodes.get(id).is_some_and(|node| is_copied(self.nodes, node))
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
            is_copied(self.nodes, node)
                || !are_named(self.nodes, &alternatives(self.nodes, node))
                || (node.object.is_some() && contains_itself())
        })
    }

    /// What a node costs; `None` unless there are alternatives in its alternatives.
    fn costs(&self, id: NodeId) -> Option<Costs> {
        let mut copied = self.reached(id);
        copied.retain(|id| self.is_copied(*id));
        if !copied.iter().any(|id| self.contains_buffered(*id)) {
            return None;
        }
        let reached = self.reached(id);
        let rules = reached.iter().filter_map(|id| self.nodes.get(*id)?.object.as_deref());
        let mut names: Vec<&str> =
            rules.flat_map(|rules| &rules.properties).map(|property| property.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        // any other name
        names.push("");
        let leads = |id: NodeId| self.leads_to_copied.get(id) == Some(&true);
        let mut costs =
            Costs { id, object_readers: 1, array_readers: 1, readers: 1, refusals: 0, scalar_refusals: 0 };
        for id in copied {
            for name in &names {
                let member = |node: &SchemaNode| self.member(node, name);
                let again = self.readers(id, &|node| member(node).is_some_and(leads));
                costs.object_readers = costs.object_readers.max(again);
                costs.readers = costs.readers.max(self.readers(id, &|node| member(node).is_some()));
            }
            let items = |node: &SchemaNode| {
                let rules = node.array.as_deref();
                rules.is_some_and(|rules| rules.prefix_items.iter().chain(&rules.items).any(|id| leads(*id)))
            };
            costs.array_readers = costs.array_readers.max(self.readers(id, &items));
            let attempts = self.readers(id, &|node| node.applicators.is_empty());
            costs.refusals = costs.refusals.max(attempts.saturating_sub(1));
            let alternatives =
                self.nodes.get(id).map(|node| alternatives(self.nodes, node)).unwrap_or_default();
            let containers = TypeSet::ARRAY.union(TypeSet::OBJECT);
            let takes_scalars = |id: &NodeId| {
                self.nodes
                    .get(*id)
                    .is_some_and(|node| !node.refuses.contains(TypeSet::ANY.without(containers)))
            };
            let before_last = alternatives.iter().rposition(takes_scalars).unwrap_or(0);
            costs.scalar_refusals = costs.scalar_refusals.max(before_last);
        }
        Some(costs)
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
            let is_told = applicator.alternatives().is_some()
                && (are_named(self.nodes, &ids) || is_tagged(self.nodes, &ids));
            all += if is_told { each.max().unwrap_or(0) } else { each.sum() };
        }
        all
    }
}

/// The alternatives of a node, without `null`; empty if there is only one.
fn alternatives(nodes: &[SchemaNode], node: &SchemaNode) -> Vec<NodeId> {
    let of_each = node.applicators.iter().filter_map(Applicator::alternatives);
    of_each.map(|of| not_null(nodes, &of.ids)).filter(|ids| ids.len() > 1).flatten().collect()
}

/// Whether the name of the variant is the text, or the only key.
fn are_named(nodes: &[SchemaNode], ids: &[NodeId]) -> bool {
    ids.iter().all(|id| {
        variant_name(nodes, *id).is_some() || nodes.get(*id).is_some_and(|node| node.choices.is_some())
    })
}

/// Whether each variant is tried on a copy of the value, or fields beside the alternatives of a flattened field or beside a map
/// of all others are copied. Where a field tells the variant, the value is read into a buffer, which is moved.
fn is_copied(nodes: &[SchemaNode], node: &SchemaNode) -> bool {
    let alternatives = alternatives(nodes, node);
    let rules = node.object.as_deref().filter(|rules| !rules.properties.is_empty());
    let other = rules.and_then(|rules| nodes.get(rules.additional_properties?));
    let has_others = other.is_some_and(|node| !node.never && !node.is_any());
    let is_untold = !are_named(nodes, &alternatives) && !is_tagged(nodes, &alternatives);
    has_others || is_untold || (rules.is_some() && !alternatives.is_empty())
}

/// Whether a type accepts a value, as far as its schema tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Acceptance {
    Refused,
    /// The type may refuse it, so that further alternatives are tried.
    Unknown,
    Accepted,
}

/// A reading of values as serde reads them.
struct Count<'n> {
    nodes: &'n [SchemaNode],
    /// The steps that it may still take.
    left: usize,
}

impl Count<'_> {
    fn spend(&mut self, steps: usize) {
        self.left = self.left.saturating_sub(steps);
    }

    /// Reads a value as a node says.
    fn read(&mut self, id: NodeId, value: &Value) -> Acceptance {
        let Some(node) = self.nodes.get(id).filter(|_| self.left > 0) else { return Acceptance::Refused };
        let mut acceptance = self.read_in_place(node, value);
        for applicator in &node.applicators {
            if acceptance == Acceptance::Refused {
                break;
            }
            acceptance = acceptance.min(match applicator {
                Applicator::Ref(id) => self.read(*id, value),
                Applicator::AllOf(ids) => {
                    ids.iter().map(|id| self.read(*id, value)).min().unwrap_or(Acceptance::Accepted)
                }
                Applicator::AnyOf(of) | Applicator::OneOf(of) => self.try_each(of, value),
                _ => Acceptance::Unknown,
            });
        }
        acceptance
    }

    /// Tries alternatives one after the other, on a copy.
    fn try_each(&mut self, of: &Alternatives, value: &Value) -> Acceptance {
        self.spend(weight(value));
        // the others are not tried
        if is_tagged(self.nodes, &of.objects)
            && let Intended::One(id) = intended(self.nodes, of, value)
        {
            return self.read(id, value);
        }
        let mut best = Acceptance::Refused;
        for id in &of.ids {
            let one = self.read(*id, value);
            best = best.max(one);
            if one == Acceptance::Accepted {
                break;
            }
            self.spend(REFUSAL);
        }
        best
    }

    /// Reads a value by the keywords of one node.
    fn read_in_place(&mut self, node: &SchemaNode, value: &Value) -> Acceptance {
        if node.never || node.types.is_some_and(|types| !types.contains(TypeSet::of(value))) {
            return Acceptance::Refused;
        }
        let mut acceptance = Acceptance::Accepted;
        match value {
            Value::Array(items) => {
                self.spend(CONTAINER);
                let Some(rules) = node.array.as_deref() else { return acceptance };
                for (index, item) in items.iter().enumerate() {
                    if let Some(id) = rules.prefix_items.get(index).copied().or(rules.items) {
                        acceptance = acceptance.min(self.read(id, item));
                    }
                    if acceptance == Acceptance::Refused {
                        break;
                    }
                }
            }
            Value::Object(members) => {
                self.spend(CONTAINER);
                let Some(rules) = node.object.as_deref() else { return acceptance };
                // the one that is refused may be the last one of the text
                for (name, member) in members {
                    let property = rules.property(name).map(|(_, property)| property.schema);
                    if let Some(id) = property.or(rules.additional_properties) {
                        acceptance = acceptance.min(self.read(id, member));
                    }
                }
                let is_present = |name: &String| members.contains_key(name);
                let mut required = rules.properties.iter().filter(|property| property.required);
                if !required.all(|property| is_present(&property.name))
                    || !rules.required.iter().all(is_present)
                {
                    return Acceptance::Refused;
                }
            }
            scalar => {
                self.spend(1);
                acceptance = accepts_scalar(node, scalar);
            }
        }
        acceptance
    }
}

/// Whether a node accepts a scalar whose type it allows. A type that parses its text has a format, a pattern or bounds, and to a
/// schema `1.0` is an integer, and every integer is one of its type.
fn accepts_scalar(node: &SchemaNode, scalar: &Value) -> Acceptance {
    let is_choice = |choice: &Value| equality::equal(choice, scalar);
    if node.choices.as_ref().is_some_and(|choices| !choices.values.iter().any(is_choice)) {
        return Acceptance::Refused;
    }
    let is_small = |number: &Number| number.as_i64().is_some_and(|number| (-128..128).contains(&number));
    let is_certain = match scalar {
        Value::String(_) => node.string.is_none() && !node.has_format,
        Value::Number(number) => {
            let is_float = node.types.is_some_and(|types| types.contains(TypeSet::NUMBER));
            let is_broken = node.number.as_ref().is_some_and(|rules| rules.broken(number).is_some());
            (is_small(number) || is_float) && !is_broken
        }
        _ => true,
    };
    if is_certain { Acceptance::Accepted } else { Acceptance::Unknown }
}

/// The steps that it takes to copy a value.
fn weight(value: &Value) -> usize {
    match value {
        Value::Array(items) => CONTAINER + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => CONTAINER + members.values().map(weight).sum::<usize>(),
        _ => 1,
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
