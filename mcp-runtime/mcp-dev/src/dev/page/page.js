// The page: what passes between clients and the server as it happens, the server's items, questions, and builds. What it shows
// is bounded, as what mcp-dev keeps is.
import { block, bytes, clock, copyButton, el, json, ms, result } from "./view.js";
import { command } from "./commands.js";
import { body, itemsView, prompts, resources, templates, tools } from "./items.js";
import { question } from "./question.js";
import { count, endSession, takeMessage as takeTask, tasksView } from "./tasks.js";

const MOST_MESSAGES = 1000;
const MOST_LINES = 1000;
const PAUSE = 1000;
// The arguments of a call that a task shows.
const LONG = 120;
// The views that do not need the lists of the server.
const OF_EVENTS = ["messages", "tasks", "log"];

const at = (id) => document.getElementById(id);
const own = { view: "messages", chosen: new Map(), filter: { text: "", direction: "", session: "" } };
const messages = [];
const lines = [];
const methods = new Map();
const sessions = new Set();
const listeners = new Map();
const states = new Map();
let key = "";
let last = 0;
let build = {};
let described;
let failure = "";
let masks = true;

class Refused extends Error {}

async function request(path, options = {}) {
  const response = await fetch(path, { ...options, headers: { authorization: `Bearer ${key}`, ...options.headers } });
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({ error: response.statusText }));
  throw response.status === 401 ? new Refused(error) : new Error(error);
}

async function send(text, signal) {
  const response = await request("/api/request", { method: "POST", body: text, signal });
  return response.json();
}

function progressOf(id, listener) {
  listeners.set(id, listener);
  return () => listeners.delete(id);
}

async function read(uri) {
  const { text } = body("resources/read", JSON.stringify({ uri }));
  let answer;
  try {
    answer = await send(text);
  } catch (error) {
    answer = { error: { message: error.message } };
  }
  const dialog = el("section", { className: "question" }, el("p", { className: "mono" }, uri), result(answer, read),
    el("button", { type: "button", onclick: () => dialog.remove() }, "Close"));
  at("questions").append(dialog);
}

// A link is good for one tab: its key is kept for when the tab is loaded again.
async function enter() {
  const link = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  key = sessionStorage.getItem("key") ?? "";
  if (!link) return;
  const response = await fetch("/api/key", { method: "POST", body: JSON.stringify({ link }) });
  if (response.ok) {
    key = (await response.json()).key;
    sessionStorage.setItem("key", key);
  }
}

async function listen() {
  for (;;) {
    try {
      const response = await request("/api/events");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      describe();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (rest + value).split("\n");
        rest = parts.pop();
        for (const part of parts) if (part) take(JSON.parse(part));
        draw();
      }
    } catch (error) {
      if (error instanceof Refused) return end(error.message);
    }
    states.clear();
    setState("bad", "mcp-dev does not answer");
    await new Promise((resume) => setTimeout(resume, PAUSE));
  }
}

function end(text) {
  sessionStorage.removeItem("key");
  setState("bad", "closed");
  at("main").replaceChildren(el("div", { className: "empty" }, text));
}

function take(event) {
  if (event.seq !== undefined) {
    // what is sent again after a break
    if (event.seq <= last) return;
    last = event.seq;
  }
  switch (event.event) {
    case "hello": masks = event.masks; return;
    case "traffic": return takeMessage(event);
    case "progress": return listeners.get(event.request)?.(event);
    case "question": return ask(event);
    case "answered": return at(`question-${event.question}`)?.remove();
    case "build":
      build = event;
      if (event.state === "changed" || (event.state === "built" && event.changed)) describeSoon();
      note(event, "build", event.text ?? (event.state === "built" ? `built in ${ms(event.ms)}${event.changed ? "" : ": nothing has changed"}` : event.state), event.state === "failed" ? "bad" : "");
      return showBuild();
    case "server":
      states.set(event.session, event);
      sessions.add(event.session);
      if (event.state !== "started") endSession(event.session);
      if (event.state === "started" && !described) describeSoon();
      return note(event, event.state, event.text, event.state === "failed" ? "bad" : "");
    case "lost": return note({ at: Date.now() }, "lost", `${event.count} events: the page was too slow`, "warn");
    default: return note(event, event.event, event.text ?? JSON.stringify(event), event.event === "changes" ? "warn" : "");
  }
}

