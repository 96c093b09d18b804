//! Asking the client: forms, URLs, models and folders, through real calls in both eras.

mod client;
mod forms;
mod models;
mod required;
mod urls;
