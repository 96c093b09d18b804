// The shop with the TypeScript SDK: server.mjs PORT json|sessions, with SHOP_TOOLS=N further tools.
import { randomUUID } from 'node:crypto';
import { createMcpExpressApp } from '@modelcontextprotocol/express';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler, isInitializeRequest } from '@modelcontextprotocol/server';
import { Redis } from 'ioredis';
import * as z from 'zod';

const server_type = 'typescript';
const api = process.env.SHOP_API;
const redis = new Redis(process.env.SHOP_REDIS);
const more = Number(process.env.SHOP_TOOLS ?? 0);
const [port, mode] = process.argv.slice(2);

const json = async (path, options) => (await fetch(api + path, options)).json();
const item = z.object({ product_id: z.number().int(), quantity: z.number().int() });
const product = z.object({ id: z.number().int(), name: z.string(), category: z.string(), price: z.number() });
const reply = value => ({ content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value });

async function search({ category, min_price, max_price, limit }) {
    const query = new URLSearchParams({ category, min: min_price, max: max_price, limit });
    const [found, popular] = await Promise.all([json(`/products?${query}`), redis.zrevrange('popular', 0, 9)]);
    return reply({ total_found: found.total_found, products: found.products, popular, server_type });
}

async function cart({ user_id }) {
    const kept = await redis.hgetall(`cart:${user_id}`);
    const items = Object.entries(kept).map(([id, quantity]) => ({ product_id: Number(id), quantity: Number(quantity) }));
    const [user, history] = await Promise.all([json(`/users/${user_id}`), redis.lrange(`history:${user_id}`, 0, 4)]);
    return reply({ user_id, user_name: user.name, items, history, server_type });
}

async function checkout({ user_id, items }) {
    const headers = { 'content-type': 'application/json' };
    const noted = redis.pipeline().incr('orders');
    for (const { product_id, quantity } of items) {
        noted.rpush(`history:${user_id}`, `${product_id}x${quantity}`).zadd('popular', quantity, product_id);
    }
    const [confirmed, [[, order_id]]] = await Promise.all([
        json('/orders', { method: 'POST', headers, body: JSON.stringify({ user_id, items }) }),
        noted.exec()
    ]);
    return reply({ order_id, status: confirmed.status, total: confirmed.total, server_type });
}

function build() {
    const server = new McpServer({ name: 'shop', version: '1.0.0' });
    server.registerTool('search_products', {
        description: 'Searches products by category and price',
        inputSchema: z.object({
            category: z.string(), min_price: z.number(), max_price: z.number(), limit: z.number().int().default(10)
        }),
        outputSchema: z.object({
            total_found: z.number().int(), products: z.array(product), popular: z.array(z.string()), server_type: z.string()
        })
    }, search);
    server.registerTool('get_user_cart', {
        description: 'Returns the cart and the last orders of a user',
        inputSchema: z.object({ user_id: z.number().int() }),
        outputSchema: z.object({
            user_id: z.number().int(), user_name: z.string(), items: z.array(item), history: z.array(z.string()),
            server_type: z.string()
        })
    }, cart);
    server.registerTool('checkout', {
        description: 'Orders items for a user',
        inputSchema: z.object({ user_id: z.number().int(), items: z.array(item) }),
        outputSchema: z.object({
            order_id: z.number().int(), status: z.string(), total: z.number(), server_type: z.string()
        })
    }, checkout);
    for (let number = 0; number < more; number++) {
        server.registerTool(`tool_${number}`, { description: 'Does nothing', inputSchema: z.object({}) }, async () => ({
            content: [{ type: 'text', text: 'done' }]
        }));
    }
    return server;
}

const app = createMcpExpressApp();
if (mode === 'sessions') {
    const sessions = new Map();
    const handle = async (request, response) => {
        let transport = sessions.get(request.headers['mcp-session-id']);
        if (!transport) {
            if (!isInitializeRequest(request.body)) return void response.status(404).end();
            transport = new NodeStreamableHTTPServerTransport({
                sessionIdGenerator: () => randomUUID(),
                onsessioninitialized: id => void sessions.set(id, transport),
                onsessionclosed: id => void sessions.delete(id)
            });
            await build().connect(transport);
        }
        await transport.handleRequest(request, response, request.body);
    };
    app.post('/mcp', handle).delete('/mcp', handle);
} else {
    const handler = toNodeHandler(createMcpHandler(build));
    app.all('/mcp', (request, response) => handler(request, response, request.body));
}
app.listen(Number(port), '127.0.0.1');
