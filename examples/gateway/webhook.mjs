// The inbound side: an HTTP server to which a channel posts messages, one a request.
//
//   POST /messages, application/json    200  taken, or a duplicate: never post it again
//                                       503  nothing became of it: post it again later
//                                       400, 413, 415  it is wrong, and stays so
//
// A channel keeps what it was not answered, and posts it again: what a crash of the gateway takes, comes back.
import { once } from "node:events";
import { createServer } from "node:http";
import { jsonBody, NotTaken } from "./json-body.mjs";
import { messageOf } from "./message.mjs";

const SECONDS = 1_000;

/**
 * @param {{
 *   receive: (message: import("hookledger/messages").InboundMessage) => Promise<import("hookledger/messages").GatewayOutcome>,
 *   maxBytes?: number,
 *   bodyTimeoutMs?: number,
 *   port?: number,
 *   onFault?: (thrown: unknown) => void,
 * }} options `maxBytes` of a body, 1 MiB by default; `bodyTimeoutMs` until it must be there, 10 s by default; `onFault`: what is ours to
 *   mend is said there, and to no sender
 */
export async function startWebhook({
  receive,
  maxBytes = 1024 * 1024,
  bodyTimeoutMs = 10 * SECONDS,
  port = 0,
  onFault = (thrown) => process.stderr.write(`${thrown instanceof Error ? thrown.stack : thrown}\n`),
}) {
  const bounds = {
    requestTimeout: bodyTimeoutMs,
    headersTimeout: bodyTimeoutMs,
    connectionsCheckingInterval: Math.min(bodyTimeoutMs, SECONDS),
  };
  const server = createServer(bounds, (request, response) => {
    // Left unread, the rest of a body would cut off the answer; how long it may take is bounded.
    response.on("finish", () => request.resume());
    answer(request, receive, maxBytes).then(
      ({ status, headers = {}, body }) => reply(response, status, headers, body),
      (thrown) => {
        if (!(thrown instanceof NotTaken)) onFault(thrown);
        reply(response, ...refusal(thrown));
      },
    );
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${addressOf(server).port}/messages`,
    /** Takes no request more; resolves when those under way are answered. */
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeIdleConnections();
      await closed;
    },
  };
}

async function answer(request, receive, maxBytes) {
  if (request.url !== "/messages") throw new NotTaken(404, "there is only /messages");
  if (request.method !== "POST") throw new NotTaken(405, "messages are posted", { allow: "POST" });
  const message = messageOf(await jsonBody(request, maxBytes));
  const { completion, ...outcome } = await receive(message);
  const replies = (completion?.replies ?? []).map(({ kind, outcome }) => {
    const { status, reason, custody, hookRuns } = outcome;
    return { kind, status, reason, custody, hookRuns };
  });
  return outcome.retryable
    ? { status: 503, headers: { "retry-after": "1" }, body: { ...outcome, replies } }
    : { status: 200, body: { ...outcome, replies } };
}

function refusal(thrown) {
  return thrown instanceof NotTaken
    ? [thrown.status, thrown.headers, { error: thrown.message }]
    : [500, {}, { error: "the gateway failed" }];
}

function reply(response, status, headers, body) {
  if (response.destroyed) return;
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(`${JSON.stringify(body)}\n`);
}

function addressOf(server) {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("it listens on no port");
  return address;
}
