//! What a call may do, by the hints of its tool: hosts ask their users by these.

use mcp_runtime::{config::ItemView, tool::Hints};

/// What the calls of a tool may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    ReadOnly,
    /// They change something, and destroy nothing.
    Additive,
    Destructive,
}

impl Class {
    pub(crate) const ALL: [Self; 3] = [Self::ReadOnly, Self::Additive, Self::Destructive];

    /// That of a tool. Without hints it is destructive, as the protocol has it; so is one whose hints contradict each other.
    pub(crate) fn of(tool: &ItemView<'_>) -> Self {
        match tool.hints() {
            Hints { destructive: Some(true), .. } => Self::Destructive,
            Hints { read_only: Some(true), .. } => Self::ReadOnly,
            Hints { destructive: Some(false), .. } => Self::Additive,
            _ => Self::Destructive,
        }
    }

    /// The tool that passes calls on to tools of this class.
    pub(crate) fn caller(self) -> &'static str {
        match self {
            Self::ReadOnly => "call_read_only",
            Self::Additive => "call_tool",
            Self::Destructive => "call_destructive",
        }
    }

    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::ReadOnly => "Calls a tool that `search_tools` has found and that only reads.",
            Self::Additive => {
                "Calls a tool that `search_tools` has found and that changes something, but destroys nothing."
            }
            Self::Destructive => {
                "Calls a tool that `search_tools` has found and that may delete or overwrite something."
            }
        }
    }

    pub(crate) fn hint(self, hints: &mut Hints) {
        hints.read_only = Some(self == Self::ReadOnly);
        if self != Self::ReadOnly {
            hints.destructive = Some(self == Self::Destructive);
        }
    }
}
