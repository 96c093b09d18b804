//! The alternative of `anyOf` or `oneOf` that a value was intended for, and why it matches none of them.

use serde_json::{Map, Value};

use super::check::{MAX_ERRORS, Validation, choice_mismatch, describe_choices, key_mismatch, type_mismatch};
use super::error::{Mismatch, summarize};
use super::node::{Alternatives, Applicator, Choices, NodeId, ObjectRules, SchemaNode, TypeSet, Variants};
use super::value_hash::first_duplicate;
use super::walk;

/// Beside `anyOf` or `oneOf` of a schema that was translated: the `property` that names the alternative that a value is meant
/// for, and the `places` of those by name. It only decides whose errors are reported, and is not published.
pub const VARIANTS: &str = "x-mcp-variants";
/// How deep alternatives inside alternatives are described.
const MAX_DESCRIPTION_DEPTH: usize = 4;

/// The alternative that a value was intended for.
pub(super) enum Intended<'n> {
    One(NodeId),
    /// The tag that tells these apart is absent, or not one of theirs.
    NoTag(&'n str, Vec<NodeId>),
    /// The same of a tag that the schema names.
    NoVariant(&'n Variants),
    /// Any of these.
    Several(Vec<NodeId>),
    /// None has the type of the value.
    NoneOfType,
}

/// The alternative that a value was probably intended for: the only one of its type, with its tag, or with its constants and
/// required members.
pub(super) fn intended<'n>(
    nodes: &'n [SchemaNode],
    alternatives: &'n Alternatives,
    value: &Value,
) -> Intended<'n> {
    let Value::Object(members) = value else {
        let candidates = of_type(nodes, &alternatives.ids, TypeSet::of(value));
        return match candidates.as_slice() {
            [] => Intended::NoneOfType,
            [only] => Intended::One(*only),
            _ => Intended::Several(candidates),
        };
    };
    let Alternatives { objects, tag, .. } = alternatives;
    match (objects.as_slice(), tag) {
        ([], _) => return Intended::NoneOfType,
        ([only], _) => return Intended::One(*only),
        (_, Some(tag)) if !members.contains_key(tag) => return Intended::NoTag(tag, objects.clone()),
        _ => {}
    }
    if let Some(variants) = &alternatives.variants {
        let takes = |id: NodeId, name: &Value| {
            property_choices(nodes, id, &variants.property).is_none_or(|choices| choices.contains(name))
        };
        let sent = members.get(&variants.property);
        let named = sent.and_then(|sent| Some((sent, *alternatives.ids.get(variants.place(sent)?)?)));
        match named {
            Some((sent, id)) if takes(id, sent) => return Intended::One(id),
            None if tag.is_none() => return Intended::NoVariant(variants),
            _ => {}
        }
    }
    let has_tag = |id: &NodeId| {
        let Some((tag, sent)) = tag.as_ref().and_then(|tag| Some((tag, members.get(tag)?))) else {
            return true;
        };
        let of_variant = property_choices(nodes, *id, tag);
        of_variant.is_some_and(|choices| choices.contains(sent))
    };
    let tagged = || objects.iter().copied().filter(has_tag);
    let mut first = tagged();
    match (first.next(), first.next(), tag) {
        (Some(only), None, _) => return Intended::One(only),
        (None, _, Some(tag)) => return Intended::NoTag(tag, objects.clone()),
        _ => {}
    }
    // a variant that is named by its key has it as a required member
    let mut complete = tagged().filter(|id| has_members(nodes, *id, members));
    match (complete.next(), complete.next()) {
        (Some(only), None) => Intended::One(only),
        _ => Intended::Several(tagged().collect()),
    }
}

/// The alternatives that a value of a type may be meant for: the only one besides `null`, or those that do not refuse the type.
fn of_type(nodes: &[SchemaNode], ids: &[NodeId], types: TypeSet) -> Vec<NodeId> {
    let mut candidates = not_null(nodes, ids);
    if candidates.len() > 1 {
        candidates.retain(|id| nodes.get(*id).is_some_and(|node| !node.refuses.contains(types)));
    }
    candidates
}

/// Finds out which alternatives may be objects, and what distinguishes them.
pub(super) fn settle_alternatives(nodes: &mut [SchemaNode]) {
    let settle = |applicator: &Applicator| {
        let objects = of_type(nodes, &applicator.alternatives()?.ids, TypeSet::OBJECT);
        let tag = tag(nodes, &objects).map(str::to_owned);
        Some((objects, tag, all_choices(nodes, applicator)))
    };
    let settled: Vec<Vec<_>> =
        nodes.iter().map(|node| node.applicators.iter().map(settle).collect()).collect();
    for (node, settled) in nodes.iter_mut().zip(settled) {
        for (applicator, settled) in node.applicators.iter_mut().zip(settled) {
            if let (Applicator::AnyOf(of) | Applicator::OneOf(of), Some(settled)) = (applicator, settled) {
                (of.objects, of.tag, of.choices) = settled;
            }
        }
    }
}