function takeMessage(event) {
  const pair = `${event.session} ${event.direction === "to_server" ? "s" : "c"} ${JSON.stringify(event.id)}`;
  const asked = `${event.session} ${event.direction === "to_server" ? "c" : "s"} ${JSON.stringify(event.id)}`;
  sessions.add(event.session);
  const of = (params) => params?.name ?? params?.uri ?? params?.taskId;
  if (event.kind === "request") {
    const given = JSON.stringify(event.message?.params?.arguments) ?? "";
    methods.set(pair, [event.method, of(event.message?.params), given.length > LONG ? `${given.slice(0, LONG)} …` : given]);
    if (methods.size > MOST_MESSAGES) methods.delete(methods.keys().next().value);
  }
  const answered = event.method ? [event.method, of(event.message?.params)] : methods.get(asked) ?? [];
  const [method, name] = answered;
  takeTask(event, answered, send);
  event.label = event.method ? [method, name].filter(Boolean).join(" ") : [method ?? "response", name].filter(Boolean).join(" ");
  event.fails = event.kind === "error" || event.message?.result?.isError === true;
  if (event.method === "notifications/message") note(event, event.message?.params?.level ?? "log", typeof event.message?.params?.data === "string" ? event.message.params.data : JSON.stringify(event.message?.params?.data), "");
  messages.push(event);
  if (messages.length > MOST_MESSAGES) messages.shift().row?.remove();
  if (own.view === "messages") append(event);
}

function note(event, kind, text, tone) {
  const line = el("div", { className: "row log" }, el("div", { className: "line" },
    el("span", { className: "dim mono" }, clock(event.at)), el("span", { className: "dim" }, event.session ?? ""), el("span", { className: tone || "dim" }, kind), el("pre", { className: tone }, text ?? "")));
  lines.push(line);
  if (lines.length > MOST_LINES) lines.shift().remove();
  if (own.view === "log") add(line);
}

// At the end, which stays in view if it was.
function add(row) {
  const rows = document.querySelector(".rows");
  if (!rows) return;
  const isAtEnd = rows.scrollHeight - rows.scrollTop - rows.clientHeight < 40;
  rows.querySelector(".empty")?.remove();
  rows.append(row);
  if (isAtEnd) rows.scrollTop = rows.scrollHeight;
}

function isShown({ label, session, direction, message, beginning }) {
  const { text, direction: wanted, session: of } = own.filter;
  if (wanted && direction !== wanted || of && session !== of) return false;
  if (!text) return true;
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const all = `${label} ${JSON.stringify(message ?? beginning)}`.toLowerCase();
  return words.every((word) => (word.startsWith("-") && word.length > 1 ? !all.includes(word.slice(1)) : all.includes(word)));
}

function append(event) {
  if (!isShown(event)) return;
  event.row ??= row(event);
  add(event.row);
}

function row(event) {
  const isUp = event.direction === "to_server";
  const detail = el("div", { className: "detail", hidden: true });
  const node = el("div", { className: "row" }, el("button", { type: "button", onclick: () => {
    if (detail.hidden && !detail.children.length) detail.append(...details(event));
    detail.hidden = !detail.hidden;
    node.classList.toggle("open", !detail.hidden);
  } },
  el("span", { className: "dim mono" }, clock(event.at)), el("span", { className: "dim wide" }, event.session),
  el("span", { className: `arrow ${isUp ? "warn" : "back ok"}`, role: "img", ariaLabel: isUp ? "to the server" : "to the client", title: isUp ? "to the server" : "to the client" }),
  el("span", { className: [event.fails ? "bad" : event.kind === "notification" ? "dim" : "", event.method ? "" : "answer"].join(" ") }, event.label),
  el("span", { className: "num mono wide" }, event.id === null || event.id === undefined ? "" : `#${event.id}`),
  el("span", { className: "num mono wide" }, bytes(event.bytes)), el("span", { className: "num mono" }, ms(event.ms))), detail);
  return node;
}

