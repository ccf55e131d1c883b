import { describe, expect, test } from "vitest";
import type { Api, ApiCall } from "../../../../adapters/discord/api/client.ts";
import { ApiError } from "../../../../adapters/discord/api/error.ts";
import { type MessageBody, toMessageBody } from "../../../../adapters/discord/write/draft.ts";
import { createFinalMessages } from "../../../../adapters/discord/write/private-ending.ts";
import { createStillClock } from "../../../../lab/discord-sim/clock.ts";
import { shown } from "../../../../lab/discord-sim/world.ts";
import type { Button } from "../../../../src/port/sink.ts";
import { STOP, startAsk } from "../act/ask.ts";
import { botMessages, draft, signal } from "../stage.ts";

const MINUTE_MS = 60_000;
const MARGIN_MS = 20_000;
const EDIT = "PATCH /webhooks/:webhook/:token/messages/:message";
const GROWING = draft("So far", { buttons: [STOP], streaming: true });

function body(markdown: string, buttons: Button[] = []): MessageBody {
  return toMessageBody(draft(markdown, { buttons }), {});
}

/** Creates tokens that expire soon, and records the writes that use them. The first calls fail with `troubles`. */
function start(...troubles: Error[]) {
  const written: ApiCall[] = [];
  const changed = new Set<() => void>();
  /** The visible messages, by token and message id. All other messages are deferred answers without text. */
  const standing = new Map<string, object>();
  const api: Api = {
    async call(call) {
      const trouble = troubles.shift();
      if (trouble !== undefined) throw trouble;
      const place = call.route.split("/").slice(-3).join("/");
      if (call.method === "GET") return { data: standing.get(place) ?? { content: "", flags: 128 } };
      written.push(call);
      for (const wake of changed) wake();
      return { data: {} };
    },
    settled: async () => {},
  };
  const toToken = (token: string, leftMs: number) => {
    return { token, applicationId: "1", expiresAt: Date.now() + MARGIN_MS + leftMs };
  };
  async function writes(count: number): Promise<string[]> {
    while (written.length < count) await new Promise<void>((resolve) => changed.add(resolve));
    return written.map(({ route, body }) => `${route} ${(body as MessageBody).content.split("\n")[0]}`);
  }
  const words = createFinalMessages(api, Date.now, signal);
  const shows = ({ token }: { token: string }, id: string, shown: MessageBody) =>
    void standing.set(`${token}/messages/${id}`, shown);
  const note: typeof words.note = (to, id, shown) => {
    shows(to, id, shown);
    words.note(to, id, shown);
  };
  return { words: { ...words, note }, shows, written, toToken, writes };
}

/** A growing answer whose token expires in `leftMs`. */
async function startGrowing(leftMs = 100) {
  const clock = createStillClock();
  const { discord, channel, asked, sink } = await startAsk({ isPrivate: true, simulator: { clock } });
  await discord.until(() => asked.acknowledgedAs === 5);
  clock.advance(15 * MINUTE_MS - MARGIN_MS - leftMs);
  return { discord, channel, clock, sink, id: (await sink.post(GROWING, "n", signal)).id };
}

