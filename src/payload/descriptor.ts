/** The tables that drive every codec of this folder: what the wire contract says of a message, and nothing of a library. */

export type MessageType = {
  /** Full name, such as `pluggableharness.content.v1.Message`. */
  readonly name: string;
  /** Ascending by number; a field's `index` is its place here. */
  readonly fields: readonly Field[];
  /** Sparse: the field numbers are the indices. */
  readonly byNumber: readonly (Field | undefined)[];
  /** By JSON name, the name in views. */
  readonly byJsonName: ReadonlyMap<string, Field>;
  /** By name in the `.proto` file. */
  readonly byName: ReadonlyMap<string, Field>;
  /** Names of the oneofs; the synthetic ones of `optional` are not among them. */
  readonly oneofs: readonly string[];
  /** The message types that stand for plain JSON data in views and in JSON. */
  readonly wellKnown: "struct" | "value" | "list" | undefined;
};

export type EnumType = {
  readonly name: string;
  readonly byNumber: ReadonlyMap<number, string>;
  readonly byName: ReadonlyMap<string, number>;
};

export type ScalarKind = "double" | "int32" | "int64" | "uint32" | "bool" | "string" | "bytes";

export type Field = FieldBase &
  (
    | { readonly kind: ScalarKind }
    | { readonly kind: "enum"; readonly enum: EnumType }
    | { readonly kind: "message"; readonly message: MessageType }
    /** `message` is the entry type: key 1, a string, and value 2. The contract has maps by string only. */
    | { readonly kind: "map"; readonly message: MessageType }
  );

type FieldBase = {
  readonly index: number;
  readonly number: number;
  readonly name: string;
  readonly jsonName: string;
  /** Also true of a map. */
  readonly repeated: boolean;
  /** May an element share a length-delimited record with others? */
  readonly packable: boolean;
  /** Is the default value, encoded, different from absence? True of `optional`, of oneof members and of messages. */
  readonly presence: boolean;
  /** Index into `oneofs`, or -1. */
  readonly oneof: number;
  /** Wire type of one value. */
  readonly wire: 0 | 1 | 2;
};
