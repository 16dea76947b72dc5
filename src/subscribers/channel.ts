/** One gRPC channel to one peer, and raw unary calls on it: bytes out, bytes and everything the peer said in. */

import {
  type ChannelCredentials,
  Client,
  credentials,
  InterceptingCall,
  type Interceptor,
  Metadata,
  status as Status,
  type StatusObject,
} from "@grpc/grpc-js";
import type { Source } from "../config/types.js";

export type GrpcSource = Extract<Source, { kind: "grpc" }>;

export type ChannelOptions = {
  /** bytes; bounds requests and answers. */
  readonly maxMessageBytes: number;
  /** For `tls` sources. */
  readonly credentials?: ChannelCredentials;
};

export type UnaryCall = {
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly request: Uint8Array;
  readonly metadata: Metadata;
  readonly deadline: Date;
  readonly signal?: AbortSignal;
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
  /** Never rejects. On abort of `signal` the call is cancelled and ends with status CANCELLED. */
  unary(call: UnaryCall): Promise<Reply>;
  close(): void;
}

/**
 * Opens lazily: nothing is connected before the first call. No retries, no service config, no proxy, no wait-for-ready; a
 * connection of its own that is made again after the peer went away.
 */
export function openChannel(source: GrpcSource, options: ChannelOptions): Channel {
  const serverName = source.tls?.serverName;
  const client = new Client(target(source), options.credentials ?? credentials.createInsecure(), {
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
  return { unary: (call) => unary(client, call), close: () => client.close() };
}

function target(source: GrpcSource): string {
  return source.transport === "unix" ? `unix:${source.target}` : `dns:${source.target}`;
}

function unary(client: Client, call: UnaryCall): Promise<Reply> {
  const { signal } = call;
  if (signal?.aborted) return Promise.resolve(locally(Status.CANCELLED, "cancelled before it was made"));
  // grpc-js throws where a channel was closed.
  return new Promise<Reply>((resolve) => {
    const cancel = () => {
      running.cancel();
      // In the turn in which a call was made, grpc-js forgets to cancel what it is about to send.
      setImmediate(() => running.cancel());
    };
    const end = (reply: Reply) => {
      signal?.removeEventListener("abort", cancel);
      resolve(reply);
    };
    const running = client.makeUnaryRequest(
      call.path,
      toBuffer,
      (bytes: Buffer) => bytes,
      call.request,
      call.metadata,
      { deadline: call.deadline, interceptors: [listener(end, cancel)] },
      () => {},
    );
    signal?.addEventListener("abort", cancel, { once: true });
  }).catch((error: Error) => locally(Status.UNAVAILABLE, error.message));
}

function locally(code: Status, details: string): Reply {
  return { end: "status", status: { code, details, metadata: new Metadata() }, headers: null, message: null };
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * Listens below the client, which would report neither leading metadata with a failure nor a second message (it never asks for
 * one, and so hangs until the deadline).
 */
function listener(end: (reply: Reply) => void, cancel: () => void): Interceptor {
  return (options, nextCall) => {
    const below = nextCall(options);
    let headers: Metadata | null = null;
    let message: Buffer | null = null;
    return new InterceptingCall(below, {
      start(metadata, _listener, next) {
        next(metadata, {
          onReceiveMetadata(received, pass) {
            headers = received;
            const contentType = String(received.get("content-type")[0] ?? "");
            if (!isGrpc(contentType)) {
              end({ end: "foreign", contentType });
              cancel();
            }
            pass(received);
          },
          onReceiveMessage(received: Buffer | null, pass) {
            if (message !== null) {
              end({ end: "ambiguous" });
              cancel();
            } else if (received !== null) {
              message = received;
              below.startRead();
            }
            pass(received);
          },
          onReceiveStatus(status, pass) {
            end({ end: "status", status, headers, message });
            pass(status);
          },
        });
      },
    });
  };
}

/** `application/grpc`, also with a format (`+proto`) or parameters; `application/grpc-web` is another protocol. */
export function isGrpc(contentType: string): boolean {
  return /^application\/grpc(?:$|[+;])/i.test(contentType);
}
