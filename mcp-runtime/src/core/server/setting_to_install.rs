//! A setting as the command `install` passes it to a client. A server without settings has none.

/// A setting as a client sets it.
pub(crate) struct SettingToInstall {
    pub(crate) variable: String,
    /// The text that a flag or a variable gives it now; never that of a secret.
    pub(crate) given: Option<String>,
    pub(crate) description: String,
    pub(crate) is_secret: bool,
    /// Whether it has to be set, and the file of settings does not.
    pub(crate) is_required: bool,
    /// Whether an entry has it: it is required, or given. Others are here for their flags.
    pub(crate) is_used: bool,
    /// Its flag, without `--`.
    pub(crate) flag: String,
}
