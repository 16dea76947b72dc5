// A stand-in for a model: what it says is written here.

/** What it finds in the files of the shop, a key that should not stand there included. */
const key = `sk-${"4f0c9a7be1d82365"}${"a1b2c3d4e5f60718"}`;

/** @param {import("hookledger/messages").AgentTurn} turn @returns {import("hookledger/messages").AgentAnswer} */
export function agent({ message: { body = "" } }) {
  if (/return/i.test(body)) return { text: "Within 30 days; see https://wiki.internal/returns for how." };
  if (/token/i.test(body)) return { text: `You can use ours: ${key}` };
  return { text: `You said: ${body}` };
}
