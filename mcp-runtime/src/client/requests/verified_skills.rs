//! Skills of a server. None of their files is read before it is used, and none is used before it is verified: its size and
//! digest by the skill's entry, and the frontmatter of its `SKILL.md` field by field.
//!
//! See [the extension](https://github.com/modelcontextprotocol/ext-skills) (SEP-2640).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    client_handle::Client,
    lists::require,
    pending_request::PendingCall,
    result_types::{ReadResult, parse},
};
use crate::{
    client::{
        Error,
        connect::shared_client::{CallOptions, SharedClient, params},
        exchange::ListedKind,
    },
    core::{content::ResourceContents, crypto::hex, protocol::SKILLS_EXTENSION},
    skill::{MANIFEST, parse_frontmatter},
};

/// Bounds of one skill, which are the extension's.
const MAX_FILES: usize = 512;
const MAX_TOTAL: u64 = 16 << 20;

/// A skill of a server: its purpose and its files, none of which has been read.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillInfo(Arc<Value>);

/// A file that a skill lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct SkillFileInfo<'a> {
    /// `uri` on the wire.
    pub uri: &'a str,
    /// `digest` on the wire: `sha256:` and 64 hexadecimal digits.
    pub digest: &'a str,
    /// `size` on the wire, in bytes.
    pub size: u64,
}

impl SkillInfo {
    /// `None` if the entry lacks what identifies it.
    fn new(entry: impl Into<Arc<Value>>) -> Option<Self> {
        let entry = entry.into();
        entry.get("uri")?.as_str()?;
        entry.get("frontmatter")?.get("name")?.as_str()?;
        Some(Self(entry))
    }

    fn field(&self, key: &str) -> &str {
        self.frontmatter().get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The URI of its `SKILL.md`: `uri` on the wire.
    #[must_use]
    pub fn uri(&self) -> &str {
        self.0.get("uri").and_then(Value::as_str).unwrap_or_default()
    }

    /// The `name` in its frontmatter.
    #[must_use]
    pub fn name(&self) -> &str {
        self.field("name")
    }

    /// The `description` in its frontmatter: its purpose, and when to use it.
    #[must_use]
    pub fn description(&self) -> &str {
        self.field("description")
    }

    /// All of its frontmatter, as JSON.
    #[must_use]
    pub fn frontmatter(&self) -> &Value {
        self.0.get("frontmatter").unwrap_or(&Value::Null)
    }

    /// Its files, `SKILL.md` among them; `None` if the server does not list them (`"dynamic"` on the wire), so that they
    /// cannot be verified.
    #[must_use]
    pub fn files(&self) -> Option<Vec<SkillFileInfo<'_>>> {
        let entries = self.0.get("resources")?.as_array()?;
        Some(entries.iter().filter_map(|entry| SkillFileInfo::deserialize(entry).ok()).collect())
    }

    /// The whole entry as the server sent it.
    #[must_use]
    pub fn raw(&self) -> &Value {
        &self.0
    }

    /// The URI of its directory, with a `/` at the end, if the entry is one that the extension allows.
    fn check(&self) -> Result<&str, Error> {
        let refuse = |what: &str| Error::invalid(format!("the entry of the skill `{}`: {what}", self.uri()));
        let directory = self.uri().strip_suffix(MANIFEST).filter(|directory| directory.ends_with('/'));
        let directory = directory.ok_or_else(|| refuse("its URI is not that of a `SKILL.md`"))?;
        if directory.trim_end_matches('/').rsplit('/').next() != Some(self.name()) {
            return Err(refuse("its directory has another name"));
        }
        let entries = match self.0.get("resources") {
            Some(Value::Array(entries)) => entries,
            Some(Value::String(dynamic)) if dynamic == "dynamic" => return Ok(directory),
            _ => return Err(refuse("`resources` is neither a list nor \"dynamic\"")),
        };
        let files = self.files().unwrap_or_default();
        if files.len() != entries.len() || files.len() > MAX_FILES {
            return Err(refuse("`resources` is not a list of at most 512 files with URI, digest and size"));
        }
        if files.iter().fold(0_u64, |total, file| total.saturating_add(file.size)) > MAX_TOTAL {
            return Err(refuse("its files have more than 16 MiB"));
        }
        for (at, file) in files.iter().enumerate() {
            if !is_inside(directory, file.uri) {
                return Err(refuse(&format!("the file `{}` is not in its directory", file.uri)));
            }
            if files.iter().take(at).any(|other| other.uri == file.uri) {
                return Err(refuse(&format!("the file `{}` is listed twice", file.uri)));
            }
        }
        Ok(directory)
    }

