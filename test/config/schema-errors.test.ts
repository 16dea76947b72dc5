import { describe, expect, it } from "vitest";
import { type Case, describeErrors, PROVIDERS } from "./error-cases.js";
import { brief, errorsOf, unmark } from "./marked.js";

function settings(body: string): string {
  return `settings {\n  ${body}\n}\n`;
}

const topLevel: readonly Case[] = [
  ["an unknown block", '‸hok "x" {\n}', 'unknown block "hok"', 'did you mean "hook"?'],
  [
    "an unknown block that resembles nothing",
    "‸resource {\n}",
    'unknown block "resource"',
    "known here: required_providers, provider, hook, policy, agent_profile, settings",
  ],
  ["an attribute at the top", "‸version = 1", 'unknown attribute "version"'],
  [
    "a block written as an attribute",
    "‸settings = {}",
    'unexpected attribute "settings"',
    "write it as a block: settings { … }",
  ],
  ["a second settings block", "settings {\n}\n‸settings {\n}", "a second settings block; first at agent.hcl:1:1"],
  ["a label on settings", 'settings ‸"x" {\n}', "settings takes no label"],
  ["a label on required_providers", 'required_providers ‸"x" {\n}', "required_providers takes no label"],
  [
    "two profiles of one name",
    'agent_profile "p" {\n}\nagent_profile ‸"p" {\n}',
    'a second agent_profile "p"; first at agent.hcl:1:1',
  ],
  ["a profile without a name", "‸agent_profile {\n}", "agent_profile takes one label, its name"],
  ["a profile with two labels", 'agent_profile "p" ‸"q" {\n}', "agent_profile takes one label, its name"],
  [
    "a profile's name",
    'agent_profile ‸"Planner" {\n}',
    '"Planner" is not a valid name',
    "a name is a lower-case letter, then at most 63 of a-z, 0-9, _ and -",
  ],
  ["a column after characters outside the BMP", 'settings {\n  host_label = "😀é" \n ‸😀 = 1\n}', "invalid character"],
  [
    "an attribute set twice",
    "settings {\n  strict = true\n  ‸strict = false\n}",
    'attribute "strict" is set twice; first at agent.hcl:2:3',
  ],
  [
    "a key set twice",
    'policy "p" {\n  match = { kind = "resource", ‸"kind" = "resource" }\n  action = "ask"\n}',
    'key "kind" is set twice; first at agent.hcl:2:13',
  ],
  [
    "a key set twice deep inside",
    `${PROVIDERS}provider "a" {\n  x = [{ y = { z = 1, ‸"\\u007a" = 2 } }]\n}`,
    'key "z" is set twice; first at agent.hcl:6:16',
  ],
];

const policies: readonly Case[] = [
  ["no action", '‸policy "p" {\n  match = { kind = "resource" }\n}', 'policy needs the attribute "action"'],
  [
    "an unknown action",
    'policy "p" {\n  match = { kind = "resource" }\n  action = ‸"block"\n}',
    'action must be "allow", "ask" or "deny", not "block"',
  ],
  ["no name", '‸policy {\n  match = { kind = "resource" }\n  action = "ask"\n}', "policy takes one label, its name"],
  ["a name's form", 'policy ‸"P" {\n  match = { kind = "resource" }\n  action = "ask"\n}', '"P" is not a valid name'],
  [
    "an unknown field",
    'policy "p" {\n  match = { ‸tool = "x" }\n  action = "ask"\n}',
    'unknown attribute "tool" in policy: match',
  ],
  [
    "a kind that policy does not rule",
    'policy "p" {\n  match = { kind = ‸"interactive" }\n  action = "ask"\n}',
    'match.kind must be "resource" or "data_source", not "interactive"',
  ],
  [
    "a risk",
    'policy "p" {\n  match = { risk = ‸"hgh" }\n  action = "ask"\n}',
    'match.risk must be "read_only", "low", "moderate", "high" or "critical", not "hgh"',
    'did you mean "high"?',
  ],
  [
    "a match that is no object",
    'policy "p" {\n  match = ‸[]\n  action = "ask"\n}',
    "match must be an object, not a list",
  ],
  [
    "a match written as a block",
    'policy "p" {\n  ‸match {\n  }\n  action = "ask"\n}',
    'unexpected block "match" in policy',
  ],
  [
    "a reason",
    'policy "p" {\n  match = { kind = "resource" }\n  action = "ask"\n  reason = ‸1\n}',
    "reason must be a string, not the number 1",
  ],
  [
    "a reason that is too long to be recorded",
    `policy "p" {\n  match = { kind = "resource" }\n  action = "ask"\n  reason = ‸"${"é".repeat(513)}"\n}`,
    "reason must be 1 to 1024 bytes long",
  ],
  [
    "two rules between which nothing chooses",
    'policy "p" {\n  match = { provider = "fs", kind = "resource" }\n  action = "ask"\n}\n‸policy "q" {\n  match = { kind = "resource", provider = "fs" }\n  action = "deny"\n}',
    'policy "q" matches exactly what "p" at agent.hcl:1:1 matches',
  ],
  [
    "two rules that match everything",
    'policy "p" {\n  match = {}\n  action = "ask"\n}\n‸policy "q" {\n  action = "ask"\n}',
    'policy "q" matches exactly what "p" at agent.hcl:1:1 matches',
  ],
];

