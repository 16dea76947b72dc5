import { type Case, describeErrors, PROVIDERS } from "./error-cases.js";

function hook(body: string, point = "plan-ready"): string {
  return `${PROVIDERS}hook "${point}" {\n${body}\n}\n`;
}

const hooks: readonly Case[] = [
  [
    "an undeclared provider",
    hook('provider = ‸"gate"\nmode = "veto"'),
    'provider "gate" is not in required_providers',
    "known here: a, b",
  ],
  [
    "an undeclared provider that resembles one",
    'required_providers {\n  notes = { source = "host" }\n}\nhook "plan-ready" {\n  provider = ‸"note"\n  mode = "veto"\n}',
    'provider "note" is not in required_providers',
    'did you mean "notes"?',
  ],
  ["a missing provider", `‸hook "plan-ready" {\n  mode = "veto"\n}`, 'hook needs the attribute "provider"'],
  ["a missing mode", `${PROVIDERS}‸hook "plan-ready" { provider = "a" }`, 'hook needs the attribute "mode"'],
  [
    "an unknown mode",
    hook('provider = "a"\nmode = ‸"vetto"'),
    'mode must be "observe", "transform" or "veto", not "vetto"',
    'did you mean "veto"?',
  ],
  [
    "a mode that is no string",
    hook('provider = "a"\nmode = ‸1'),
    'mode must be "observe", "transform" or "veto", not the number 1',
  ],
  [
    "an unknown attribute",
    hook('provider = "a"\nmode = "veto"\n‸timeout = 5'),
    'unknown attribute "timeout" in hook',
    'did you mean "timeout_ms"?',
  ],
  ["a nested block", hook('provider = "a"\nmode = "veto"\n‸retry {\n}'), 'unknown block "retry" in hook'],
  [
    "an attribute written as a block",
    hook('provider = "a"\nmode = "veto"\n‸shadow {\n}'),
    'unexpected block "shadow" in hook',
    "write shadow = …",
  ],
  [
    "no point",
    `${PROVIDERS}‸hook {\n  provider = "a"\n  mode = "veto"\n}`,
    "hook takes one label, its point",
    'hook "plan-ready" { … }',
  ],
  [
    "two labels",
    `${PROVIDERS}hook "plan-ready" ‸"x" {\n  provider = "a"\n  mode = "veto"\n}`,
    "hook takes one label, its point",
  ],
  [
    "an unknown point",
    `${PROVIDERS}hook ‸"plan-redy" {\n  provider = "a"\n  mode = "veto"\n}`,
    'unknown hook point "plan-redy"',
    'did you mean "plan-ready"?',
  ],
  [
    "a point named as an object's own",
    `${PROVIDERS}hook ‸"__proto__" {\n  provider = "a"\n  mode = "veto"\n}`,
    'unknown hook point "__proto__"',
  ],
  [
    "context-assemble",
    `${PROVIDERS}hook ‸"context-assemble" {\n  provider = "a"\n  mode = "transform"\n}`,
    "context-assemble is not dispatched here: it is served by ContextService.Contribute",
  ],
  ...["session-start", "pre-model-call", "post-model-response", "post-tool-call", "post-apply", "session-end"].map(
    (point): Case => [
      `a veto at ${point}`,
      hook('provider = "a"\n  mode = ‸"veto"', point),
      `nothing can be vetoed at ${point}`,
      "a veto stands at pre-tool-call or plan-ready",
    ],
  ),
  ["an id's form", hook('provider = "a"\nmode = "veto"\nid = ‸"Main"'), 'id "Main" is not a valid name'],
  [
    "a long id",
    hook(`provider = "a"\nmode = "veto"\nid = ‸"${"x".repeat(65)}"`),
    `id "${"x".repeat(64)}…" is not a valid name`,
  ],
  ...[
    ["0", "0"],
    ["600001", "600001"],
    ["1.5", "1.5"],
    ["-1", "-1"],
  ].map(
    ([written, shown]): Case => [
      `a timeout of ${written}`,
      hook(`provider = "a"\nmode = "veto"\ntimeout_ms = ‸${written}`),
      `timeout_ms must be a whole number from 1 to 600000, not ${shown}`,
    ],
  ),
  [
    "a timeout in quotes",
    hook('provider = "a"\nmode = "veto"\ntimeout_ms = ‸"800"'),
    'timeout_ms must be a whole number from 1 to 600000, not the string "800"',
  ],
  [
    "a timeout to be computed",
    hook('provider = "a"\nmode = "veto"\ntimeout_ms = ‸2 * 400'),
    "timeout_ms must be a whole number from 1 to 600000, not the expression 2 * 400",
    'nothing is evaluated here: write a literal; env("NAME") stands in a provider body only',
  ],
  [
    "a null",
    hook('provider = "a"\nmode = "veto"\ntimeout_ms = ‸null'),
    "timeout_ms must be a whole number from 1 to 600000, not null",
  ],
  [
    "an env() outside a provider",
    hook('provider = ‸env("X")\nmode = "veto"'),
    'provider must be a string, not env("X")',
  ],
  [
    "an interpolated string",
    hook(`provider = ‸"\${a}"\nmode = "veto"`),
    `provider must be a string, not the expression "\${a}"`,
  ],
  [
    "a shadow that is no boolean",
    hook('provider = "a"\nmode = "veto"\nshadow = ‸"yes"'),
    'shadow must be true or false, not the string "yes"',
  ],
  [
    "a recording",
    hook('provider = "a"\nmode = "veto"\nrecording = ‸"write_ahead"'),
    'recording must be "barrier" or "write-ahead", not "write_ahead"',
    'did you mean "write-ahead"?',
  ],
  [
    "two hooks of one provider without ids",
    `${hook('provider = "a"\nmode = "veto"')}‸hook "plan-ready" {\n  provider = "a"\n  mode = "observe"\n}`,
    'provider "a" has two hooks without an id at plan-ready; first at agent.hcl:5:1',
    "give each a different id",
  ],
  [
    "two hooks of one provider with one id",
    hook('provider = "a"\nmode = "veto"\nid = "x"') +
      'hook "plan-ready" {\n  provider = "a"\n  mode = "observe"\n  id = ‸"x"\n}',
    'provider "a" has two hooks with the id "x" at plan-ready; first at agent.hcl:5:1',
  ],
  [
    "a transform after a veto, under strict",
    `${hook('provider = "a"\nmode = "veto"')}‸hook "plan-ready" {\n  provider = "b"\n  mode = "transform"\n}\nsettings { strict = true }`,
    "this transform runs after the veto at agent.hcl:5:1, which then judged another payload",
    "declare transforms before vetoes",
  ],
];

describeErrors("a hook", hooks);
