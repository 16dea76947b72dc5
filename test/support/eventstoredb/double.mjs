// @ts-check
/**
 * A DOUBLE OF EVENTSTOREDB, FOR TESTS AND BENCHMARKS ONLY. It is no EventStoreDB: it keeps its log in memory, on one machine, and
 * was written from what is known of the server's behaviour. What holds against it is to be shown against a real server, too.
 *
 * A loopback gRPC server on the service definitions that `@eventstore/db-client` ships, so that the unmodified client works with
 * it. `log` has the rules, `faults` the switchboard, `calls` what was received.
 */
/** @import { Socket } from "node:net" */
/** @import { Metadata } from "@grpc/grpc-js" */
/** @import { Access, Admission, Credentials, Endpoint, Features, Member, Node } from "./types.js" */
import { createServer } from "node:net";
import { setImmediate as nextRead } from "node:timers/promises";
import gossip from "@eventstore/db-client/generated/gossip_grpc_pb.js";
import serverfeatures from "@eventstore/db-client/generated/serverfeatures_grpc_pb.js";
import streams from "@eventstore/db-client/generated/streams_grpc_pb.js";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { appendHandler } from "./append.mjs";
import { batchAppendHandler } from "./batch-append.mjs";
import { Calls } from "./calls.mjs";
import { gossipHandler, serverFeaturesHandler } from "./discovery.mjs";
import { Faults } from "./faults.mjs";
import { EventLog } from "./log.mjs";
import { readHandler } from "./read.mjs";
import { deleteHandler, tombstoneHandler } from "./remove.mjs";

/** @type {Features} */
export const FEATURES = {
  version: "24.10.0-double",
  batchAppend: true,
  maxAppendBytes: 1024 * 1024,
  writeTimeoutMs: 2000,
  slowConsumer: "abort",
  liveBuffer: 32,
};
/** The server's bound for one message of a call. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024 - 4096;

/**
 * @typedef {object} DoubleOptions
 * @property {number} [port] 0: a free one
 * @property {{ readonly cert: string, readonly key: string }} [tls] PEM, for "localhost"
 * @property {Credentials} [credentials] without them no stream can be read or written; the client sends them over TLS only
 * @property {(access: Access) => boolean} [allow] what an admitted user may do
 * @property {Partial<Features>} [features]
 * @property {EventLog} [log] shared by the members of a cluster
 * @property {() => readonly Member[]} [members] of the cluster that it belongs to
 */

export class Double {
  log;
  faults = new Faults();
  calls = new Calls();
  /** May be changed while it runs. @type {Features} */
  features;
  #options;
  #members;
  /** @type {Map<string, Socket>} by address and port of the peer */
  #sockets = new Map();
  /** @type {import("node:net").Server | null} */
  #listener = null;
  /** @type {Server | null} */
  #server = null;
  port;

  /** @param {DoubleOptions} options */
  constructor(options) {
    this.#options = options;
    this.log = options.log ?? new EventLog();
    this.features = { ...FEATURES, ...options.features };
    this.port = options.port ?? 0;
    this.#members = options.members ?? (() => [{ endpoint: this.endpoint, leads: true, alive: true }]);
  }

