/**
 * Keeps `process.stdout`, and `console.log` with it, off the pipe that the handshake goes through. What is written past it, to
 * file descriptor 1 or by a child process that inherits it, is not seen here.
 */

type Taker = (bytes: Uint8Array) => void;

const { stdout } = process;
let real: typeof stdout.write | undefined;
let take: Taker = (bytes) => process.stderr.write(bytes);

/** From now on what is printed goes to the taker; to stderr as long as there is none. Idempotent. */
export function holdStdout(): void {
  if (real !== undefined) return;
  real = stdout.write;
  const write = (chunk: unknown, ...rest: readonly unknown[]): boolean => {
    const written = rest.find((argument) => typeof argument === "function");
    if (written !== undefined) process.nextTick(written);
    const bytes = bytesOf(chunk, rest[0]);
    if (bytes.length > 0) take(bytes);
    return true;
  };
  Object.defineProperty(stdout, "write", { value: write, configurable: true, writable: true, enumerable: true });
}

/** The first call of it decides where what is printed goes until the process ends. */
export function handStdoutTo(taker: Taker): void {
  holdStdout();
  take = taker;
}

/** Prints on the real stdout, whatever holds it. */
export function printOnStdout(text: string): void {
  Reflect.apply(real ?? stdout.write, stdout, [text]);
}

/** Gives it back to a developer's terminal. */
export function releaseStdout(): void {
  if (real === undefined) return;
  Reflect.deleteProperty(stdout, "write");
  real = undefined;
}

function bytesOf(chunk: unknown, encoding: unknown): Uint8Array {
  // Copied: its owner may write over it before it is sent.
  if (chunk instanceof Uint8Array) return new Uint8Array(chunk);
  if (typeof chunk !== "string") return new Uint8Array(0);
  return Buffer.from(chunk, typeof encoding === "string" && Buffer.isEncoding(encoding) ? encoding : "utf8");
}
