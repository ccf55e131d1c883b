import { expect, test } from "vitest";
import { comeIn } from "../../lab/support/administrator.ts";
import { createLive } from "../../src/admin/live.ts";
import type { Now } from "../../src/admin/page/wire.ts";
import { startReplica } from "../support/dashboard.ts";

async function firstEvent(stream: ReadableStream<Uint8Array>): Promise<Now> {
  const { value } = await stream.getReader().read();
  return JSON.parse(new TextDecoder().decode(value).replace(/^event: now\ndata: /, "")) as Now;
}

test("the dashboard's stream ends with the session that opened it", async () => {
  const { url } = await startReplica();
  const admin = await comeIn(url);
  const live = await admin.ask("live");
  await admin.ask("session", { method: "DELETE" });
  expect(await live.text()).toMatch(/^(?:event: now\n[^]*)?$/);
  expect((await admin.ask("live")).status).toBe(401);
});

test("the dashboard's stream sends no state of the processes while the sessions are unknown", async () => {
  let looks = 0;
  const live = createLive({ read: async () => [] }, () => (looks += 1));
  let asked = 0;
  const isSignedIn = async () => {
    asked += 1;
    if (asked === 1) throw new Error("The store does not answer.");
    return true;
  };
  const stream = live.open(isSignedIn);
  if (stream === undefined) throw new Error("Nobody else looks.");
  expect(await firstEvent(stream)).toMatchObject({ at: 2, problem: null });
  live.close();
});

test("the dashboard's stream still reports an outage of the store", async () => {
  const away = () => Promise.reject(new Error("The store does not answer."));
  const live = createLive({ read: away }, () => 1);
  const stream = live.open(away);
  if (stream === undefined) throw new Error("Nobody else looks.");
  expect(await firstEvent(stream)).toMatchObject({ processes: [], problem: expect.stringContaining("The store") });
  live.close();
});
