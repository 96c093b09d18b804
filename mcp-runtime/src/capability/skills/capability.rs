//! `skills/get`, `resources/directory/read`, and `resources/read` of a skill's file.

use std::sync::Arc;

use serde_json::json;

use super::{MANIFEST, SkillCatalog, SkillDirectories, SkillResource, directory_entries, write_skill};
use crate::{
    capability::resources::{ReadResult, ReadSource, ResourceSource, Resources},
    core::{
        build_error::BuildError,
        connection::{Access, AccessError},
        dispatch::{CursorScope, Reply, Request, Response, WriteResult, invalid_cursor},
        jsonrpc::{Object, ProtocolError},
        protocol::{Revision, SKILLS_EXTENSION, SKILLS_SETTINGS},
        server::{Assembly, Capability, Declared, List, PageCache, Registry, Server, page_of},
    },
};

/// The skills of a server, read once, when it is built.
pub(super) struct Skills {
    catalog: SkillCatalog,
    pages: PageCache,
}

/// Opens the skills in the directories of the builder.
pub(super) fn open_skills(assembly: &mut Assembly<'_>) {
    let skills = assembly.open(Skills::open);
    if !skills.catalog.is_empty() {
        assembly.catalog::<Resources>().sources.push(skills);
    }
}

impl Skills {
    fn open(assembly: &mut Assembly<'_>) -> Arc<Self> {
        let options = &assembly.parts.options;
        let directories = options.of_capabilities.get::<SkillDirectories>();
        let directories = directories.map(|directories| &*directories.0).unwrap_or_default();
        for directory in directories {
            if let Some(text) = options.check_scopes(&directory.scopes) {
                let path = directory.path.display();
                assembly.errors.push(BuildError::new(format!("the directory of skills `{path}` {text}")));
            }
        }
        let catalog = SkillCatalog::read(directories, &mut assembly.errors);
        Arc::new(Self { catalog, pages: PageCache::default() })
    }

    /// Legacy clients have neither skills nor their files.
    fn is_offered_in(&self, revision: Revision) -> bool {
        revision.is_modern() && !self.catalog.is_empty()
    }
}

impl Capability for Skills {
    fn methods(&self) -> &'static [&'static str] {
        &["skills/get", "skills/list", "resources/directory/read"]
    }

    fn declare(&self, declared: &mut Declared) {
        if self.is_offered_in(declared.revision) {
            declared.extension(SKILLS_EXTENSION, SKILLS_SETTINGS);
        }
    }

    fn answer(
        self: Arc<Self>,
        server: &Server,
        _: &Registry,
        request: Request<'_>,
    ) -> Result<Response, Reply> {
        if !self.is_offered_in(request.revision) {
            return Err(Reply::unknown_method(request.method));
        }
        match request.method {
            "skills/get" => Ok(self.get(server, request)?.into()),
            "skills/list" => {
                let entries = |_, access: Access<'_>| self.catalog.entries(access);
                server.list(request, List { key: "skills", entries: &entries, pages: &self.pages })
            }
            _ => Ok(self.read_directory(server, request)?.into()),
        }
    }
}

impl ResourceSource for Skills {
    fn is_offered(&self, revision: Revision) -> bool {
        self.is_offered_in(revision)
    }

    fn entries(&self, _: Revision, access: Access<'_>) -> Vec<Vec<u8>> {
        self.catalog.manifests(access).collect()
    }

    fn has(&self, request: &Request<'_>, uri: &str) -> bool {
        request.revision.is_modern() && self.catalog.find(uri, request.access()).is_ok()
    }

    fn read(&self, server: &Server, request: &Request<'_>, uri: &str) -> Option<Result<Reply, Reply>> {
        if !request.revision.is_modern() {
            return None;
        }
        match self.catalog.find(uri, request.access()) {
            Ok(found) => Some(read_file(server, uri, &found)),
            Err(AccessError::MissingScopes(scopes)) => Some(Err(server.insufficient_scope(scopes))),
            Err(AccessError::Unknown) => None,
        }
    }

    fn owner_of(&self, uri: &str) -> Option<String> {
        let found = self.catalog.find(uri, Access::TRUSTED).ok()?;
        Some(format!("the skill in `{}`", found.skill().directory.display()))
    }

    fn scoped(&self) -> Vec<String> {
        self.catalog.scoped().map(|uri| format!("skill `{uri}`")).collect()
    }
}

impl Skills {
    fn get(&self, server: &Server, request: Request<'_>) -> Result<Reply, Reply> {
        let uri = request.uri()?;
        let skill = match self.catalog.find(&uri, request.access()) {
            Ok(SkillResource::File(skill, MANIFEST, _)) => skill,
            Err(AccessError::MissingScopes(scopes)) => return Err(server.insufficient_scope(scopes)),
            Ok(_) | Err(AccessError::Unknown) => {
                let text = format!("unknown skill `{uri}`\n`skills/list` lists the skills");
                return Err(invalid_uri(&uri, text));
            }
        };
        let mut out = Vec::new();
        let mut object = Object::new(&mut out);
        object.object("skill", |entry| write_skill(entry, skill));
        server.cache_hints().write(&mut object);
        Ok(GetResult(out.split_off(1)).into_reply())
    }

    fn read_directory(&self, server: &Server, request: Request<'_>) -> Result<Reply, Reply> {
        let uri = request.uri()?;
        let (skill, folder) = match self.catalog.find(&uri, request.access()) {
            Ok(SkillResource::Directory(skill, folder)) => (skill, folder),
            Ok(SkillResource::File(..)) => {
                return Err(invalid_uri(&uri, format!("`{uri}` is a file\nread it with `resources/read`")));
            }
            Err(AccessError::MissingScopes(scopes)) => return Err(server.insufficient_scope(scopes)),
            Err(AccessError::Unknown) => {
                return Err(invalid_uri(&uri, format!("unknown directory `{uri}`")));
            }
        };
        // so that a cursor is valid for one directory only
        let list = format!("directory {}", skill.uri(folder));
        let size = server.options().lists.page_size;
        let scope = CursorScope::new(server, &request, &list);
        let start = server.page_start(request.cursor()?.as_deref(), &scope)?;
        let page = page_of(&directory_entries(skill, folder), start, size).ok_or_else(invalid_cursor)?;
        server.page_reply("resources", page.into(), || scope)
    }
}

/// The result of `skills/get`: encoded members.
struct GetResult(Vec<u8>);

impl WriteResult for GetResult {
    fn write_members(&self, object: &mut Object<'_>, _: Revision) {
        object.raw_members(&self.0);
    }
}

/// Reads a file of a skill.
fn read_file(server: &Server, uri: &str, found: &SkillResource<'_>) -> Result<Reply, Reply> {
    let SkillResource::File(skill, path, file) = *found else {
        let text = format!("`{uri}` is a directory\nread it with `resources/directory/read`");
        return Err(invalid_uri(uri, text));
    };
    let (result, uri) = (file.contents.clone(), skill.uri(path).into());
    Ok(ReadResult { result, uri, source: ReadSource::Unregistered, cache: server.cache_hints() }.into())
}

/// `-32602`, with the URI as data.
fn invalid_uri(uri: &str, text: String) -> Reply {
    ProtocolError::invalid_params(text).with_data(json!({ "uri": uri })).into()
}