/// The choices of several alternatives, if each consists of some and a value cannot be one of two.
fn all_choices(nodes: &[SchemaNode], applicator: &Applicator) -> Option<Choices> {
    let mut values = Vec::new();
    for id in &applicator.alternatives().filter(|of| of.ids.len() > 1)?.ids {
        let node = nodes.get(*id)?;
        let has_rules =
            node.never || node.number.is_some() || node.string.is_some() || !node.applicators.is_empty();
        if has_rules || node.array.is_some() || node.object.is_some() {
            return None;
        }
        let is_of_type = |value: &&Value| node.types.is_none_or(|types| types.contains(TypeSet::of(value)));
        values.extend(node.choices.as_ref()?.values.iter().filter(is_of_type).cloned());
    }
    let is_once = matches!(applicator, Applicator::AnyOf(_)) || first_duplicate(&values).is_none();
    is_once.then(|| Choices::new(values, false))
}

/// Removes what a schema says for reports alone.
pub fn drop_variants(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    map.remove(VARIANTS);
    walk::subschemas_mut(map, &mut |_, child| drop_variants(child));
}

/// Alternatives besides `null`.
pub(super) fn not_null(nodes: &[SchemaNode], ids: &[NodeId]) -> Vec<NodeId> {
    ids.iter().copied().filter(|id| !nodes.get(*id).is_some_and(SchemaNode::is_null)).collect()
}

/// Whether an object has the required members of a node, its constants, and no other members if the node allows none.
fn has_members(nodes: &[SchemaNode], id: NodeId, members: &Map<String, Value>) -> bool {
    let Some(rules) = nodes.get(id).and_then(|node| node.object.as_deref()) else { return true };
    if is_closed(nodes, rules) && !members.keys().all(|name| rules.property(name).is_some()) {
        return false;
    }
    rules.properties.iter().all(|property| {
        let Some(member) = members.get(&property.name) else { return !property.required };
        let choices = nodes.get(property.schema).and_then(|node| node.choices.as_ref());
        choices.filter(|choices| choices.is_const).is_none_or(|choices| choices.contains(member))
    }) && rules.required.iter().all(|name| members.contains_key(name))
}

/// The required property whose value distinguishes several object alternatives.
fn tag<'n>(nodes: &'n [SchemaNode], ids: &[NodeId]) -> Option<&'n str> {
    let (first, rest) = ids.split_first()?;
    let required =
        nodes.get(*first)?.object.as_deref()?.properties.iter().filter(|property| property.required);
    let mut names = required.map(|property| property.name.as_str());
    names.find(|name| !rest.is_empty() && ids.iter().all(|id| property_choices(nodes, *id, name).is_some()))
}

/// Whether the text, the only key or a constant tells which alternative a value is, so that decoding tries no others. A field
/// that has a few values in each variant is not a tag.
pub(super) fn tells_variant(nodes: &[SchemaNode], ids: &[NodeId]) -> bool {
    let is_const =
        |id: &NodeId, tag: &str| property_choices(nodes, *id, tag).is_some_and(|choices| choices.is_const);
    are_named(nodes, ids) || tag(nodes, ids).is_some_and(|tag| ids.iter().all(|id| is_const(id, tag)))
}

/// Whether the name of the variant is the text, or the only key.
pub(super) fn are_named(nodes: &[SchemaNode], ids: &[NodeId]) -> bool {
    ids.iter().all(|id| {
        variant_name(nodes, *id).is_some() || nodes.get(*id).is_some_and(|node| node.choices.is_some())
    })
}

/// The values of a tag that tell the alternatives apart.
fn tag_choices<'n>(nodes: &'n [SchemaNode], ids: &[NodeId], tag: &str) -> Vec<&'n Value> {
    let choices = ids.iter().filter_map(|id| property_choices(nodes, *id, tag));
    choices.flat_map(|choices| &choices.values).collect()
}

/// The choices of a required property.
fn property_choices<'n>(nodes: &'n [SchemaNode], id: NodeId, name: &str) -> Option<&'n Choices> {
    let (_, property) = nodes.get(id)?.object.as_deref()?.property(name)?;
    nodes.get(property.schema).filter(|_| property.required)?.choices.as_ref()
}

