/** One gRPC channel to one peer, and raw unary calls on it: bytes out, bytes and everything the peer said in. */

import {
  type ChannelCredentials,
  credentials,
  Channel as GrpcChannel,
  Metadata,
  status as Status,
  type StatusObject,
} from "@grpc/grpc-js";
import type { Source } from "../config/types.js";

type GrpcSource = Extract<Source, { kind: "grpc" }>;

type ChannelOptions = {
  /** bytes; bounds requests and answers. */
  readonly maxMessageBytes: number;
  /** For `tls` sources. */
  readonly credentials?: ChannelCredentials;
};

type UnaryCall = {
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly request: Uint8Array;
  readonly metadata: Metadata;
  readonly deadline: Date;
  /** Registers what ends the call early; called at once if that is due already. */
  readonly onAbort?: (cancel: () => void) => void;
};

/** How a call ended. `headers`: the peer's leading metadata, or null when it sent none. */
export type Reply =
  | {
      readonly end: "status";
      readonly status: StatusObject;
      readonly headers: Metadata | null;
      readonly message: Buffer | null;
    }
  /** More than one message came where one was due. */
  | { readonly end: "ambiguous" }
  /** The peer's leading metadata carry a content type that is not gRPC's. */
  | { readonly end: "foreign"; readonly contentType: string };

export interface Channel {
  /** Never rejects. On abort the call is cancelled and ends with status CANCELLED. */
  unary(call: UnaryCall): Promise<Reply>;
  close(): void;
}

/**
 * Opens lazily: nothing is connected before the first call. No retries, no service config, no proxy, no wait-for-ready; a
 * connection of its own that is made again after the peer went away.
 */
export function openChannel(source: GrpcSource, options: ChannelOptions): Channel {
  const serverName = source.tls?.serverName;
  const channel = new GrpcChannel(target(source), options.credentials ?? credentials.createInsecure(), {
    "grpc.enable_retries": 0,
    "grpc.service_config_disable_resolution": 1,
    "grpc.enable_http_proxy": 0,
    "grpc.enable_channelz": 0,
    "grpc.use_local_subchannel_pool": 1,
    "grpc.max_send_message_length": options.maxMessageBytes,
    "grpc.max_receive_message_length": options.maxMessageBytes,
    // The default, 64 KiB, makes large answers wait for the way back and forth.
    "grpc-node.flow_control_window": 4 * 1024 * 1024,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 2000,
    ...(serverName === undefined
      ? {}
      : { "grpc.ssl_target_name_override": serverName, "grpc.default_authority": serverName }),
  });
  return { unary: (call) => unary(channel, call), close: () => channel.close() };
}

function target(source: GrpcSource): string {
  return source.transport === "unix" ? `unix:${source.target}` : `dns:${source.target}`;
}

/**
 * Calls on the channel itself. The client above it would report neither leading metadata with a failure nor a second message
 * (it never asks for one, and so hangs until the deadline), and it takes a stack trace for every call.
 */
function unary(channel: GrpcChannel, { path, request, metadata, deadline, onAbort }: UnaryCall): Promise<Reply> {
  return new Promise<Reply>((resolve) => {
    let aborted = false;
    // Before the call exists an abort only notes itself: nothing is sent then.
    let cancel = (): void => {
      aborted = true;
    };
    onAbort?.(() => cancel());
    if (aborted) return resolve(locally(Status.CANCELLED, "cancelled before it was made"));
    let headers: Metadata | null = null;
    let message: Buffer | null = null;
    const call = channel.createCall(path, deadline, null, null, null);
    cancel = () => {
      call.cancelWithStatus(Status.CANCELLED, "cancelled on our side");
      // In the turn in which a call was made, grpc-js forgets to cancel what it is about to send.
      setImmediate(() => call.cancelWithStatus(Status.CANCELLED, "cancelled on our side"));
    };
    call.start(metadata, {
      onReceiveMetadata(received) {
        headers = received;
        const contentType = String(received.get("content-type")[0] ?? "");
        if (isGrpc(contentType)) return;
        resolve({ end: "foreign", contentType });
        cancel();
      },
      onReceiveMessage(received: Buffer) {
        if (message === null) {
          message = received;
          call.startRead();
          return;
        }
        resolve({ end: "ambiguous" });
        cancel();
      },
      onReceiveStatus(status) {
        resolve({ end: "status", status, headers, message });
      },
    });
    call.startRead();
    call.sendMessageWithContext({}, toBuffer(request));
    call.halfClose();
  }).catch((error: Error) => locally(Status.UNAVAILABLE, error.message));
}

function locally(code: Status, details: string): Reply {
  return { end: "status", status: { code, details, metadata: new Metadata() }, headers: null, message: null };
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** `application/grpc`, also with a format (`+proto`) or parameters; `application/grpc-web` is another protocol. */
export function isGrpc(contentType: string): boolean {
  return /^application\/grpc(?:$|[+;])/i.test(contentType);
}
