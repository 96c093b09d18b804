//! `skills/get`, `resources/directory/read`, and `resources/read` of a skill's file.

use serde_json::json;

use super::{
    Request,
    pagination::{CursorScope, invalid_cursor},
    response::{ReadSource, Reply, ResultBody},
};
use crate::{
    connection::AccessError,
    jsonrpc::{Object, ProtocolError},
    server::{Registry, Server, page_of},
    skill::{MANIFEST, SkillResource, directory_entries, write_skill},
};

impl Server {
    pub(super) fn get_skill(&self, request: Request<'_>, registry: &Registry) -> Result<Reply, Reply> {
        let uri = request.uri()?;
        let skill = match registry.skills.find(&uri, request.access()) {
            Ok(SkillResource::File(skill, MANIFEST, _)) => skill,
            Err(AccessError::MissingScopes(scopes)) => return Err(self.insufficient_scope(scopes)),
            Ok(_) | Err(AccessError::Unknown) => {
                let text = format!("unknown skill `{uri}`\n`skills/list` lists the skills");
                return Err(invalid_uri(&uri, text));
            }
        };
        let mut out = Vec::new();
        let mut object = Object::new(&mut out);
        object.object("skill", |entry| write_skill(entry, skill));
        self.cache_hints().write(&mut object);
        Ok(ResultBody::RawMembers(out.split_off(1)).into())
    }

    pub(super) fn read_directory(&self, request: Request<'_>, registry: &Registry) -> Result<Reply, Reply> {
        let uri = request.uri()?;
        let (skill, folder) = match registry.skills.find(&uri, request.access()) {
            Ok(SkillResource::Directory(skill, folder)) => (skill, folder),
            Ok(SkillResource::File(..)) => {
                return Err(invalid_uri(&uri, format!("`{uri}` is a file\nread it with `resources/read`")));
            }
            Err(AccessError::MissingScopes(scopes)) => return Err(self.insufficient_scope(scopes)),
            Err(AccessError::Unknown) => {
                return Err(invalid_uri(&uri, format!("unknown directory `{uri}`")));
            }
        };
        // so that a cursor is valid for one directory only
        let list = format!("directory {}", skill.uri(folder));
        let size = self.options().lists.page_size;
        let scope = CursorScope::new(self, &request, &list);
        let start = self.page_start(request.cursor()?.as_deref(), &scope)?;
        let page = page_of(&directory_entries(skill, folder), start, size).ok_or_else(invalid_cursor)?;
        self.page_reply("resources", page.into(), || scope)
    }

    /// Reads a file of a skill.
    pub(super) fn read_skill(&self, uri: &str, found: &SkillResource<'_>) -> Result<Reply, Reply> {
        let SkillResource::File(skill, path, file) = *found else {
            let text = format!("`{uri}` is a directory\nread it with `resources/directory/read`");
            return Err(invalid_uri(uri, text));
        };
        let (result, uri) = (file.contents.clone(), skill.uri(path).into());
        Ok(ResultBody::Resource { result, uri, source: ReadSource::Unregistered, cache: self.cache_hints() }
            .into())
    }
}

/// `-32602`, with the URI as data.
fn invalid_uri(uri: &str, text: String) -> Reply {
    ProtocolError::invalid_params(text).with_data(json!({ "uri": uri })).into()
}
