// What is copied of a call: a command of mcp-dev, or of curl.

const META = "io.modelcontextprotocol/";
// The first revision without a handshake, and the first one whose requests name it in a header.
const MODERN = "2026-07-28";
const WITH_HEADER = "2025-06-18";
// The member of the parameters that the header Mcp-Name repeats.
const NAMES = { "tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId" };

const quote = (word) => (/^[\w@%+:,./-][\w@%+=:,./-]*$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

export function command(name, words, { command: server = ["SERVER"], env = [] } = {}) {
  return ["mcp-dev", name, ...words.map(quote), ...env.flatMap((pair) => ["--env", quote(pair)]), "--", ...server.map(quote)].join(" ");
}

// The value of a header: as it is if that is visible ASCII, else in Base64.
function encode(text) {
  if (/^[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text) || text === "") return text;
  return `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}?=`;
}

// A header as curl takes it; one without a value ends with a semicolon.
const header = (name, value) => `-H ${quote(value === "" ? `${name};` : `${name}: ${value}`)}`;

// The headers that repeat arguments, as the tool's schema wants it.
function mirrored(schema, value) {
  return Object.entries(schema?.properties ?? {}).flatMap(([name, own]) => {
    const argument = value?.[name];
    if (argument === undefined || argument === null) return [];
    if (typeof argument === "object") return mirrored(own, argument);
    return own?.["x-mcp-header"] ? [header(`Mcp-Param-${own["x-mcp-header"]}`, encode(String(argument)))] : [];
  });
}

const post = (url, headers, data, options = "-sS") => [`curl ${options} ${url}`, ...headers, `-d ${quote(data)}`].join(" \\\n  ");

// The commands that send a request to a server over HTTP: one, or with the handshake of its session. `params` is the JSON of the
// request's parameters; they have `_meta` already if a client has sent them.
export function curl({ url, token }, revision, method, params, schema) {
  const parsed = JSON.parse(params);
  const used = parsed._meta?.[`${META}protocolVersion`] ?? revision;
  // the shell has the token: it is not copied
  const common = [header("Content-Type", "application/json"), header("Accept", "application/json, text/event-stream"), ...(token ? ['-H "Authorization: Bearer $MCP_TOKEN"'] : [])];
  const request = (text) => `{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":${text}}`;
  if (used >= MODERN) {
    const meta = { [`${META}protocolVersion`]: used, [`${META}clientInfo`]: { name: "curl", version: "1" }, [`${META}clientCapabilities`]: {} };
    const rest = params.trim().slice(1);
    const text = parsed._meta?.[`${META}protocolVersion`] ? params : `{"_meta":${JSON.stringify(meta)}${Object.keys(parsed).length ? "," : ""}${rest}`;
    const name = parsed[NAMES[method]];
    return post(quote(url), [...common, header("MCP-Protocol-Version", used), header("Mcp-Method", method),
      ...(typeof name === "string" ? [header("Mcp-Name", encode(name))] : []), ...(method === "tools/call" ? mirrored(schema, parsed.arguments) : [])], request(text));
  }
  const own = used >= WITH_HEADER ? [...common, header("MCP-Protocol-Version", used)] : common;
  const ofSession = [...own, '-H "Mcp-Session-Id: $session"'];
  const hello = JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: used, capabilities: {}, clientInfo: { name: "curl", version: "1" } } });
  return [`url=${quote(url)}`,
    `session=$(${post('"$url"', common, hello, "-sS -D - -o /dev/null")} | tr -d '\\r' | grep -i '^mcp-session-id:' | cut -d ' ' -f 2)`,
    post('"$url"', ofSession, '{"jsonrpc":"2.0","method":"notifications/initialized"}'),
    post('"$url"', ofSession, request(params))].join("\n");
}
