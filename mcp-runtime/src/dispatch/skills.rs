//! `skills/get`, `resources/directory/read`, and `resources/read` of a skill's file. `skills/list` is a list like the
//! others.

use serde_json::json;

use super::{
    Request,
    pagination::{View, bad_cursor},
    response::{ReadEntry, Reply, ResultBody},
};
use crate::{
    jsonrpc::{Object, ProtocolError},
    server::{Registry, Server, page_of},
    skill::{MANIFEST, SkillResource, directory_entries, write_skill},
};

impl Server {
    pub(super) fn get_skill(&self, request: Request<'_>, registry: &Registry) -> Result<Reply, Reply> {
        let uri = request.uri()?;
        let Some(SkillResource::File(skill, MANIFEST, _)) = registry.skills.find(&uri) else {
            return Err(no_such(
                &uri,
                format!("no skill is `{uri}`\n`skills/list` has the skills there are"),
            ));
        };
        let mut out = Vec::new();
        let mut object = Object::new(&mut out);
        object.object("skill", |entry| write_skill(entry, skill));
        self.cache_hints().write(&mut object);
        Ok(ResultBody::Written(out.split_off(1)).into())
    }

    pub(super) fn read_directory(&self, request: Request<'_>, registry: &Registry) -> Result<Reply, Reply> {
        let uri = request.uri()?;
        let (skill, folder) = match registry.skills.find(&uri) {
            Some(SkillResource::Directory(skill, folder)) => (skill, folder),
            Some(SkillResource::File(..)) => {
                return Err(no_such(&uri, format!("`{uri}` is a file\nread it with `resources/read`")));
            }
            None => return Err(no_such(&uri, format!("no directory is `{uri}`"))),
        };
        // a cursor is of one directory
        let list = format!("directory {}", skill.uri(folder));
        let size = self.options().page_size;
        let view = View::new(self, &request, &list);
        let start = self.start_of(request.cursor()?.as_deref(), &view)?;
        let page = page_of(&directory_entries(skill, folder), start, size).ok_or_else(bad_cursor)?;
        self.page_reply("resources", page.into(), || view)
    }

    /// Reads what a URI of a skill names.
    pub(super) fn read_skill(&self, uri: &str, found: &SkillResource<'_>) -> Result<Reply, Reply> {
        let SkillResource::File(skill, path, file) = *found else {
            let text = format!("`{uri}` is a directory\nread it with `resources/directory/read`");
            return Err(no_such(uri, text));
        };
        let (result, uri) = (file.contents.clone(), skill.uri(path).into());
        Ok(ResultBody::Resource { result, uri, entry: ReadEntry::SkillFile, cache: self.cache_hints() }
            .into())
    }
}

fn no_such(uri: &str, text: String) -> Reply {
    ProtocolError::invalid_params(text).with_data(json!({ "uri": uri })).into()
}
