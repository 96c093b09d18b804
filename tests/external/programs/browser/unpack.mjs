// Unpacks the browser, its fonts and its libraries from the packages in the folder of the first argument to TMPDIR.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = join(process.argv[2], "node_modules/@sparticuz/chromium");
const { default: chromium, inflate } = await import(pathToFileURL(join(folder, "build/index.js")));
await chromium.executablePath();
await inflate(join(folder, "bin/al2023.tar.br"));
