// The outbound side: a channel behind HTTP, as the gateway sees it.

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
      });
      if (!response.ok) throw new Error(`the channel answered ${response.status}`);
      const { messageId } = await response.json();
      return { messageId };
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
