//! Prints the occurrences of an event.

use std::{
    future::poll_fn,
    io::{self, Write as _},
};

use serde_json::{Map, Value};

use super::print::{failed, parsed, print_to_stderr};
use crate::{
    client::exchange::MemoryClient,
    core::{server::Result, visible_text::visible_json},
};

/// Prints the occurrences of an event, until the server ends the stream, or stdout is closed.
pub(super) async fn print_events(client: &MemoryClient, name: &str, arguments: Value) -> Result<()> {
    let mut params = Map::new();
    params.insert("name".into(), name.into());
    params.insert("arguments".into(), arguments);
    let opened = client.listen("events/stream", params);
    let mut stream = opened.map_err(|reply| failed(&reply.message["error"]))?;
    loop {
        let Some(message) = poll_fn(|cx| stream.poll_next(cx)).await else {
            let end = parsed(&stream.result());
            return end.get("error").map_or(Ok(()), |error| Err(failed(error)));
        };
        let mut message = parsed(&message);
        let params = &message["params"];
        match message["method"].as_str().and_then(|method| method.rsplit('/').next()) {
            Some("event") => {
                let params = &mut message["params"];
                let mut shown = Map::new();
                for key in ["eventId", "name", "timestamp", "data"] {
                    shown.insert(key.into(), params[key].take());
                }
                let line = format!("{}\n", visible_json(&Value::Object(shown).to_string()));
                match io::stdout().write_all(line.as_bytes()).and_then(|()| io::stdout().flush()) {
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                    written => written?,
                }
            }
            Some("active") if params["truncated"] == true => print_to_stderr("events may have been missed"),
            Some("error") => print_to_stderr(&failed(&params["error"]).to_string()),
            Some("terminated") => return Err(failed(&params["error"])),
            _ => {}
        }
    }
}
