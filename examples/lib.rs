//! One short server per idea; run one with `cargo run --example NAME`.
