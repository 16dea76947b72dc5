// Keeps replies with a key in them from being sent at all.
import { definePlugin } from "hookledger/messages";

const KEY = /\bsk-[A-Za-z0-9]{20,}/;

export const secretBlocker = definePlugin({
  id: "secret-blocker",
  register(api) {
    api.on(
      "message_sending",
      ({ content }) =>
        KEY.test(content)
          ? { cancel: true, cancelReason: "an API key stands in the reply", metadata: { rule: "no-keys" } }
          : null,
      { priority: 10 },
    );
  },
});
