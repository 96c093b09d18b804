//! Skills of a server, through the client.

use mcp_runtime::{
    Revision,
    client::{Client, Error},
    skill::SkillsDir,
};

use crate::client::within;

const SKILLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/skills");
const MANIFEST: &str = "skill://fixture-skill/SKILL.md";

fn server() -> mcp_runtime::Server {
    mcp_runtime::server!().add(SkillsDir::new(SKILLS)).build().expect("the skills of the examples are valid")
}

#[tokio::test]
async fn skills_are_listed_loaded_and_their_files_read() {
    let client = within(Client::connect(&server())).await.expect("a connection");
    let skills = within(client.skills().into_future()).await.expect("skills");
    let [skill] = &skills[..] else { panic!("{skills:?}") };
    assert_eq!((skill.uri(), skill.name()), (MANIFEST, "fixture-skill"));
    assert_eq!(within(client.skill(MANIFEST).into_future()).await.expect("its entry"), *skill);

    let text = within(client.load_skill(skill).into_future()).await.expect("it is verified");
    assert!(text.starts_with("---"), "{text}");
    let files = skill.files().expect("the server lists them");
    assert!(files.len() > 1, "{files:?}");
    for file in &files {
        let contents =
            within(client.read_skill_file(skill, file.uri).into_future()).await.expect("it is verified");
        assert_eq!(contents.as_text().map(str::len), Some(file.size as usize));
    }
}

#[tokio::test]
async fn what_is_not_a_file_of_the_skill_is_not_read() {
    let client = within(Client::connect(&server())).await.expect("a connection");
    let skill = within(client.skill(MANIFEST).into_future()).await.expect("its entry");
    for uri in ["skill://fixture-skill/none", "skill://fixture-skill/../other/SKILL.md", "file:///etc/passwd"]
    {
        let error = within(client.read_skill_file(&skill, uri).into_future()).await.expect_err("refused");
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
    }
    let error = within(client.skill("skill://none/SKILL.md").into_future()).await.expect_err("unknown");
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
}

#[tokio::test]
async fn servers_without_the_extension_have_no_skills() {
    let bare = mcp_runtime::server!().build().expect("a server");
    let modern = within(Client::connect(&bare)).await.expect("a connection");
    let served = server();
    let legacy = within(Client::builder().revision(Revision::LATEST_LEGACY).connect(&served)).await;
    let legacy = legacy.expect("a connection");
    for client in [modern, legacy] {
        let error = within(client.skills().into_future()).await.expect_err("no such extension");
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    }
}
