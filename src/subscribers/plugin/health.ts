/** The health check that decides whether a plugin is ready. */

import { Metadata, status as Status } from "@grpc/grpc-js";
import { decodeHealthResponse, encodeHealthRequest, SERVING_STATUS } from "../../goplugin/messages.js";
import { HEALTH_SERVICE, METHODS } from "../../goplugin/protocol.js";
import type { Quote } from "../../goplugin/quote.js";
import type { Channel, Reply } from "../channel.js";

/** Asks once. What is wrong, in one bounded line, or null. */
export async function unhealthy(channel: Channel, timeoutMs: number, quote: Quote): Promise<string | null> {
  const reply = await channel.unary({
    path: METHODS.health,
    request: encodeHealthRequest(HEALTH_SERVICE),
    metadata: new Metadata(),
    deadline: new Date(Date.now() + timeoutMs),
  });
  return verdict(reply, quote);
}

function verdict(reply: Reply, quote: Quote): string | null {
  switch (reply.end) {
    case "ambiguous":
      return "it answers its health check more than once";
    case "foreign":
      return `it does not speak gRPC: its health check is answered as ${quote(reply.contentType)}`;
    case "status": {
      const { code, details } = reply.status;
      if (code === Status.UNIMPLEMENTED) return "it does not implement the health check of a gRPC plugin";
      if (code === Status.NOT_FOUND) return `its health check knows no service "${HEALTH_SERVICE}"`;
      if (code !== Status.OK) return `its health check fails: ${Status[code] ?? code}: ${quote(plain(details))}`;
      const status = reply.message === null ? null : decodeHealthResponse(reply.message);
      return status === SERVING_STATUS.serving ? null : `it is unhealthy: its status is ${statusName(status)}`;
    }
  }
}

/** Without the times that the gRPC library puts in. */
function plain(details: string): string {
  return details.replace(/ \(\d{4}-\d\d-\d\dT[\d:.]+Z\)/g, "").replace(/ Resolution note: $/, "");
}

function statusName(status: number | null): string {
  if (status === null) return "unreadable";
  const names = Object.entries(SERVING_STATUS);
  return names.find(([, number]) => number === status)?.[0] ?? String(status);
}
