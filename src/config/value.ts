import type { Place } from "../errors.js";

/** A configuration's text, taken apart: what the scanner found, with what the grammar says it is worth. */
export type Value = { readonly place: Place } & (
  | { readonly type: "null" }
  | { readonly type: "bool"; readonly value: boolean }
  | { readonly type: "number"; readonly value: number }
  | { readonly type: "string"; readonly value: string }
  /** Exactly `env("NAME")`. */
  | { readonly type: "env"; readonly name: string }
  /** Anything that would have to be evaluated, as written. */
  | { readonly type: "expression"; readonly text: string }
  | { readonly type: "list"; readonly items: readonly Value[] }
  | { readonly type: "object"; readonly members: readonly Attribute[] }
);

/** An attribute of a body or a member of an object; of two with one name the first. */
export type Attribute = {
  readonly kind: "attribute";
  readonly name: string;
  /** true: the name is an expression, as written. */
  readonly computed: boolean;
  /** Where the name stands. */
  readonly place: Place;
  readonly value: Value;
};

export type Label = { readonly text: string; readonly place: Place };

export type Block = {
  readonly kind: "block";
  readonly type: string;
  readonly labels: readonly Label[];
  readonly body: readonly Item[];
  /** Where the type stands. */
  readonly place: Place;
};

export type Item = Attribute | Block;
