// Tools, resources and prompts of the server, each with what the doctor says about it and a form to try it.
import { copyButton, el, json, result } from "./view.js";
import { form } from "./form.js";

const HINTS = { readOnlyHint: "read-only", destructiveHint: "destructive", idempotentHint: "idempotent", openWorldHint: "open world" };

const quote = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

export function command(name, words, server) {
  return ["mcp-dev", name, ...words.map(quote), "--", ...server.map(quote)].join(" ");
}

// The view of one kind of items. `send` is a request of the page, `own` the state that stays between views.
export function itemsView({ kind, groups, described, send, own, progressOf }) {
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
  return el("div", { className: "view" }, el("div", { className: "split" }, list, place));

}

function head(item, entry, described) {
  const found = described.doctor.findings.filter((finding) => finding.item === item);
  const severity = { error: "bad", warning: "warn", advice: "dim" };
  const hints = Object.entries(entry.annotations ?? {}).filter(([name, value]) => HINTS[name] && typeof value === "boolean")
    .map(([name, value]) => el("span", { className: "pill" }, value ? HINTS[name] : `not ${HINTS[name]}`));
  return [
    el("h2", {}, entry.name ?? entry.uri ?? entry.uriTemplate, entry.title ? el("span", { className: "dim" }, `  ${entry.title}`) : []),
    hints.length ? el("div", { className: "badges" }, hints) : [],
    entry.description ? el("p", {}, entry.description) : el("p", { className: "dim" }, "no description"),
    found.map((finding) => el("div", { className: `finding ${severity[finding.severity]}` }, `${finding.severity}: ${finding.text}`)),
  ].flat(2);
}

// A form with a button that sends it, and its result.
function trial({ label, fields, request, shown, send, read, progressOf }) {
  const results = el("div");
  const go = el("button", { type: "submit", className: "main" }, label);
  const cancel = el("button", { type: "button", hidden: true }, "Cancel");
  const bar = el("progress", { hidden: true });
  const said = el("span", { className: "dim", role: "status" });
  const node = el("form", { className: "fields", noValidate: true, onsubmit: async (event) => {
    event.preventDefault();
    const body = request();
    if (body === undefined || go.disabled) return;
    const abort = new AbortController();
    cancel.onclick = () => abort.abort();
    go.disabled = true;
    cancel.hidden = false;
    const since = performance.now();
    const timer = setInterval(() => { if (bar.hidden) said.textContent = `${((performance.now() - since) / 1000).toFixed(0)} s`; }, 1000);
    const forget = progressOf(body.id, (update) => {
      bar.hidden = false;
      if (update.total) { bar.max = update.total; bar.value = update.progress; } else bar.removeAttribute("value");
      said.textContent = [update.total ? `${update.progress} of ${update.total}` : update.progress, update.message].filter((part) => part !== undefined && part !== null).join(" · ");
    });
    let answer;
    try {
      answer = await send(body.text, abort.signal);
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
  } }, fields?.element ?? [], el("div", { className: "actions" }, go, cancel, fields?.toggle ?? [], shown ? copyButton("Copy as a command", shown) : [], bar, said));
  return el("div", {}, node, results);
}

let count = 0;
const fresh = () => `${Date.now()}-${(count += 1)}`;

function body(method, params) {
  const id = fresh();
  return { id, text: `{"id":${JSON.stringify(id)},"method":${JSON.stringify(method)},"params":${params}}` };
}

export function tools({ described, send, read, progressOf }) {
  return (described.server.tools ?? []).map((tool) => ({ key: tool.name, label: `tool ${tool.name}`, show: () => {
    const fields = form(tool.inputSchema);
    const schemas = [["Arguments", tool.inputSchema], ["Results", tool.outputSchema], ["Annotations", tool.annotations], ["_meta", tool._meta]]
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([title, value]) => {
        const details = el("details", { ontoggle: () => { if (details.children.length === 1) details.append(json(value)); } }, el("summary", {}, title));
        return details;
      });
    return [...head(`tool ${tool.name}`, tool, described),
      trial({ label: "Call", fields, send, read, progressOf,
        request: () => {
          const text = fields.text();
          return text === undefined ? undefined : body("tools/call", `{"name":${JSON.stringify(tool.name)},"arguments":${text}}`);
        },
        shown: () => command("call", [tool.name, fields.shown() ?? "{}"], described.command) }),
      el("h3", {}, "Schemas"), ...schemas];
  } }));
}

export function prompts({ described, send, read, progressOf }) {
  return (described.server.prompts ?? []).map((prompt) => ({ key: prompt.name, label: `prompt ${prompt.name}`, show: () => {
    const properties = Object.fromEntries((prompt.arguments ?? []).map((one) => [one.name, { type: "string", title: one.title, description: one.description }]));
    const fields = form({ type: "object", properties, required: (prompt.arguments ?? []).filter((one) => one.required).map((one) => one.name) });
    return [...head(`prompt ${prompt.name}`, prompt, described),
      trial({ label: "Get", fields, send, read, progressOf,
        request: () => {
          const text = fields.text();
          return text === undefined ? undefined : body("prompts/get", `{"name":${JSON.stringify(prompt.name)},"arguments":${text}}`);
        },
        shown: () => command("prompt", [prompt.name, fields.shown() ?? "{}"], described.command) })];
  } }));
}

export function resources({ described, send, read, progressOf }) {
  return (described.server.resources ?? []).map((resource) => ({ key: resource.uri, label: `resource ${resource.uri}`, show: () => [
    ...head(`resource ${resource.uri}`, resource, described),
    el("div", { className: "dim" }, [resource.uri, resource.mimeType].filter(Boolean).join(" · ")),
    trial({ label: "Read", send, read, progressOf, request: () => body("resources/read", JSON.stringify({ uri: resource.uri })), shown: () => command("read", [resource.uri], described.command) }),
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

export function templates({ described, send, read, progressOf }) {
  return (described.server.resourceTemplates ?? []).map((template) => ({ key: template.uriTemplate, label: `resource template ${template.uriTemplate}`, show: () => {
    const found = [...template.uriTemplate.matchAll(VARIABLE)];
    const names = [...new Set(found.flatMap(([, , all]) => all.split(",")).map((name) => name.replace(/(\*|:\d+)$/, "")))];
    const needed = new Set(found.filter(([, operator]) => !"?&;#".includes(operator) || operator === "").flatMap(([, , all]) => all.split(",")).map((name) => name.replace(/(\*|:\d+)$/, "")));
    const fields = form({ type: "object", properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])), required: [...needed] });
    const uri = () => {
      const text = fields.text();
      return text === undefined ? undefined : expand(template.uriTemplate, JSON.parse(text));
    };
    return [...head(`resource template ${template.uriTemplate}`, template, described),
      trial({ label: "Read", fields, send, read, progressOf,
        request: () => {
          const read = uri();
          return read === undefined ? undefined : body("resources/read", JSON.stringify({ uri: read }));
        },
        shown: () => command("read", [uri() ?? template.uriTemplate], described.command) })];
  } }));
}

export { body };
