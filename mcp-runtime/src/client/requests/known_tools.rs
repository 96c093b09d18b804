//! Tools whose definitions the client knows, from lists or from the program: which arguments HTTP headers repeat, and
//! which schema results conform to.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use serde_json::Value;

use super::listed_items::ToolInfo;
use crate::{
    client::{Error, exchange::RequestParams, large_text::run_elsewhere},
    core::{connection::HeaderParam, sync::RwLock, tool::header_params, visible_text::in_one_line},
    schema::Validator,
};

/// The largest integer that a header may repeat, by which JavaScript is exact.
const MAX_INTEGER: i64 = (1 << 53) - 1;

struct KnownTool {
    info: ToolInfo,
    headers: Vec<HeaderParam>,
    output_schema: OnceLock<Option<Arc<Validator>>>,
    /// Whether the program added it, and no list has replaced it.
    is_added: bool,
}

impl KnownTool {
    fn new(info: ToolInfo, is_added: bool) -> Result<Self, String> {
        let headers = header_params(info.input_schema(), true)?;
        Ok(Self { info, headers, output_schema: OnceLock::new(), is_added })
    }

    fn compiled_output(&self) -> Option<Arc<Validator>> {
        let compile = || {
            let (validator, passed_over) = Validator::compile_foreign(self.info.output_schema()?);
            if let Some(first) = passed_over.first() {
                tracing::warn!(
                    tool = %in_one_line(self.info.name()),
                    keywords = passed_over.len(),
                    first = %in_one_line(&first.to_string()),
                    "a part of the tool's output schema is not enforced"
                );
            }
            validator.map(Arc::new)
        };
        self.output_schema.get_or_init(compile).clone()
    }
}

/// The known tools of a server.
#[derive(Default)]
pub(in crate::client) struct KnownTools(RwLock<HashMap<String, Arc<KnownTool>>>);

impl KnownTools {
    /// Replaces what earlier lists contained; tools that the program added stay until the server's list has them. The
    /// names of tools that HTTP clients must not call, with the reasons.
    pub(in crate::client) fn replace(&self, listed: &[ToolInfo]) -> Vec<(String, String)> {
        let mut invalid = Vec::new();
        let mut tools = self.0.write();
        tools.retain(|_, tool| tool.is_added);
        for info in listed {
            match KnownTool::new(info.clone(), false) {
                Ok(tool) => {
                    tools.insert(info.name().to_owned(), Arc::new(tool));
                }
                Err(reason) => {
                    tools.remove(info.name());
                    invalid.push((info.name().to_owned(), reason));
                }
            }
        }
        invalid
    }

    /// Adds definitions, all or none.
    pub(in crate::client) fn add(&self, definitions: impl IntoIterator<Item = Value>) -> Result<(), Error> {
        let mut added = Vec::new();
        for definition in definitions {
            let info = ToolInfo::new(definition)
                .ok_or_else(|| Error::invalid("a tool's definition has no `name`"))?;
            let name = info.name().to_owned();
            if !info.input_schema().is_object() {
                return Err(Error::invalid(format!("the tool `{name}` has no `inputSchema`")));
            }
            let tool = KnownTool::new(info, true).map_err(|reason| {
                Error::invalid(format!("the tool `{name}` cannot be called over HTTP: {reason}"))
            })?;
            added.push((name, Arc::new(tool)));
        }
        let mut tools = self.0.write();
        for (name, tool) in added {
            // the server's own definition is better
            if tools.get(&name).is_none_or(|known| known.is_added) {
                tools.insert(name, tool);
            }
        }
        Ok(())
    }

    pub(in crate::client) fn clear(&self) {
        self.0.write().clear();
    }

    fn get(&self, name: &str) -> Option<Arc<KnownTool>> {
        self.0.read().get(name).cloned()
    }

    pub(in crate::client) fn contains(&self, name: &str) -> bool {
        self.0.read().contains_key(name)
    }

    pub(in crate::client) fn task_support(&self, name: &str) -> Option<String> {
        self.get(name)?.info.task_support().map(str::to_owned)
    }

    /// The schema of a tool's structured content, as far as it can be enforced.
    pub(in crate::client) async fn output_schema(&self, name: &str) -> Option<Arc<Validator>> {
        let tool = self.get(name)?;
        match tool.output_schema.get() {
            Some(compiled) => compiled.clone(),
            // boxed: every call would have room for it otherwise; a server decides how long it takes
            None => Box::pin(run_elsewhere(move || tool.compiled_output())).await.ok().flatten(),
        }
    }

