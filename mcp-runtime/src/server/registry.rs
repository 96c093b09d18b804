//! What a server offers at one moment: tools, resources, prompts and skills by name or URI, and their cached lists.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Capabilities, ListCache};
use crate::{
    connection::{Access, AccessError},
    prompt::{PromptCatalog, PromptEntry},
    protocol::{self, normalize_uri},
    resource::{ResourceEntry, UriVariables},
    skill::SkillCatalog,
    sort::sort_by,
    tool::{ToolCatalog, ToolEntry},
};

/// The items of a server.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    pub(crate) tools: ToolCatalog,
    pub(crate) resources: Vec<Arc<ResourceEntry>>,
    /// Exact URIs, with scheme and host in lower case.
    exact: HashMap<String, usize>,
    /// Templates, the most specific first.
    templates: Vec<usize>,
    pub(crate) prompts: PromptCatalog,
    pub(crate) skills: Arc<SkillCatalog>,
    pub(crate) lists: ListCache,
    pub(crate) has_tools: bool,
    pub(crate) has_resources: bool,
    pub(crate) has_prompts: bool,
    pub(crate) has_skills: bool,
    /// Whether an argument can be completed.
    pub(crate) completes: bool,
    /// Whether a resource is a page (the Apps extension).
    pub(crate) has_pages: bool,
    /// What else the server answers.
    pub(crate) capabilities: Capabilities,
}

impl Registry {
    pub(crate) fn new(
        tools: Vec<Arc<ToolEntry>>,
        resources: Vec<Arc<ResourceEntry>>,
        prompts: Vec<Arc<PromptEntry>>,
        skills: Arc<SkillCatalog>,
        capabilities: Capabilities,
    ) -> Self {
        let is_exact = |(_, resource): &(usize, &Arc<ResourceEntry>)| resource.template.is_exact();
        let exact = resources.iter().enumerate().filter(is_exact);
        let exact = exact.map(|(n, resource)| (normalize_uri(&resource.uri), n)).collect();
        let mut templates: Vec<usize> =
            resources.iter().enumerate().filter(|r| !is_exact(r)).map(|(n, _)| n).collect();
        // stable, so that registration order decides between equals
        let specificity = |n: &usize| resources[*n].template.specificity();
        sort_by(&mut templates, |one, other| specificity(other).cmp(&specificity(one)));
        Self {
            has_tools: !tools.is_empty(),
            has_resources: !resources.is_empty(),
            has_prompts: !prompts.is_empty(),
            has_skills: !skills.is_empty(),
            completes: prompts.iter().any(|p| p.completes()) || resources.iter().any(|r| r.completes()),
            has_pages: resources.iter().any(|r| protocol::is_ui_uri(&r.uri)),
            tools: ToolCatalog::new(tools),
            resources,
            exact,
            templates,
            prompts: PromptCatalog::new(prompts),
            skills,
            lists: ListCache::default(),
            capabilities,
        }
    }

    /// The resource that serves `uri` for that access, and its variables: of those that it sees, an exact URI before
    /// templates.
    ///
    /// # Errors
    /// None does, or the one that does may not be read.
    pub(crate) fn resource(
        &self,
        uri: &str,
        access: Access<'_>,
    ) -> Result<(&Arc<ResourceEntry>, UriVariables), AccessError<'_>> {
        let visible = |resource: &&Arc<ResourceEntry>| access.sees(resource.view());
        let exact = self.exact.get(uri).or_else(|| self.exact.get(&normalize_uri(uri)));
        let exact = exact.and_then(|n| self.resources.get(*n)).filter(visible);
        let found = exact.map(|resource| (resource, UriVariables::new())).or_else(|| {
            let templates = self.templates.iter().filter_map(|n| self.resources.get(*n)).filter(visible);
            templates.into_iter().find_map(|resource| Some((resource, resource.bind(uri)?)))
        });
        let (resource, variables) = found.ok_or(AccessError::Unknown)?;
        access.check(resource.view())?;
        Ok((resource, variables))
    }

    /// Whether what some resource returns may differ by caller; none that is added at run time does.
    pub(crate) fn differs_by_caller(&self) -> bool {
        self.resources.iter().any(|resource| resource.differs_by_caller())
    }

    /// Whether not every subscriber may get the updates of some resource or template: it has scopes, or differs by caller.
    pub(crate) fn guards_updates(&self) -> bool {
        self.resources.iter().any(|resource| !resource.item.scopes.is_empty() || resource.differs_by_caller())
    }

    /// The items with `scopes`, for an error message.
    pub(crate) fn scoped(&self) -> Vec<String> {
        let tools = self.tools.iter().filter(|tool| !tool.spec.item.scopes.is_empty());
        let tools = tools.map(|tool| format!("tool `{}`", tool.name()));
        let resources = self.resources.iter().filter(|resource| !resource.item.scopes.is_empty());
        let resources = resources.map(|resource| format!("resource `{}`", resource.uri));
        let prompts = self.prompts.iter().filter(|prompt| !prompt.item.scopes.is_empty());
        let prompts = prompts.map(|prompt| format!("prompt `{}`", prompt.item.name));
        let skills = self.skills.scoped().map(|uri| format!("skill `{uri}`"));
        tools.chain(resources).chain(prompts).chain(skills).collect()
    }

    /// The template or resource with exactly this URI.
    pub(crate) fn template(&self, uri: &str) -> Option<&Arc<ResourceEntry>> {
        self.resources.iter().find(|resource| resource.uri == uri)
    }
}
