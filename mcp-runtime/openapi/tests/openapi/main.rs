//! Descriptions as tools and resources, whose calls arrive at a server of the test, which records them.

mod calls;
mod changes;
mod choice;
mod results;
mod safety;
mod schemas;
mod support;
mod yaml;
