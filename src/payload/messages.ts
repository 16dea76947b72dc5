/**
 * Payloads as subscribers in this process see them. Plain, deep-frozen objects: fields in lowerCamelCase, enums by their
 * proto names (a number where the name is unknown), int64 as bigint, `bytes` copied at every access, `Struct` as plain data.
 * Of a oneof only the member that is set is there.
 */

/**
 * Where the fields that this build does not know ride, at every depth: their records as they came, copied at every access.
 * Enumerable, so that `{ ...message }` keeps them.
 */
export const UNKNOWN_FIELDS: unique symbol = Symbol.for("hookledger.unknown-fields");

export interface Message {
  readonly [UNKNOWN_FIELDS]?: Uint8Array;
}

export type StructValue = null | boolean | number | string | readonly StructValue[] | Struct;
export interface Struct extends Message {
  readonly [key: string]: StructValue;
}

/** An enum is open: a peer may send a number that has no name yet. */
type Open<Name extends string> = Name | number;

type Named<Prefix extends string, Short extends string> = Open<`${Prefix}_${Short | "UNSPECIFIED"}`>;

export type Role = Named<"ROLE", "USER" | "ASSISTANT">;
export type ProducerCategory = Named<
  "CATEGORY",
  "MODEL" | "TOOL" | "CONTEXT" | "MEMORY" | "FRONTEND" | "WIDGET" | "SLASHCOMMAND"
>;
export type ToolKind = Named<"TOOL_KIND", "RESOURCE" | "DATA_SOURCE" | "INTERACTIVE">;
export type RiskClass = Named<"RISK_CLASS", "READ_ONLY" | "LOW" | "MODERATE" | "HIGH" | "CRITICAL">;
export type ToolErrorCategory = Named<
  "TOOL_ERROR_CATEGORY",
  | "INVALID_ARGUMENTS"
  | "NOT_FOUND"
  | "PERMISSION_DENIED"
  | "EXECUTION_FAILED"
  | "TIMEOUT"
  | "CONCURRENCY_CONFLICT"
  | "CANCELLED"
  | "PROCESS_CRASHED"
  | "UNKNOWN"
>;
export type PlanDecision = Named<"PLAN_DECISION", "PENDING" | "ALLOW" | "ASK" | "DENY">;
export type ApplyOutcome = Named<"APPLY_OUTCOME", "APPLIED" | "FAILED" | "DENIED" | "SKIPPED">;
export type SessionStatus = Named<
  "SESSION_STATUS",
  "RUNNING" | "COMPLETED" | "ERROR_MAX_TURNS" | "ERROR_MAX_BUDGET_USD" | "ERROR_MAX_WALL_CLOCK" | "CANCELLED" | "FAILED"
>;
export type TextStyle = Named<
  "TEXT_STYLE",
  "NORMAL" | "BOLD" | "ITALIC" | "CODE" | "DIM" | "ERROR" | "WARNING" | "SUCCESS"
>;
export type DiffLineOp = Named<"DIFF_LINE_OP", "CONTEXT" | "ADD" | "REMOVE">;

export interface ProducerRef extends Message {
  readonly name: string;
  readonly version: string;
  readonly source: string;
  readonly category: ProducerCategory;
  readonly protocolVersion: number;
}

export interface CallContext extends Message {
  readonly sessionId: string;
  readonly turnId: string;
  readonly workingDirectory: string;
}

export interface ConversationMessage extends Message {
  readonly role: Role;
  readonly content: readonly ContentBlock[];
  readonly id: string;
  readonly producedByModelId?: string;
  readonly producedByProvider?: string;
}

/** At most one of these is set. */
export interface ContentBlock extends Message {
  readonly text?: TextBlock;
  readonly toolUse?: ToolUseBlock;
  readonly toolResult?: ToolResultBlock;
  readonly image?: ImageBlock;
  readonly thinking?: ThinkingBlock;
  readonly redactedThinking?: RedactedThinkingBlock;
  readonly document?: DocumentBlock;
}

export interface TextBlock extends Message {
  readonly text: string;
}

export interface ToolUseBlock extends Message {
  readonly id: string;
  readonly name: string;
  readonly arguments?: Struct;
}

export interface ToolResultBlock extends Message {
  readonly toolUseId: string;
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
}

export interface ImageBlock extends Message {
  readonly data: Uint8Array;
  readonly mediaType: string;
}

export interface ThinkingBlock extends Message {
  readonly text: string;
  readonly signature: Uint8Array;
}

export interface RedactedThinkingBlock extends Message {
  readonly data: Uint8Array;
}

export interface DocumentBlock extends Message {
  readonly data: Uint8Array;
  readonly mediaType: string;
  readonly filename?: string;
}

export interface ModelRef extends Message {
  readonly provider: string;
  readonly id: string;
}

/** Tokens. An absent count is unknown, which is not zero. */
export interface Usage extends Message {
  readonly inputTokens: bigint;
  readonly outputTokens: bigint;
  readonly cacheReadTokens?: bigint;
  readonly cacheWriteTokens?: bigint;
  readonly reasoningTokens?: bigint;
}

export interface ToolCall extends Message {
  readonly id: string;
  readonly toolName: string;
  readonly arguments?: Struct;
  readonly callContext?: CallContext;
}

export interface ToolResult extends Message {
  readonly payload?: Struct;
}

export interface ToolError extends Message {
  readonly category: ToolErrorCategory;
  readonly message: string;
  readonly retryable: boolean;
  readonly details?: Struct;
}

