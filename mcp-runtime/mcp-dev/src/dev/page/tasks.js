// Tasks that calls have begun: read from what passes, so that those of clients are here as well as those of the page.
import { clock, el, ms, result } from "./view.js";
import { question } from "./question.js";

const MOST = 200;
const TONES = { working: "warn", input_required: "warn", completed: "ok", failed: "bad", cancelled: "bad", lost: "bad" };
const OWN = "page";

// By session and id.
const tasks = new Map();

const isOver = (task) => !["working", "input_required"].includes(task.status);

export const count = () => tasks.size;

// The session has no process any more, and a task is known to the one that began it.
export function endSession(session) {
  for (const task of tasks.values()) if (task.session === session && !isOver(task)) change(task, { status: "lost", statusMessage: "its process has ended" });
}

// Notes what a message says of a task. `method`, `name` and `given` are those of the request that it answers, if it answers one.
export function takeMessage(event, [method, name, given], send) {
  const value = event.message?.result;
  if (event.direction !== "to_client" || !method) return;
  if (method === "tools/call") {
    const begun = value?.task ?? (value?.resultType === "task" ? value : undefined);
    if (begun?.taskId) change(Object.assign(find(event, begun.taskId, send), { tool: name, given }), begun, event);
  } else if (method === "tasks/get" && value) {
    const task = find(event, name, send);
    task.polls += 1;
    change(task, value, event);
  } else if (["tasks/get", "tasks/cancel"].includes(method) && event.message?.error) {
    change(find(event, name, send), { statusMessage: event.message.error.message }, event);
  } else if (method === "tasks/result" && value) {
    change(find(event, name, send), { result: value }, event);
  } else if (method.startsWith("notifications/tasks") && event.message?.params?.taskId) {
    change(find(event, event.message.params.taskId, send), event.message.params, event);
  }
}

function find({ session, at }, id, send) {
  const key = `${session} ${id}`;
  let task = tasks.get(key);
  if (!task) {
    task = { session, id, send, since: at, at, polls: 0, status: "working", asked: "", node: el("section", { className: "task" }) };
    task.parts = ["head", "questions", "outcome"].map((name) => el("div", { className: name }));
    task.node.append(...task.parts);
    tasks.set(key, task);
    if (tasks.size > MOST) {
      const [oldest, old] = tasks.entries().next().value;
      tasks.delete(oldest);
      old.node.remove();
    }
    const list = document.querySelector(".tasks");
    list?.querySelector(".empty")?.remove();
    list?.prepend(task.node);
  }
  return task;
}

function change(task, value, event) {
  if (event) task.at = event.at;
  task.status = value.status ?? task.status;
  task.message = value.statusMessage ?? (value.status && !isOver(task) ? undefined : task.message);
  task.result = value.result ? { result: value.result } : value.error ? { error: value.error } : task.result;
  task.questions = task.status === "input_required" ? value.inputRequests ?? task.questions ?? {} : {};
  draw(task);
}

function draw(task) {
  const [head, questions, place] = task.parts;
  const [, done, total] = /^(\d+(?:\.\d+)?) of (\d+(?:\.\d+)?)$/.exec(task.message ?? "") ?? [];
  head.replaceChildren(
    el("span", { className: `pill ${TONES[task.status] ?? ""}` }, task.status.replace("_", " ")), el("b", {}, task.tool ?? "task"), el("span", { className: "mono" }, task.given ?? ""),
    total ? el("progress", { max: Number(total), value: Number(done) }) : [], el("span", { className: "said" }, task.message ?? ""),
    el("span", { className: "dim" }, [task.session, clock(task.since), ms(task.at - task.since), task.polls === 1 ? "1 poll" : `${task.polls} polls`].join(" · ")),
    isOver(task) ? [] : el("button", { type: "button", className: "small", onclick: () => cancel(task) }, "Cancel the task"),
    el("span", { className: "dim mono" }, task.id));
  // a form that is being filled in stays
  const asked = Object.keys(task.questions).join("\n");
  if (asked !== task.asked) {
    task.asked = asked;
    questions.replaceChildren(...Object.entries(task.questions).map(([key, one]) => ask(task, key, one)));
  }
  if (task.result && task.shown !== task.result) {
    task.shown = task.result;
    place.replaceChildren(result(task.result));
  }
}

async function request(task, method, more = "") {
  const text = `{"session":${JSON.stringify(task.session)},"method":"${method}","params":{"taskId":${JSON.stringify(task.id)}${more}}}`;
  try {
    const { error } = await task.send(text);
    if (error) change(task, { statusMessage: error.message });
  } catch (error) {
    change(task, { statusMessage: error.message });
  }
}

async function cancel(task) {
  await request(task, "tasks/cancel");
  // its client may not ask any more
  if (!isOver(task)) await request(task, "tasks/get");
}

// What the task waits for. The page's own client shows it above; what other clients are asked can be answered in their place.
function ask(task, key, { method, params = {} }) {
  const kind = method === "sampling/createMessage" ? "sample" : method === "elicitation/create" ? (params.mode === "url" ? "url" : "form") : undefined;
  const said = el("p", {}, `It waits for ${method}`, params.message ? `: ${params.message}` : "");
  if (task.session === OWN) return el("div", {}, said, el("p", { className: "dim" }, "Answer it at the top of the page."));
  if (!kind) return said;
  const answer = (text) => {
    const own = kind === "sample" ? JSON.stringify({ role: "assistant", model: "author", content: { type: "text", text: JSON.parse(text).content ?? "" } }) : text;
    return request(task, "tasks/update", `,"inputResponses":{${JSON.stringify(key)}:${own}}`).then(() => request(task, "tasks/get"));
  };
  return el("div", {}, said, el("details", {}, el("summary", {}, "Answer in place of the client"),
    question({ kind, schema: params.requestedSchema, url: params.url, params }, answer)));
}

export function tasksView() {
  const nodes = [...tasks.values()].reverse().map((task) => task.node);
  return el("div", { className: "view" }, el("div", { className: "rows tasks" },
    nodes.length ? nodes : el("div", { className: "empty" }, "Nothing yet: a call that its server goes on with as a task comes here.")));
}
