/** The payload that `init` writes: a HookPayload as proto3 JSON. Its one key is the hook point. */
export const PLAN_PAYLOAD = `{
  "planReady": {
    "plan": {
      "turnId": "turn-1",
      "items": [
        {
          "id": "item-1",
          "callId": "call-1",
          "provider": "filesystem",
          "operationName": "read_file",
          "input": { "path": "README.md" },
          "decision": "PLAN_DECISION_PENDING",
          "kind": "TOOL_KIND_DATA_SOURCE",
          "risk": "RISK_CLASS_READ_ONLY",
          "description": "Read the README"
        }
      ]
    }
  }
}
`;
