#!/usr/bin/env node
// A plugin that allows.
import { servePlugin } from "hookledger/plugin";

await servePlugin({ name: "gate", version: "1.0.0", hooks: { "pre-tool-call": { veto: () => "allow" } } });
