//! `skills/get`, `resources/directory/read`, and `resources/read` of a skill's file. `skills/list` is a list like the
//! others.

use serde_json::json;

use super::{
    Refusal, Request, Status,
    cursor::{View, bad_cursor},
    reply::{Frame, result},
    run::Begun,
};
use crate::{
    content::{ResourceDefaults, resource_result},
    jsonrpc::ProtocolError,
    registry::{Found, page_of, skill_children, write_skill},
    server::Server,
    skill::MANIFEST,
};

impl Server {
    pub(super) fn get_skill(&self, request: Request<'_>, out: &mut Vec<u8>) -> Result<Begun, Refusal> {
        let uri = request.uri()?;
        let registry = self.registry();
        let Some(Found::File(skill, MANIFEST, _)) = registry.skills.find(&uri) else {
            return Err(no_such(
                &uri,
                format!("no skill is `{uri}`\n`skills/list` has the skills there are"),
            ));
        };
        result(out, request, self, None, |object| {
            object.object("skill", |entry| write_skill(entry, skill));
            self.cache_hints(object);
        });
        Ok(Begun::Done(Status::Ok))
    }

    pub(super) fn read_directory(&self, request: Request<'_>, out: &mut Vec<u8>) -> Result<Begun, Refusal> {
        let uri = request.uri()?;
        let registry = self.registry();
        let (skill, folder) = match registry.skills.find(&uri) {
            Some(Found::Folder(skill, folder)) => (skill, folder),
            Some(Found::File(..)) => {
                return Err(no_such(&uri, format!("`{uri}` is a file\nread it with `resources/read`")));
            }
            None => return Err(no_such(&uri, format!("no directory is `{uri}`"))),
        };
        // a cursor is of one directory
        let list = format!("directory {}", skill.uri(folder));
        let size = self.options().page_size;
        let view = View::new(self, &request, &list);
        let start = self.start_of(request.cursor()?.as_deref(), &view)?;
        let page = page_of(&skill_children(skill, folder), start, size).ok_or_else(bad_cursor)?;
        let frame = Frame { id: request.id, revision: request.revision };
        self.write_page("resources", frame, &page, || view, out)?;
        Ok(Begun::Done(Status::Ok))
    }

    /// Reads what a URI of a skill names.
    pub(super) fn read_skill(
        &self,
        request: Request<'_>,
        uri: &str,
        found: &Found<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Begun, Refusal> {
        let Found::File(skill, path, file) = *found else {
            let text = format!("`{uri}` is a directory\nread it with `resources/directory/read`");
            return Err(no_such(uri, text));
        };
        result(out, request, self, None, |object| {
            let own = ResourceDefaults { uri: &skill.uri(path), ..ResourceDefaults::default() };
            resource_result(object, &file.contents, request.revision, own);
            self.cache_hints(object);
        });
        Ok(Begun::Done(Status::Ok))
    }
}

fn no_such(uri: &str, text: String) -> Refusal {
    ProtocolError::invalid_params(text).with_data(json!({ "uri": uri })).into()
}
