//! One short server per feature; run one with `cargo run --example NAME`.
