// Uses the page of `mcp-dev` in a browser, as its author would, and prints as JSON what it has seen.
// node drive.mjs SCENARIO MCP-DEV BROWSER PROFILE WORD..
import { execFile } from "node:child_process";
import { copyFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { Chromium, start, until } from "./chromium.mjs";

const [scenario, dev, browser, profile, ...words] = process.argv.slice(2);
const chromium = new Chromium(browser, profile);
const run = promisify(execFile);

// The loop of `mcp-dev`, whose client is this program, and its page.
async function loop(...options) {
  const child = start(dev, options, ["pipe", "pipe", "pipe"]);
  let said = "";
  child.stderr.on("data", (data) => { said += data; });
  const lines = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(JSON.parse(line)));
  const link = await until("the link of the page", () => /the page: (http:\S+#[0-9a-f]+)/.exec(said)?.[1], () => said);
  const page = await chromium.open(link);
  await page.until(() => document.getElementById("name").textContent !== "mcp-dev");
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  let count = 0;
  // Sends a request as the client; returns the response.
  const ask = (method, params) => {
    count += 1;
    const id = count;
    send({ id, method, params });
    return until(`the response to ${method}`, () => lines.find((one) => one.id === id), () => JSON.stringify(lines));
  };
  return { page, child, lines, send, ask };
}

const show = (page, view) => page.until((view) => {
  const tab = document.getElementById(`tab-${view}`);
  tab?.click();
  return !!tab;
}, view);

async function open(page, view, item) {
  await show(page, view);
  await page.until((item) => {
    const found = [...document.querySelectorAll(".list button")].find((node) => node.firstChild.textContent === item);
    found?.click();
    return !!found;
  }, item);
}

// Fills fields in by their labels. An array adds entries, and `$` chooses a variant.
const fill = (page, form, values) => page.until((form, values) => {
  const root = document.querySelector(form);
  const put = (place, value) => {
    if (Array.isArray(value)) {
      for (const entry of value) {
        [...place.querySelectorAll("button")].findLast((node) => node.textContent === "Add").click();
        put([...place.querySelectorAll(".entry")].at(-1), entry);
      }
      return;
    }
    if (value !== null && typeof value === "object") {
      const { $: variant, ...members } = value;
      if (variant) {
        put(place, variant);
        place.querySelector("select").dispatchEvent(new Event("change"));
      }
      for (const [name, member] of Object.entries(members)) {
        const field = [...place.querySelectorAll(".field")].find((one) => one.querySelector(":scope > label > span")?.textContent === name);
        if (!field) throw new Error(`no field ${name}`);
        put(field, member);
      }
      return;
    }
    const control = place.querySelector("input, select, textarea");
    control.value = control.matches("select") ? [...control.options].find((option) => option.textContent === value).value : value;
  };
  if (!root) return false;
  put(root, values);
  return true;
}, form, values);

const submit = (page, form) => page.run((form) => document.querySelector(form).requestSubmit(), form);

// The text of the next result of the item that is open.
async function call(page, values = {}) {
  await fill(page, ".item form.fields", values);
  await submit(page, ".item form.fields");
  return page.until(() => document.querySelector(".item .result pre, .item .problem")?.textContent);
}

// Answers the question at the top of the page.
async function answer(page, values) {
  await fill(page, "#questions form", values);
  await submit(page, "#questions form");
  await page.until(() => !document.querySelector("#questions form"));
}

// Loads the page again, and waits for the new document: the old one is there for a moment, longer on a busy machine.
async function reload(page) {
  await page.run(() => { window.isOld = true; });
  await page.send("Page.reload");
  await page.until(() => !window.isOld && document.readyState === "complete");
}

// What a button has copied.
async function copied(page, place, label) {
  await page.run(() => navigator.clipboard.writeText(""));
  await page.until((place, label) => {
    const button = [...document.querySelectorAll(`${place} button`)].find((node) => node.textContent === label);
    button?.click();
    return !!button;
  }, place, label);
  return page.until(() => navigator.clipboard.readText());
}

const scenarios = {
  // Results of several kinds, and a page that is loaded again.
  async calls(server) {
    const { page } = await loop("--", server);
    const seen = { address: await page.run(() => location.href.includes("#")) };
    await open(page, "tools", "test_simple_text");
    seen.text = await call(page);
    await open(page, "tools", "test_image_content");
    await submit(page, ".item form.fields");
    seen.image = await page.until(() => document.querySelector(".result img")?.src.slice(0, 22));
    await show(page, "messages");
    seen.messages = await page.until(() => [...document.querySelectorAll(".row")].filter((node) => node.textContent.includes("tools/call test_image_content")).length);
    await reload(page);
    seen.afterReload = await page.until(() => document.getElementById("name").textContent !== "mcp-dev" && document.querySelectorAll(".row").length > 5);
    return seen;
  },

  // Every kind of argument; what arrives is in the log that the second word names.
  async forms(server, log, kinds) {
    const { page } = await loop("--log", log, "--", server);
    const seen = {};
    await open(page, "tools", "json_schema_2020_12_tool");
    await call(page, { name: "Ada", address: { street: "Main", city: "London" }, contactMethod: "email", email: "ada@example.com" });
    await open(page, "tools", "slow_compute");
    await call(page, { seconds: "0.25" });
    await open(page, "tools", "test_elicitation_sep1034_defaults");
    await submit(page, ".item form.fields");
    await page.until(() => !!document.querySelector("#questions form"));
    seen.presets = await page.run(() => [...document.querySelectorAll("#questions .field:has(> label)")].map((field) => {
      const control = field.querySelector("input, select, textarea");
      return [field.querySelector("label span").textContent, control.matches("select") ? control.selectedOptions[0].textContent : control.value];
    }));
    await answer(page, { name: "Grace", age: "31", score: "7.25", status: "pending", verified: "false" });
    seen.profile = await page.until(() => document.querySelector(".item .result pre")?.textContent);
    await open(page, "tools", "test_elicitation_sep1330_enums");
    await submit(page, ".item form.fields");
    await answer(page, { untitledSingle: "option2", titledSingle: "Third Option", legacyEnum: "opt1", untitledMulti: ["option1", "option3"], titledMulti: ["Second Option"] });
    seen.choices = await page.until(() => document.querySelector(".item .result pre")?.textContent);
    const other = await loop("--", process.execPath, kinds);
    await open(other.page, "tools", "take");
    seen.server = await other.page.run(() => document.querySelector(".about .finding")?.textContent);
    seen.missing = await call(other.page, { text: "a" });
    await open(other.page, "tools", "take");
    const place = { x: "1.5", y: "-2", name: "here" };
    seen.taken = JSON.parse(await call(other.page, { text: "tea\n\"for\" two", pin: "planted-pin", day: "2026-01-31", moment: "2026-01-31T12:00:00Z", mail: "a@b.example",
      link: "https://example.com/a?b", count: "3", large: "9007199254740993", ratio: "1e-3", sure: "false", color: "green", step: "2", level: "High one", tags: ["a", "b"],
      points: [{ x: "1", y: "2" }], place, shape: { $: "Square", side: "4" }, maybe: "some", free: '{"a":[null]}', map: '{"one":1}' }));
    seen.large = await other.page.run(() => document.querySelector(".item .result pre").textContent.includes(":9007199254740993,"));
    seen.command = await copied(other.page, ".item", "Copy as a command");
    return seen;
  },

  // Tasks of the page and of a client.
  async tasks(server, kinds) {
    const { page, lines, ask } = await loop("--", server);
    const seen = {};
    // state, tool, message and result of each task, the newest first
    const cards = () => [...document.querySelectorAll(".tasks .task")].map((node) => [node.querySelector(".pill").textContent, node.querySelector("b").textContent,
      node.querySelector(".said + .dim").textContent.startsWith("client · ") ? "client" : "page", node.querySelector(".result pre")?.textContent ?? ""]);
    const first = (...wanted) => page.until(`(...wanted) => {
      const [card] = (${cards})();
      return card && wanted.every((part) => card.includes(part)) && card;
    }`, ...wanted);
    const cancel = () => page.run(() => [...document.querySelectorAll(".tasks .task")][0].querySelector("button").click());
    await open(page, "tools", "slow_compute");
    await call(page, { seconds: "0.25", label: "tea" });
    await show(page, "tasks");
    await first("completed", "tea done after 0.25 s");
    seen.size = await page.run(() => document.querySelector(".tasks .result .head .dim").textContent);
    await open(page, "tools", "confirm_delete");
    await fill(page, ".item form.fields", { filename: "a.txt" });
    await submit(page, ".item form.fields");
    await show(page, "tasks");
    await first("input required", "confirm_delete");
    seen.waits = await page.run(() => document.querySelector(".tasks .questions").textContent);
    await answer(page, { confirm: "true" });
    await first("completed", "Deleted a.txt");
    await open(page, "tools", "slow_compute");
    await fill(page, ".item form.fields", { seconds: "3600" });
    await submit(page, ".item form.fields");
    await show(page, "tasks");
    await first("working", "slow_compute", "page");
    await cancel();
    await first("cancelled", "slow_compute", "page");
    // a client, which polls by itself
    const _meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": { name: "client", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": { elicitation: {}, extensions: { "io.modelcontextprotocol/tasks": {} } } };
    const begin = async (name, args) => (await ask("tools/call", { name, arguments: args, _meta })).result.taskId;
    const poll = async (taskId) => (await ask("tasks/get", { taskId, _meta })).result;
    const slow = await begin("slow_compute", { seconds: 3600 });
    await first("working", "slow_compute", "client");
    await cancel();
    await first("cancelled", "slow_compute", "client");
    seen.cancelled = (await poll(slow)).status;
    const asked = await begin("confirm_delete", { filename: "b.txt" });
    await until("a question", async () => (await poll(asked)).status === "input_required");
    await first("input required", "confirm_delete", "client");
    await page.run(() => { document.querySelector(".tasks .questions details").open = true; });
    await fill(page, ".tasks .questions form", { confirm: "true" });
    await submit(page, ".tasks .questions form");
    const done = await until("the end", async () => {
      const state = await poll(asked);
      return state.status === "completed" && state;
    });
    seen.answered = done.result.content[0].text;
    await first("completed", "client", "Deleted b.txt");
    seen.foreign = lines.filter((line) => String(line.id ?? "").startsWith("mcp-dev")).length;
    // they are made of what passed, which the page gets again
    await reload(page);
    await show(page, "tasks");
    seen.cards = await page.until(`() => {
      const all = (${cards})();
      return all.length === 5 && all;
    }`);
    // those of 2025-11-25 have their results from another request
    const { page: legacy } = await loop("--", process.execPath, kinds);
    await open(legacy, "tools", "begin");
    await call(legacy);
    await show(legacy, "tasks");
    seen.legacy = await legacy.until(`() => (${cards})().find((card) => card[3])`);
    return seen;
  },

  // Copied commands give the results of the page.
  async copies(server) {
    const { page, send, ask } = await loop("--", server);
    const env = { ...process.env, PATH: `${dirname(dev)}:${process.env.PATH}` };
    const shell = async (text) => (await run("sh", ["-c", text], { env, timeout: 60_000 })).stdout.trimEnd();
    const value = "it's 'two' \"three\" $HOME `four` \\ ünï";
    const seen = { value };
    const both = async (values) => [await call(page, values), await shell(await copied(page, ".item", "Copy as a command"))];
    await open(page, "tools", "test_custom_header");
    seen.tool = await both({ value });
    await open(page, "resources", "test://template/{id}/data");
    seen.resource = await both({ id: "a b" });
    await open(page, "prompts", "test_prompt_with_arguments");
    seen.prompt = await both({ arg1: "one", arg2: "it's" });
    // of a client, from the log
    await ask("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "old", version: "1" } });
    send({ method: "notifications/initialized" });
    await ask("tools/call", { name: "greet", arguments: { name: "it's Ada" } });
    await show(page, "messages");
    await page.until(() => {
      const row = [...document.querySelectorAll(".row")].find((node) => node.querySelector(".arrow:not(.back)") && node.textContent.includes("tools/call greet"));
      if (row && !row.classList.contains("open")) row.querySelector("button").click();
      return !!row;
    });
    seen.logged = await shell(await copied(page, ".row.open", "Copy as a command"));
    return seen;
  },

  // Another program takes the place of the server, while a client is connected.
  async replaced(server, first, second) {
    const replace = (program) => {
      copyFileSync(program, `${server}.new`);
      renameSync(`${server}.new`, server);
    };
    replace(first);
    const { page, lines, send, ask } = await loop("--", server);
    const hello = await ask("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "client", version: "1" } });
    send({ method: "notifications/initialized" });
    const text = async (name) => (await ask("tools/call", { name, arguments: {} })).result?.content?.[0]?.text;
    const seen = { hello: hello.result.protocolVersion, first: await text("fixed_text") };
    const has = (name) => page.until((name) => [...document.querySelectorAll(".list button")].some((node) => node.firstChild.textContent === name), name);
    await show(page, "tools");
    await has("fixed_text");
    replace(second);
    await has("test_simple_text");
    seen.old = await page.run(() => document.querySelector(".list").textContent.includes("fixed_text"));
    await until("the change is announced", () => lines.some((line) => line.method === "notifications/tools/list_changed"));
    seen.second = await text("test_simple_text");
    await show(page, "log");
    seen.changes = await page.until(() => [...document.querySelectorAll(".row.log pre")].map((node) => node.textContent).find((line) => line.includes("tool fixed_text")));
    return seen;
  },

  // The pictures of the documentation, in the folder that the first word names.
  async pictures(folder, notes, everything) {
    const { withPalette } = await import("./png.mjs");
    const seen = {};
    const picture = async (page, name, height) => {
      await page.send("Emulation.setDeviceMetricsOverride", { width: 1120, height, deviceScaleFactor: 1, mobile: false });
      await page.send("Emulation.setScrollbarsHidden", { hidden: true });
      await page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: "light" }] });
      // without the cursor, which blinks
      await page.run(() => document.activeElement.blur());
      await page.run(() => new Promise((resume) => { requestAnimationFrame(() => requestAnimationFrame(resume)); }));
      const { result: { data } } = await page.send("Page.captureScreenshot", { format: "png" });
      const png = withPalette(Buffer.from(data, "base64"));
      writeFileSync(join(folder, name), png);
      seen[name] = png.length;
    };
    const _meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": { name: "client", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": { elicitation: {}, extensions: { "io.modelcontextprotocol/tasks": {} } } };
    const database = `${profile}.sqlite`;
    rmSync(database, { force: true });
    const { page, ask } = await loop("--", notes, "--database", database);
    const add = (title, text, tags) => ask("tools/call", { name: "add_note", arguments: { title, text, tags }, _meta });
    await add("Tea", "Sencha is empty, and only two cups of *Gyokuro* are left.", ["home"]);
    await add("Coffee", "Try the roastery behind the station. They sell tea, too.", ["home", "work"]);
    await ask("tools/call", { name: "find_notes", arguments: { words: "tea", limit: 0 }, _meta });
    await ask("resources/read", { uri: "note://1", _meta });
    await open(page, "tools", "find_notes");
    await call(page, { words: "tea" });
    await picture(page, "dev-tools.png", 780);
    await show(page, "messages");
    await page.run(() => {
      const session = document.getElementById("session");
      session.value = "client";
      session.dispatchEvent(new Event("change"));
      const answer = [...document.querySelectorAll(".row > button")].findLast((node) => node.textContent.includes("tools/call find_notes"));
      answer.click();
    });
    await picture(page, "dev-messages.png", 560);
    const { page: other, ask: askOther } = await loop("--", everything);
    const begin = (name, args) => askOther("tools/call", { name, arguments: args, _meta });
    const of = async (begun) => (await begun).result.taskId;
    const poll = (taskId) => askOther("tasks/get", { taskId, _meta });
    const done = await of(begin("slow_compute", { seconds: 0.2, label: "index of 3 files" }));
    await until("the end", async () => (await poll(done)).result.status === "completed");
    await poll(await of(begin("slow_compute", { seconds: 3600, label: "a long one" })));
    const asks = await of(begin("confirm_delete", { filename: "ledger.db" }));
    await until("a question", async () => (await poll(asks)).result.status === "input_required");
    await show(other, "tasks");
    await other.until(() => !!document.querySelector(".tasks .questions details") && document.querySelectorAll(".task").length === 3);
    await other.run(() => { document.querySelector(".tasks .questions details").open = true; });
    await picture(other, "dev-tasks.png", 480);
    return seen;
  },
};

let seen;
try {
  seen = await scenarios[scenario](...words);
} catch (error) {
  process.stderr.write(`${error.stack}\n${error.stderr ?? ""}\n`);
  process.exit(1);
}
process.stdout.write(JSON.stringify({ seen, problems: chromium.problems }));
await chromium.close();
process.exit();
