// An observer: writes down what tools did, and acknowledges once that is done. It has a bug of the common kind: a failed tool
// call has no `result`, and the exception is thrown where nobody catches it. The whole process dies, its call unanswered.
import { serve } from "./subscriber.mjs";

const waiting = [];

serve(({ payload }) => {
  return new Promise((acknowledge) => {
    waiting.push({ ...payload.postToolCall, acknowledge });
    setImmediate(writeDown);
  });
});

function writeDown() {
  for (const { call, result, acknowledge } of waiting.splice(0)) {
    const fields = Object.keys(result.payload.fields);
    console.error(`${call.toolName} came to ${fields.join(", ")}`);
    acknowledge({ observe: {} });
  }
}
