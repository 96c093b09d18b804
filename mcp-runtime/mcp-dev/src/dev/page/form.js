// Forms from JSON Schema. A field gives JSON text, so that numbers stay as they were typed; a field that is left empty is left
// out. Whatever a form cannot ask for is typed as JSON.
import { el } from "./view.js";

const DEPTH = 6;

function resolve(schema, root, depth = 0) {
  if (schema === true || schema === undefined || schema === null) return {};
  const path = typeof schema.$ref === "string" && schema.$ref.startsWith("#") ? schema.$ref : undefined;
  if (path === undefined || depth > 16) return schema;
  let target = root;
  for (const part of path.slice(1).split("/").slice(1)) {
    target = target?.[decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")];
  }
  const { $ref, ...own } = schema;
  return { ...resolve(target ?? {}, root, depth + 1), ...own };
}

const isNull = (schema) => schema.type === "null" || schema.const === null;

// The schema without null, and whether null is allowed.
function withoutNull(schema, root) {
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter((type) => type !== "null");
    return [types.length === 1 ? { ...schema, type: types[0] } : { ...schema, type: undefined }, types.length < schema.type.length];
  }
  for (const member of ["anyOf", "oneOf"]) {
    if (!Array.isArray(schema[member])) continue;
    const parts = schema[member].map((part) => resolve(part, root));
    const rest = parts.filter((part) => !isNull(part));
    if (rest.length < parts.length || rest.length === 1) {
      const { [member]: _, ...own } = schema;
      return [rest.length === 1 ? { ...rest[0], ...own } : { ...own, [member]: rest }, rest.length < parts.length];
    }
  }
  return [schema, false];
}

export const isSecret = (schema) => schema.format === "password" || schema.writeOnly === true || schema["x-secret"] === true;

const NOTHING = { text: () => undefined };

// A value to fill in: its element, and `text()`, which is JSON, undefined if it is left out, or throws what is wrong.
function input(given, root, depth, isRequired) {
  const [schema] = withoutNull(resolve(given, root), root);
  if (schema.const !== undefined) {
    return { element: el("code", {}, JSON.stringify(schema.const)), text: () => (isRequired ? JSON.stringify(schema.const) : undefined) };
  }
  const titled = [schema.oneOf, schema.anyOf].find((parts) => parts?.length && parts.every((part) => part.const !== undefined));
  const choices = schema.enum?.map((value) => [value, String(value)]) ?? titled?.map((part) => [part.const, part.title ?? String(part.const)]);
  if (choices) return select(choices, schema, isRequired);
  if (depth > DEPTH) return raw(schema);
  const variants = schema.oneOf ?? schema.anyOf;
  if (variants) return oneOf(variants, schema, root, depth, isRequired);
  switch (schema.type ?? (schema.properties ? "object" : undefined)) {
    case "string": return string(schema, isRequired);
    case "integer":
    case "number": return number(schema);
    case "boolean": return select([[true, "true"], [false, "false"]], schema, isRequired);
    case "array": return array(schema, root, depth);
    case "object": return object(schema, root, depth, isRequired);
    default: return raw(schema);
  }
}

function select(choices, schema, isRequired) {
  const preset = choices.findIndex(([value]) => value === schema.default);
  const element = el("select", {},
    isRequired && preset >= 0 ? [] : [el("option", { value: "" }, "")],
    choices.map(([, label], at) => el("option", { value: String(at) }, label)));
  element.value = preset >= 0 ? String(preset) : "";
  return { element, text: () => (element.value === "" ? undefined : JSON.stringify(choices[Number(element.value)][0])) };
}

const KINDS = { date: "date", "date-time": "text", email: "email", uri: "url", time: "text" };

function string(schema, isRequired) {
  const preset = schema.default ?? "";
  const placeholder = schema.format === "date-time" ? "2026-01-31T12:00:00Z" : schema.examples?.[0] ?? "";
  const common = { value: preset, placeholder: String(placeholder), spellcheck: false, autocomplete: "off" };
  const element = isSecret(schema) ? el("input", { type: "password", ...common, autocomplete: "new-password" })
    : KINDS[schema.format] ? el("input", { type: KINDS[schema.format], ...common })
    : el("textarea", { rows: 1, ...common });
  // a text that is required may be empty, unless the schema says otherwise
  const isLeftOut = () => element.value === "" && (!isRequired || (schema.minLength ?? 0) > 0 || schema.format !== undefined);
  return { element, isSecret: isSecret(schema), text: () => (isLeftOut() ? undefined : JSON.stringify(element.value)) };
}

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

