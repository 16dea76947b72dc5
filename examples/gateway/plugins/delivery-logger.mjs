// Writes a line for every reply that was sent, or failed; who writes it slowly keeps nobody.
import { definePlugin } from "hookledger/messages";

/** @param {(line: string) => void} write */
export const deliveryLogger = (write) =>
  definePlugin({
    id: "delivery-logger",
    register(api) {
      api.on("message_sent", ({ to, success, messageId = "no id", error }) =>
        write(success ? `${messageId} to ${to}` : `failed to ${to}: ${error}`),
      );
    },
  });
