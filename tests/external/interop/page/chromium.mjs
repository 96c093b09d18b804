// A Chromium without a window, driven over a pipe.
import { spawn } from "node:child_process";

const started = [];
process.on("exit", () => started.forEach((child) => child.kill()));

// Starts a program that ends with this one.
export function start(program, words, stdio, env = {}) {
  const child = spawn(program, words, { stdio, env: { ...process.env, ...env } });
  started.push(child);
  return child;
}

export const sleep = (ms) => new Promise((resume) => setTimeout(resume, ms));

// Waits for what a function gives, for a minute and longer on a busy machine.
export async function until(what, give, explain = () => "") {
  for (let n = 0; n < 600; n += 1) {
    const value = await give();
    if (value) return value;
    await sleep(100);
  }
  throw new Error(`never: ${what}\n${await explain()}`);
}

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-pipe"];

export class Chromium {
  waiting = new Map();
  // What went wrong in its tabs.
  problems = [];
  count = 0;

  constructor(program, profile) {
    this.process = start(program, [...FLAGS, `--user-data-dir=${profile}`, "about:blank"], ["ignore", "ignore", "ignore", "pipe", "pipe"]);
    let rest = "";
    this.process.stdio[4].on("data", (data) => {
      const parts = (rest + data).split("\0");
      rest = parts.pop();
      for (const message of parts.map((part) => JSON.parse(part))) {
        if (message.id) this.waiting.get(message.id)?.(message);
        else if (["Runtime.exceptionThrown", "Log.entryAdded"].includes(message.method)) this.problems.push(message.params);
      }
    });
  }

  send(method, params = {}, sessionId = undefined) {
    return new Promise((resume) => {
      this.count += 1;
      this.waiting.set(this.count, resume);
      this.process.stdio[3].write(`${JSON.stringify({ id: this.count, method, params, sessionId })}\0`);
    });
  }

  async open(url) {
    const { result: { targetId } } = await this.send("Target.createTarget", { url: "about:blank" });
    const { result: { sessionId } } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const tab = new Tab(this, sessionId);
    for (const domain of ["Runtime", "Log", "Page"]) await tab.send(`${domain}.enable`);
    // a page that is not in front may not use the clipboard
    await tab.send("Emulation.setFocusEmulationEnabled", { enabled: true });
    await this.send("Browser.grantPermissions", { origin: new URL(url).origin, permissions: ["clipboardReadWrite", "clipboardSanitizedWrite"] });
    await tab.send("Page.navigate", { url });
    return tab;
  }

  // It ends its own processes; the others end with this one.
  async close() {
    const ended = new Promise((resume) => { this.process.on("exit", resume); });
    this.send("Browser.close");
    await Promise.race([ended, sleep(10_000)]);
  }
}

class Tab {
  constructor(chromium, sessionId) {
    Object.assign(this, { chromium, sessionId });
  }

  send(method, params) {
    return this.chromium.send(method, params, this.sessionId);
  }

  // Runs a function in the page, with values that JSON can hold.
  async run(f, ...values) {
    const expression = `(${f})(...${JSON.stringify(values)})`;
    const { result } = await this.send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
    if (result?.exceptionDetails) this.failed = result.exceptionDetails.exception?.description;
    return result?.result?.value;
  }

  until(f, ...values) {
    return until(`${f} of ${JSON.stringify(values)}`, () => this.run(f, ...values), async () =>
      `${this.failed ?? ""}\n${JSON.stringify(this.chromium.problems)}\n${await this.run(() => document.body.innerText.slice(0, 3000))}`);
  }
}
