/** One thing changed in the rows of a legal ledger of one dispatch, past the store, with what `verify` has to say of it. */
import type { DivergenceKind } from "#src/replay/verify.js";
import type { RecordedEvent, StreamHead } from "#src/store/port.js";
import type { LedgerRows } from "./ledgers.js";

export type Corruption = {
  readonly rows: LedgerRows;
  /** Where verify stops. */
  readonly revision: number;
  readonly kinds: readonly DivergenceKind[];
  readonly what: string;
};

/** Numbers that stand for choices: each is taken modulo what there is to choose from. */
export class Choices {
  readonly #numbers: readonly number[];
  #taken = 0;

  constructor(numbers: readonly number[]) {
    this.#numbers = numbers;
  }

  below(count: number): number {
    return (this.#numbers[this.#taken++] ?? 0) % count;
  }

  of<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }
}

type Corrupt = (rows: LedgerRows, choices: Choices) => Omit<Corruption, "what"> | null;

const ANY_DATA: readonly DivergenceKind[] = ["undecodable", "unknown_version", "illegal_event", "decision", "chain"];
const ANY_METADATA: readonly DivergenceKind[] = ["undecodable", "unknown_version", "chain", "payload"];
const OUT_OF_PLACE: readonly DivergenceKind[] = ["illegal_event", "decision"];
const ANOTHER_DIGEST = `sha256:${"0".repeat(64)}` as const;

