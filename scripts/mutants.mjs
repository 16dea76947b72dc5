// Breaks a copy of the product on purpose, one place at a time (test/mutants/), and wants a test to notice each. Fails when one
// survives, or when a mutant fits the source no more. `node scripts/mutants.mjs [part of a name or file]…`
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const LANES = Math.min(2, availableParallelism());
/** ms that the tests of one mutant have: a mutant may well make them wait for ever. */
const PATIENCE = 120_000;
const LEFT_OUT = new Set(["node_modules", "dist", ".git", ".vitest", "coverage"]);

const wanted = process.argv.slice(2);
const mutants = described().filter(
  ({ name, file }) => wanted.length === 0 || wanted.some((part) => name.includes(part) || file.includes(part)),
);
const stale = mutants.filter(({ file, from }) => occurrences(readFileSync(join(ROOT, file), "utf8"), from) !== 1);

const allTests = mutants.flatMap(({ tests }) => tests);
const begun = performance.now();
const folders = Array.from({ length: LANES }, copy);
const rows = [];
try {
  const [first] = folders;
  if (mutants.length === 0) fail("no mutant is called so");
  else if (stale.length > 0) fail(...stale.map(({ name, file }) => `stale: "${name}" does not fit ${file} once`));
  else if (!(await compiles(first))) fail("the product itself does not compile");
  else if (!(await passes(first, allTests, "inherit"))) fail("the tests fail without any mutant");
  else {
    const waiting = [...mutants];
    await Promise.all(folders.map((folder) => drain(folder, waiting)));
    report();
  }
} finally {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}

async function drain(folder, waiting) {
  await compiles(folder);
  for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
    const verdict = await judge(folder, mutant);
    rows.push({ ...mutant, verdict });
    process.stderr.write(
      `${String(rows.length).padStart(3)}/${mutants.length}  ${verdict.padEnd(8)}  ${mutant.name}\n`,
    );
  }
}

async function judge(folder, { file, from, to, tests }) {
  const path = join(folder, file);
  const source = readFileSync(path, "utf8");
  writeFileSync(
    path,
    source.replace(from, () => to),
  );
  try {
    if (!(await compiles(folder))) return "invalid";
    return (await passes(folder, tests)) ? "survived" : "killed";
  } finally {
    writeFileSync(path, source);
  }
}

function described() {
  const folder = join(ROOT, "test", "mutants");
  const files = readdirSync(folder).filter((file) => file.endsWith(".json"));
  return files.flatMap((file) => JSON.parse(readFileSync(join(folder, file), "utf8")));
}

function report() {
  const order = new Map(mutants.map(({ name }, place) => [name, place]));
  rows.sort((a, b) => order.get(a.name) - order.get(b.name));
  const width = Math.max(...rows.map(({ file }) => file.length));
  for (const { verdict, file, name } of rows) console.log(`${verdict.padEnd(9)} ${file.padEnd(width)}  ${name}`);
  const killed = rows.filter(({ verdict }) => verdict === "killed").length;
  console.log(`${killed} of ${rows.length} killed, ${Math.round((performance.now() - begun) / 1000)} s`);
  if (killed < rows.length) process.exitCode = 1;
}

function fail(...lines) {
  for (const line of lines) console.error(line);
  process.exitCode = 1;
}

function copy() {
  const folder = mkdtempSync(join(tmpdir(), "hookledger-mutants-"));
  cpSync(ROOT, folder, {
    recursive: true,
    filter: (path) => !LEFT_OUT.has(path.slice(ROOT.length).split(/[\\/]/)[0] ?? ""),
  });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"), "junction");
  return folder;
}

function compiles(folder) {
  const tsc = [join("node_modules", "typescript", "bin", "tsc"), "-p", "tsconfig.build.json"];
  return succeeds(folder, tsc, "ignore");
}

function passes(folder, tests, output = "ignore") {
  const vitest = [join("node_modules", "vitest", "vitest.mjs"), "run", "--bail", "1", "--testTimeout", "20000"];
  return succeeds(folder, [...vitest, ...new Set(tests)], output);
}

/** Does it end by itself, and well? */
function succeeds(folder, args, output) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      cwd: folder,
      stdio: ["ignore", output === "inherit" ? 2 : output, output],
      env: { ...process.env, CI: "" },
    });
    const timer = setTimeout(() => child.kill("SIGKILL"), PATIENCE);
    child.once("close", (code) => {
      clearTimeout(timer);
      resolve(code === 0);
    });
  });
}

function occurrences(text, part) {
  return text.split(part).length - 1;
}
