// A transform that means well: long conversations are to go to a cheaper model. But a transform may change the messages only,
// so the kernel refuses its answer.
import { serve } from "./subscriber.mjs";

const LONG = 5;

serve(({ payload }) => {
  const { messages, model } = payload.preModelCall;
  const chosen = messages.length < LONG ? model : { ...model, id: "small-1" };
  return { transform: { payload: { preModelCall: { messages, model: chosen } } } };
});
