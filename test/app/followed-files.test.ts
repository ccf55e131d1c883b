import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { openPolicyFile } from "../../src/app/followed-files.ts";
import { readPolicyFile } from "../../src/config/policy/policy-file.ts";
import { silent } from "../support/log.ts";

const LOOK_MS = 2_000;

/** A policy file, and what is in force after each look at it. */
function follow(text: string) {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const folder = mkdtempSync(join(tmpdir(), "palaver-policy-"));
  const path = join(folder, "policy.yaml");
  let writes = 0;
  const write = (next: string) => {
    writeFileSync(path, next);
    // Each write has a time of its own, however fast they follow.
    utimesSync(path, 1_000 + writes, 1_000 + writes);
    writes += 1;
  };
  write(text);
  const read = () => readPolicyFile(path, (file) => readFileSync(file, "utf8"));
  const { current, close } = openPolicyFile({ path, policy: read().policy, read, log: silent });
  onTestFinished(() => {
    close();
    vi.useRealTimers();
    rmSync(folder, { recursive: true, force: true });
  });
  const look = () => vi.advanceTimersByTime(LOOK_MS);
  return { write, look, rules: () => current().access?.rules, remove: () => rmSync(path) };
}

const DENY = "access: { rules: [{ deny: chat, to: guests }] }";
const RULES = [{ deny: "chat", to: "guests" }];

test("a policy that changes is in force once nobody has written to it for a while", () => {
  const { write, look, rules } = follow(DENY);
  // Many programs empty a file before they write it, and half of one may be valid.
  write("");
  look();
  expect(rules()).toEqual(RULES);
  write("access: { rules: [{ deny: pictures }] }");
  look();
  expect(rules()).toEqual(RULES);
  look();
  expect(rules()).toEqual([{ deny: "pictures" }]);
});

test.each(["access: [", "access: *nobody", "acces: {}"])(
  "a policy that becomes %j leaves the former one in force",
  (broken) => {
    const { write, look, rules } = follow(DENY);
    write(broken);
    look();
    look();
    expect(rules()).toEqual(RULES);
  },
);

test("a policy file that is gone leaves the former one in force", () => {
  const { look, rules, remove } = follow(DENY);
  remove();
  look();
  look();
  expect(rules()).toEqual(RULES);
});