    /// The listed entry that the contents of `uri` must match; `None` if the files are not listed.
    fn expected(&self, uri: &str) -> Result<Option<SkillFileInfo<'_>>, Error> {
        let directory = self.check()?;
        let foreign = || Error::invalid(format!("`{uri}` is not a file of the skill `{}`", self.name()));
        match self.files() {
            Some(files) => files.into_iter().find(|file| file.uri == uri).ok_or_else(foreign).map(Some),
            None if is_inside(directory, uri) => Ok(None),
            None => Err(foreign()),
        }
    }

    fn verify(&self, uri: &str, contents: &ResourceContents) -> Result<(), Error> {
        let refuse =
            |what: String| Error::invalid(format!("`{uri}` is not what the skill's entry says: {what}"));
        let decoded;
        let bytes = match contents.as_text() {
            Some(text) => text.as_bytes(),
            None => {
                decoded = contents.to_bytes().ok_or_else(|| refuse("its blob is not base64".to_owned()))?;
                &decoded
            }
        };
        if let Some(expected) = self.expected(uri)? {
            if bytes.len() as u64 != expected.size {
                return Err(refuse(format!("it has {} bytes, not {}", bytes.len(), expected.size)));
            }
            let digest = format!("sha256:{}", hex(Sha256::digest(bytes)));
            if !digest.eq_ignore_ascii_case(expected.digest) {
                return Err(refuse("its digest is another one".to_owned()));
            }
        }
        if uri == self.uri() {
            let text = contents.as_text().ok_or_else(|| refuse("it is not text".to_owned()))?;
            let frontmatter = parse_frontmatter(text).map_err(refuse)?;
            let known = self.frontmatter().as_object();
            let known = known.ok_or_else(|| refuse("the entry has no frontmatter".to_owned()))?;
            if let Some(field) = difference(&frontmatter, known) {
                return Err(refuse(format!("`{field}` in its frontmatter is another one")));
            }
        }
        Ok(())
    }
}

/// Whether a URI is below that of a directory, which ends with `/`, whatever resolves it.
fn is_inside(directory: &str, uri: &str) -> bool {
    uri.strip_prefix(directory).is_some_and(|path| {
        !path.is_empty()
            && !path.contains(['?', '#', '\\'])
            && path.split('/').all(|segment| {
                let segment = segment.replace("%2e", ".").replace("%2E", ".");
                !matches!(segment.as_str(), "" | "." | "..")
            })
    })
}

/// A member of two objects that is not the same in both.
fn difference<'a>(one: &'a Map<String, Value>, other: &'a Map<String, Value>) -> Option<&'a str> {
    let changed = one.iter().find(|(key, value)| !other.get(*key).is_some_and(|other| is_same(value, other)));
    let missing = || other.keys().find(|key| !one.contains_key(*key));
    changed.map(|(key, _)| key).or_else(missing).map(String::as_str)
}

/// Equality of JSON: `1.0` in YAML may be `1` in the entry.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| is_same(value, other)))
        }
        (one, other) => one == other,
    }
}

impl Client {
    /// The server's skills (`skills/list`), of all pages. None of their files is read.
    pub fn skills(&self) -> PendingCall<Vec<SkillInfo>> {
        self.list(ListedKind::Skills, SkillInfo::new)
    }

    /// One skill (`skills/get`), by the URI of its `SKILL.md`.
    pub fn skill(&self, uri: impl Into<String>) -> PendingCall<SkillInfo> {
        #[derive(Deserialize)]
        struct WireSkill {
            skill: Value,
        }
        let uri = uri.into();
        self.request(move |shared, options| async move {
            require(&*shared.connection()?, SKILLS_EXTENSION)?;
            let members = params(json!({ "uri": uri }));
            let reply = shared.request("skills/get", members, &options).await;
            let wire: WireSkill = parse(&reply.map_err(|error| error.of_resource(&uri))?.json, "skills/get")?;
            let skill = SkillInfo::new(wire.skill).filter(|skill| skill.uri() == uri);
            skill.ok_or_else(|| Error::invalid("the result of `skills/get` is not the entry of this skill"))
        })
    }

    /// Loads a skill: the text of its `SKILL.md`, after its size, digest and frontmatter were found to be those of the
    /// entry.
    ///
    /// The error [`Error::Invalid`] says what differs: do not use the skill, or list the skills again if the server may
    /// have changed it.
    pub fn load_skill(&self, skill: &SkillInfo) -> PendingCall<String> {
        let skill = skill.clone();
        self.request(move |shared, options| async move {
            let contents = read_file(&shared, &skill, skill.uri(), &options).await?;
            Ok(contents.as_text().unwrap_or_default().to_owned())
        })
    }

    /// Reads a file of a skill by its URI, and verifies it as [`load_skill`](Self::load_skill) does. A file that the skill
    /// does not list is not read.
    pub fn read_skill_file(
        &self,
        skill: &SkillInfo,
        uri: impl Into<String>,
    ) -> PendingCall<ResourceContents> {
        let (skill, uri) = (skill.clone(), uri.into());
        self.request(move |shared, options| async move { read_file(&shared, &skill, &uri, &options).await })
    }
}

