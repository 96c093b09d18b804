// Tools, resources and prompts of the server, each with what the doctor says about it and a form to try it.
import { copyButton, el, json, result } from "./view.js";
import { form } from "./form.js";
import { command } from "./commands.js";

const HINTS = { readOnlyHint: "read-only", destructiveHint: "destructive", idempotentHint: "idempotent", openWorldHint: "open world" };

// The view of one kind of items. `own` is the state that stays between views.
export function itemsView({ kind, groups, described, own }) {
  const list = el("div", { className: "list" });
  const place = el("div", { className: "item" });
  const findings = described.doctor.findings;
  const tokens = new Map(described.doctor.tokens.items.map((one) => [one.item, one.tokens]));
  const open = (button, item) => {
    list.querySelectorAll("[aria-current]").forEach((node) => node.removeAttribute("aria-current"));
    button.setAttribute("aria-current", "true");
    own.chosen.set(kind, item.key);
    place.replaceChildren(...item.show());
  };
  const buttons = [];
  for (const { title, items } of groups) {
    if (title && items.length) list.append(el("h3", {}, title));
    for (const item of items) {
      const found = findings.filter((finding) => finding.item === item.label);
      const worst = found[0]?.severity;
      const button = el("button", { type: "button", onclick: () => open(button, item) },
        el("span", {}, item.key),
        worst && worst !== "advice" ? el("span", { className: worst === "error" ? "bad" : "warn", title: found.map((finding) => finding.text).join("\n") }, worst === "error" ? "×" : "!") : [],
        tokens.has(item.label) ? el("span", { className: "dim", title: "tokens that a model reads, about" }, tokens.get(item.label)) : []);
      buttons.push([button, item]);
      list.append(button);
    }
  }
  const [button, item] = buttons.find(([, one]) => one.key === own.chosen.get(kind)) ?? buttons[0] ?? [];
  if (item) open(button, item);
  if (!item) place.append(el("div", { className: "empty" }, `The server has no ${kind}.`));
  const about = found("server", described);
  return el("div", { className: "view" },
    about.length ? el("div", { className: "about" }, about) : [],
    el("div", { className: "split" }, list, place));
}

// What the doctor says about an item, or about the server itself.
function found(item, described) {
  const severity = { error: "bad", warning: "warn", advice: "dim" };
  return described.doctor.findings.filter((finding) => finding.item === item)
    .map((finding) => el("div", { className: `finding ${severity[finding.severity]}` }, `${finding.severity}: ${item === "server" ? "the server " : ""}${finding.text}`));
}

function head(item, entry, described) {
  const hints = Object.entries(entry.annotations ?? {}).filter(([name, value]) => HINTS[name] && typeof value === "boolean")
    .map(([name, value]) => el("span", { className: "pill" }, value ? HINTS[name] : `not ${HINTS[name]}`));
  return [
    el("h2", {}, entry.name ?? entry.uri ?? entry.uriTemplate, entry.title ? el("span", { className: "dim" }, `  ${entry.title}`) : []),
    hints.length ? el("div", { className: "badges" }, hints) : [],
    entry.description ? el("p", {}, entry.description) : el("p", { className: "dim" }, "no description"),
    found(item, described),
  ].flat(2);
}

// A form with a button that sends it, and its result. `params` makes the JSON of the request's parameters from the form's, and
// `words` those of the command; both are undefined if the form is not filled in.
function trial({ label, fields, method, params, words }, { described, send, read, progressOf }) {
  const results = el("div");
  const go = el("button", { type: "submit", className: "main" }, label);
  const cancel = el("button", { type: "button", hidden: true }, "Cancel");
  const bar = el("progress", { hidden: true });
  const said = el("span", { className: "dim", role: "status" });
  const typed = () => (fields ? fields.text() : "{}");
  const shown = () => (fields ? fields.shown() : "{}");
  const made = (make, text) => (text === undefined ? undefined : make(text));
  const copy = copyButton("Copy as a command", () => made((text) => command(words[0], words[1](text), described), shown()));
  const node = el("form", { className: "fields", noValidate: true, onsubmit: async (event) => {
    event.preventDefault();
    if (go.disabled) return;
    const text = made(params, typed());
    if (text === undefined) return;
    const own = body(method, text);
    const abort = new AbortController();
    cancel.onclick = () => abort.abort();
    go.disabled = true;
    cancel.hidden = false;
    const since = performance.now();
    const timer = setInterval(() => { if (bar.hidden) said.textContent = `${((performance.now() - since) / 1000).toFixed(0)} s`; }, 1000);
    const forget = progressOf(own.id, (update) => {
      bar.hidden = false;
      if (update.total) { bar.max = update.total; bar.value = update.progress; } else bar.removeAttribute("value");
      said.textContent = [update.total ? `${update.progress} of ${update.total}` : update.progress, update.message].filter((part) => part !== undefined && part !== null).join(" · ");
    });
    let answer;
    try {
      answer = await send(own.text, abort.signal);
    } catch (error) {
      answer = { error: { message: abort.signal.aborted ? "cancelled" : error.message } };
    }
    clearInterval(timer);
    forget();
    go.disabled = false;
    cancel.hidden = bar.hidden = true;
    said.textContent = "";
    results.prepend(result(answer, read));
    while (results.children.length > 5) results.lastChild.remove();
  } }, fields?.element ?? [], el("div", { className: "actions" }, go, cancel, fields?.toggle ?? [], copy, bar, said));
  return el("div", {}, node, results);
}

