//! Tests of the whole folder.

mod oracle;
mod published_tests;
