import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { makeDataDir } from "../../lab/support/service.ts";
import { readPolicyApart } from "../../src/policy/read-apart.ts";

const { signal } = new AbortController();

test("the service reads a policy file in a separate process, with the same result", async () => {
  const { path, remove } = await makeDataDir();
  onTestFinished(remove);
  const file = join(path, "policy.yaml");
  writeFileSync(file, "access: { rules: [{ deny: chat, to: guests }] }");
  expect(await readPolicyApart(file, signal)).toEqual({
    policy: { access: { rules: [{ deny: "chat", to: "guests" }] } },
    problems: [],
  });
  const rules = Array.from({ length: 9_000 }, (_, index) => `    - deny: chat\n      to: person:U${index}\n`);
  writeFileSync(file, `access:\n  rules:\n${rules.join("")}`);
  const { problems } = await readPolicyApart(file, signal);
  expect(problems).toEqual([expect.stringContaining("access.rules")]);
});
