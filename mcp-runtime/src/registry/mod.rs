//! What a running server offers: its tools, resources, prompts and skills, looked up by name or URI, and their lists,
//! kept as bytes until something changes. Built by the server, read by dispatch.

mod build;
mod heading;
mod list;
mod mirror;
mod page;
mod prompt;
mod resource;
mod skill;
mod template;
mod tool;

use std::collections::HashMap;
use std::sync::Arc;

pub(crate) use build::{Problem, Registered, Source, assemble};
pub(crate) use list::{ListKind, Lists, Page, page_of};
pub(crate) use mirror::Mirrored;
pub(crate) use prompt::PromptEntry;
pub(crate) use resource::ResourceEntry;
pub(crate) use skill::{Found, Skills, children as skill_children, write_entry as write_skill};
pub(crate) use template::Bound;
pub(crate) use tool::{ToolBody, ToolEntry};

use crate::{
    context::Viewer,
    protocol::{self, normalise},
    schema::nearest,
};

/// Everything that a server offers at one moment.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    pub(crate) tools: Vec<Arc<ToolEntry>>,
    tool_index: HashMap<String, usize>,
    pub(crate) resources: Vec<Arc<ResourceEntry>>,
    /// Exact URIs, with scheme and host in lower case.
    exact: HashMap<String, usize>,
    /// Templates, the more specific first.
    templates: Vec<usize>,
    pub(crate) prompts: Vec<Arc<PromptEntry>>,
    prompt_index: HashMap<String, usize>,
    pub(crate) skills: Arc<Skills>,
    pub(crate) lists: Lists,
    /// Whether some argument can be completed.
    pub(crate) completes: bool,
    /// Whether some resource is a page.
    pub(crate) has_pages: bool,
    /// Whether some tool's calls may become tasks.
    pub(crate) has_tasks: bool,
}

impl Registry {
    pub(crate) fn new(
        tools: Vec<Arc<ToolEntry>>,
        resources: Vec<Arc<ResourceEntry>>,
        prompts: Vec<Arc<PromptEntry>>,
        skills: Arc<Skills>,
    ) -> Self {
        let tool_index = tools.iter().enumerate().map(|(n, tool)| (tool.input.name.clone(), n)).collect();
        let prompt_index = prompts.iter().enumerate().map(|(n, prompt)| (prompt.name.clone(), n)).collect();
        let is_exact = |(_, resource): &(usize, &Arc<ResourceEntry>)| resource.template.is_exact();
        let exact = resources.iter().enumerate().filter(is_exact);
        let exact = exact.map(|(n, resource)| (normalise(&resource.uri), n)).collect();
        let mut templates: Vec<usize> =
            resources.iter().enumerate().filter(|r| !is_exact(r)).map(|(n, _)| n).collect();
        // stable, so that registration order decides between equals
        templates.sort_by_key(|n| std::cmp::Reverse(resources[*n].template.specificity()));
        let completes = prompts.iter().any(|p| p.completes()) || resources.iter().any(|r| r.completes());
        let has_pages = resources.iter().any(|r| protocol::is_page(&r.uri));
        let has_tasks = tools.iter().any(|tool| tool.task().is_some());
        Self {
            tools,
            tool_index,
            resources,
            exact,
            templates,
            prompts,
            prompt_index,
            skills,
            lists: Lists::default(),
            completes,
            has_pages,
            has_tasks,
        }
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.tool_index.get(name).and_then(|n| self.tools.get(*n))
    }

    pub(crate) fn prompt(&self, name: &str) -> Option<&Arc<PromptEntry>> {
        self.prompt_index.get(name).and_then(|n| self.prompts.get(*n))
    }

    /// The resource that serves `uri`, and its variables: an exact URI before templates.
    pub(crate) fn resource(&self, uri: &str) -> Option<(&Arc<ResourceEntry>, Bound)> {
        if let Some(n) = self.exact.get(uri).or_else(|| self.exact.get(&normalise(uri))) {
            return self.resources.get(*n).map(|resource| (resource, Bound::new()));
        }
        self.templates
            .iter()
            .filter_map(|n| self.resources.get(*n))
            .find_map(|resource| Some((resource, resource.bind(uri)?)))
    }

    /// The template or resource written exactly like this.
    pub(crate) fn template(&self, uri: &str) -> Option<&Arc<ResourceEntry>> {
        self.resources.iter().find(|resource| resource.uri == uri)
    }

    pub(crate) fn nearest_tool(&self, name: &str, viewer: Viewer<'_>) -> Option<&str> {
        let visible = self.tools.iter().filter(|tool| viewer.sees(&tool.scopes()));
        nearest(name, visible.map(|tool| tool.input.name.as_str()))
    }

    pub(crate) fn nearest_prompt(&self, name: &str, viewer: Viewer<'_>) -> Option<&str> {
        let visible = self.prompts.iter().filter(|prompt| viewer.sees(prompt.def.common.scopes));
        nearest(name, visible.map(|prompt| prompt.name.as_str()))
    }
}
