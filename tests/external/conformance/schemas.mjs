// Prints the schemas of the protocol that the conformance suite carries, one after the other, as a JSON array.
import { readFileSync } from "node:fs";

const text = readFileSync(process.argv[2], "utf8");
const schemas = [];
for (const start of text.matchAll(/\{\$schema:`[^`]+`,(?:definitions|\$defs):\{/g)) {
    let depth = 0;
    let at = start.index;
    let quoted = false;
    do {
        const character = text[at++];
        if (character === "\\") at++;
        else if (character === "`") quoted = !quoted;
        else if (!quoted && character === "{") depth++;
        else if (!quoted && character === "}") depth--;
    } while (depth > 0);
    schemas.push(new Function(`return ${text.slice(start.index, at)}`)());
}
console.log(JSON.stringify(schemas));
