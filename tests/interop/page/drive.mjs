// Opens the page of `mcp-dev` in a browser, calls a tool by its form, and answers a question of the server.
// node drive.mjs MCP-DEV SERVER BROWSER PROFILE: prints what it has seen as JSON.
import { spawn } from "node:child_process";

const [dev, server, browser, profile] = process.argv.slice(2);
const started = [];
process.on("exit", () => started.forEach((child) => child.kill()));
const start = (program, words, stdio) => {
  const child = spawn(program, words, { stdio });
  started.push(child);
  return child;
};
const sleep = (ms) => new Promise((resume) => setTimeout(resume, ms));

const loop = start(dev, ["--", server], ["pipe", "ignore", "pipe"]);
const link = await new Promise((resume) => {
  let said = "";
  loop.stderr.on("data", (data) => {
    said += data;
    const found = /http:\S+#[0-9a-f]+/.exec(said);
    if (found) resume(found[0]);
  });
});

const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-pipe", `--user-data-dir=${profile}`, "about:blank"];
const chromium = start(browser, flags, ["ignore", "ignore", "ignore", "pipe", "pipe"]);
const waiting = new Map();
const problems = [];
let count = 0;
let rest = "";
chromium.stdio[4].on("data", (data) => {
  const parts = (rest + data).split("\0");
  rest = parts.pop();
  for (const message of parts.map((part) => JSON.parse(part))) {
    if (message.id) waiting.get(message.id)?.(message);
    else if (["Runtime.exceptionThrown", "Log.entryAdded"].includes(message.method)) problems.push(message.params);
  }
});
const send = (method, params = {}, sessionId = undefined) => new Promise((resume) => {
  count += 1;
  waiting.set(count, resume);
  chromium.stdio[3].write(`${JSON.stringify({ id: count, method, params, sessionId })}\0`);
});
const { result: { targetId } } = await send("Target.createTarget", { url: "about:blank" });
const { result: { sessionId } } = await send("Target.attachToTarget", { targetId, flatten: true });
for (const domain of ["Runtime", "Log", "Page"]) await send(`${domain}.enable`, {}, sessionId);
await send("Page.navigate", { url: link }, sessionId);

const evaluate = async (expression) => {
  const { result } = await send("Runtime.evaluate", { expression, returnByValue: true }, sessionId);
  return result?.result?.value;
};
const until = async (expression) => {
  for (let n = 0; n < 600; n += 1) {
    const value = await evaluate(expression);
    if (value) return value;
    await sleep(100);
  }
  const page = await evaluate("document.body.innerText.slice(0, 2000)");
  throw new Error(`never: ${expression}\n${JSON.stringify(problems)}\n${page}`);
};
const open = async (tool) => {
  await until('document.getElementById("tab-tools")?.click() ?? true');
  await until(`(() => { const found = [...document.querySelectorAll(".list button")].find((node) => node.firstChild.textContent === "${tool}"); found?.click(); return !!found; })()`);
};

const seen = {};
await until('document.getElementById("name").textContent !== "mcp-dev"');
seen.address = await evaluate("location.href.includes('#')");
await open("test_simple_text");
await evaluate('document.querySelector("form.fields").requestSubmit()');
seen.text = await until('document.querySelector(".result pre")?.textContent');
await open("test_image_content");
await evaluate('document.querySelector("form.fields").requestSubmit()');
seen.image = await until('document.querySelector(".result img")?.src.slice(0, 22)');
await open("test_elicitation_sep1330_enums");
await evaluate('document.querySelector("form.fields").requestSubmit()');
await until('!!document.querySelector(".question form")');
seen.asked = await evaluate('document.querySelectorAll(".question .field").length');
await evaluate('document.querySelectorAll(".question select").forEach((select) => { select.selectedIndex = select.options.length - 1; }); document.querySelector(".question form").requestSubmit()');
seen.answered = await until('document.querySelector(".item .result pre")?.textContent');
await evaluate('document.getElementById("tab-messages").click()');
seen.messages = await until('[...document.querySelectorAll(".row")].filter((node) => node.textContent.includes("tools/call test_image_content")).length');
await send("Page.reload", {}, sessionId);
await sleep(500);
seen.afterReload = await until('document.getElementById("name").textContent !== "mcp-dev" && document.querySelectorAll(".row").length > 5');
process.stdout.write(JSON.stringify({ seen, problems }));
// the browser ends its own processes
const ended = Promise.all(started.map((child) => new Promise((resume) => child.on("exit", resume))));
send("Browser.close");
loop.stdin.end();
await Promise.race([ended, sleep(10_000)]);
process.exit();
