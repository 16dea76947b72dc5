/** What gRPC says of a connection that it could not make, by what its texts hold; the first that fits. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, "connection refused"],
  [/Name resolution failed|ENOTFOUND|EAI_AGAIN/, "its name cannot be resolved"],
  [/EHOSTUNREACH|ENETUNREACH|ETIMEDOUT/, "no route to it"],
  [/wrong version number/, "it does not speak TLS"],
  [/CERT_ALTNAME_INVALID/, "its certificate is for another name"],
  [/certificate has expired/, "its certificate has expired"],
  [/certificate required|bad certificate/, "it does not take the client's certificate"],
  [/certificate/, "its certificate is not of an authority that is trusted here: see tlsCAFile"],
  [/Failed to connect/, "it hangs up: it may speak TLS only"],
];

/** Why a server cannot be reached, in our words: the text itself may quote anything. */
export function unreachable(text: string): string {
  return REASONS.find(([pattern]) => pattern.test(text))?.[1] ?? "unavailable";
}