function number(schema) {
  const limits = [schema.minimum !== undefined && `from ${schema.minimum}`, schema.maximum !== undefined && `to ${schema.maximum}`].filter(Boolean).join(" ");
  const element = el("input", { type: "text", inputMode: "decimal", value: schema.default ?? "", placeholder: limits, autocomplete: "off" });
  return { element, text: () => {
    const typed = element.value.trim();
    if (typed === "") return undefined;
    if (!NUMBER.test(typed)) throw new Problem("not a number", element);
    return typed;
  } };
}

function raw(schema) {
  const element = el("textarea", { rows: 1, spellcheck: false, placeholder: "JSON", value: schema.default === undefined ? "" : JSON.stringify(schema.default) });
  return { element, text: () => {
    const typed = element.value.trim();
    if (typed === "") return undefined;
    try {
      JSON.parse(typed);
    } catch (error) {
      throw new Problem(error.message, element);
    }
    return typed;
  } };
}

function array(schema, root, depth) {
  const entries = [];
  const rows = el("div");
  const add = (value) => {
    const own = resolve(schema.items, root);
    const entry = input(value === undefined ? own : { ...own, default: value }, root, depth + 1, true);
    const row = el("div", { className: "entry" }, entry.element, el("button", { type: "button", className: "small", ariaLabel: "Remove this entry", onclick: () => {
      entries.splice(entries.indexOf(entry), 1);
      row.remove();
    } }, "×"));
    entries.push(entry);
    rows.append(row);
  };
  for (const value of Array.isArray(schema.default) ? schema.default : Array(schema.minItems ?? 0).fill(undefined)) add(value);
  const element = el("fieldset", {}, rows, el("button", { type: "button", className: "small", onclick: () => add() }, "Add"));
  return { element, parts: () => entries, text: (isRequired) => {
    const texts = entries.map((entry) => entry.text(true) ?? "null");
    return texts.length || isRequired ? `[${texts.join(",")}]` : undefined;
  } };
}

function object(schema, root, depth, isRequired) {
  const required = new Set(schema.required ?? []);
  const element = el("fieldset");
  // what must be filled in comes first
  const named = Object.entries(schema.properties ?? {}).sort(([one], [other]) => required.has(other) - required.has(one));
  const fields = named.map(([name, given]) => {
    const own = resolve(given, root);
    const preset = schema.default?.[name];
    const isNeeded = required.has(name);
    const field = { name, isNeeded, ...input(preset === undefined ? own : { ...own, default: preset }, root, depth + 1, isNeeded) };
    element.append(labelled(name, own, isNeeded, field));
    return field;
  });
  const isOpen = schema.additionalProperties ?? (fields.length === 0);
  const rest = isOpen ? raw({ default: fields.length === 0 ? schema.default : undefined }) : NOTHING;
  if (isOpen && (depth > 0 || schema.additionalProperties)) {
    element.append(labelled("", { title: fields.length ? "more members" : "members", description: "a JSON object" }, false, rest));
  }
  return { element, parts: () => fields, text: (isNeeded = isRequired) => {
    const members = [];
    for (const field of fields) {
      const text = field.text(field.isNeeded);
      if (text !== undefined) members.push(`${JSON.stringify(field.name)}:${text}`);
      else if (field.isNeeded && (depth === 0 || isNeeded || members.length)) throw new Problem("is required", field.element);
    }
    const more = rest.text()?.trim();
    if (more !== undefined) {
      if (!more.startsWith("{") || !more.endsWith("}")) throw new Problem("not a JSON object", rest.element);
      const inner = more.slice(1, -1).trim();
      if (inner) members.push(inner);
    }
    return members.length || isNeeded ? `{${members.join(",")}}` : undefined;
  } };
}

