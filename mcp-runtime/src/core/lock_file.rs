//! Lock files: what models and clients depend on of a server, as `mcp-dev lock` writes it. The format is here; what a
//! difference means is in the contract of the test kit.

use serde_json::{Map, Value};

/// The version of the format.
pub(crate) const FORMAT: u64 = 1;

/// The items in a lock file.
///
/// ```
/// use mcp_runtime::lock_file::LockFile;
///
/// let text = r#"{ "format": 1, "tools": { "search": { "description": "Searches." } } }"#;
/// let locked = LockFile::parse(text).expect("a lock file");
/// assert_eq!(locked.item("tools", "search").expect("a tool")["description"], "Searches.");
/// assert!(locked.item("tools", "delete").is_none());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LockFile(pub(crate) Map<String, Value>);

impl LockFile {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The text is not a lock file, or has another format.
    pub fn parse(text: &str) -> Result<Self, String> {
        match serde_json::from_str(text) {
            Ok(Value::Object(members)) if members.get("format") == Some(&FORMAT.into()) => Ok(Self(members)),
            Ok(Value::Object(members)) if members.contains_key("format") => {
                Err(format!("its format is {}, and {FORMAT} is known", members["format"]))
            }
            Ok(_) => Err("it is not a contract".to_owned()),
            Err(error) => Err(format!("it is not JSON: {error}")),
        }
    }

    /// An item, by the member that a list has in the file (`tools`, `prompts`, `resources`, `resourceTemplates`), and by its
    /// name or URI: its entry in the list without that name.
    #[must_use]
    pub fn item(&self, section: &str, name: &str) -> Option<&Value> {
        self.0.get(section)?.get(name)
    }
}
