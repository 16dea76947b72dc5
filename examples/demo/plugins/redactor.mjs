// A transform: takes API keys out of all that the model is about to be sent, wherever in the messages they are.
import { serve } from "./subscriber.mjs";

const KEY = /sk-[A-Za-z0-9]{20,}/g;

serve(({ payload }) => {
  const { messages, model } = payload.preModelCall;
  return { transform: { payload: { preModelCall: { messages: withoutKeys(messages), model } } } };
});

function withoutKeys(value) {
  if (typeof value === "string") return value.replace(KEY, "[key removed]");
  if (Array.isArray(value)) return value.map(withoutKeys);
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutKeys(member)]));
}
