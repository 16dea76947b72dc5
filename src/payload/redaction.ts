/** The recorded copy of payloads and texts: what the operator named as secret never reaches a store, a log or an export. */

import { isUtf8 } from "node:buffer";
import type { RE2JS } from "re2js";
import type { Json } from "./canonical-json.js";
import type { Field, MessageType } from "./descriptor.js";
import { setOwn } from "./own-property.js";
import { type Payload, payloadOfCanonical } from "./payload.js";
import { recordsOf, type WireRecord } from "./records.js";
import { compilePattern, REDACTED, redactCutText, redactText, spellings } from "./redacted-text.js";
import { hookPayloadType } from "./schema.js";
import { LENGTH, MAX_MESSAGE_DEPTH, ReverseWriter, sameBytes } from "./wire.js";

export interface Redactor {
  /** Is there anything to redact at all? */
  readonly active: boolean;
  /** Every match as `[redacted]`. A text may have been cut: the beginning of a secret at its end goes too. */
  text(text: string): string;
  /**
   * Redacts every string, map key, UTF-8 `bytes` field and unknown field. Canonical again; the same payload when nothing
   * matched. Keys that become equal are told apart as `#2`, `#3`. Throws HL_LIMIT_PAYLOAD when the copy is over 64 MiB.
   */
  payload(payload: Payload): Payload;
  /** The same, for JSON data. */
  json(value: Json): Json;
  /**
   * Could another payload have the same recorded copy? Also true of an untouched payload that holds the mark itself, which may
   * have stood for something else.
   */
  mayHide(payload: Payload): boolean;
}

type RedactionSources = {
  /** RE2 syntax. */
  readonly patterns: readonly string[];
  /** Literal; those under 6 characters are ignored. */
  readonly secrets: readonly string[];
};

/** Throws HL_CONFIG on an invalid pattern. */
export function createRedactor({ patterns, secrets }: RedactionSources): Redactor {
  const compiled = patterns.map(compilePattern);
  const spelled = spellings(secrets);
  if (compiled.length === 0 && spelled.length === 0) return INACTIVE;
  return new ActiveRedactor(compiled, spelled);
}

const INACTIVE: Redactor = {
  active: false,
  text: (text) => text,
  payload: (payload) => payload,
  json: (value) => value,
  mayHide: hasMark,
};

class ActiveRedactor implements Redactor {
  readonly active = true;
  readonly #patterns: readonly RE2JS[];
  readonly #secrets: readonly string[];
  readonly #secretBytes: readonly Buffer[];

  constructor(patterns: readonly RE2JS[], secrets: readonly string[]) {
    this.#patterns = patterns;
    this.#secrets = secrets;
    this.#secretBytes = secrets.map((secret) => Buffer.from(secret));
  }

  text(text: string): string {
    return redactCutText(text, this.#patterns, this.#secrets);
  }

  payload(payload: Payload): Payload {
    const { bytes } = payload;
    const out = new ReverseWriter(bytes.length + 64);
    this.#message(
      out,
      hookPayloadType(),
      Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      0,
      bytes.length,
    );
    const redacted = out.finish();
    return sameBytes(redacted, bytes) ? payload : payloadOfCanonical(redacted);
  }

  mayHide(payload: Payload): boolean {
    return hasMark(payload) || this.payload(payload) !== payload;
  }

  json(value: Json): Json {
    if (typeof value === "string") return this.#redacted(value);
    if (typeof value !== "object" || value === null) return value;
    if (isList(value)) return value.map((element) => this.json(element));
    const redacted: Record<string, Json> = {};
    const entries = Object.entries(value);
    const keys = distinct(
      entries.map(([key]) => key),
      (key) => this.#redacted(key),
    );
    for (const [i, [key, element]] of entries.entries()) {
      if (element !== undefined) setOwn(redacted, keys[i] ?? key, this.json(element));
    }
    return redacted;
  }

  #redacted(text: string): string {
    return redactText(text, this.#patterns, this.#secrets);
  }

