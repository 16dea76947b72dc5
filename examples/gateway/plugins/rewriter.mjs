// Customers cannot open the wiki: links into it become links to the help pages.
import { definePlugin } from "hookledger/messages";

const WIKI = /https?:\/\/wiki\.internal\//g;

export const rewriter = definePlugin({
  id: "rewriter",
  register(api) {
    api.on("message_sending", ({ content }) => {
      const rewritten = content.replace(WIKI, "https://help.example.com/");
      return rewritten === content ? null : { content: rewritten };
    });
  },
});
