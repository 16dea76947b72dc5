/** The user's turn of a transcript: runtime and gateway both see to it, and it is written once. */

import type { TranscriptMessage, TranscriptReceipt, TranscriptTarget, TranscriptWriter } from "./transcript.js";

export interface UserTurnTranscriptRecorder {
  /** Was it written? */
  readonly persisted: boolean;
  /**
   * Writes it, by `write` or else as the host does, unless that is done or under way. Resolves once it is written, with the receipt where
   * the writer gave one. Rejects with what the write rejects with; it may be tried again then.
   */
  persist(
    write?: () => TranscriptReceipt | null | PromiseLike<TranscriptReceipt | null>,
  ): Promise<TranscriptReceipt | null>;
  /** A runtime has written it by itself, successfully. */
  markPersisted(receipt?: TranscriptReceipt): void;
}

export type UserTurnOptions = {
  readonly transcripts: TranscriptWriter;
  readonly target: TranscriptTarget;
  readonly message: TranscriptMessage;
  /** The same whenever this input comes again. */
  readonly idempotencyKey: string;
};

export class UserTurnRecorder implements UserTurnTranscriptRecorder {
  readonly #options: UserTurnOptions;
  #underWay: Promise<TranscriptReceipt | null> | undefined;
  #written: { readonly receipt: TranscriptReceipt | null } | undefined;

  constructor(options: UserTurnOptions) {
    this.#options = options;
  }

  get persisted(): boolean {
    return this.#written !== undefined;
  }

  persist(write: Parameters<UserTurnTranscriptRecorder["persist"]>[0] = () => this.#append()) {
    if (this.#written !== undefined) return Promise.resolve(this.#written.receipt);
    this.#underWay ??= this.#write(write).finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  markPersisted(receipt?: TranscriptReceipt): void {
    this.#written ??= { receipt: receipt ?? null };
  }

  async #write(write: NonNullable<Parameters<UserTurnTranscriptRecorder["persist"]>[0]>) {
    const receipt = (await write()) ?? null;
    this.#written ??= { receipt };
    return this.#written.receipt;
  }

  #append(): Promise<TranscriptReceipt> {
    const { transcripts, target, message, idempotencyKey } = this.#options;
    return transcripts.append(target, message, idempotencyKey);
  }
}