  #message(out: ReverseWriter, type: MessageType, bytes: Buffer, start: number, end: number): void {
    let entries: WireRecord[] = [];
    const records = recordsOf(bytes, start, end);
    for (let i = records.length - 1; i >= 0; i--) {
      const record = records[i];
      if (record === undefined) continue;
      const field = type.byNumber[record.number];
      if (field?.kind !== "map") {
        this.#record(out, field, bytes, record);
        continue;
      }
      entries.push(record);
      if (records[i - 1]?.number === record.number) continue;
      this.#entries(out, field.message, bytes, entries.reverse());
      entries = [];
    }
  }

  #record(out: ReverseWriter, field: Field | undefined, bytes: Buffer, record: WireRecord): void {
    const nested = field !== undefined && "message" in field;
    if (
      record.wire !== LENGTH ||
      (field !== undefined && !nested && field.kind !== "string" && field.kind !== "bytes")
    ) {
      out.raw(bytes, record.start, record.end);
      return;
    }
    const before = out.length;
    if (nested) {
      this.#message(out, field.message, bytes, record.value, record.end);
    } else {
      const redacted = this.#blob(
        bytes.subarray(record.value, record.end),
        field === undefined ? 1 : MAX_MESSAGE_DEPTH,
      );
      out.raw(redacted, 0, redacted.length);
    }
    out.uint(out.length - before);
    out.tag(record.number, LENGTH);
  }

  /** Text, or a message that nobody here knows, or neither: then only literal secrets are found. */
  #blob(bytes: Buffer, level: number): Buffer {
    if (isUtf8(bytes)) {
      const text = bytes.toString("utf8");
      const redacted = this.#redacted(text);
      return redacted === text ? bytes : Buffer.from(redacted);
    }
    const records = level < MAX_MESSAGE_DEPTH ? asRecords(bytes) : undefined;
    return records === undefined ? this.#secretBytes.reduce(replaceBytes, bytes) : this.#unknown(bytes, records, level);
  }

  /** Rewritten only where something matched: these bytes may be no message after all. */
  #unknown(bytes: Buffer, records: readonly WireRecord[], level: number): Buffer {
    const out = new ReverseWriter(bytes.length + 64);
    let changed = false;
    for (const record of records.toReversed()) {
      const inner = bytes.subarray(record.value, record.end);
      const redacted = record.wire === LENGTH ? this.#blob(inner, level + 1) : inner;
      if (redacted === inner) {
        out.raw(bytes, record.start, record.end);
        continue;
      }
      changed = true;
      out.block(redacted, 0, redacted.length);
      out.tag(record.number, LENGTH);
    }
    return changed ? Buffer.from(out.finish()) : bytes;
  }

  /** The entries of one map, in canonical order; redacted keys need a new one. */
  #entries(out: ReverseWriter, type: MessageType, bytes: Buffer, entries: readonly WireRecord[]): void {
    const keys = entries.map((entry) => {
      const key = recordsOf(bytes, entry.value, entry.end)[0];
      return key === undefined ? "" : bytes.toString("utf8", key.value, key.end);
    });
    const redacted = distinct(keys, (key) => this.#redacted(key));
    const order = entries.map((entry, i) => ({ entry, key: Buffer.from(redacted[i] ?? "") }));
    order.sort((a, b) => Buffer.compare(b.key, a.key));
    for (const { entry, key } of order) {
      const before = out.length;
      for (const record of recordsOf(bytes, entry.value, entry.end).slice(1).toReversed()) {
        this.#record(out, type.byNumber[record.number], bytes, record);
      }
      out.block(key, 0, key.length);
      out.tag(1, LENGTH);
      out.uint(out.length - before);
      out.tag(1, LENGTH);
    }
  }
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

function hasMark({ bytes }: Payload): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(REDACTED);
}

/** Keys that stay keep their name; the others get theirs in order, numbered from the second on where it is taken. */
function distinct(keys: readonly string[], redact: (key: string) => string): readonly string[] {
  const redacted = keys.map(redact);
  const taken = new Set(keys.filter((key, i) => key === redacted[i]));
  const counts = new Map<string, number>();
  return redacted.map((name, i) => {
    if (name === keys[i]) return name;
    let count = counts.get(name) ?? 0;
    let free: string;
    do {
      count += 1;
      free = count === 1 ? name : `${name}#${count}`;
    } while (taken.has(free));
    counts.set(name, count);
    taken.add(free);
    return free;
  });
}

function asRecords(bytes: Buffer): readonly WireRecord[] | undefined {
  try {
    return recordsOf(bytes);
  } catch {
    return undefined;
  }
}

function replaceBytes(bytes: Buffer, secret: Buffer): Buffer {
  const parts: Buffer[] = [];
  let copied = 0;
  for (let at = bytes.indexOf(secret); at >= 0; at = bytes.indexOf(secret, copied)) {
    parts.push(bytes.subarray(copied, at), Buffer.from(REDACTED));
    copied = at + secret.length;
  }
  return copied === 0 ? bytes : Buffer.concat([...parts, bytes.subarray(copied)]);
}
