//! Tasks of replicas in processes of their own, which are killed and stopped.

use std::{fs, time::Duration};

use mcp_external_tests::redis::RedisServer;
use mcp_runtime::store::Redis;
use mcp_tests::support::{HttpServer, within};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Replica, redis, serve_as_replica};
use crate::shared::tasks::{Files, answer, builder, get, listen, request, start, text, told, until};

fn replica(redis: &RedisServer) -> Replica {
    Replica::start("redis::tasks::a_replica_in_a_process", redis)
}

#[tokio::test]
async fn a_replica_in_a_process() {
    serve_as_replica(builder).await;
}

#[tokio::test]
async fn a_killed_replica_has_its_tasks_run_again_once_or_failed() {
    let Some(redis) = redis("a_killed_replica_has_its_tasks_run_again_once_or_failed") else { return };
    within(async {
        let mut killed = replica(&redis);
        let others = [replica(&redis), replica(&redis)];
        let (held, again, asked) = (Files::new(), Files::new(), Files::new());
        let fails = start(killed.address, "hold", &held).await;
        let goes_on = start(killed.address, "again", &again).await;
        let asks = start(killed.address, "ask", &asked).await;
        again.until("has its ticket", 1).await;
        until(others[0].address, &asks, "input_required").await;
        answer(others[0].address, &asks, "first", "Ada").await;
        asked.until("has the first", 1).await;
        until(others[0].address, &asks, "input_required").await;
        let (mut stream, _) = listen(others[1].address, &[&fails]).await;
        killed.kill();
        let failed = told(&mut stream, "failed").await;
        assert_eq!(failed["statusMessage"], "the server that ran it has stopped");
        // without a poll
        again.until("has its ticket", 2).await;
        again.open();
        let done = until(others[0].address, &goes_on, "completed").await;
        assert_eq!(text(&done), "7 ada 2 \"north\"");
        assert_eq!((again.count("begun"), again.count("ticket")), (2, 1), "{:?}", again.lines());
        // what its client has answered is not asked again, and what it was asked may be answered still
        asked.until("has the first", 2).await;
        let open = until(others[1].address, &asks, "input_required").await;
        let open: Vec<_> = open["inputRequests"].as_object().expect("requests").keys().cloned().collect();
        assert_eq!(open, ["second"]);
        answer(others[1].address, &asks, "second", "Lovelace").await;
        assert_eq!(text(&until(others[0].address, &asks, "completed").await), "Ada Lovelace");
        assert_eq!((held.count("begun"), asked.count("begun")), (1, 2));
    })
    .await;
}

#[tokio::test]
async fn of_all_runs_of_a_task_one_consumes_the_responses() {
    let Some(redis) = redis("of_all_runs_of_a_task_one_consumes_the_responses") else { return };
    within(async {
        let (mut killed, other) = (replica(&redis), replica(&redis));
        let (before, after) = (Files::new(), Files::new());
        let mut ids = Vec::new();
        for files in [&before, &after] {
            let id = start(killed.address, "pay", files).await;
            until(other.address, &id, "input_required").await;
            answer(other.address, &id, "payer", "Ada").await;
            files.until("asked", 1).await;
            ids.push(id);
        }
        before.create("first");
        before.create("second");
        before.until("refused", 1).await;
        killed.kill();
        // the responses are the first run's, and the second knows that they were consumed
        before.until("refused", 3).await;
        after.until("asked", 2).await;
        after.create("first");
        after.create("second");
        after.until("refused", 1).await;
        for (files, id) in [&before, &after].into_iter().zip(&ids) {
            files.open();
            until(other.address, id, "completed").await;
        }
        assert_eq!(before.lines(), ["asked", "paid", "refused", "asked", "refused", "refused"]);
        assert_eq!(after.lines(), ["asked", "asked", "paid", "refused"]);
    })
    .await;
}

#[tokio::test]
async fn a_task_that_runs_again_has_what_its_call_had_before_it_became_a_task() {
    let Some(redis) = redis("a_task_that_runs_again_has_what_its_call_had_before") else { return };
    within(async {
        let (mut killed, other) = (replica(&redis), replica(&redis));
        let files = Files::new();
        let call = |answers: Value| {
            let mut params = json!({ "name": "pay_by", "arguments": { "dir": files.path() } });
            params.as_object_mut().expect("params").extend(answers.as_object().expect("answers").clone());
            request("tools/call", params).map_body(|body| {
                body["params"]["_meta"]["example.com/dir"] = files.path().into();
            })
        };
        let asked = call(json!({})).send(killed.address).await.json();
        let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
        let answers = json!({
            "requestState": asked["result"]["requestState"],
            "inputResponses": { "payer": answer },
        });
        let retry = async |runs: usize| {
            let reply = call(answers.clone()).send(killed.address).await.json();
            files.until("asked", runs).await;
            reply["result"]["taskId"].as_str().unwrap_or_else(|| panic!("no task: {reply}")).to_owned()
        };
        // two tasks of one call, of which one uses the responses
        let first = retry(1).await;
        for file in ["first", "second"] {
            files.create(file);
        }
        files.until("refused", 1).await;
        fs::remove_file(files.0.join("first")).expect("a file");
        let replayed = retry(2).await;
        killed.kill();
        files.until("asked", 4).await;
        files.create("first");
        files.until("refused", 5).await;
        files.open();
        for id in [&first, &replayed] {
            assert_eq!(text(&until(other.address, id, "completed").await), "account of Ada");
        }
        assert_eq!((files.count("paid"), files.count("account")), (1, 1), "{:?}", files.lines());
    })
    .await;
}