/// The name of a variant that is named by its only key.
fn variant_name(nodes: &[SchemaNode], id: NodeId) -> Option<&str> {
    let rules = nodes.get(id)?.object.as_deref()?;
    match rules.properties.as_slice() {
        [property] if property.required && is_closed(nodes, rules) => Some(&property.name),
        _ => None,
    }
}

/// Whether an object has no members besides its properties.
fn is_closed(nodes: &[SchemaNode], rules: &ObjectRules) -> bool {
    let others = rules.additional_properties.and_then(|id| nodes.get(id));
    others.is_some_and(|node| node.never) && rules.pattern_properties.is_empty()
}

impl<'a> Validation<'a> {
    /// Reports the errors of the alternative that was probably intended, or that none matches.
    pub(super) fn fail_alternatives(&mut self, of: &'a Alternatives, value: &'a Value) -> bool {
        if self.fail_fast {
            return false;
        }
        let alternatives = not_null(self.nodes, &of.ids);
        match intended(self.nodes, of, value) {
            // one of some names, and other forms
            Intended::One(id)
                if alternatives.len() > 1
                    && let Some(choices) = self.nodes.get(id).and_then(|node| node.choices.as_ref())
                    && !(self.suggests(choices.values.len()) && choices.has_near(value)) =>
            {
                self.fail_all(&alternatives, false, value)
            }
            Intended::One(id) => self.check(id, value),
            Intended::NoTag(tag, candidates) => {
                let choices = tag_choices(self.nodes, &candidates, tag);
                let suggests = self.suggests(choices.len());
                let mismatch = || match value.get(tag) {
                    None => Mismatch::missing(describe_choices(choices.iter().copied(), false)),
                    Some(sent) => choice_mismatch(choices.iter().copied(), false, sent, suggests),
                };
                self.fail_at(tag, mismatch)
            }
            Intended::NoVariant(variants) => {
                let Variants { property, names, .. } = variants;
                let suggests = self.suggests(names.len());
                let mismatch = || match value.get(property) {
                    None => Mismatch::missing(describe_choices(names.iter(), false)),
                    Some(sent) => choice_mismatch(names.iter(), false, sent, suggests),
                };
                self.fail_at(property, mismatch)
            }
            Intended::Several(candidates) => {
                let names = candidates.iter().map(|id| variant_name(self.nodes, *id));
                match (value, names.collect::<Option<Vec<_>>>()) {
                    (Value::Object(members), Some(names)) if members.len() == 1 => {
                        let key = members.keys().next().map(String::as_str).unwrap_or_default();
                        self.fail(|| key_mismatch(key, &names))
                    }
                    _ => self.fail_all(&candidates, false, value),
                }
            }
            Intended::NoneOfType => self.fail_all(&alternatives, true, value),
        }
    }

    /// Reports that a value matches none of the alternatives; `none_of_type` if its type is not allowed by any.
    fn fail_all(&mut self, alternatives: &[NodeId], none_of_type: bool, value: &Value) -> bool {
        let choices: Option<Vec<&Choices>> = alternatives
            .iter()
            .map(|id| self.nodes.get(*id).and_then(|node| node.choices.as_ref()))
            .collect();
        if let Some(choices) = choices.filter(|choices| !choices.is_empty()) {
            let values: Vec<&Value> = choices.into_iter().flat_map(|choices| &choices.values).collect();
            let suggests = self.suggests(values.len());
            return self.fail(|| choice_mismatch(values.iter().copied(), false, value, suggests));
        }
        let types = alternatives.iter().fold(TypeSet::NONE, |types, id| types.union(self.types(*id)));
        let is_by_type = |id: &NodeId| {
            self.types(*id) == types
                || self.nodes.get(*id).is_some_and(|node| node.types.is_some() && node.object.is_none())
        };
        if none_of_type && alternatives.iter().all(is_by_type) {
            return self.fail(|| type_mismatch(types, value));
        }
        let expected = self.describe_each(alternatives, MAX_DESCRIPTION_DEPTH).join("; ");
        let message = format!("{} matches none of: {expected}", summarize(value));
        self.fail(|| Mismatch::new(expected, message))
    }

    /// The values that a node accepts, as in `an integer` or `one of "a", "b"`.
    pub(super) fn describe(&mut self, id: NodeId) -> String {
        self.describe_within(id, MAX_DESCRIPTION_DEPTH)
    }