  /** @returns {Endpoint} */
  get endpoint() {
    return { address: this.#options.tls === undefined ? "127.0.0.1" : "localhost", port: this.port };
  }

  get url() {
    const { address, port } = this.endpoint;
    return `esdb://${address}:${port}?tls=${this.#options.tls !== undefined}`;
  }

  /** Through gossip. */
  get discoverUrl() {
    return this.url.replace("esdb://", "esdb+discover://");
  }

  get running() {
    return this.#listener !== null;
  }

  /** Connections that are open. */
  get open() {
    return this.#sockets.size;
  }

  async start() {
    if (this.#listener !== null) return;
    const server = new Server({ "grpc.max_receive_message_length": MAX_MESSAGE_BYTES });
    const node = this.#node();
    server.addService(streams.StreamsService, {
      append: appendHandler(node),
      batchAppend: batchAppendHandler(node),
      read: readHandler(node),
      delete: deleteHandler(node),
      tombstone: tombstoneHandler(node),
    });
    server.addService(gossip.GossipService, { read: gossipHandler(node) });
    server.addService(serverfeatures.ServerFeaturesService, { getSupportedMethods: serverFeaturesHandler(node) });
    const injector = server.createConnectionInjector(serverCredentials(this.#options.tls));
    const listener = createServer({ noDelay: true }, (socket) => {
      this.#keep(socket);
      injector.injectConnection(socket);
    });
    await new Promise((/** @type {(value: void) => void} */ resolve, reject) => {
      listener.once("error", reject);
      listener.listen(this.port, "127.0.0.1", resolve);
    });
    const address = listener.address();
    if (typeof address === "object" && address !== null) this.port = address.port;
    this.#listener = listener;
    this.#server = server;
  }

  /** Stops listening and cuts every connection; what was written is kept. */
  async stop() {
    const listener = this.#listener;
    if (listener === null) return;
    this.#listener = null;
    const closed = new Promise((resolve) => listener.close(resolve));
    this.cutAll();
    this.#server?.forceShutdown();
    this.#server = null;
    await closed;
  }

  /** Comes up again on the same port with the same log. What a server keeps in memory only is lost. @param {() => unknown} [whileDown] */
  async restart(whileDown = () => {}) {
    await this.stop();
    this.log.forgetIds();
    await whileDown();
    await this.start();
  }

  /** Cuts every connection. */
  cutAll() {
    for (const socket of this.#sockets.values()) socket.destroy();
  }

  /**
   * Cuts the first connection that receives this many bytes from now on: in the middle of a message, if that is larger. Resolves
   * when it has.
   * @param {number} bytes
   */
  async cutAfterBytes(bytes) {
    const before = new Map([...this.#sockets.values()].map((socket) => [socket, socket.bytesRead]));
    for (;;) {
      for (const socket of this.#sockets.values()) {
        if (socket.bytesRead - (before.get(socket) ?? 0) < bytes) continue;
        socket.destroy();
        return;
      }
      await nextRead();
    }
  }

  /** @param {Socket} socket */
  #keep(socket) {
    const peer = `${socket.remoteAddress}:${socket.remotePort}`;
    this.calls.connections += 1;
    this.#sockets.set(peer, socket);
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(peer));
  }

  /** @returns {Node} */
  #node() {
    const double = this;
    return {
      log: this.log,
      faults: this.faults,
      calls: this.calls,
      get features() {
        return double.features;
      },
      members: () => this.#members(),
      otherLeader: () => this.#otherLeader(),
      admit: (headers, action, stream) => this.#admit(headers, action, stream),
      cut: (peer) => this.#sockets.get(peer)?.destroy(),
    };
  }

  #otherLeader() {
    const leader = this.#members().find((member) => member.leads);
    return leader === undefined || leader.endpoint.port === this.port ? null : leader.endpoint;
  }

  /**
   * @param {Metadata} headers
   * @param {Access["action"]} action
   * @param {string} stream
   * @returns {Admission}
   */
  #admit(headers, action, stream) {
    const { credentials, allow = () => true } = this.#options;
    const [header] = headers.get("authorization");
    if (credentials !== undefined && header !== undefined) {
      const wanted = Buffer.from(`${credentials.username}:${credentials.password}`).toString("base64");
      if (header !== `Basic ${wanted}`) return "unauthenticated";
    }
    const user = credentials !== undefined && header !== undefined ? credentials.username : null;
    if (credentials !== undefined && user === null) return "denied";
    return allow({ user, action, stream }) ? "admitted" : "denied";
  }
}

/** @param {DoubleOptions["tls"]} tls */
function serverCredentials(tls) {
  if (tls === undefined) return ServerCredentials.createInsecure();
  const pair = { cert_chain: Buffer.from(tls.cert), private_key: Buffer.from(tls.key) };
  return ServerCredentials.createSsl(null, [pair], false);
}

/** @param {DoubleOptions} [options] */
export async function startDouble(options = {}) {
  const double = new Double(options);
  await double.start();
  return double;
}
