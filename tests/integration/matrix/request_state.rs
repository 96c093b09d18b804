//! `requestState` of modern clients: valid only for the call and the caller that it was sealed for. Its expiry is
//! tested in the runtime, where the clock can be set.

use super::{capable, cells, connect_to};
use crate::{
    prelude::*,
    request_state::{Runs, builder},
};

fn answers(method: &str, _: &Value) -> Value {
    assert_eq!(method, "elicitation/create");
    json!({ "action": "accept", "content": { "name": "Bob" } })
}

/// A call with the state and responses of the previous round trip.
fn call(tool: &str, arguments: &Value, state: &Value, answers: &Value) -> Value {
    json!({ "name": tool, "arguments": arguments, "requestState": state, "inputResponses": answers })
}

#[tokio::test]
async fn invalid_request_state_is_refused_before_the_function_runs() {
    for cell in cells("request state") {
        let runs = Arc::<Runs>::default();
        let builder = builder(&runs).http(|http| http.caller(x_user));
        let server = builder.build().unwrap();
        let mut client = connect_to(&server, cell, capable(), answers).await;
        client.set_header("x-user", "ada");
        let ten = json!({ "amount": 10 });
        let (_, asked) = client.round_trip("tools/call", json!({ "name": "tip", "arguments": ten })).await;
        assert_eq!(asked["resultType"], "input_required", "{cell:?}");
        let (state, responses) = (&asked["requestState"], client.answers_to(&asked));
        let text = state.as_str().expect("a state");

        let mut refused = vec![
            call("pay", &ten, state, &responses),
            call("tip", &json!({ "amount": 11 }), state, &responses),
            call("tip", &json!({}), state, &responses),
        ];
        for tampered in [
            json!(format!("{text}-TAMPERED")),
            json!(text.chars().rev().collect::<String>()),
            json!(&text[..text.len() - 1]),
            json!(""),
            json!(17),
        ] {
            refused.push(call("tip", &ten, &tampered, &responses));
        }
        for params in refused {
            let (_, reply) = client.round_trip("tools/call", params.clone()).await;
            assert_eq!(reply["error"]["code"], -32602, "{cell:?} {params}: {reply}");
        }
        let whole = call("tip", &ten, state, &responses);
        if cell.0 == Transport::Http {
            // the other transports have a single caller
            client.set_header("x-user", "eve");
            let (_, reply) = client.round_trip("tools/call", whole.clone()).await;
            assert_eq!(reply["error"]["code"], -32602, "{cell:?}: {reply}");
            client.set_header("x-user", "ada");
        }
        assert_eq!(runs.so_far(), 1, "{cell:?}: no function has run");
        // equal arguments in another encoding are equal
        let again = call("tip", &json!({ "amount": 10.0 }), state, &responses);
        for params in [whole, again] {
            let (_, reply) = client.round_trip("tools/call", params).await;
            assert_eq!(reply["content"][0]["text"], "tipped Bob", "{cell:?}: {reply}");
        }
    }
}