    /// The distinct descriptions of several nodes; of very many, those of the first.
    fn describe_each(&mut self, ids: &[NodeId], levels: usize) -> Vec<String> {
        let mut descriptions: Vec<String> = Vec::new();
        for id in ids.iter().take(MAX_ERRORS) {
            let description = self.describe_within(*id, levels);
            if !descriptions.contains(&description) {
                descriptions.push(description);
            }
        }
        if ids.len() > MAX_ERRORS {
            descriptions.push("…".to_owned());
        }
        descriptions
    }

    fn describe_within(&mut self, id: NodeId, levels: usize) -> String {
        let nodes = self.nodes;
        let Some(node) = nodes.get(id).filter(|_| levels > 0 && self.takes_steps(1)) else {
            return "a value".to_owned();
        };
        if let Some(choices) = &node.choices {
            return describe_choices(choices.values.iter(), choices.is_const);
        }
        let required = |rules: &ObjectRules| {
            let declared = rules.properties.iter().filter(|property| property.required);
            declared
                .map(|property| property.name.as_str())
                .chain(rules.required.iter().map(String::as_str))
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
        };
        if let Some(names) =
            node.object.as_ref().map(|rules| required(rules)).filter(|names| !names.is_empty())
            && node.types.is_none_or(|types| types == TypeSet::OBJECT)
        {
            return format!("an object with {}", names.join(", "));
        }
        if let Some(types) = node.types {
            return types.describe();
        }
        for applicator in &node.applicators {
            // one that is closed around what it refers to
            if let Applicator::Ref(id) = applicator {
                return self.describe_within(*id, levels);
            }
            if let Some(of) = applicator.alternatives() {
                if let Some(tag) = tag(self.nodes, &of.ids) {
                    let choices = describe_choices(tag_choices(self.nodes, &of.ids, tag).into_iter(), false);
                    return format!("an object with `{tag}`: {choices}");
                }
                return self.describe_each(&of.ids, levels - 1).join(" or ");
            }
        }
        "a value".to_owned()
    }

    /// The types that a node allows.
    fn types(&self, id: NodeId) -> TypeSet {
        self.nodes.get(id).map_or(TypeSet::ANY, |node| TypeSet::ANY.without(node.refuses))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::validate::Validator, *};

    fn report(keyword: Value, value: &Value) -> String {
        let variant = |name: &str| json!({ "type": "object", "required": [name] });
        let mut schema = json!({ "oneOf": [variant("a"), variant("b")] });
        schema[VARIANTS] = keyword;
        let errors = Validator::compile(&schema).expect("a schema").validate(value);
        errors.iter().map(|error| format!("{error}; ")).collect()
    }

    #[test]
    fn a_named_variant_is_reported_and_a_name_of_none_is_one_of_the_names() {
        let keyword = json!({ "property": "is", "places": { "A": 0, "B": 1 } });
        let first = report(keyword.clone(), &json!({ "is": "A" }));
        assert!(first.starts_with("a: "), "{first}");
        let second = report(keyword.clone(), &json!({ "is": "B", "c": 1 }));
        assert!(second.starts_with("b: "), "{second}");
        for value in [json!({}), json!({ "is": "C" }), json!({ "is": [] })] {
            let names = report(keyword.clone(), &value);
            assert!(names.starts_with("is: ") && names.contains(r#"one of "A", "B""#), "{names}");
        }
        let other = report(keyword.clone(), &json!(1));
        assert!(other.contains("object"), "{other}");
        // `oneOf` still counts
        assert!(!report(keyword.clone(), &json!({ "is": "A", "a": 1, "b": 2 })).is_empty());
        assert_eq!(report(keyword, &json!({ "is": "A", "b": 2 })), "");
    }

    #[test]
    fn a_keyword_that_names_no_alternatives_is_ignored() {
        let without = report(Value::Null, &json!({ "is": "A" }));
        for keyword in [
            json!(1),
            json!({ "property": "is" }),
            json!({ "property": 1, "places": { "A": 0 } }),
            json!({ "property": "is", "places": { "A": -1 } }),
            json!({ "property": "is", "places": { "A": "0" } }),
        ] {
            assert_eq!(report(keyword.clone(), &json!({ "is": "A" })), without, "{keyword}");
        }
        let far = report(json!({ "property": "is", "places": { "A": 9 } }), &json!({ "is": "A" }));
        assert!(far.contains("is"), "{far}");
    }

    #[test]
    fn it_is_removed_wherever_it_is() {
        let mut schema = json!({ "properties": { "a": { "anyOf": [{ VARIANTS: {} }], VARIANTS: {} } }, "$defs": { "b": { VARIANTS: 1 } } });
        drop_variants(&mut schema);
        assert!(!schema.to_string().contains(VARIANTS), "{schema}");
    }
}
