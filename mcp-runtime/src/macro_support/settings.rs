//! What generated code names of `settings`.

pub use crate::{
    core::server::Error,
    settings::{
        AnyMember, Config, ConfigDescriptor, MemberOf, SettingField, SettingMembers, config_id,
        config_schema, deserialize_config, flat_setting, load_config, next_slot, setting,
    },
};
