// Sums up vitest's JSON reports in a folder and prints the closing line of CI. Fails if there is none, or a test failed.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const folder = process.argv[2] ?? ".vitest";
let passed = 0;
let failed = 0;
let reports = [];
try {
  reports = readdirSync(folder).filter((name) => name.endsWith(".json"));
} catch {
  console.error(`no test reports in ${folder}`);
}
for (const name of reports) {
  const report = JSON.parse(readFileSync(join(folder, name), "utf8"));
  passed += report.numPassedTests;
  failed += report.numTotalTests - report.numPassedTests;
  failed += report.testResults.filter((file) => file.status === "failed" && file.assertionResults.length === 0).length;
}
if (passed + failed === 0) failed = 1;
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