function details(event) {
  if (event.beginning) return [el("p", { className: "dim" }, `Only the beginning of ${bytes(event.bytes)} is kept.`), el("pre", {}, event.beginning)];
  const { params, result: value } = event.message ?? {};
  const buttons = [copyButton("Copy JSON", () => JSON.stringify(event.message, null, 2))];
  const words = { "tools/call": ["call", [params?.name, JSON.stringify(params?.arguments ?? {})]], "prompts/get": ["prompt", [params?.name, JSON.stringify(params?.arguments ?? {})]], "resources/read": ["read", [params?.uri]] }[event.method];
  if (words) buttons.push(copyButton("Copy as a command", () => command(words[0], words[1].map(String), described)));
  const blocks = value?.content ?? value?.contents;
  const media = Array.isArray(blocks) ? blocks.filter((one) => ["image", "audio"].includes(one?.type)) : [];
  return [el("div", { className: "actions" }, buttons), json(event.message), ...media.map((one) => block(one))];
}

// A question of the server in the page's own session.
function ask(event) {
  const answer = async (value) => {
    try {
      await request("/api/answer", { method: "POST", body: `{"question":${event.question},"answer":${value}}` });
    } catch {
      // it was answered in another tab, or withdrawn
    }
    node.remove();
  };
  const node = el("section", { className: "question", id: `question-${event.question}` }, question(event, answer));
  at("questions").append(node);
  node.querySelector("input, textarea, select")?.focus();
}

let soon;

function describeSoon() {
  clearTimeout(soon);
  soon = setTimeout(describe, 200);
}

async function describe() {
  const before = shape();
  try {
    described = await (await request("/api/server")).json();
    failure = "";
  } catch (error) {
    if (error instanceof Refused) return;
    failure = error.message;
  }
  const server = described?.server?.server;
  if (server) {
    at("name").textContent = [server.name, server.version].filter(Boolean).join(" ");
    document.title = `${server.name} · mcp-dev`;
    const { total, budget } = described.doctor.tokens;
    at("cost").textContent = `${total} tokens of ${budget}`;
    at("cost").title = `revision ${described.revision ?? "unknown"}; values are ${masks ? "masked" : "shown"}`;
  }
  // a form that is filled in, a call that runs and its result stay as long as the server is described in the same way
  const isTyping = at("main").contains(document.activeElement) && document.activeElement.matches("input, textarea, select");
  const isCurrent = OF_EVENTS.includes(own.view) || shape() === before;
  if (!isCurrent && !isTyping) show(own.view);
  draw();
}

// What the views of items are made from.
function shape() {
  return JSON.stringify([described?.server, described?.doctor, failure]);
}

function setState(tone, text) {
  at("state").className = `pill ${tone}`;
  at("state").textContent = text;
}

function showBuild() {
  const banner = at("banner");
  banner.hidden = build.state !== "failed";
  if (banner.hidden) return banner.replaceChildren();
  const hasServer = [...states.values()].some((state) => state.state === "started");
  banner.replaceChildren(el("b", { className: "bad" }, "The build has failed"), hasServer ? ": the server of before goes on" : "", el("pre", {}, build.text ?? ""));
}

