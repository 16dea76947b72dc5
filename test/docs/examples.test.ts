import { describe, expect, it } from "vitest";
import { loadConfig } from "#src/config/load.js";
import { type Block, type Directive, type Document, documentAt, documents } from "./documents.js";
import { expectedText, type Printed, Workshop } from "./workshop.js";

/** Fences that a reader could run. */
const RUNNABLE = new Set(["ts", "js", "hcl", "sh"]);
/** Directives that ask nothing of this test. */
const ELSEWHERE: ReadonlySet<Directive["kind"]> = new Set(["example", "not run"]);

/** Documents with something to run here. */
const WITH_EXAMPLES = documents()
  .filter(({ blocks }) => blocks.some(({ directive }) => directive !== null && !ELSEWHERE.has(directive.kind)))
  .map(({ path }) => path);

describe("the examples of the documentation", () => {
  it.concurrent.for(WITH_EXAMPLES)("should do in %s what stands beside them", async (path, { onTestFinished }) => {
    const document = documentAt(path);
    const workshop = new Workshop(onTestFinished);
    workshop.writeFilesOf(document);
    let printed: Printed | null = null;
    for (const block of document.blocks) {
      const where = `${path}:${block.line}`;
      if (block.directive?.kind === "prints") expect(printed?.output, where).toMatch(expectedText(block.text));
      else printed = (await perform(block, workshop, where)) ?? printed;
    }
  });

  it("should be run, every one, or say why not", () => {
    expect(documents().flatMap((document) => silentBlocks(document))).toEqual([]);
  });
});

function silentBlocks({ path, blocks }: Document): readonly string[] {
  return blocks
    .filter(({ language, directive }) => RUNNABLE.has(language) && directive === null)
    .map(({ language, line }) => `${path}:${line} (${language})`);
}

async function perform(block: Block, workshop: Workshop, where: string): Promise<Printed | null> {
  const { directive, text } = block;
  switch (directive?.kind) {
    case "serve":
      await workshop.serve(directive.path);
      return null;
    case "file":
      return directive.run ? succeeded(await workshop.node(directive.path), where) : null;
    case "run":
      return runLines(await withServer(text, workshop), directive.folder, workshop, where);
    case "config":
      workshop.write("config/agent.hcl", text);
      expect(await loadConfig(`${workshop.folder}/config`), where).toMatchObject({ ok: true, warnings: [] });
      return null;
    case "prints":
    case "example":
    case "not run":
    case undefined:
      return null;
  }
}

function succeeded(printed: Printed, where: string): Printed {
  expect([where, printed]).toEqual([where, { ...printed, code: 0 }]);
  return printed;
}

/** Where a document starts a server in a container, a double of it serves instead. */
async function withServer(text: string, workshop: Workshop): Promise<string> {
  if (!text.includes("docker compose up")) return text;
  return text.replaceAll("localhost:2113", await workshop.startServer());
}

/** In one shell; every line is to end as its comment says, or well. */
async function runLines(text: string, folder: string, workshop: Workshop, where: string): Promise<Printed> {
  const script = text
    .trimEnd()
    .split("\n")
    .flatMap((line) => {
      const code = /# exit (\d+)/.exec(line)?.[1] ?? "0";
      return [line, `code=$?; [ $code = ${code} ] || { echo "line exits $code"; exit 1; }`];
    });
  return succeeded(await workshop.run("sh", ["-c", script.join("\n")], folder), where);
}
