// A stand-in for a chat service, a process of its own:  node channel.mjs [port]
//
// Prints the URL of its messages, and shows what it is sent, each idempotency key once. Ends with its standard input: `< /dev/null` ends it at once.
//
//   POST /messages        { to, text, … }, idempotency-key    200 { messageId }
//   GET /messages/<key>   200 or 404
//   GET /messages         all that was shown, in order
//   PUT /maintenance      true or false: while it is, no message is taken, and 503 says so
import { once } from "node:events";
import { createServer } from "node:http";
import { jsonBody, NotTaken } from "./json-body.mjs";

/** By idempotency key. */
const shown = new Map();
let maintenance = false;

async function answer(request) {
  const key = /^\/messages\/(.+)$/.exec(request.url)?.[1];
  if (request.method === "GET" && key !== undefined) {
    const message = shown.get(decodeURIComponent(key));
    if (message === undefined) throw new NotTaken(404, "it was not sent");
    return message;
  }
  if (request.method === "GET") return [...shown.values()];
  const body = await jsonBody(request, 1024 * 1024);
  if (request.url === "/maintenance") {
    maintenance = body === true;
    return maintenance;
  }
  if (maintenance) throw new NotTaken(503, "come again later");
  const { to, text } = body;
  const idempotencyKey = request.headers["idempotency-key"];
  if (typeof idempotencyKey !== "string") throw new NotTaken(400, "it has no idempotency-key");
  if (!shown.has(idempotencyKey)) shown.set(idempotencyKey, { messageId: `chat-${shown.size + 1}`, to, text });
  return shown.get(idempotencyKey);
}

const server = createServer((request, response) => {
  const json = (status, body) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  answer(request).then(
    (body) => json(200, body),
    (thrown) => json(thrown instanceof NotTaken ? thrown.status : 500, { error: String(thrown) }),
  );
});
server.listen(Number(process.argv[2] ?? 0), "127.0.0.1");
await once(server, "listening");
process.stdout.write(`http://127.0.0.1:${server.address().port}/messages\n`);
process.on("SIGTERM", () => process.exit());
// Whoever started it has ended.
process.stdin.resume().on("end", () => process.exit());
