/** A HookPayload as proto3 JSON, with something for the transform to do. */
export const MODEL_CALL_PAYLOAD = `{
  "preModelCall": {
    "messages": [
      {
        "id": "message-1",
        "role": "ROLE_USER",
        "content": [{ "text": { "text": "Invite ada@example.org to the review." } }]
      }
    ],
    "model": { "provider": "example", "id": "model-1" }
  }
}
`;
