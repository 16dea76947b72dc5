#!/usr/bin/env node
// The misbehaving subscriber of `subscriber-peer.mjs` as a go-plugin plugin: `{"kind":"grpc"}` in its first argument, and so on.
import { join } from "node:path";

const options = JSON.parse(process.argv[2] ?? "{}");
process.argv[2] = JSON.stringify({ ...options, plugin: true, listen: join(process.env.TMPDIR, "peer.sock") });
await import("./subscriber-peer.mjs");
