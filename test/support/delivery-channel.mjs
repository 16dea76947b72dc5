// A channel as a process of its own: node delivery-channel.mjs. Says its port, then remembers whatever it is sent, every time it is sent.
import { writeSync } from "node:fs";
import { createServer } from "node:http";

/** What was taken, in order: key and text. */
const taken = [];
const attempts = new Map();

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => answer(new URL(request.url, "http://channel"), Buffer.concat(chunks).toString(), response));
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => writeSync(1, `${server.address().port}\n`));
process.stdin.on("end", () => process.exit(0)).resume();

function answer(url, body, response) {
  switch (url.pathname) {
    case "/send":
      return send(JSON.parse(body), response);
    case "/sent":
      return reply(
        response,
        200,
        taken.some(({ key }) => key === url.searchParams.get("key")),
      );
    case "/taken":
      return reply(response, 200, taken);
    case "/quiet":
      return quiet(response);
    default:
      return reply(response, 404, null);
  }
}

/** By the number in the text: refuses at first, loses its acknowledgement, loses the message, or takes its time. */
function send({ key, text }, response) {
  const attempt = (attempts.get(key) ?? 0) + 1;
  attempts.set(key, attempt);
  const fate = attempt === 1 ? Number(/\d+/.exec(text)[0]) % 32 : 0;
  if (fate === 1) return reply(response, 503, null);
  if (fate === 2) return response.socket.destroy();
  taken.push({ key, text });
  if (fate === 3) return response.socket.destroy();
  if (fate % 4 === 0) return setTimeout(() => reply(response, 200, key), 3);
  return reply(response, 200, key);
}

/** Answers once nothing is on its way from anybody else. */
function quiet(response) {
  server.getConnections((_, count) => (count <= 1 ? reply(response, 200, null) : setTimeout(() => quiet(response), 1)));
}

function reply(response, status, value) {
  if (response.destroyed) return;
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}
