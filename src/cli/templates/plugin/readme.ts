/** The README that `init --plugin` writes. */
export const PLUGIN_README = `# guard

A hookledger plugin: takes e-mail addresses out of what a model is about to be sent, and denies plans that are too large.
\`plugin.mjs\` is all of it; \`npm install\` is what it needs.

| | |
|---|---|
| \`npm test\` | starts the plugin through a real kernel and asks it |
| \`npx hookledger validate --load\` | checks \`agent.hcl\`, starts the plugin, and shows who is asked where |
| \`npx hookledger dispatch --payload payloads/plan-ready.json\` | one dispatch, recorded in \`.hookledger/\` |
| \`npx hookledger show <id>\` | who said what in it, and why it came out so |
| \`npx hookledger conformance --provider guard\` | asks it what no one thought of: generated payloads, deadlines, hostile input |

To use it elsewhere, name the program there: \`guard = { source = "./path/to/plugin.mjs" }\`.

## In a debugger

\`\`\`sh
node --inspect-brk plugin.mjs --debug
\`\`\`

It prints a line with \`HOOKLEDGER_REATTACH_PROVIDERS=…\`. In another terminal, put that line before a command: the kernel
then asks the process that you are looking at instead of starting one, and leaves it running. Its clock does not stop at a
breakpoint: raise \`timeout_ms\` in \`agent.hcl\` meanwhile. What the \`provider\` block has is not handed over: set
\`HOOKLEDGER_PROVIDER_CONFIG='{"max_items":20}'\` before \`node\`.

A plugin that does not start, or throws: \`--verbose\` shows all that it writes, stacks included.
`;
