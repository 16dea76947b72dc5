// A posted message, checked: what comes from the network is anybody's.
import { NotTaken } from "./json-body.mjs";

/** Characters of an id or a name. */
const MAX_ID = 200;

/**
 * `{ id, from, conversation, text, at? }`, all texts but `at`, ms since 1970. Other fields are refused: whoever sends them expects more of us.
 *
 * @param {unknown} body
 * @returns {import("hookledger/messages").InboundMessage}
 */
export function messageOf(body) {
  if (typeof body !== "object" || body === null || Array.isArray(body)) throw wrong("it is no object");
  const fields = new Map(Object.entries(body));
  for (const name of fields.keys())
    if (!FIELDS.has(name)) throw wrong(`it has no field ${JSON.stringify(name.slice(0, 80))}`);
  const id = (name) => {
    const value = fields.get(name);
    if (typeof value === "string" && value !== "" && value.length <= MAX_ID) return value;
    throw wrong(`${name} is to be a text of 1 to ${MAX_ID} characters`);
  };
  const text = fields.get("text");
  if (typeof text !== "string") throw wrong("text is to be a text");
  const at = fields.get("at");
  if (at !== undefined && !Number.isSafeInteger(at)) throw wrong("at is to be a whole number of ms since 1970");
  return {
    channelId: "chat",
    messageId: id("id"),
    from: id("from"),
    senderId: id("from"),
    conversationId: id("conversation"),
    isGroup: false,
    body: text,
    ...(at === undefined ? {} : { timestamp: Number(at) }),
  };
}

const FIELDS = new Set(["id", "from", "conversation", "text", "at"]);

function wrong(what) {
  return new NotTaken(400, `the message cannot be read: ${what}`);
}