#[tokio::test]
async fn a_replica_that_was_stopped_and_wakes_changes_nothing() {
    let Some(redis) = redis("a_replica_that_was_stopped_and_wakes_changes_nothing") else { return };
    within(async {
        let (stopped, other) = (replica(&redis), replica(&redis));
        let (held, again) = (Files::new(), Files::new());
        let fails = start(stopped.address, "hold", &held).await;
        let goes_on = start(stopped.address, "again", &again).await;
        again.until("has its ticket", 1).await;
        let (mut stream, _) = listen(stopped.address, &[&fails, &goes_on]).await;
        stopped.signal(Signal::STOP);
        again.until("has its ticket", 2).await;
        until(other.address, &fails, "failed").await;
        // both functions would end at once
        held.open();
        stopped.signal(Signal::CONT);
        held.until("over", 1).await;
        again.until("over", 1).await;
        assert_eq!(get(stopped.address, &fails).await["status"], "failed");
        again.open();
        until(other.address, &goes_on, "completed").await;
        // its own subscribers get what is true
        let mut seen = Vec::new();
        while seen.len() < 2 {
            let message = stream.message().await["params"].clone();
            let status = message["status"].as_str().expect("a status").to_owned();
            if ["failed", "completed", "cancelled"].contains(&status.as_str()) {
                seen.push((message["taskId"].as_str().expect("an id").to_owned(), status));
            }
        }
        seen.sort();
        let mut right = vec![(fails, "failed".to_owned()), (goes_on, "completed".to_owned())];
        right.sort();
        assert_eq!(seen, right);
        assert_eq!((again.count("begun"), again.count("ticket")), (2, 1), "{:?}", again.lines());
    })
    .await;
}

#[tokio::test]
async fn a_task_whose_caller_has_expired_is_not_run_again() {
    let Some(redis) = redis("a_task_whose_caller_has_expired_is_not_run_again") else { return };
    within(async {
        let (mut killed, other) = (replica(&redis), replica(&redis));
        let files = Files::new();
        let params = json!({ "name": "again", "arguments": { "dir": files.path() } });
        let call = request("tools/call", params).header("x-seconds", "1.5");
        let id =
            call.send(killed.address).await.json()["result"]["taskId"].as_str().expect("an id").to_owned();
        files.until("has its ticket", 1).await;
        sleep(Duration::from_millis(1500)).await;
        killed.kill();
        let failed = until(other.address, &id, "failed").await;
        let message = failed["statusMessage"].as_str().expect("a message");
        assert!(message.starts_with("the server that ran it has stopped"), "{message}");
        assert!(message.contains("authentication of its caller has expired"), "{message}");
        assert_eq!(files.count("begun"), 1);
    })
    .await;
}

#[tokio::test]
async fn a_task_that_ends_every_process_that_runs_it_fails_in_the_end() {
    let Some(redis) = redis("a_task_that_ends_every_process") else { return };
    let run = async {
        let mut replicas: Vec<Replica> = (0..5).map(|_| replica(&redis)).collect();
        let files = Files::new();
        let id = start(replicas[0].address, "again", &files).await;
        let mut runs = 0;
        let failed = loop {
            let task = get(replicas[0].address, &id).await;
            if task["status"] == "failed" {
                break task;
            }
            let lines = files.lines();
            let runners: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("run by ")).collect();
            if runners.len() > runs {
                runs = runners.len();
                // whichever process runs it is stopped
                let runner = |replica: &Replica| replica.process.0.id().to_string() == runners[runs - 1];
                let at = replicas.iter().position(runner).expect("one that is there");
                assert!(replicas.len() > 1, "{lines:?}");
                replicas.remove(at).kill();
            }
            sleep(Duration::from_millis(20)).await;
        };
        let message = failed["statusMessage"].as_str().expect("a message");
        assert!(message.contains("has stopped, as 3 before it"), "{message}");
        assert_eq!(files.count("begun"), 4);
    };
    // those that look after the others wait for some seconds after their start
    within(run).await;
}

#[tokio::test]
async fn a_lease_is_renewed_at_once_when_the_store_is_reached_again() {
    let Some(redis) = redis("a_lease_is_renewed_at_once_when_the_store_is_reached_again") else { return };
    within(async {
        let long = Duration::from_secs(300);
        let one = builder(Redis::at(redis.url())).tasks(|tasks| tasks.lease(long));
        let one = HttpServer::start(one).await;
        let files = Files::new();
        let _id = start(one.address, "hold", &files).await;
        files.until("begun", 1).await;
        let has_lease = || redis.keys().iter().any(|(key, _)| key.contains("{sharing/leases}:value"));
        assert!(has_lease());
        redis.command(&["FLUSHALL"]);
        assert!(!has_lease());
        for kind in ["normal", "pubsub"] {
            redis.command(&["CLIENT", "KILL", "TYPE", kind]);
        }
        // it would be renewed after 100 s otherwise
        for _ in 0..60_000 {
            if has_lease() {
                files.open();
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
        panic!("no lease: {:?}", redis.keys());
    })
    .await;
}
