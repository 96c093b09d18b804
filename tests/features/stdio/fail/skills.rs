fn main() {
    let _ = mcp_runtime::server!().add(mcp_runtime::skill::SkillsDir::new("skills")).build();
}
