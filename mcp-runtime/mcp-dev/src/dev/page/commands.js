// What is copied of a call: a command of mcp-dev.
const quote = (word) => (/^[\w@%+:,./-][\w@%+=:,./-]*$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

export function command(name, words, { command: server = ["SERVER"], env = [] } = {}) {
  return ["mcp-dev", name, ...words.map(quote), ...env.flatMap((pair) => ["--env", quote(pair)]), "--", ...server.map(quote)].join(" ");
}
