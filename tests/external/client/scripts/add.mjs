import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';

const make = () => {
    const server = new McpServer({ name: 'typescript', version: '1' });
    const schema = { description: 'Adds', inputSchema: z.object({ a: z.number(), b: z.number() }) };
    server.registerTool('add', schema, async ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }));
    return server;
};
const port = process.argv[2];
if (port) {
    createServer(toNodeHandler(createMcpHandler(make))).listen(Number(port), '127.0.0.1');
} else {
    serveStdio(make);
}
