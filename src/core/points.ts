/** The eight dispatched hook points, closed. A point's name is its payload variant's name. */
export const HOOK_POINTS = {
  "session-start": { variant: "session_start", mutable: [], vetoBearing: false },
  "pre-model-call": { variant: "pre_model_call", mutable: ["messages"], vetoBearing: false },
  "post-model-response": { variant: "post_model_response", mutable: [], vetoBearing: false },
  "pre-tool-call": { variant: "pre_tool_call", mutable: [], vetoBearing: true },
  "plan-ready": { variant: "plan_ready", mutable: [], vetoBearing: true },
  "post-tool-call": { variant: "post_tool_call", mutable: [], vetoBearing: false },
  "post-apply": { variant: "post_apply", mutable: [], vetoBearing: false },
  "session-end": { variant: "session_end", mutable: [], vetoBearing: false },
} as const satisfies Record<string, PointRules>;

export type HookPoint = keyof typeof HOOK_POINTS;

type PointRules = {
  /** Name of the HookPayload oneof member. */
  readonly variant: string;
  /** Fields of the variant that a transform may change. */
  readonly mutable: readonly string[];
  /** May a veto subscriber stand here? */
  readonly vetoBearing: boolean;
};

export function isHookPoint(name: string): name is HookPoint {
  return Object.hasOwn(HOOK_POINTS, name);
}
