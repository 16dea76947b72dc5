// The outbound side: a channel behind HTTP, as the gateway sees it.

import { NotSentError } from "hookledger/messages";

/**
 * A send is waited for until the channel answers: so it is bounded here, and not by the turn.
 *
 * @param {{ url: string, timeoutMs?: number }} options `timeoutMs` of one request, 5 s by default
 * @returns {import("hookledger/messages").ChannelAdapter}
 */
export function httpChannel({ url, timeoutMs = 5_000 }) {
  return {
    channelId: "chat",

    async send({ to, part, idempotencyKey }) {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", "idempotency-key": idempotencyKey },
        body: JSON.stringify({ to, ...part }),
        signal: AbortSignal.timeout(timeoutMs),
      }).catch(unanswered);
      if (response.ok) return { messageId: (await response.json()).messageId };
      await response.body?.cancel();
      const { status, headers } = response;
      // It has refused the message, and knows; after anything else nobody here can tell.
      if (status === 503 || status === 429) {
        const retryAfterMs = 1_000 * (Number(headers.get("retry-after")) || 0);
        throw new NotSentError(`the channel answered ${status}`, { retryAfterMs });
      }
      if (status >= 400 && status < 500) throw new NotSentError(`the channel answered ${status}`, { permanent: true });
      throw new Error(`the channel answered ${status}`);
    },

    async wasSent(idempotencyKey) {
      const response = await fetch(`${url}/${encodeURIComponent(idempotencyKey)}`, {
        signal: AbortSignal.timeout(timeoutMs),
      });
      await response.body?.cancel();
      if (response.ok) return true;
      if (response.status === 404) return false;
      throw new Error(`the channel answered ${response.status}`);
    },
  };
}

/** Nobody listens there: nothing was sent. After anything else nobody here can tell. `fetch` keeps what happened in the `cause`. */
function unanswered(thrown) {
  const code = thrown?.cause?.code;
  if (code === "ECONNREFUSED") throw new NotSentError("the channel cannot be reached: ECONNREFUSED");
  throw code === undefined ? thrown : new Error(`the channel did not answer: ${code}`, { cause: thrown });
}