/** null: there is nothing of the kind in this ledger. */
export const CORRUPTIONS: Readonly<Record<string, Corrupt>> = {
  "an event is dropped"(rows, choices) {
    const at = choices.below(rows.events.length);
    const last = at === rows.events.length - 1;
    return {
      rows: { ...rows, events: rows.events.toSpliced(at, 1) },
      revision: at,
      kinds: [last ? "truncated" : "illegal_event"],
    };
  },

  "the tail is dropped"(rows, choices) {
    const left = choices.below(rows.events.length);
    return { rows: { ...rows, events: rows.events.slice(0, left) }, revision: left, kinds: ["truncated"] };
  },

  "a row is there twice"(rows, choices) {
    const at = choices.below(rows.events.length);
    const twice = rows.events.toSpliced(at, 0, rows.events[at]!);
    return { rows: { ...rows, events: twice }, revision: at + 1, kinds: ["illegal_event"] };
  },

  "an event is repeated, and all later ones move up"(rows, choices) {
    const at = choices.below(rows.events.length);
    const events = numbered(rows.events.toSpliced(at, 0, rows.events[at]!));
    return { rows: { ...rows, events }, revision: at + 1, kinds: OUT_OF_PLACE };
  },

  "two events change places"(rows, choices) {
    if (rows.events.length < 2) return null;
    const one = choices.below(rows.events.length - 1);
    const other = one + 1 + choices.below(rows.events.length - 1 - one);
    const events = numbered(rows.events.with(one, rows.events[other]!).with(other, rows.events[one]!));
    return { rows: { ...rows, events }, revision: one, kinds: [...OUT_OF_PLACE, "undecodable"] };
  },

  "a member of the data is altered": altered("data", ANY_DATA),

  "a member of the metadata is altered": altered("metadata", ANY_METADATA),

  "the text of the data is spelt otherwise": respelt("data"),

  "the text of the metadata is spelt otherwise": respelt("metadata"),

  "the type is altered"(rows, choices) {
    const at = choices.below(rows.events.length);
    const { type } = rows.events[at]!;
    const types = [
      "started",
      "subscriber-invoked",
      "outcome",
      "timeout",
      "aborted",
      "decided",
      "erased",
      "",
      "__proto__",
    ];
    const another = choices.of(types.filter((name) => name !== type).concat(`${type}\0`, type.toUpperCase()));
    return {
      rows: withEvent(rows, at, { type: another }),
      revision: at,
      kinds: ["unknown_type", "undecodable", "unknown_version", "illegal_event", "decision"],
    };
  },

  "the id is altered"(rows, choices) {
    const at = choices.below(rows.events.length);
    const { id } = rows.events[at]!;
    const another = choices.of([id.toUpperCase(), `${id} `, "", id.replace(/.$/, "g"), id.replace("-8", "-4")]);
    return another === id
      ? null
      : { rows: withEvent(rows, at, { id: another }), revision: at, kinds: ["illegal_event"] };
  },

  "the revision is altered"(rows, choices) {
    const at = choices.below(rows.events.length);
    const revision = choices.of([-1, rows.events.length, at + 0.5, Number.MAX_SAFE_INTEGER]);
    return { rows: withEvent(rows, at, { revision }), revision: revision < 0 ? 0 : at, kinds: ["illegal_event"] };
  },

  "the event is moved to another stream"(rows, choices) {
    const at = choices.below(rows.events.length);
    const stream = choices.of(["hookdispatch-01K0000000000000000000ZZZZ", "hookdispatch-", "another"] as const);
    const last = at === rows.events.length - 1;
    return {
      rows: withEvent(rows, at, { stream: stream as RecordedEvent["stream"] }),
      revision: at,
      kinds: [last ? "truncated" : "illegal_event"],
    };
  },

  "the chain is altered"(rows, choices) {
    const at = choices.below(rows.events.length);
    const { metadata } = rows.events[at]!;
    const where = metadata.indexOf('"chain":"') + '"chain":"'.length + choices.below(64);
    const digit = metadata[where] === "0" ? "1" : "0";
    const another = metadata.slice(0, where) + digit + metadata.slice(where + 1);
    return { rows: withEvent(rows, at, { metadata: another }), revision: at, kinds: ["chain"] };
  },

  "bytes of a payload that travels with its event are altered"(rows, choices) {
    const carriers = rows.events.filter(({ metadata }) => metadata.includes('"payloads":'));
    if (carriers.length === 0) return null;
    const { revision, metadata } = choices.of(carriers);
    const [before = "", base64 = ""] = /^(.*"payloads":\{"[^"]*":")([^"]*)/.exec(metadata)?.slice(1) ?? [];
    const bytes = Buffer.from(base64, "base64");
    const another = choices.of([
      base64 === "" ? "AA==" : Buffer.from(bytes.with(choices.below(bytes.length), 7)).toString("base64"),
      Buffer.concat([bytes, bytes, Buffer.of(0)]).toString("base64"),
      base64.slice(0, -4),
      // The same bytes for a reader that is not strict.
      `${base64}\\n`,
      `${base64}=`,
    ]);
    if (another === base64) return null;
    const text = before + another + metadata.slice(before.length + base64.length);
    return { rows: withEvent(rows, revision, { metadata: text }), revision, kinds: ["payload"] };
  },

  "a payload that is known already travels again, as other bytes"(rows, choices) {
    const [{ data }] = rows.events as [RecordedEvent];
    const input: string = JSON.parse(data).input.digest;
    const again = rows.events.filter(
      ({ revision, type, data }) => revision > 0 && type === "outcome" && data.includes(input),
    );
    if (again.length === 0) return null;
    const { revision, metadata } = choices.of(again);
    const payloads = `,"payloads":{"${input}":"AAAA"}}`;
    return {
      rows: withEvent(rows, revision, { metadata: metadata.slice(0, -1) + payloads }),
      revision,
      kinds: ["payload"],
    };
  },

  "payloads are taken out of an event"(rows, choices) {
    const carriers = rows.events.filter(({ metadata }) => metadata.includes('"payloads":'));
    if (carriers.length === 0) return null;
    const { revision, metadata } = choices.of(carriers);
    const text = metadata.replace(/,"payloads":\{.*\}\}$/, choices.of(["}", ',"payloads":{}}']));
    return { rows: withEvent(rows, revision, { metadata: text }), revision, kinds: ["payload", "chain"] };
  },

  "a payload is added that nobody names"(rows, choices) {
    const bare = rows.events.filter(({ metadata }) => !metadata.includes('"payloads":'));
    if (bare.length === 0) return null;
    const { revision, metadata } = choices.of(bare);
    const digest = choices.of([ANOTHER_DIGEST, "__proto__", ""]);
    return {
      rows: withEvent(rows, revision, { metadata: `${metadata.slice(0, -1)},"payloads":{"${digest}":"AAAA"}}` }),
      revision,
      kinds: ["payload"],
    };
  },

  "bytes of a blob are altered"(rows, choices) {
    const at = choices.below(rows.blobs.length);
    const { digest, bytes } = rows.blobs[at]!;
    const flipped = bytes.with(choices.below(bytes.length), 7);
    const another = choices.of([flipped, bytes.slice(1), new Uint8Array(0), Buffer.concat([bytes, bytes])]);
    if (Buffer.compare(another, bytes) === 0) return null;
    return {
      rows: { ...rows, blobs: rows.blobs.with(at, { digest, bytes: another }) },
      revision: firstThatNames(digest, rows),
      kinds: ["payload"],
    };
  },

  "a blob is dropped"(rows, choices) {
    const at = choices.below(rows.blobs.length);
    return {
      rows: { ...rows, blobs: rows.blobs.toSpliced(at, 1) },
      revision: firstThatNames(rows.blobs[at]!.digest, rows),
      kinds: ["payload"],
    };
  },

  "the head is altered"(rows, choices) {
    const [head] = rows.heads as [StreamHead];
    const told = choices.of<Partial<StreamHead>>([
      { revision: head.revision + 1 },
      { revision: head.revision - 1 },
      { chain: "0".repeat(64) },
      { chain: head.chain.toUpperCase() },
      { chain: "" },
      { session: "another" },
      { session: "" },
      { session: head.session === null ? "a session" : null },
      { position: head.position + 1 },
      { position: 0 },
    ]);
    return {
      rows: { ...rows, heads: [{ ...head, ...told }] },
      revision: rows.events.length,
      kinds: ["truncated", "chain"],
    };
  },

  "the head is dropped"(rows) {
    return { rows: { ...rows, heads: [] }, revision: rows.events.length, kinds: ["truncated"] };
  },

  "an event stands elsewhere in the ledger"(rows, choices) {
    const at = choices.below(rows.events.length);
    const last = at === rows.events.length - 1;
    const { position } = rows.events[at]!;
    const predecessor = rows.events[at - 1]?.position ?? 0;
    const before = choices.of([0, -1, position - rows.events.length - 1, predecessor]);
    const behind = position + rows.events.length;
    // The last one of a dispatch may well have been recorded later than it was.
    const another = last && at > 0 ? before : choices.of([before, behind]);
    return {
      rows: withEvent(rows, at, { position: another }),
      revision: another > position ? at + 1 : at,
      kinds: ["illegal_event", "chain"],
    };
  },
};

function numbered(events: readonly RecordedEvent[]): readonly RecordedEvent[] {
  return events.map((event, revision) => ({ ...event, revision, position: revision + 1 }));
}

function withEvent(rows: LedgerRows, at: number, told: Partial<RecordedEvent>): LedgerRows {
  return { ...rows, events: rows.events.with(at, { ...rows.events[at]!, ...told }) };
}

function firstThatNames(digest: string, { events }: LedgerRows): number {
  return events.findIndex(({ data }) => data.includes(digest));
}

function altered(column: "data" | "metadata", kinds: readonly DivergenceKind[]): Corrupt {
  return (rows, choices) => {
    const at = choices.below(rows.events.length);
    const text = rows.events[at]![column];
    const another = alteredJson(text, choices);
    return another === text ? null : { rows: withEvent(rows, at, { [column]: another }), revision: at, kinds };
  };
}

type Container = Record<string, unknown>;

/** Some member, at any depth, gone, renamed, another, of another type, or joined by one more. */
function alteredJson(text: string, choices: Choices): string {
  const root: Container = JSON.parse(text);
  const places: (readonly [Container, string])[] = [];
  const waiting: Container[] = [root];
  for (let container = waiting.pop(); container !== undefined; container = waiting.pop()) {
    for (const [key, value] of Object.entries(container)) {
      places.push([container, key]);
      if (typeof value === "object" && value !== null) waiting.push(value as Container);
    }
  }
  const [container, key] = choices.of(places);
  const value = container[key];
  const alter = choices.of([
    () => delete container[key],
    () => Object.assign(container, { [key]: another(value) }),
    () => Object.assign(container, { [key]: choices.of([null, "", 0, -1, 1.5, 1e300, true, [], {}, "\0", "\ud800"]) }),
    () => Object.assign(container, { [`${key}_`]: value }),
    () => Object.defineProperty(container, "__proto__", { value, enumerable: true }),
    () => Object.assign(container, { extra: choices.of([null, { deep: [[[]]] }, "text"]) }),
  ]);
  alter();
  return JSON.stringify(root);
}

function another(value: unknown): unknown {
  switch (typeof value) {
    case "string":
      return value.startsWith("sha256:") ? ANOTHER_DIGEST : `${value}x`;
    case "number":
      return value + 1;
    case "boolean":
      return !value;
    default:
      return value === null ? 1 : null;
  }
}

/** The same JSON value in another text, or a text that is none. */
function respelt(column: "data" | "metadata"): Corrupt {
  return (rows, choices) => {
    const at = choices.below(rows.events.length);
    const text = rows.events[at]![column];
    const [first = "", key = ""] = /^\{("[^"]+"):/.exec(text) ?? [];
    const another = choices.of([
      ` ${text}`,
      `${text}\n`,
      text.replace('":', '": '),
      text.replace(/"([a-z])/, (_, letter: string) => `"\\u00${letter.charCodeAt(0).toString(16)}`),
      `{${key}:0,${text.slice(1)}`,
      text.replace(first, `{"__proto__":{},${key}:`),
      JSON.stringify(Object.fromEntries(Object.entries<unknown>(JSON.parse(text)).reverse())),
      `${text}\0`,
      text.slice(0, -1),
      "",
      `${"[".repeat(100_000)}${"]".repeat(100_000)}`,
      text.replace(/\d+/, (digits) => `${digits}.0`),
      text.replace(/:"/, ':"\\ud800'),
    ]);
    return another === text
      ? null
      : {
          rows: withEvent(rows, at, { [column]: another }),
          revision: at,
          kinds: ["undecodable", "unknown_version", "illegal_event", "decision", "chain", "payload"],
        };
  };
}
