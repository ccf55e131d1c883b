// @ts-expect-error: undici declares no types for its own clock.
import timers from "undici/lib/util/timers.js";
import { expect, test } from "vitest";
import { boundedFetch } from "../../src/mcp/bounded-fetch.ts";
import { startFaultServer } from "../support/fault-server.ts";

/** Longest call timeout that can be configured. */
const CALL_MS = 600_000;

/** Advances undici's clock. That clock starts when undici first uses it. */
function pass(ms: number): void {
  timers.tick(1_000);
  timers.tick(ms);
}

test("a response can take the longest call's time to start, and can be silent for that time again afterwards", async () => {
  const asked = Promise.withResolvers<void>();
  const [beginning, ending] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const server = await startFaultServer(async (response) => {
    asked.resolve();
    await beginning.promise;
    response.writeHead(200).write("so ");
    await ending.promise;
    response.end("late");
  });
  const coming = boundedFetch(server.url);
  await asked.promise;
  pass(CALL_MS);
  beginning.resolve();
  const answer = await coming;
  const body = answer.text();
  pass(CALL_MS);
  ending.resolve();
  expect(await body).toBe("so late");
});
