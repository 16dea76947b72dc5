// Takes commands, so that no model is asked for them.
import { definePlugin } from "hookledger/messages";

export const claimer = definePlugin({
  id: "claimer",
  register(api) {
    api.on("before_dispatch", ({ content }) =>
      content.trim() === "/status" ? { handled: true, text: "All systems are up." } : { handled: false },
    );
  },
});
