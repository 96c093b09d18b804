//! An axum application with an API, whose operations are tools as well.
//!
//! ```sh
//! cargo run --example openapi -- list
//! cargo run --example openapi -- call add_note '{"text": "tea"}'
//! cargo run --example openapi -- serve        # the API and http://127.0.0.1:8080/mcp
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    routing::get,
};
use mcp_runtime::ServerBuilder;
use mcp_runtime_openapi::{OpenApi, Route};
use serde_json::{Value, json};

type Notes = Arc<Mutex<Vec<String>>>;

async fn list(State(notes): State<Notes>) -> Json<Vec<String>> {
    Json(notes.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

async fn add(
    State(notes): State<Notes>,
    Json(note): Json<Value>,
) -> Result<(StatusCode, Json<Value>), StatusCode> {
    let text = note["text"].as_str().ok_or(StatusCode::UNPROCESSABLE_ENTITY)?;
    let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
    notes.push(text.to_owned());
    Ok((StatusCode::CREATED, Json(json!({ "id": notes.len() - 1 }))))
}

async fn read(State(notes): State<Notes>, Path(id): Path<usize>) -> Result<String, StatusCode> {
    let notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
    notes.get(id).cloned().ok_or(StatusCode::NOT_FOUND)
}

pub(crate) fn routes() -> Router {
    Router::new()
        .route("/notes", get(list).post(add))
        .route("/notes/{id}", get(read))
        .with_state(Notes::default())
}

/// What `utoipa` or `aide` would make of the functions above.
fn description() -> Value {
    let id = json!({ "type": "integer", "minimum": 0 });
    let text = json!({ "type": "string", "minLength": 1, "description": "What to remember" });
    let note = json!({ "type": "object", "required": ["text"], "properties": { "text": text } });
    let json_of = |schema: Value| json!({ "application/json": { "schema": schema } });
    let created = json!({ "type": "object", "required": ["id"], "properties": { "id": id } });
    json!({ "openapi": "3.1.0", "info": { "title": "Notes", "version": "1" }, "paths": {
        "/notes": {
            "get": { "operationId": "listNotes", "summary": "List all notes" },
            "post": {
                "operationId": "addNote",
                "summary": "Add a note",
                "requestBody": { "required": true, "content": json_of(note) },
                "responses": { "201": { "content": json_of(created) } },
            },
        },
        "/notes/{id}": { "get": {
            "operationId": "readNote",
            "summary": "One note",
            "parameters": [{ "name": "id", "in": "path", "required": true, "schema": id }],
        } },
    } })
}

pub(crate) fn server(routes: Router) -> mcp_runtime::Result<ServerBuilder> {
    let notes = OpenApi::routes(routes, &description())?.scheme("notes").resource(Route::get("/notes/{id}"));
    Ok(mcp_runtime::server!().info(|info| info.name("notes")).add(notes))
}

#[mcp_runtime::main]
async fn serve() -> mcp_runtime::Result<()> {
    let routes = routes();
    let application = routes.clone().merge(server(routes)?.into_router()?);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    axum::serve(listener, application).await?;
    Ok(())
}

fn main() -> mcp_runtime::Result<()> {
    if std::env::args().nth(1).is_some_and(|argument| argument == "serve") {
        serve()
    } else {
        server(routes())?.run()
    }
}
