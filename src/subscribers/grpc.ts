/** Subscribers behind a gRPC address. One channel a provider, shared by all its hooks. */

import { Metadata } from "@grpc/grpc-js";
import type { Provider } from "../config/types.js";
import { HookledgerError } from "../errors.js";
import { admitResponse, encodeDispatchRequest, PEER_SAYS } from "../payload/admission.js";
import type { Answer } from "../payload/answer.js";
import { requestMetadata, trailingReason } from "./call-metadata.js";
import { type Channel, openChannel, type Reply } from "./channel.js";
import { failed, thrownText } from "./fault.js";
import { receive } from "./grpc-fault.js";
import type { PeerTransport } from "./peer.js";
import { describePeer, type PeerDescription } from "./plugin-info.js";
import type { Invocation } from "./port.js";
import { tlsCredentials } from "./tls.js";

type GrpcOptions = {
  /** bytes; bounds requests and answers. */
  readonly maxMessageBytes: number;
};

const DISPATCH_HOOK = "/pluggableharness.hook.v1.HookSubscriberService/DispatchHook";

/**
 * Reads the TLS files and makes the channel; the peer need not be there, and is not called. Throws HL_SUBSCRIBER_LOAD
 * (unusable TLS files, an address that is none).
 */
export async function connectGrpc(provider: Provider, options: GrpcOptions): Promise<GrpcSubscriber> {
  const { source } = provider;
  if (source.kind !== "grpc") throw new HookledgerError("HL_INTERNAL", `"${provider.name}" is no gRPC address`);
  const tls = source.transport === "tls" ? await tlsCredentials(provider, source.tls ?? {}) : undefined;
  try {
    const { maxMessageBytes } = options;
    const channel = openChannel(source, { maxMessageBytes, ...(tls === undefined ? {} : { credentials: tls }) });
    return new GrpcSubscriber(provider, channel, maxMessageBytes);
  } catch (error) {
    throw new HookledgerError(
      "HL_SUBSCRIBER_LOAD",
      `provider "${provider.name}": ${provider.sourceText} is no usable address`,
      {
        place: provider.place,
        cause: error,
      },
    );
  }
}

/** Made by `connectGrpc`. */
export class GrpcSubscriber implements PeerTransport {
  readonly #provider: Provider;
  readonly #channel: Channel;
  readonly #maxMessageBytes: number;

  constructor(provider: Provider, channel: Channel, maxMessageBytes: number) {
    this.#provider = provider;
    this.#channel = channel;
    this.#maxMessageBytes = maxMessageBytes;
  }

  async invoke(call: Invocation): Promise<Answer> {
    const { mode, payload, remainingMs } = call;
    const maxMessageBytes = this.#maxMessageBytes;
    try {
      const request = encodeDispatchRequest(payload, mode, call.subscriptionId);
      const requestSize = request.byteLength;
      if (requestSize > maxMessageBytes) {
        return failed(mode, `the request is larger than ${maxMessageBytes} bytes: ${requestSize} bytes`);
      }
      const reply = await this.#channel.unary({
        path: DISPATCH_HOOK,
        request,
        metadata: requestMetadata(call),
        // 1 ms later than our own clock, so that it is the one that fires.
        deadline: new Date(Date.now() + Math.ceil(call.timeoutMs) + 1),
        onAbort: call.onAbort,
      });
      const received = receive(reply, { mode, requestSize, maxMessageBytes, remainingMs });
      if (!received.ok) return received.answer;
      return withReason(admitResponse(mode, payload, received.message), trailingReason(received.trailers));
    } catch (error) {
      return failed(mode, `the call could not be made: ${thrownText(error)}`);
    }
  }

  exchange(request: Uint8Array, timeoutMs: number): Promise<Reply> {
    const deadline = new Date(Date.now() + timeoutMs);
    return this.#channel.unary({ path: DISPATCH_HOOK, request, metadata: new Metadata(), deadline });
  }

  describe(timeoutMs: number): Promise<PeerDescription | null | "absent"> {
    return describePeer(this.#provider, this.#channel, timeoutMs);
  }

  async close(): Promise<void> {
    this.#channel.close();
  }
}

/** A reason belongs to a deny, or tells why an answer is none; it is no part of any decision. */
function withReason(answer: Answer, { reason, warning }: ReturnType<typeof trailingReason>): Answer {
  if (answer.class === "invalid" && reason !== undefined) {
    const { category, message } = answer.error;
    return { ...answer, error: { category, message: message + PEER_SAYS + reason } };
  }
  if (answer.class !== "deny") return answer;
  return {
    ...answer,
    ...(reason === undefined ? {} : { reason }),
    ...(warning === undefined ? {} : { warnings: [...(answer.warnings ?? []), warning] }),
  };
}