let count = 0;
const fresh = () => `${Date.now()}-${(count += 1)}`;

function body(method, params) {
  const id = fresh();
  return { id, text: `{"id":${JSON.stringify(id)},"method":${JSON.stringify(method)},"params":${params}}` };
}

export function tools(shared) {
  const { described } = shared;
  return (described.server.tools ?? []).map((tool) => ({ key: tool.name, label: `tool ${tool.name}`, show: () => {
    const schemas = [["Arguments", tool.inputSchema], ["Results", tool.outputSchema], ["Annotations", tool.annotations], ["_meta", tool._meta]]
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([title, value]) => {
        const details = el("details", { ontoggle: () => { if (details.children.length === 1) details.append(json(value)); } }, el("summary", {}, title));
        return details;
      });
    return [...head(`tool ${tool.name}`, tool, described),
      trial({ label: "Call", fields: form(tool.inputSchema), method: "tools/call",
        params: (text) => `{"name":${JSON.stringify(tool.name)},"arguments":${text}}`, words: ["call", (text) => [tool.name, text]] }, shared),
      el("h3", {}, "Schemas"), ...schemas];
  } }));
}

export function prompts(shared) {
  const { described } = shared;
  return (described.server.prompts ?? []).map((prompt) => ({ key: prompt.name, label: `prompt ${prompt.name}`, show: () => {
    const properties = Object.fromEntries((prompt.arguments ?? []).map((one) => [one.name, { type: "string", title: one.title, description: one.description }]));
    const fields = form({ type: "object", properties, required: (prompt.arguments ?? []).filter((one) => one.required).map((one) => one.name) });
    return [...head(`prompt ${prompt.name}`, prompt, described),
      trial({ label: "Get", fields, method: "prompts/get",
        params: (text) => `{"name":${JSON.stringify(prompt.name)},"arguments":${text}}`, words: ["prompt", (text) => [prompt.name, text]] }, shared)];
  } }));
}

export function resources(shared) {
  const { described } = shared;
  return (described.server.resources ?? []).map((resource) => ({ key: resource.uri, label: `resource ${resource.uri}`, show: () => [
    ...head(`resource ${resource.uri}`, resource, described),
    el("div", { className: "dim" }, [resource.uri, resource.mimeType].filter(Boolean).join(" · ")),
    trial({ label: "Read", method: "resources/read", params: () => JSON.stringify({ uri: resource.uri }), words: ["read", () => [resource.uri]] }, shared),
  ] }));
}

const VARIABLE = /\{([+#./;?&]?)([^}]*)\}/g;

// A URI of a template, in the four levels of RFC 6570 but for prefixes and lists.
export function expand(template, values) {
  const separators = { "": ",", "+": ",", "#": ",", ".": ".", "/": "/", ";": ";", "?": "&", "&": "&" };
  return template.replace(VARIABLE, (_, operator, names) => {
    const isNamed = ";?&".includes(operator) && operator !== "";
    const encode = operator === "+" || operator === "#" ? encodeURI : (text) => encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
    const parts = names.split(",").map((name) => name.replace(/(\*|:\d+)$/, "")).filter((name) => values[name] !== undefined)
      .map((name) => (isNamed ? `${name}=${encode(values[name])}` : encode(values[name])));
    return parts.length ? (operator === "+" ? "" : operator) + parts.join(separators[operator]) : "";
  });
}

export function templates(shared) {
  const { described } = shared;
  return (described.server.resourceTemplates ?? []).map((template) => ({ key: template.uriTemplate, label: `resource template ${template.uriTemplate}`, show: () => {
    const found = [...template.uriTemplate.matchAll(VARIABLE)];
    const names = [...new Set(found.flatMap(([, , all]) => all.split(",")).map((name) => name.replace(/(\*|:\d+)$/, "")))];
    const needed = new Set(found.filter(([, operator]) => !"?&;#".includes(operator) || operator === "").flatMap(([, , all]) => all.split(",")).map((name) => name.replace(/(\*|:\d+)$/, "")));
    const fields = form({ type: "object", properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])), required: [...needed] });
    const uri = (text) => expand(template.uriTemplate, JSON.parse(text));
    return [...head(`resource template ${template.uriTemplate}`, template, described),
      trial({ label: "Read", fields, method: "resources/read", params: (text) => JSON.stringify({ uri: uri(text) }), words: ["read", (text) => [uri(text)]] }, shared)];
  } }));
}

export { body };