async fn read_file(
    shared: &SharedClient,
    skill: &SkillInfo,
    uri: &str,
    options: &CallOptions,
) -> Result<ResourceContents, Error> {
    skill.expected(uri)?;
    let (json, _) = shared.read(uri, None, options).await?;
    let mut contents = ReadResult::parse(&json)?.contents;
    if contents.len() != 1 {
        return Err(Error::invalid(format!("`{uri}` has {} items, and a file has one", contents.len())));
    }
    let contents = contents.remove(0);
    skill.verify(uri, &contents)?;
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_uris_below_the_directory_are_files_of_a_skill() {
        let inside = |uri| is_inside("skill://a/", uri);
        assert!(inside("skill://a/SKILL.md") && inside("skill://a/b/c.md") && inside("skill://a/%2e%2ea"));
        let outside = [
            "skill://a/",
            "skill://b/x",
            "skill://a/../b",
            "skill://a/b/%2E%2e/c",
            "skill://a/.",
            "skill://a//x",
            "skill://a/x?y",
            "skill://a/x#y",
            "skill://a/..\\b",
            "https://a/x",
        ];
        assert!(!outside.into_iter().any(inside));
    }

    #[test]
    fn frontmatter_is_compared_field_by_field_in_both_directions() {
        let object = |value: Value| value.as_object().cloned().expect("an object");
        let entry = object(json!({ "name": "a", "metadata": { "version": 1, "tags": ["x", 2] } }));
        let with = |key: &str, value: Value| {
            let mut changed = entry.clone();
            changed.insert(key.to_owned(), value);
            difference(&changed, &entry).map(str::to_owned)
        };
        assert_eq!(with("metadata", json!({ "version": 1.0, "tags": ["x", 2.0] })), None);
        assert_eq!(with("metadata", json!({ "version": 1 })).as_deref(), Some("metadata"));
        assert_eq!(with("allowed-tools", json!("all")).as_deref(), Some("allowed-tools"));
        assert_eq!(difference(&object(json!({ "name": "a" })), &entry), Some("metadata"));
    }

    #[test]
    fn files_are_verified_by_size_digest_and_frontmatter() {
        let manifest = "---\nname: a\ndescription: d\n---\nbody\n";
        let with = |text: &str, description: &str| {
            let digest = format!("sha256:{}", hex(Sha256::digest(text)));
            let file = json!({ "uri": "skill://a/SKILL.md", "digest": digest, "size": text.len() });
            let frontmatter = json!({ "name": "a", "description": description });
            let entry =
                json!({ "uri": "skill://a/SKILL.md", "frontmatter": frontmatter, "resources": [file] });
            SkillInfo::new(entry).expect("it is identified")
        };
        let verify = |skill: &SkillInfo, contents: ResourceContents| {
            skill.verify("skill://a/SKILL.md", &contents).map_err(|error| error.to_string())
        };
        let skill = with(manifest, "d");
        assert_eq!(verify(&skill, ResourceContents::text(manifest)), Ok(()));
        let complaint = |skill: &SkillInfo, text: &str| {
            verify(skill, ResourceContents::text(text)).expect_err("it is not what the entry says")
        };
        assert!(complaint(&skill, &manifest.replace("body", "BODY")).contains("digest"));
        assert!(complaint(&skill, &format!("{manifest}x")).contains("bytes"));
        assert!(complaint(&with(manifest, "another"), manifest).contains("`description`"));
        assert!(complaint(&with("body", "d"), "body").contains("frontmatter"));
        assert!(verify(&skill, ResourceContents::blob(manifest)).is_err(), "a manifest is text");
        assert!(verify(&skill, ResourceContents::blob_from_base64("%")).is_err());
    }

    #[test]
    fn entries_that_the_extension_does_not_allow_are_refused() {
        let file = |uri: &str, size: u64| json!({ "uri": uri, "digest": "sha256:00", "size": size });
        let check = |uri: &str, resources: Value| {
            let entry = json!({ "uri": uri, "frontmatter": { "name": "a" }, "resources": resources });
            SkillInfo::new(entry).expect("it is identified").check().map(str::to_owned)
        };
        let manifest = "skill://x/a/SKILL.md";
        assert_eq!(check(manifest, json!([file(manifest, 1)])).expect("it is valid"), "skill://x/a/");
        assert!(check(manifest, json!("dynamic")).is_ok());
        for (uri, resources) in [
            ("skill://x/b/SKILL.md", json!("dynamic")),
            ("skill://x/a/OTHER.md", json!("dynamic")),
            (manifest, json!("all")),
            (manifest, json!([file("skill://x/b/SKILL.md", 1)])),
            (manifest, json!([file(manifest, 1), file(manifest, 1)])),
            (manifest, json!([file(manifest, 17 << 20)])),
            (manifest, json!([{ "uri": manifest }])),
            (manifest, json!(vec![file(manifest, 1); 513])),
        ] {
            assert!(check(uri, resources.clone()).is_err(), "{uri} {resources}");
        }
    }
}
