// What the plugins of the demo share: the hook service of our proto files, on the Unix socket that the command line names.
//
//   node redactor.mjs /run/demo/redactor.sock

import { fileURLToPath } from "node:url";
import { loadPackageDefinition, Server, ServerCredentials, status } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const definition = loadSync("pluggableharness/hook/v1/service.proto", {
  includeDirs: [fileURLToPath(new URL("../../../proto", import.meta.url))],
  arrays: true,
  enums: String,
  longs: String,
  oneofs: true,
});
const { HookSubscriberService } = loadPackageDefinition(definition).pluggableharness.hook.v1;

/** `answer` gets a DispatchHookRequest and comes to a DispatchHookResponse; what it throws is the call's error. */
export function serve(answer) {
  const server = new Server();
  server.addService(HookSubscriberService.service, {
    async DispatchHook({ request }, done) {
      try {
        done(null, await answer(request));
      } catch (error) {
        done({ code: status.INTERNAL, details: error.message });
      }
    },
  });
  const address = `unix:${process.argv[2]}`;
  server.bindAsync(address, ServerCredentials.createInsecure(), (error) => {
    if (error) throw error;
    console.log(`listening ${address}`);
  });
  // Whoever started this process holds its standard input. Once that ends, nobody is left to serve.
  process.stdin.on("end", () => process.exit()).resume();
}
