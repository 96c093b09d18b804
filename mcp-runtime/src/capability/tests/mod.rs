//! The example of a capability.

mod moods;