function draw() {
  const all = [...states.values()];
  const failed = all.find((state) => state.state === "failed");
  if (build.state === "building") setState("warn", "building");
  else if (build.state === "failed") setState("bad", "the build has failed");
  else if (failed) setState("bad", "the server has failed");
  else if (all.some((state) => state.state === "started")) setState("ok", "running");
  else if (described && !failure && !all.length) setState("ok", "running");
  else setState("", all.length ? "stopped" : "waiting for a client");
  const server = described?.server ?? {};
  const size = (name) => server[name]?.length ?? 0;
  const tabs = [["messages", "Messages", messages.length], ["tools", "Tools", size("tools")], ["resources", "Resources", size("resources") + size("resourceTemplates")],
    ["prompts", "Prompts", size("prompts")], ["tasks", "Tasks", count()], ["log", "Log", lines.length]];
  const nodes = at("tabs").children;
  if (!nodes.length) at("tabs").append(...tabs.map(([name]) => el("button", { type: "button", id: `tab-${name}`, onclick: () => show(name) })));
  tabs.forEach(([name, label, count], index) => {
    nodes[index].textContent = `${label} ${count}`;
    if (name === own.view) nodes[index].setAttribute("aria-current", "page");
    else nodes[index].removeAttribute("aria-current");
  });
  const select = at("session");
  if (select && select.options.length !== sessions.size + 1) {
    select.replaceChildren(el("option", { value: "" }, "all sessions"), ...[...sessions].map((name) => el("option", { value: name }, name)));
    select.value = own.filter.session;
  }
}

function show(view) {
  own.view = view;
  const shared = { described, send, read, progressOf };
  const waits = () => el("div", { className: "view" }, el("div", { className: "empty" }, el("pre", {}, failure || "Waiting for the server …"), el("br"), el("button", { type: "button", onclick: describe }, "Try again")));
  const views = {
    messages: messagesView,
    tasks: tasksView,
    log: () => el("div", { className: "view" }, el("div", { className: "rows" }, lines.length ? lines : el("div", { className: "empty" }, "Nothing yet: builds, restarts, stderr and log messages of the server come here."))),
    tools: () => itemsView({ kind: "tools", groups: [{ items: tools(shared) }], described, own }),
    resources: () => itemsView({ kind: "resources", groups: [{ title: "Resources", items: resources(shared) }, { title: "Templates", items: templates(shared) }], described, own }),
    prompts: () => itemsView({ kind: "prompts", groups: [{ items: prompts(shared) }], described, own }),
  };
  at("main").replaceChildren(described || OF_EVENTS.includes(view) ? views[view]() : waits());
  const rows = document.querySelector(".rows");
  if (rows) rows.scrollTop = rows.scrollHeight;
  draw();
}

function messagesView() {
  const rows = el("div", { className: "rows" });
  const fill = () => {
    const shown = messages.filter(isShown);
    rows.replaceChildren(...(shown.length ? shown.map((event) => (event.row ??= row(event))) : [el("div", { className: "empty" }, messages.length ? "No message is like that." : "Nothing yet: connect a client, or call a tool on this page.")]));
    rows.scrollTop = rows.scrollHeight;
  };
  const search = el("input", { type: "search", placeholder: "Filter: words that must occur, -word that must not", ariaLabel: "Filter", value: own.filter.text, oninput: () => { own.filter.text = search.value; fill(); } });
  const direction = el("select", { ariaLabel: "Direction", onchange: () => { own.filter.direction = direction.value; fill(); } },
    el("option", { value: "" }, "both directions"), el("option", { value: "to_server" }, "→ to the server"), el("option", { value: "to_client" }, "← to the client"));
  direction.value = own.filter.direction;
  const session = el("select", { id: "session", ariaLabel: "Session", onchange: () => { own.filter.session = session.value; fill(); } });
  const clear = el("button", { type: "button", onclick: () => { messages.length = 0; fill(); draw(); } }, "Clear");
  fill();
  return el("div", { className: "view" }, el("div", { className: "bar" }, search, direction, session, clear), rows);
}

await enter();
if (key) {
  show(own.view);
  await listen();
} else {
  end("Open this page with the link that mcp-dev has printed. Each link is good for one tab; the next one is printed when it is used.");
}
