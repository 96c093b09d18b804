// What values look like. Every text of a server becomes a text node: nothing of it is ever read as HTML.

export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key in node && key !== "list" && key !== "form") node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return node;
}

const LONG = 2000;

// A text, of which a long one is cut until it is wanted.
function text(value, kind) {
  if (value.length <= LONG) return el("span", { className: kind }, value);
  const node = el("span", { className: kind }, value.slice(0, LONG));
  const more = el("button", { className: "small", type: "button", onclick: () => node.replaceChildren(value) },
    `… ${value.length - LONG} more characters`);
  node.append(" ", more);
  return node;
}

const MEMBERS = 200;

// A JSON value as a tree; its members are made when it is opened.
export function tree(value, key, depth = 0) {
  const label = key === undefined ? [] : [el("span", { className: "key" }, String(key)), ": "];
  if (value === null || typeof value !== "object") {
    const shown = typeof value === "string" ? text(JSON.stringify(value), "text") : el("span", { className: "other" }, String(value));
    return el("div", { className: "leaf" }, label, shown);
  }
  const entries = Array.isArray(value) ? value.map((member, at) => [at, member]) : Object.entries(value);
  const summary = Array.isArray(value) ? `[${entries.length}]` : `{${entries.slice(0, 4).map(([name]) => name).join(", ")}${entries.length > 4 ? ", …" : ""}}`;
  if (entries.length === 0) return el("div", { className: "leaf" }, label, Array.isArray(value) ? "[]" : "{}");
  const members = el("div", { className: "members" });
  const fill = (from) => {
    members.append(...entries.slice(from, from + MEMBERS).map(([name, member]) => tree(member, name, depth + 1)));
    if (from + MEMBERS < entries.length) {
      const more = el("button", { className: "small", type: "button", onclick: () => { more.remove(); fill(from + MEMBERS); } },
        `${entries.length - from - MEMBERS} more`);
      members.append(more);
    }
  };
  let isFilled = false;
  const node = el("details", { ontoggle: () => { if (node.open && !isFilled) { isFilled = true; fill(0); } } },
    el("summary", {}, label, el("span", { className: "dim" }, summary)), members);
  if (depth < 2) node.open = true;
  return node;
}

export function json(value) {
  return el("div", { className: "tree" }, tree(value));
}

export function bytes(count) {
  if (count < 1000) return `${count} B`;
  return count < 1e6 ? `${(count / 1000).toFixed(1)} kB` : `${(count / 1e6).toFixed(1)} MB`;
}

export function ms(time) {
  if (time === null || time === undefined) return "";
  if (time < 1) return `${(time * 1000).toFixed(0)} µs`;
  return time < 1000 ? `${time.toFixed(time < 10 ? 1 : 0)} ms` : `${(time / 1000).toFixed(1)} s`;
}

export function clock(at) {
  const date = new Date(at);
  return `${date.toTimeString().slice(0, 8)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

// `make` returns nothing if there is nothing to copy yet, such as of a form that is not filled in.
export function copyButton(label, make) {
  const button = el("button", { className: "small", type: "button", onclick: async () => {
    const made = make();
    if (made === undefined) return;
    try {
      await navigator.clipboard.writeText(made);
      button.textContent = "copied";
    } catch {
      button.textContent = "the browser does not allow it";
    }
    setTimeout(() => { button.textContent = label; }, 1500);
  } }, label);
  return button;
}

const IS_MEDIA = /^(image|audio|video)\/[a-z0-9.+-]+$/i;

// A block of content, of a result, a prompt or a resource.
export function block(content, read) {
  const kind = content.type ?? (content.blob !== undefined ? "blob" : "text");
  const media = (data, mime) => {
    if (!IS_MEDIA.test(mime ?? "")) return el("span", { className: "dim" }, `${mime ?? "bytes"}, ${bytes(data.length * 3 / 4)}`);
    const source = `data:${mime};base64,${data}`;
    if (mime.startsWith("image/")) return el("img", { src: source, alt: `an image of the type ${mime}` });
    return el(mime.startsWith("audio/") ? "audio" : "video", { src: source, controls: true });
  };
  const shown = () => {
    if (kind === "text" && typeof content.text === "string") return el("pre", {}, text(content.text, ""));
    if ((kind === "image" || kind === "audio") && typeof content.data === "string") return media(content.data, content.mimeType);
    if (kind === "blob") return media(String(content.blob), content.mimeType);
    if (kind === "resource" && content.resource) return el("div", {}, el("div", { className: "dim mono" }, content.resource.uri), block(content.resource, read));
    if (kind === "resource_link") {
      const open = read && el("button", { className: "small", type: "button", onclick: () => read(content.uri) }, "Read");
      return el("div", {}, el("span", { className: "mono" }, content.uri), " ", content.title ?? content.name ?? "", " ", open);
    }
    return json(content);
  };
  return el("div", { className: "block" }, shown());
}

// What a request has got.
export function result(answer, read) {
  if (answer.error) {
    const { code, message } = answer.error;
    return el("div", { className: "result" },
      el("div", { className: "head" }, el("b", { className: "bad" }, "error"), el("span", { className: "dim" }, [code, ms(answer.ms)].filter((part) => part || part === 0).join(" · "))),
      el("pre", {}, message));
  }
  const value = answer.result ?? {};
  const blocks = value.content ?? value.contents ?? value.messages?.map((message) => ({ role: message.role, content: message.content })) ?? [];
  const node = el("div", { className: "result" },
    el("div", { className: "head" },
      value.isError ? el("b", { className: "bad" }, "the tool has failed") : el("b", { className: "ok" }, "result"),
      el("span", { className: "dim" }, [ms(answer.ms), bytes(JSON.stringify(value).length)].filter(Boolean).join(" · ")),
      copyButton("Copy JSON", () => JSON.stringify(value, null, 2))));
  for (const entry of blocks) {
    const isMessage = entry.role !== undefined && entry.content !== undefined && entry.type === undefined;
    if (isMessage) node.append(el("div", { className: "dim" }, entry.role));
    node.append(...(isMessage ? [entry.content].flat() : [entry]).map((one) => block(one, read)));
  }
  if (value.structuredContent !== undefined) node.append(el("h3", {}, "Structured content"), json(value.structuredContent));
  const whole = el("details", { ontoggle: () => { if (whole.children.length === 1) whole.append(json(value)); } }, el("summary", { className: "dim" }, "all of it"));
  node.append(whole);
  return node;
}
