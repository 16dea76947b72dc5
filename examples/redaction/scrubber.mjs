// Takes e-mail addresses out of every text block, and leaves everything else as it is.
const EMAIL = /(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+/g;

export default {
  "pre-model-call": {
    transform(payload) {
      return { ...payload, messages: payload.messages.map(scrubbed) };
    },
  },
};

function scrubbed(message) {
  return {
    ...message,
    content: message.content.map((block) =>
      block.text === undefined
        ? block
        : { ...block, text: { ...block.text, text: block.text.text.replace(EMAIL, "[email]") } },
    ),
  };
}
