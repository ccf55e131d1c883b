import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { action, message } from "../../lab/support/events.ts";
import { startCountingServer } from "../../lab/support/mcp-world.ts";
import { isRedisMissing, startRedis } from "../../lab/support/redis.ts";
import { makeDataDir, PROCESS_ENV } from "../../lab/support/service.ts";
import type { Draft } from "../../src/port/sink.ts";
import type { LedgerProcessOptions } from "../support/ledger-process.ts";

const PROGRAM = join(import.meta.dirname, "../support/ledger-process.ts");

/** Runs the bot until it exits. Resolves to the contents of its channel, or to undefined if the bot was killed. */
async function live(options: LedgerProcessOptions): Promise<Draft[] | undefined> {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", PROGRAM, JSON.stringify(options)], {
    env: PROCESS_ENV,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (chunk) => void (output += String(chunk)));
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  if (code !== 0 && signal !== "SIGKILL") throw new Error(`It ended with ${signal ?? code}.`);
  return signal === "SIGKILL" ? undefined : (JSON.parse(output) as Draft[]);
}

test("an acting call runs at most once per approval, wherever kill -9 interrupts it", async () => {
  const folder = await makeDataDir();
  const counter = await startCountingServer();
  onTestFinished(async () => {
    await counter.close();
    await folder.remove();
  });
  const common = { path: join(folder.path, "data.sqlite"), serverUrl: counter.url };
  const question = message("buy tea");

  expect(await live({ ...common, events: [question], death: { state: "planned" } })).toBeUndefined();
  const asked = await live({ ...common, events: [] });
  expect(asked?.[0]?.markdown).toContain("**May I use `shop__buy`** of the server `shop`?");
  const approve = action("approve", asked?.[0]?.buttons[0]?.turnId ?? "");

  expect(await live({ ...common, events: [approve], death: { state: "approved" } })).toBeUndefined();
  expect(counter.marks).toEqual([]);
  expect(await live({ ...common, events: [], death: { state: "started" } })).toBeUndefined();
  expect(counter.marks).toEqual([]);

  // Whether the call was made is unknown.
  const unknown = await live({ ...common, events: [] });
  expect(unknown?.[0]?.markdown).toContain("I see: tool, signed");
  expect(unknown?.[0]?.markdown).toMatch(/I don't know whether `shop__buy` ran/);
  expect(counter.marks).toEqual([]);
  const rerun = action("rerun", unknown?.[0]?.buttons[0]?.turnId ?? "");

  // The process dies after it made the call and before it records the call.
  expect(await live({ ...common, events: [rerun], death: { state: "done", isBefore: true } })).toBeUndefined();
  expect(counter.marks).toEqual(["tea"]);
  const after = await live({ ...common, events: [] });
  expect(counter.marks).toEqual(["tea"]);
  expect(after?.[0]?.markdown).toMatch(/I don't know whether `shop__buy` ran/);
});

test.skipIf(isRedisMissing)(
  "an acting call runs once when another process on the same Redis takes over (needs redis-server)",
  async () => {
    const folder = await makeDataDir();
    const [counter, redis] = await Promise.all([startCountingServer(), startRedis()]);
    onTestFinished(async () => {
      await Promise.all([counter.close(), redis.stop()]);
      await folder.remove();
    });
    const common = { serverUrl: counter.url, redisUrl: redis.url };
    const own = (name: string) => ({ ...common, path: join(folder.path, `${name}.sqlite`) });

    const asked = await live({ ...own("first"), events: [message("buy tea")] });
    const approve = action("approve", asked?.[0]?.buttons[0]?.turnId ?? "");
    const death = { state: "done", isBefore: true };
    expect(await live({ ...own("second"), events: [approve], death })).toBeUndefined();
    expect(counter.marks).toEqual(["tea"]);
    const after = await live({ ...own("third"), events: [] });
    expect(counter.marks).toEqual(["tea"]);
    expect(after?.[0]?.markdown).toMatch(/I don't know whether `shop__buy` ran/);
    expect(after?.[0]?.buttons.map(({ action }) => action)).toContain("rerun");
  },
);
