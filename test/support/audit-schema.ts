/** Validates against docs/audit-record.schema.json: the keywords that it uses, and no others. */
import { readFileSync } from "node:fs";

type Property = {
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minimum?: number;
};
type Schema = { readonly required: readonly string[]; readonly properties: Readonly<Record<string, Property>> };

const TEXT = readFileSync(new URL("../../docs/audit-record.schema.json", import.meta.url), "utf8");
export const AUDIT_SCHEMA: Schema = JSON.parse(TEXT);
const KEYWORDS = new Set(["description", "type", "enum", "pattern", "minimum"]);

/** What is wrong with a record, each in a few words; empty: it is valid. */
export function schemaFaults(record: object): readonly string[] {
  const members = new Map<string, unknown>(Object.entries(record));
  const { required, properties } = AUDIT_SCHEMA;
  const missing = required.filter((key) => !members.has(key)).map((key) => `${key} is missing`);
  const wrong = [...members].flatMap(([key, value]) => {
    const property = properties[key];
    return property === undefined ? [`${key} is unknown`] : faultsOf(key, property, value);
  });
  return [...missing, ...wrong];
}

function faultsOf(key: string, property: Property, value: unknown): readonly string[] {
  const unknown = Object.keys(property).filter((keyword) => !KEYWORDS.has(keyword));
  if (unknown.length > 0) throw new Error(`this validator does not know ${unknown.join(", ")}`);
  const { type, pattern, minimum } = property;
  const types = typeof type === "string" ? [type] : type;
  const faults: string[] = [];
  if (types !== undefined && !types.some((name) => isOf(name, value)))
    faults.push(`${key} is no ${types.join(" or ")}`);
  if (property.enum !== undefined && !property.enum.includes(value)) faults.push(`${key} is none of the enum`);
  if (pattern !== undefined && typeof value === "string" && !new RegExp(pattern, "u").test(value))
    faults.push(`${key} does not match`);
  if (minimum !== undefined && typeof value === "number" && value < minimum) faults.push(`${key} is too small`);
  return faults;
}

function isOf(type: string, value: unknown): boolean {
  if (type === "null") return value === null;
  if (type === "integer") return Number.isInteger(value);
  if (type === "string") return typeof value === "string";
  throw new Error(`this validator does not know the type ${type}`);
}
