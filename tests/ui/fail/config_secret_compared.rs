use mcp_runtime::config::Secret;

fn main() {
    let (key, other): (Secret<String>, Secret<String>) = ("key".into(), "other".into());
    let _is_equal = key == other;
}