describe("the closing note of a private answer", () => {
  test("a private answer that is still growing gets a closing note in time, and accepts no more text", async () => {
    const { discord, channel, clock, sink, id } = await startGrowing();
    const last = () => botMessages(discord, channel).map((one) => shown(one))[0];
    await discord.until(() => last()?.content !== "So far");
    expect(last()?.content).toMatch(/^So far\n\n_Interrupted: .*Please ask again.*_$/);
    expect(last()?.components).toEqual([]);
    clock.advance(200);
    await expect(sink.edit(id, draft("So far so good"), signal)).rejects.toMatchObject({ kind: "gone" });
    expect(discord.requests.at(-1)?.route).toBe(EDIT);
  });

  test("the closing note does not overwrite an answer that is finishing at the same moment", async () => {
    // Even on a busy machine, the edit starts before the closing note is due, and ends later.
    const { discord, channel, sink, id } = await startGrowing(1_000);
    discord.faults.slow(EDIT, 1_300, { times: 1 });
    await sink.edit(id, draft("So far so good."), signal);
    // Calls to one route run one after another, so a closing note would come before this call.
    await sink.edit(id, draft("So far so good!"), signal);
    const states = botMessages(discord, channel)[0]?.states ?? [];
    expect(states.map(({ content }) => content)).toEqual(["", "So far", "So far so good.", "So far so good!"]);
  });

  test("the closing note waits for an unfinished call, whether that call succeeds or not", async () => {
    const { words, toToken, writes } = start();
    const [ending, failing] = [toToken("ending", 0), toToken("failing", 0)];
    const call = Promise.withResolvers<void>();
    const end = words.whileWriting(ending, async () => {
      words.note(ending, "1", body("a", [STOP]));
      await call.promise;
      words.note(ending, "1", body("a."));
    });
    const failure = words.whileWriting(failing, async () => {
      words.note(failing, "2", body("b", [STOP]));
      await call.promise;
      throw new Error("reset");
    });
    words.note(toToken("growing", 20), "3", body("c", [STOP]));
    expect(await writes(1)).toEqual(["/webhooks/1/growing/messages/3 c"]);
    call.resolve();
    await Promise.allSettled([end, failure]);
    expect(await writes(2)).toEqual(["/webhooks/1/growing/messages/3 c", "/webhooks/1/failing/messages/2 b"]);
    words.note(toToken("last", 0), "4", body("d", [STOP]));
    expect((await writes(3)).at(-1)).toBe("/webhooks/1/last/messages/4 d");
  });

  test("a private answer without any text yet gets a closing note", async () => {
    const { words, toToken, writes } = start();
    words.promise(toToken("t", 0));
    expect(await writes(1)).toEqual([
      expect.stringMatching(/^\/webhooks\/1\/t\/messages\/(?:@|%40)original _Interrupted/),
    ]);
  });

  test("the adapter adds no closing note to a finished answer or to another kind of answer", async () => {
    const { words, toToken, writes } = start();
    const [over, filled, growing] = [toToken("over", 0), toToken("filled", 0), toToken("growing", 50)];
    words.note(over, "1", body("a", [STOP]));
    words.note(over, "1", body("a."));
    words.promise(filled);
    words.settle(filled, "@original");
    words.note(growing, "2", body("b", [STOP]));
    expect(await writes(1)).toEqual(["/webhooks/1/growing/messages/2 b"]);
  });

  test("the adapter adds no closing note to a private answer that another process finished", async () => {
    const { words, shows, toToken, writes } = start();
    const [promised, begun, growing] = [toToken("promised", 0), toToken("begun", 0), toToken("growing", 50)];
    words.promise(promised);
    shows(promised, "%40original", body("All of it."));
    words.note(begun, "1", body("a", [STOP]));
    shows(begun, "1", body("All of this."));
    words.note(growing, "2", body("b", [STOP]));
    expect(await writes(1)).toEqual(["/webhooks/1/growing/messages/2 b"]);
  });

  test("the adapter retries the closing note after a failure, unless the answer is gone", async () => {
    const limit = new ApiError("too fast", { status: 429, code: 0, retryAfterMs: 1 });
    const gone = new ApiError("gone", { status: 404, code: 10008 });
    const { words, toToken, writes } = start(gone, limit, new Error("reset"));
    words.note(toToken("gone", 0), "1", body("a", [STOP]));
    words.note(toToken("busy", 10), "2", body("b", [STOP]));
    expect(await writes(1)).toEqual(["/webhooks/1/busy/messages/2 b"]);
  });

  test("the closing note fits under the text, without splitting a character", async () => {
    const { words, toToken, written, writes } = start();
    words.note(toToken("t", 0), "1", body("🎉".repeat(1_000), [STOP]));
    await writes(1);
    const contents = written.map(({ body }) => (body as MessageBody).content);
    expect(contents.map((content) => content.length <= 2_000 && content.isWellFormed())).toEqual([true]);
  });
});
