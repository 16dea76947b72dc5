/**
 * One client and its one channel, for as long as both are of use. The client's own way of reconnecting is not taken: it would swap the
 * channel under appends that are under way, and wait ever longer for a server that is back.
 */
import * as esdb from "@eventstore/db-client";
import { discoverEndpoint } from "@eventstore/db-client/dist/Client/discovery.js";
import { convertGrpcEvent } from "@eventstore/db-client/dist/utils/convertGrpcEvent.js";
import { StreamsClient, StreamsService } from "@eventstore/db-client/generated/streams_grpc_pb.js";
import type streams from "@eventstore/db-client/generated/streams_pb.js";
import { Channel, type ChannelCredentials, credentials } from "@grpc/grpc-js";
import type { Endpoint, ServerAddress } from "./address.js";
import { filteredRead } from "./all-request.js";
import { Overdue } from "./failure.js";
import { type Asked, type Fits, gather } from "./gather.js";
import type { Expected, ServerDraft, ServerEvent } from "./server-log.js";

/** ms */
const RECONNECT = { "grpc.initial_reconnect_backoff_ms": 50, "grpc.max_reconnect_backoff_ms": 1000 };
/** The server takes events of up to 16 MiB from elsewhere. */
const MAX_MESSAGE = 17 * 1024 * 1024;
/** Bytes after which a read of all streams is enough. */
const ENOUGH = 4 * 1024 * 1024;
/** ms that letting go may take. */
const CLOSING = 1000;

export type Acknowledged = { readonly revision: number; readonly position: number | null };

/** Behind which a subscription goes on. */
export type Place = { readonly commit: bigint; readonly prepare: bigint };

export class Connection extends esdb.EventStoreDBClient {
  readonly #address: ServerAddress;
  readonly #leader: Endpoint | undefined;
  readonly #secret: ChannelCredentials;
  #opened: Promise<Channel> | undefined;

  /** `leader`: where a member of the cluster said that the leader is. Nothing is connected yet. */
  constructor(address: ServerAddress, leader?: Endpoint) {
    const { hosts, tls, defaultDeadline, connectionName } = address;
    const [endpoint = { address: "localhost", port: 2113 }] = hosts;
    super(
      { endpoint, defaultDeadline, connectionName, throwOnAppendFailure: true },
      { insecure: tls === null },
      address.credentials ?? undefined,
    );
    this.#address = address;
    this.#leader = leader;
    this.#secret = channelCredentials(address);
    this.getChannel = () => {
      this.#opened ??= this.#openChannel();
      return this.#opened;
    };
  }

  /** Resolves to whether appends may be pipelined, once the server has answered. Throws what the client throws, or Overdue. */
  open(ms: number): Promise<boolean> {
    return within(ms, this.supports(StreamsService.batchAppend)).catch(rethrow);
  }

  /** Throws what the client throws; its own end is not awaited: the caller keeps the time. */
  async write(stream: string, expected: Expected, drafts: readonly ServerDraft[]): Promise<Acknowledged> {
    const result = await this.appendToStream(stream, drafts.map(toEventData), {
      expectedRevision: expected === "none" ? esdb.NO_STREAM : expected === "any" ? esdb.ANY : BigInt(expected),
      requiresLeader: true,
    });
    return {
      revision: Number(result.nextExpectedRevision),
      position: result.position === undefined ? null : Number(result.position.commit),
    };
  }

  /** At most `max` events from a revision on. */
  forward(stream: string, from: number, max: number, ms: number): Promise<readonly ServerEvent[]> {
    const read = this.readStream(stream, {
      direction: esdb.FORWARDS,
      fromRevision: BigInt(from),
      maxCount: max,
      ...this.#reading,
    });
    const fits: Fits = (event, before) => event.stream === stream && event.revision > (before?.revision ?? from - 1);
    return this.#collect(read, { ms, max, fits });
  }

  /** The last `max` events, the last one first. */
  backward(stream: string, max: number, ms: number): Promise<readonly ServerEvent[]> {
    const read = this.readStream(stream, {
      direction: esdb.BACKWARDS,
      fromRevision: esdb.END,
      maxCount: max,
      ...this.#reading,
    });
    const fits: Fits = (event, before) =>
      event.stream === stream && event.revision < (before?.revision ?? Number.POSITIVE_INFINITY);
    return this.#collect(read, { ms, max, fits });
  }

