//! A header is accepted only if a reader of the header and a reader of the body find the same value.

use http::HeaderMap;
use serde_json::value::RawValue;

use super::{HeaderParam, check_header_params, decode_value};

fn fuzz(data: &[u8]) {
    let Some((sent, arguments)) = crate::fuzzing::halves(data) else { return };
    let Ok(sent) = http::HeaderValue::from_str(sent) else { return };
    let Ok(arguments) = serde_json::from_str::<&RawValue>(arguments) else { return };
    let mut headers = HeaderMap::new();
    headers.insert("mcp-param-a", sent.clone());
    let (path, coerced) = (vec!["a".into()], Vec::new());
    let params = [HeaderParam { header: "a".into(), path, is_integer: false, coerced }];
    if check_header_params(&params, Some(arguments), &headers).is_err() {
        return;
    }
    let Ok(value) = serde_json::from_str::<serde_json::Value>(arguments.get()) else { return };
    let decoded = decode_value(&sent);
    let sent = decoded.as_deref().and_then(|sent| std::str::from_utf8(sent).ok());
    match value.get("a") {
        None | Some(serde_json::Value::Null) => panic!("a header without an argument is accepted"),
        Some(serde_json::Value::String(text)) => assert_eq!(sent, Some(text.as_str())),
        Some(serde_json::Value::Bool(flag)) => assert_eq!(sent, Some(flag.to_string().as_str())),
        Some(serde_json::Value::Number(number)) => {
            let sent = sent.and_then(|sent| sent.parse::<f64>().ok());
            assert_eq!(sent, number.as_f64());
        }
        Some(_) => panic!("a header that repeats a list or an object is accepted"),
    }
}

inventory::submit!(crate::fuzzing::Target { name: "header_params", run: fuzz });
