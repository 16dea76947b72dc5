// A request's body as JSON, never more of it in memory than is allowed.

/** What a request is refused with; the message is the sender's to read. */
export class NotTaken extends Error {
  /** @param {number} status @param {string} message @param {Record<string, string>} headers */
  constructor(status, message, headers = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

const JSON_TYPE = /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;
const decoder = new TextDecoder("utf-8", { fatal: true });

/** @param {import("node:http").IncomingMessage} request @param {number} maxBytes @returns {Promise<unknown>} */
export async function jsonBody(request, maxBytes) {
  const { "content-type": type = "", "content-length": length = "0", "content-encoding": coding } = request.headers;
  if (!JSON_TYPE.test(type)) throw new NotTaken(415, "the body is to be application/json in UTF-8");
  if (coding !== undefined && coding !== "identity") throw new NotTaken(415, "the body is not to be compressed");
  if (Number(length) > maxBytes) throw tooLarge(maxBytes);
  const bytes = await bodyOf(request, maxBytes);
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch {
    throw new NotTaken(400, "the body is no JSON");
  }
}

async function bodyOf(request, maxBytes) {
  const chunks = [];
  let size = 0;
  try {
    // Left undestroyed, so that whoever sends too much still hears of it.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size += chunk.length;
      if (size > maxBytes) throw tooLarge(maxBytes);
      chunks.push(chunk);
    }
  } catch (thrown) {
    throw thrown instanceof NotTaken ? thrown : new NotTaken(400, "the body ends before its end");
  }
  return Buffer.concat(chunks);
}

function tooLarge(maxBytes) {
  return new NotTaken(413, `the body has more than ${maxBytes} bytes`);
}
