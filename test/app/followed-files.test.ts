import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { recordingLog } from "../../lab/support/log.ts";
import { openPolicyFile } from "../../src/app/followed-files.ts";
import { type PolicySettings, readPolicyFile } from "../../src/config/policy/policy-file.ts";
import { readBoundedText } from "../../src/config/read-text.ts";

const LOOK_MS = 2_000;
const DENY = "access: { rules: [{ deny: chat, to: guests }] }";
const RULES = [{ deny: "chat", to: "guests" }];

interface FollowOptions {
  /** Used instead of the function that reads the file. */
  read?: (path: string) => Promise<PolicySettings>;
}

function follow(text: string, { read }: FollowOptions = {}) {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const folder = mkdtempSync(join(tmpdir(), "palaver-policy-"));
  const path = join(folder, "policy.yaml");
  let writes = 0;
  const write = (next: string) => {
    writeFileSync(path, next);
    // Each write gets a different time, however fast they follow each other.
    utimesSync(path, 1_000 + writes, 1_000 + writes);
    writes += 1;
  };
  write(text);
  const { log, lines } = recordingLog();
  const readNow = () => readPolicyFile(path, readBoundedText);
  const { current, warnings, close } = openPolicyFile({
    path,
    policy: readNow().policy,
    read: async () => (read ? read(path) : readNow()),
    log,
  });
  onTestFinished(() => {
    close();
    vi.useRealTimers();
    rmSync(folder, { recursive: true, force: true });
  });
  const look = () => vi.advanceTimersByTimeAsync(LOOK_MS);
  /** A change takes effect at the second look. */
  const settle = async () => {
    await look();
    await look();
  };
  return { path, folder, write, look, settle, warnings, lines, rules: () => current().access?.rules };
}

test("a changed policy takes effect once its file has been unchanged for a moment", async () => {
  const { write, look, rules } = follow(DENY);
  // Many programs empty a file before they write it, and half of a file can be valid.
  write("");
  await look();
  expect(rules()).toEqual(RULES);
  write("access: { rules: [{ deny: pictures }] }");
  await look();
  expect(rules()).toEqual(RULES);
  await look();
  expect(rules()).toEqual([{ deny: "pictures" }]);
});

test.each(["", "\n", "# nothing\n", "null", "access: [", "access: *nobody", "acces: {}"])(
  "a policy that becomes %j leaves the old policy in effect and warns administrators",
  async (broken) => {
    const { write, rules, warnings, lines, settle } = follow(DENY);
    write(broken);
    await settle();
    expect(rules()).toEqual(RULES);
    expect(warnings()[0]).toContain("The previous policy is in effect: POLICY_FILE ");
    expect(lines.filter(({ level }) => level === 50)).toHaveLength(1);
    write(DENY);
    await settle();
    expect(warnings()).toEqual([]);
  },
);

test("a policy that loses all its rules, admins, quotas or offered models causes a warning until they are back", async () => {
  const whole = `{ access: { admins: ["person:1"], rules: [{ deny: chat, to: guests }] },
    quotas: { person: { day: { requests: 5 } } }, models: { offered: [{ models: [small] }] } }`;
  const { write, rules, warnings, lines, settle } = follow(whole);
  write("access: { rules: [] }\nquotas: { person: {} }");
  await settle();
  expect(rules()).toEqual([]);
  expect(warnings()).toEqual(
    ["rules", "admins", "quotas", "offered models"].map(
      (part) => `The policy file has lost its ${part} since this process started.`,
    ),
  );
  const lost = ["rules", "admins", "quotas", "offered models"];
  expect(lines).toContainEqual(expect.objectContaining({ level: 40, lost }));
  write("quotas: { person: { day: { requests: 5 } } }");
  await settle();
  expect(warnings()).toHaveLength(3);
  write(whole);
  await settle();
  expect(warnings()).toEqual([]);
});

test("a policy file that is deleted leaves the old policy in effect", async () => {
  const { rules, path, settle } = follow(DENY);
  rmSync(path);
  await settle();
  expect(rules()).toEqual(RULES);
});

