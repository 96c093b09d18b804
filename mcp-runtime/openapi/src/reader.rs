//! Reads what references of a description lead to. Each place is looked for once, a trail visits each place once, and the
//! reads of one build have a limit together, so that no description takes work without an end.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
};

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::document::{Document, shown};

/// How many steps a reference has less than, and how many references lead from one to the next.
const MAX_STEPS: usize = 100;
/// Where the members of an object are, or the items of a list, by name or number.
type Children = HashMap<String, Range<usize>>;

/// Reads the parts of one description.
#[derive(Debug)]
pub(crate) struct Reader<'d> {
    pub(crate) document: &'d Document,
    /// The places that references lead to, through others.
    places: HashMap<String, Range<usize>>,
    /// The reference that the value at a place is.
    links: HashMap<usize, Option<String>>,
    /// Of the objects and lists that references lead into, by place.
    children: HashMap<usize, Children>,
    /// How many bytes may still be read.
    left: usize,
}

/// The places that one walk through references has visited.
#[derive(Debug, Default)]
pub(crate) struct Trail(HashSet<usize>);

/// A value that a reference leads to.
pub(crate) struct Target {
    pub(crate) place: Range<usize>,
    /// `None` if the trail has been there.
    pub(crate) value: Option<Value>,
}

impl<'d> Reader<'d> {
    /// A reader of so many bytes: what many operations refer to is read for each.
    pub(crate) fn new(document: &'d Document, most: usize) -> Self {
        let (places, links, children) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { document, places, links, children, left: most }
    }

    /// A value of the description.
    ///
    /// # Errors
    /// It is another kind of value, or too much was read.
    pub(crate) fn read<T: Deserialize<'d>>(&mut self, place: &Range<usize>) -> Result<T, String> {
        let json = self.document.at(place);
        let refused = "the operations refer to too much\nchoose fewer with `.include(..)`";
        self.left = self.left.checked_sub(json.len()).ok_or(refused)?;
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    /// A value that may be a reference to one.
    ///
    /// # Errors
    /// As [`read`](Self::read); or a reference leads to nothing.
    pub(crate) fn resolved<T: Deserialize<'d>>(&mut self, value: &'d RawValue) -> Result<T, String> {
        let place = self.document.place(value);
        let place = self.followed(&place)?;
        self.read(&place)
    }

    /// The place of a value that may be a reference to one.
    ///
    /// # Errors
    /// A reference leads to nothing, or to another document.
    pub(crate) fn followed(&mut self, place: &Range<usize>) -> Result<Range<usize>, String> {
        self.link(place).map_or_else(|| Ok(place.clone()), |reference| self.resolve(&reference))
    }

    /// The schema that a reference leads to, once for a trail.
    ///
    /// # Errors
    /// It leads to nothing or to another document, or is nested too deeply.
    pub(crate) fn follow(&mut self, trail: &mut Trail, reference: &str) -> Result<Target, String> {
        let place = self.resolve(reference)?;
        let is_new = trail.0.insert(place.start);
        let value = is_new.then(|| self.read(&place)).transpose();
        let value = value.map_err(|error| format!("a schema cannot be read: {error}"))?;
        Ok(Target { place, value })
    }

    /// The schema that a reference leads to, or the schema itself; `None` if the trail has been there.
    ///
    /// # Errors
    /// As [`follow`](Self::follow).
    pub(crate) fn target(&mut self, trail: &mut Trail, schema: &Value) -> Result<Option<Value>, String> {
        match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) => Ok(self.follow(trail, reference)?.value),
            None => Ok(Some(schema.clone())),
        }
    }

    /// The place that a reference leads to, through other references.
    fn resolve(&mut self, reference: &str) -> Result<Range<usize>, String> {
        if let Some(place) = self.places.get(reference) {
            return Ok(place.clone());
        }
        let mut place = self.find(reference)?;
        for _ in 0..MAX_STEPS {
            let Some(next) = self.link(&place) else {
                self.places.insert(reference.to_owned(), place.clone());
                return Ok(place);
            };
            place = match self.places.get(&next) {
                Some(known) => known.clone(),
                None => self.find(&next)?,
            };
        }
        // a cycle of references has no value
        Err(format!("the reference `{}` leads to references without an end", shown(reference)))
    }

    /// The reference that the value at a place is.
    fn link(&mut self, place: &Range<usize>) -> Option<String> {
        #[derive(Deserialize)]
        struct Reference {
            #[serde(rename = "$ref")]
            reference: String,
        }
        let document = self.document;
        let read = || serde_json::from_str(document.at(place)).ok().map(|Reference { reference }| reference);
        self.links.entry(place.start).or_insert_with(read).clone()
    }

    /// The place that a reference names.
    fn find(&mut self, reference: &str) -> Result<Range<usize>, String> {
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(format!(
                "the reference `{}` leads to another document\nbundle the description into one file",
                shown(reference)
            ));
        };
        let missing = || format!("the reference `{}` leads to nothing", shown(reference));
        let pointer = percent_decode_str(pointer).decode_utf8_lossy();
        if pointer.split('/').nth(MAX_STEPS).is_some() || !(pointer.is_empty() || pointer.starts_with('/')) {
            return Err(missing());
        }
        let mut place = self.document.root();
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let document = self.document;
            let children = self.children.entry(place.start).or_insert_with(|| children(document, &place));
            place = children.get(&step).cloned().ok_or_else(missing)?;
        }
        Ok(place)
    }
}

fn children(document: &Document, place: &Range<usize>) -> Children {
    let json = document.at(place);
    if let Ok(members) = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(json) {
        return members
            .into_iter()
            .map(|(name, member)| (name.into_owned(), document.place(member)))
            .collect();
    }
    let items: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
    items.into_iter().enumerate().map(|(index, item)| (index.to_string(), document.place(item))).collect()
}
