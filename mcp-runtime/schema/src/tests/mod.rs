//! Tests of the whole folder.

mod published_tests;
