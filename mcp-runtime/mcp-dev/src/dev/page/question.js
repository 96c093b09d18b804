// What a server asks: a form, a page elsewhere, or a model.
import { el, json } from "./view.js";
import { form } from "./form.js";

// `answer` gets the JSON of the answer: an action and its content, or the text of a model.
export function question({ kind, message, schema, url, params }, answer) {
  const fields = kind === "form" ? form(schema) : undefined;
  const typed = kind === "sample" ? el("textarea", { rows: 3, ariaLabel: "The answer of the model" }) : undefined;
  const reply = (text) => {
    node.querySelectorAll("button").forEach((button) => { button.disabled = true; });
    return answer(text);
  };
  const accept = () => {
    if (typed) return reply(JSON.stringify({ content: typed.value }));
    const text = fields ? fields.text() : "{}";
    if (text !== undefined) reply(`{"action":"accept","content":${text}}`);
  };
  const isLink = kind === "url" && /^https?:\/\//i.test(url ?? "");
  const node = el("div", {},
    el("p", {}, el("b", {}, kind === "sample" ? "The server asks a model" : "The server asks"), message ? `: ${message}` : ""),
    kind === "sample" ? json(params) : [],
    kind === "url" ? el("p", { className: "mono" }, isLink ? el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, url) : url) : [],
    el("form", { className: "fields", noValidate: true, onsubmit: (submitted) => { submitted.preventDefault(); accept(); } },
      typed ? el("div", { className: "field" }, typed) : fields?.element ?? [],
      el("div", { className: "actions" }, el("button", { type: "submit", className: "main" }, kind === "form" ? "Accept" : kind === "url" ? "It is done" : "Answer"),
        kind === "sample" ? [] : el("button", { type: "button", onclick: () => reply('{"action":"decline"}') }, "Decline"),
        el("button", { type: "button", onclick: () => reply('{"action":"cancel"}') }, "Cancel"))));
  return node;
}