  /** Events behind a position, at most `max`, and about ENOUGH of their bytes. The client's own read of all streams does not filter. */
  async all(after: number, prefixes: readonly string[], max: number, ms: number): Promise<readonly ServerEvent[]> {
    // A read begins with the position that it is given.
    const request = filteredRead(after, prefixes, max + 1);
    const open = this.GRPCStreamCreator(StreamsClient, "readAll", (client) =>
      client.read(request, ...this.callArguments(this.#reading, { deadline: Date.now() + ms })),
    );
    const call = await open();
    let bytes = 0;
    const asked: Asked<streams.ReadResp> = {
      cancel: () => call.cancel(),
      ms,
      max: max + 1,
      pick(response) {
        const event = response.getEvent();
        if (event === undefined) return undefined;
        const recorded = event.getEvent();
        bytes += (recorded?.getData_asU8().length ?? 0) + (recorded?.getCustomMetadata_asU8().length ?? 0);
        return convertGrpcEvent<esdb.ResolvedEvent>(event);
      },
      fits: ({ stream, position }, before) =>
        position > (before?.position ?? after - 1) && prefixes.some((prefix) => stream.startsWith(prefix)),
      isEnough: ({ position }) => position > after && bytes > ENOUGH,
    };
    const events = await gather(call, asked).catch(rethrow);
    return events.filter(({ position }) => position > after).slice(0, max);
  }

  /** Starts behind a place. What it emits is turned into events by `toServerEvent`. */
  follow(
    after: Place | undefined,
    prefixes: readonly string[],
    checkpointReached: (place: Place) => Promise<void>,
  ): esdb.AllStreamSubscription {
    return this.subscribeToAll({
      fromPosition: after ?? esdb.START,
      filter: esdb.streamNameFilter({
        prefixes: [...prefixes],
        checkpointInterval: 32,
        checkpointReached: (_subscription, place) => checkpointReached(place),
      }),
      ...this.#reading,
    });
  }

  async remove(stream: string, expected: number, ms: number): Promise<void> {
    await within(
      ms,
      this.deleteStream(stream, { expectedRevision: BigInt(expected), requiresLeader: true, deadline: ms }),
    );
  }

  /**
   * Ends every call. The next client may only be made after that: ending an append of this one would end its appends, too.
   */
  async close(): Promise<void> {
    const channel = await this.#opened?.catch(() => undefined);
    await within(CLOSING, this.dispose()).catch(() => {});
    channel?.close();
  }

  get #reading(): { readonly requiresLeader: boolean } {
    return { requiresLeader: this.#address.nodePreference === "leader" };
  }

  #collect(
    read: esdb.StreamingRead<esdb.ResolvedEvent>,
    asked: Pick<Asked<esdb.ResolvedEvent>, "ms" | "max" | "fits">,
  ): Promise<readonly ServerEvent[]> {
    return gather(read, {
      ...asked,
      cancel: () => void read.cancel().catch(() => {}),
      pick: (event: esdb.ResolvedEvent) => event,
    });
  }

  async #openChannel(): Promise<Channel> {
    const { address, port } = this.#leader ?? (await this.#discovered());
    const { keepAliveInterval, keepAliveTimeout } = this.#address;
    return new Channel(`${address}:${port}`, this.#secret, {
      ...RECONNECT,
      "grpc.use_local_subchannel_pool": 1,
      "grpc.keepalive_time_ms": keepAliveInterval < 0 ? Number.MAX_VALUE : keepAliveInterval,
      "grpc.keepalive_timeout_ms": keepAliveTimeout < 0 ? Number.MAX_VALUE : keepAliveTimeout,
      "grpc.max_receive_message_length": MAX_MESSAGE,
    });
  }

  #discovered(): Endpoint | Promise<Endpoint> {
    const { hosts, discover, maxDiscoverAttempts, discoveryInterval, gossipTimeout, nodePreference } = this.#address;
    const [only] = hosts;
    if (only !== undefined && !discover) return only;
    const endpoints = [...hosts];
    return discoverEndpoint(
      { endpoints, maxDiscoverAttempts, discoveryInterval, gossipTimeout, nodePreference },
      this.#secret,
    );
  }
}

function channelCredentials({ tls }: ServerAddress): ChannelCredentials {
  if (tls === null) return credentials.createInsecure();
  const { ca, identity, verify } = tls;
  return credentials.createSsl(
    ca === undefined ? null : Buffer.from(ca),
    identity === undefined ? null : Buffer.from(identity.key),
    identity === undefined ? null : Buffer.from(identity.cert),
    { rejectUnauthorized: verify },
  );
}

function toEventData({ id, type, content }: ServerDraft): esdb.EventData {
  if (content.kind === "bytes") return esdb.binaryEvent({ id, type, data: content.data });
  return {
    id,
    type,
    contentType: "application/json",
    data: { ...content.data },
    metadata: { ...content.metadata },
  };
}

/** Where the client is not asked, or passes on what gRPC says as it is. */
function rethrow(error: unknown): never {
  throw error instanceof Error ? esdb.convertToCommandError(error) : error;
}

export function within<T>(ms: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Overdue()), ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
