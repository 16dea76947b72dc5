// A subscriber that allows and acknowledges at once, in a process of its own. argv: the socket's path.
import { Server, ServerCredentials } from "@grpc/grpc-js";

const bytes = (value) => value;
const path = "/pluggableharness.hook.v1.HookSubscriberService/DispatchHook";
const ACK = Buffer.from([0x0a, 0x00]);
const ALLOW = Buffer.from([0x1a, 0x02, 0x08, 0x01]);
const server = new Server({ "grpc.max_receive_message_length": -1 });
server.addService(
  {
    DispatchHook: {
      path,
      requestStream: false,
      responseStream: false,
      requestSerialize: bytes,
      requestDeserialize: bytes,
      responseSerialize: bytes,
      responseDeserialize: bytes,
    },
  },
  {
    // The mode is the request's field 2, a varint: 1 observe, 3 veto. It follows the payload, so the tail tells.
    DispatchHook: (call, answer) => answer(null, modeOf(call.request) === 3 ? ALLOW : ACK),
  },
);
server.bindAsync(`unix:${process.argv[2]}`, ServerCredentials.createInsecure(), (error) => {
  if (error) throw error;
  process.send?.("ready");
});

function modeOf(request) {
  let at = 0;
  while (at < request.length) {
    const tag = request[at++];
    if (tag >>> 3 === 2) return request[at];
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = request[at++];
      length |= (byte & 127) << shift;
      if (byte < 128) break;
    }
    at += length;
  }
  return 0;
}