    /// The headers that repeat arguments of this call.
    ///
    /// # Errors
    /// An integer is too large for a header.
    pub(in crate::client) fn param_headers(
        &self,
        params: &RequestParams,
    ) -> Result<Vec<(String, String)>, Error> {
        let name = params.members.get("name").and_then(Value::as_str).unwrap_or_default();
        let Some(tool) = self.get(name).filter(|tool| !tool.headers.is_empty()) else {
            return Ok(Vec::new());
        };
        let raw = params.raw("arguments").map(serde_json::from_str::<Value>).transpose();
        let raw = raw.map_err(|error| Error::invalid(format!("the arguments of `{name}`: {error}")))?;
        let mut headers = Vec::new();
        for param in &tool.headers {
            let argument = raw.as_ref().or_else(|| params.members.get("arguments"));
            let value = param.path.iter().try_fold(argument, |at, key| Some(at?.get(key))).flatten();
            if let Some(text) = value.map(|value| header_text(value, param)).transpose()?.flatten() {
                headers.push((param.header.clone(), text));
            }
        }
        Ok(headers)
    }
}

/// The text of a value in a header; `None` for null, and for values that headers cannot repeat.
fn header_text(value: &Value, param: &HeaderParam) -> Result<Option<String>, Error> {
    Ok(match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => {
            // `42.0` is an integer too
            let whole =
                number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= MAX_INTEGER as f64);
            let exact =
                number.as_i64().filter(|integer| integer.unsigned_abs() <= MAX_INTEGER.unsigned_abs());
            let Some(integer) =
                exact.or_else(|| whole.filter(|_| !number.is_i64()).map(|float| float as i64))
            else {
                return Err(Error::invalid(format!(
                    "the argument `{}` is {number}, which the header `Mcp-Param-{}` cannot repeat\n\
                     it must be an integer within ±{MAX_INTEGER}",
                    param.path.join("."),
                    param.header
                )));
            };
            Some(integer.to_string())
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, properties: &Value) -> Value {
        json!({ "name": name, "inputSchema": { "type": "object", "properties": properties } })
    }

    fn headers(tools: &KnownTools, arguments: &Value) -> Result<Vec<(String, String)>, Error> {
        let Value::Object(params) = json!({ "name": "t", "arguments": arguments }) else { unreachable!() };
        tools.param_headers(&params.into())
    }

    #[test]
    fn arguments_become_headers_unless_they_are_null_or_too_large() {
        let tools = KnownTools::default();
        let deep =
            json!({ "type": "object", "properties": { "b": { "type": "boolean", "x-mcp-header": "B" } } });
        let properties =
            json!({ "n": { "type": "integer", "x-mcp-header": "N" }, "s": { "type": "string" }, "a": deep });
        tools.add([tool("t", &properties)]).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let all = headers(&tools, &json!({ "n": 42.0, "s": "x", "a": { "b": true } })).unwrap();
        assert_eq!(all, [pair("B", "true"), pair("N", "42")]);
        assert_eq!(headers(&tools, &json!({ "n": null })).unwrap(), []);
        let largest = 9_007_199_254_740_991_i64;
        assert_eq!(headers(&tools, &json!({ "n": -largest })).unwrap(), [pair("N", "-9007199254740991")]);
        for bad in [json!(largest + 1), json!(-largest - 1), json!(1.5), json!(u64::MAX), json!(1e300)] {
            assert!(headers(&tools, &json!({ "n": bad })).is_err(), "{bad}");
        }
    }

    #[test]
    fn definitions_are_added_all_or_none_and_give_way_to_the_servers() {
        let tools = KnownTools::default();
        let good = tool("t", &json!({ "s": { "type": "string", "x-mcp-header": "Mine" } }));
        let bad = tool("u", &json!({ "s": { "type": "number", "x-mcp-header": "S" } }));
        assert!(tools.add([good.clone(), bad.clone()]).is_err());
        assert_eq!(headers(&tools, &json!({ "s": "x" })).unwrap(), []);

        tools.add([good.clone()]).unwrap();
        let invalid = tools.replace(&[ToolInfo::new(bad).unwrap()]);
        assert_eq!(invalid.len(), 1);
        assert_eq!(headers(&tools, &json!({ "s": "x" })).unwrap().len(), 1, "it survives a list without it");
        let theirs = tool("t", &json!({ "s": { "type": "string", "x-mcp-header": "Theirs" } }));
        assert!(tools.replace(&[ToolInfo::new(theirs).unwrap()]).is_empty());
        tools.add([good]).unwrap();
        assert_eq!(headers(&tools, &json!({ "s": "x" })).unwrap()[0].0, "Theirs");
        tools.clear();
        assert_eq!(headers(&tools, &json!({ "s": "x" })).unwrap(), []);
    }
}
