#![doc = include_str!("../README.md")]

mod answer;
mod catalogue;
mod class;
mod ranking;
mod search;
mod words;

pub use search::Search;