const settingsCases: readonly Case[] = [
  ["an unknown attribute", settings("‸default_timeout_ms = 1"), 'unknown attribute "default_timeout_ms" in settings'],
  [
    "an attribute misspelt",
    settings("‸strikt = true"),
    'unknown attribute "strikt" in settings',
    'did you mean "strict"?',
  ],
  [
    "the default timeout",
    settings("default_hook_timeout_ms = ‸600001"),
    "default_hook_timeout_ms must be a whole number from 1 to 600000, not 600001",
  ],
  [
    "observe_concurrency",
    settings('observe_concurrency = ‸"parallel"'),
    'observe_concurrency must be "concurrent", "sequential" or "detached", not "parallel"',
  ],
  ["recording", settings("recording = ‸true"), 'recording must be "barrier" or "write-ahead", not true'],
  [
    "on_store_failure",
    settings('on_store_failure = ‸"ignore"'),
    'on_store_failure must be "abort" or "continue", not "ignore"',
  ],
  ["strict", settings('strict = ‸"true"'), 'strict must be true or false, not the string "true"'],
  [
    "max_message_bytes",
    settings("max_message_bytes = ‸67108865"),
    "max_message_bytes must be a whole number from 1 to 67108864, not 67108865",
  ],
  [
    "chain_budget_ms",
    settings("chain_budget_ms = ‸0"),
    "chain_budget_ms must be a whole number from 1 to 2147483647, not 0",
  ],
  ["host_label", settings('host_label = ‸""'), "host_label must be 1 to 256 bytes long"],
  ["redact that is no list", settings('redact = ‸"x"'), 'redact must be a list, not the string "x"'],
  ["a pattern that is no string", settings('redact = ["x", ‸1]'), "redact[1] must be a string, not the number 1"],
  [
    "dev_overrides",
    settings("dev_overrides = ‸[]"),
    "dev_overrides must be an object from address to path, not a list",
  ],
  [
    "an override that is no path",
    settings('dev_overrides = { "github.com/a/b" = ‸1 }'),
    "dev_overrides.github.com/a/b must be a path, not the number 1",
  ],
];

describeErrors("the top level of agent.hcl", topLevel);
describeErrors("a policy", policies);
describeErrors("settings", settingsCases);

describe("what is wrong with a configuration", () => {
  it("should say what is wrong with a pattern", async () => {
    const { text, line, col } = unmark('settings {\n  redact = ["ok", ‸"(?<=a)b"]\n}');
    const [error, ...more] = await errorsOf(text);
    expect(more).toEqual([]);
    expect(error).toMatchObject({ place: { line, col } });
    expect(error?.message).toMatch(/^redact\[1\] "\(\?<=a\)b" is no RE2 pattern: /);
  });

  it("should be reported whole in one run, in textual order", async () => {
    const text = `settings {
  strict = 1
  strikt = true
}
policy "p" {
  action = "block"
}
hook "nowhere" {
  provider = "x"
  mode     = "vetto"
}
hok {
}
`;
    expect(brief(await errorsOf(text))).toEqual([
      "2:12 strict must be true or false, not the number 1",
      '3:3 unknown attribute "strikt" in settings',
      '6:12 action must be "allow", "ask" or "deny", not "block"',
      '8:6 unknown hook point "nowhere"',
      '9:14 provider "x" is not in required_providers',
      '10:14 mode must be "observe", "transform" or "veto", not "vetto"',
      '12:1 unknown block "hok"',
    ]);
  });
});
