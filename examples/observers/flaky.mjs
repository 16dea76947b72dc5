// An observer that fails, as observers sometimes do.
export default {
  "post-tool-call": {
    async observe() {
      throw new Error("the metrics server is away");
    },
  },
};
