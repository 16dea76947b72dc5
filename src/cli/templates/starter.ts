/** What `init` can write. */

export type StarterFile = {
  /** Below the folder that is named. */
  readonly path: string;
  readonly text: string;
  readonly what: string;
  readonly executable?: true;
};

export type Starter = {
  readonly files: readonly StarterFile[];
  /** Commands to type next, in the folder. */
  readonly next: readonly string[];
};
