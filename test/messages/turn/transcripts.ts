/** What transcripts of these tests are about. */
import type { TranscriptMessage, TranscriptReceipt, TranscriptTarget } from "#src/messages/turn/transcript.js";

export const SESSION = { agentId: "main", sessionId: "session-1", sessionKey: "agent:main:chat" };

export const TARGET: TranscriptTarget = { ...SESSION, storePath: "/transcripts.db", generation: "g-1" };

export const MESSAGE: TranscriptMessage = { id: "m-1", role: "user", content: "hello" };

export const ANSWER: TranscriptMessage = {
  id: "a-1",
  role: "assistant",
  content: [{ type: "text", text: "[hidden] hi" }],
  model: "m",
};

export const RECEIPT: TranscriptReceipt = { target: TARGET, messageId: "m-1", idempotencyKey: "u-1" };