function oneOf(variants, schema, root, depth, isRequired) {
  const parts = variants.map((variant) => resolve(variant, root));
  const name = (part, at) => part.title ?? part.description?.split("\n")[0].slice(0, 60) ?? Object.values(part.properties ?? {}).map((own) => own.const).find((value) => typeof value === "string") ?? part.type ?? `variant ${at + 1}`;
  const chooser = el("select", { onchange: () => choose() }, isRequired ? [] : [el("option", { value: "" }, "")], parts.map((part, at) => el("option", { value: String(at) }, String(name(part, at)))));
  const place = el("div");
  let chosen = NOTHING;
  const choose = () => {
    const part = parts[Number(chooser.value)];
    chosen = chooser.value === "" ? NOTHING : input(schema.properties ? { ...schema, ...part, anyOf: undefined, oneOf: undefined, properties: { ...schema.properties, ...part.properties } } : part, root, depth + 1, true);
    place.replaceChildren(...(chosen.element ? [chosen.element] : []));
  };
  choose();
  return { element: el("div", {}, chooser, place), parts: () => [chosen], text: () => chosen.text(true) };
}

let count = 0;

function labelled(name, schema, isRequired, field) {
  const control = field.element.matches("input, select, textarea") ? field.element : undefined;
  if (control) control.id ||= `field-${(count += 1)}`;
  const type = Array.isArray(schema.type) ? schema.type.filter((one) => one !== "null").join(" or ") : schema.type;
  return el("div", { className: "field" },
    el("label", { htmlFor: control?.id }, el("span", {}, name || schema.title || ""), isRequired ? el("span", { className: "required", title: "required" }, "*") : [],
      el("span", { className: "dim" }, [schema.format ?? type, name && schema.title].filter(Boolean).join(" · "))),
    schema.description ? el("div", { className: "hint" }, schema.description) : [],
    field.element);
}

// What is wrong with a field.
export class Problem extends Error {
  constructor(message, element) {
    super(message);
    this.element = element;
  }
}

const MASKED = "•••";

// A form: its element, `text()`, which is the JSON of an object or undefined after it has shown what is wrong, and `shown()`, the
// same without secrets, for commands that are copied.
export function form(schema) {
  const root = resolve(schema ?? {}, schema ?? {});
  const whole = root.type === "object" || root.type === undefined && !root.oneOf && !root.anyOf
    ? object(root, schema, 0, true) : input(schema, schema, 0, true);
  whole.element.style.border = "0";
  whole.element.style.padding = "0";
  const fields = el("div", {}, whole.element);
  const typed = el("textarea", { rows: 6, spellcheck: false, hidden: true, ariaLabel: "Arguments as JSON" });
  const place = el("div", { className: "field" }, typed);
  const problem = (message, near) => (near?.closest(".field") ?? place).append(el("div", { className: "problem", role: "alert" }, message));
  const clear = () => element.querySelectorAll(".problem").forEach((node) => node.remove());
  const read = () => {
    clear();
    try {
      if (typed.hidden) return whole.text(true) ?? "{}";
      if (JSON.parse(typed.value)?.constructor !== Object) throw new Problem("not a JSON object", typed);
      return typed.value;
    } catch (error) {
      problem(error.message, error.element ?? typed);
      error.element?.focus?.();
      return undefined;
    }
  };
  const toggle = el("button", { type: "button", className: "small", onclick: () => {
    if (typed.hidden) {
      const text = read();
      typed.value = text === undefined ? "{}" : pretty(text);
      clear();
    }
    typed.hidden = !typed.hidden;
    fields.hidden = !typed.hidden;
    toggle.textContent = typed.hidden ? "As JSON" : "As a form";
  } }, "As JSON");
  const element = el("div", {}, fields, place);
  const secrets = (part) => [part.isSecret && part.element.value ? [part.element] : [], (part.parts?.() ?? []).map(secrets)].flat(9);
  const shown = () => {
    const hidden = typed.hidden ? secrets(whole).map((node) => [node, node.value]) : [];
    for (const [node] of hidden) node.value = MASKED;
    const text = read();
    for (const [node, value] of hidden) node.value = value;
    return text;
  };
  return { element, toggle, text: read, shown };
}

function pretty(text) {
  // numbers that a double cannot hold would change
  return /\d{16}/.test(text) ? text : JSON.stringify(JSON.parse(text), null, 2);
}