test("a policy link that points to another file of the same size and time is a change, as with a ConfigMap", async () => {
  const { path, folder, rules, settle } = follow(DENY);
  for (const [name, text] of [
    ["1", "access: { rules: [{ deny: files }] } "],
    ["2", "access: { rules: [{ deny: tools }] } "],
  ] as const) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, "policy.yaml"), text);
    utimesSync(join(folder, name, "policy.yaml"), 5_000, 5_000);
  }
  const point = (name: string) => {
    symlinkSync(name, join(folder, "next"));
    renameSync(join(folder, "next"), join(folder, "data"));
  };
  point("1");
  rmSync(path);
  symlinkSync("data/policy.yaml", path);
  await settle();
  expect(rules()).toEqual([{ deny: "files" }]);
  point("2");
  await settle();
  expect(rules()).toEqual([{ deny: "tools" }]);
});

test("the service reads a policy file again if someone writes to it during the read", async () => {
  let before = () => {};
  const { write, rules, settle } = follow(DENY, {
    async read(path) {
      const found = readPolicyFile(path, readBoundedText);
      before();
      return found;
    },
  });
  write("access: { rules: [{ deny: files }] }");
  before = () => {
    before = () => {};
    write("access: { rules: [{ deny: tools }] }");
  };
  await settle();
  expect(rules()).toEqual(RULES);
  await settle();
  expect(rules()).toEqual([{ deny: "tools" }]);
});

test("the service reads the policy once at a time, and the newest content wins", async () => {
  const readings: Array<(settings: PolicySettings) => void> = [];
  const { write, look, rules, settle } = follow(DENY, { read: () => new Promise((resolve) => readings.push(resolve)) });
  write("access: { rules: [{ deny: files }] }");
  await settle();
  write("access: { rules: [{ deny: tools }] }");
  await settle();
  expect(readings).toHaveLength(1);
  readings[0]?.({ policy: { access: { rules: [{ deny: "files" }] } }, problems: [] });
  await look();
  expect(rules()).toEqual(RULES);
  readings[1]?.({ policy: { access: { rules: [{ deny: "tools" }] } }, problems: [] });
  await look();
  expect(rules()).toEqual([{ deny: "tools" }]);
});

test("the service retries a policy that it cannot read, and logs one line", async () => {
  let isAway = true;
  const { write, look, rules, lines } = follow(DENY, {
    async read(path) {
      if (isAway) throw new Error("The policy file was not read: failed.");
      return readPolicyFile(path, readBoundedText);
    },
  });
  write("access: { rules: [{ deny: files }] }");
  for (let looks = 0; looks < 4; looks++) await look();
  expect(rules()).toEqual(RULES);
  expect(lines.filter(({ level }) => level === 50)).toHaveLength(1);
  isAway = false;
  await look();
  expect(rules()).toEqual([{ deny: "files" }]);
});

test("a policy that changed between the start and the first check takes effect, and an unchanged one logs nothing", async () => {
  const { path, look, rules, lines, write, settle } = follow(DENY);
  for (let looks = 0; looks < 3; looks++) await look();
  utimesSync(path, 9_000, 9_000);
  for (let looks = 0; looks < 3; looks++) await look();
  expect(lines).toEqual([]);
  write("access: { rules: [{ deny: files }] }");
  await settle();
  expect(rules()).toEqual([{ deny: "files" }]);
  const early = follow(DENY);
  early.write("access: { rules: [{ deny: files }] }");
  await early.settle();
  expect(early.rules()).toEqual([{ deny: "files" }]);
});

test("a policy file that is a link to itself does not stop the process", async () => {
  const { folder, rules, settle } = follow(DENY);
  rmSync(folder, { recursive: true });
  symlinkSync(folder, folder);
  await settle();
  expect(rules()).toEqual(RULES);
  expect(() => statSync(folder)).toThrow("ELOOP");
});

test("the service refuses a policy file at its size limit even while the file keeps growing", async () => {
  const { path, rules, warnings, settle } = follow(DENY);
  truncateSync(path, 2 ** 40);
  await settle();
  expect(rules()).toEqual(RULES);
  expect(warnings()[0]).toContain("must not have more than 500000 bytes");
});