export interface PlanItem extends Message {
  readonly id: string;
  readonly callId: string;
  readonly provider: string;
  readonly operationName: string;
  readonly input?: Struct;
  readonly decision: PlanDecision;
  readonly decidedBy: string;
  readonly kind: ToolKind;
  readonly risk: RiskClass;
  readonly description: string;
  readonly preview?: RenderTree;
  readonly producerCategory: ProducerCategory;
}

export interface Plan extends Message {
  readonly turnId: string;
  readonly items: readonly PlanItem[];
}

export interface ApplyResult extends Message {
  readonly turnId: string;
  readonly items: readonly ApplyItem[];
}

/** At most one of `toolResult` and `toolError` is set. */
export interface ApplyItem extends Message {
  readonly planItemId: string;
  readonly callId: string;
  readonly outcome: ApplyOutcome;
  readonly toolResult?: ToolResult;
  readonly toolError?: ToolError;
}

export interface RenderTree extends Message {
  readonly root?: RenderNode;
}

/** At most one of these is set. */
export interface RenderNode extends Message {
  readonly text?: TextNode;
  readonly codeBlock?: CodeBlockNode;
  readonly diff?: DiffNode;
  readonly table?: TableNode;
  readonly link?: LinkNode;
  readonly list?: ListNode;
  readonly group?: GroupNode;
  readonly collapsible?: CollapsibleNode;
  readonly subSession?: SubSessionNode;
  readonly action?: ActionNode;
}

export interface TextNode extends Message {
  readonly content: string;
  readonly style?: TextStyle;
}

export interface CodeBlockNode extends Message {
  readonly language?: string;
  readonly content: string;
}

export interface DiffNode extends Message {
  readonly hunks: readonly DiffHunk[];
}

export interface DiffHunk extends Message {
  readonly oldStart: number;
  readonly oldLines: number;
  readonly newStart: number;
  readonly newLines: number;
  readonly lines: readonly DiffLine[];
}

export interface DiffLine extends Message {
  readonly op: DiffLineOp;
  readonly text: string;
}

export interface TableNode extends Message {
  readonly headers: readonly string[];
  readonly rows: readonly TableRow[];
}

export interface TableRow extends Message {
  readonly cells: readonly string[];
}

export interface LinkNode extends Message {
  readonly text: string;
  readonly url: string;
}

export interface ListNode extends Message {
  readonly items: readonly RenderNode[];
  readonly ordered: boolean;
}

export interface GroupNode extends Message {
  readonly children: readonly RenderNode[];
}

export interface CollapsibleNode extends Message {
  readonly summary: string;
  readonly children: readonly RenderNode[];
  readonly collapsedByDefault: boolean;
}

export interface SubSessionNode extends Message {
  readonly sessionId: string;
  readonly summary: string;
}

export interface ActionNode extends Message {
  readonly id: string;
  readonly label: string;
  readonly toolName: string;
  readonly args?: Struct;
  readonly provider: string;
}

export interface SessionStartPayload extends Message {
  readonly sessionId: string;
  readonly profile: string;
  readonly parentSessionId?: string;
  readonly workingDirectory: string;
}

export interface PreModelCallPayload extends Message {
  /** The one field that a transform may change. */
  readonly messages: readonly ConversationMessage[];
  readonly model?: ModelRef;
}

export interface PostModelResponsePayload extends Message {
  readonly message?: ConversationMessage;
  readonly model?: ProducerRef;
  readonly usage?: Usage;
  /** US dollars. */
  readonly costUsd: number;
}

export interface PreToolCallPayload extends Message {
  readonly call?: ToolCall;
  readonly planItem?: PlanItem;
}

export interface PlanReadyPayload extends Message {
  readonly plan?: Plan;
}

/** At most one of `result` and `error` is set. */
export interface PostToolCallPayload extends Message {
  readonly call?: ToolCall;
  readonly result?: ToolResult;
  readonly error?: ToolError;
}

export interface PostApplyPayload extends Message {
  readonly apply?: ApplyResult;
}

export interface SessionEndPayload extends Message {
  readonly sessionId: string;
  readonly status: SessionStatus;
}

/** The message that each hook point's subscribers get. */
export type PointMessages = {
  readonly "session-start": SessionStartPayload;
  readonly "pre-model-call": PreModelCallPayload;
  readonly "post-model-response": PostModelResponsePayload;
  readonly "pre-tool-call": PreToolCallPayload;
  readonly "plan-ready": PlanReadyPayload;
  readonly "post-tool-call": PostToolCallPayload;
  readonly "post-apply": PostApplyPayload;
  readonly "session-end": SessionEndPayload;
};

/** The variants of HookPayload, by the names they have in views and in JSON. */
export type PayloadVariants = {
  readonly sessionStart: SessionStartPayload;
  readonly preModelCall: PreModelCallPayload;
  readonly postModelResponse: PostModelResponsePayload;
  readonly preToolCall: PreToolCallPayload;
  readonly planReady: PlanReadyPayload;
  readonly postToolCall: PostToolCallPayload;
  readonly postApply: PostApplyPayload;
  readonly sessionEnd: SessionEndPayload;
};

/** What may be written for a message: a field left out has its default, int64 may be a safe integer. */
export type Draft<T> = T extends bigint
  ? bigint | number
  : T extends Uint8Array | string | number | boolean | null
    ? T
    : T extends readonly (infer Element)[]
      ? readonly Draft<Element>[]
      : string extends keyof T
        ? T
        : { readonly [Key in keyof T]?: Draft<T[Key]> | undefined };

/** A whole payload to dispatch, `{ preToolCall: { call: … } }`: exactly one variant. */
export type HookPayloadInput = {
  readonly [Name in keyof PayloadVariants]: { readonly [Key in Name]: Draft<PayloadVariants[Name]> };
}[keyof PayloadVariants];
