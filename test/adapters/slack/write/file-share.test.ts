import { describe, expect, test } from "vitest";
import type { OutboundFile } from "../../../../src/port/sink.ts";
import { isOfApp } from "../../../simulators/slack/world.ts";
import { RETRY, startDesk, whole } from "../writing.ts";

const signal = new AbortController().signal;
const CAPTION = whole("A fox", [RETRY]);
const OTHER = whole("Another", [RETRY]);
const SOON = [1, 1, 20, 20, 40, 40];

function picture(bytes: number[] = [1, 2, 3], name = "fox.png"): OutboundFile {
  return { name, contentType: "image/png", bytes: Uint8Array.from(bytes), altText: "A fox in the snow" };
}

/** `refuses` is how this workspace shows no picture inside a message. */
async function begin(refuses: "blocks" | "readiness" = "blocks", sharingMs = 5) {
  const readyMs = refuses === "readiness" ? Infinity : 0;
  const desk = await startDesk({ limits: { sharingMs, readyMs, postBurst: 100 }, looksMs: SOON });
  if (refuses === "blocks") desk.slack.setUnknown("slack_file");
  const { slack, general, question } = desk;
  const sink = desk.outbound.sink(desk.address);
  const answers = () => slack.answers(general, question);
  return {
    ...desk,
    sink,
    answers,
    bring: (nonce = "n", file = picture(), caption = CAPTION) => sink.upload([file], caption, nonce, signal),
    /** Of each message: how many files it has, its words and its buttons. */
    shown: () =>
      answers().map(({ content, states }) => {
        const buttons = content.blocks.filter(({ type }) => type === "actions").length;
        return [content.files.length, states.at(-1)?.shown, buttons];
      }),
    count: () => slack.workspace.files.size,
  };
}

const BOTH = [
  [1, "", 0],
  [0, "A fox", 1],
];
const OTHERS = [
  [1, "", 0],
  [0, "Another", 1],
];

describe("a picture on Slack, where messages show none inside", () => {
  for (const refuses of ["blocks", "readiness"] as const) {
    test(`is shared by itself, with its words and buttons behind it: no ${refuses}`, async () => {
      const { bring, shown, answers, count, outbound } = await begin(refuses);
      const posted = await bring();
      expect(shown()).toEqual(BOTH);
      const [brought, words] = answers();
      expect(posted.id.endsWith(String(words?.ts))).toBe(true);
      expect(brought?.content.files[0]).toMatchObject({ title: "fox.png", mimeType: "image/png" });
      // The one that could not be shown is not kept.
      expect(count()).toBe(1);
      const [ref] = posted.attachments ?? [];
      expect(ref).toMatchObject({ name: "fox.png", sizeBytes: 3 });
      if (ref === undefined) throw new Error("No attachment was named.");
      const bytes = await Array.fromAsync(await outbound.openAttachment(ref, signal));
      expect(Buffer.concat(bytes)).toEqual(Buffer.from([1, 2, 3]));
    });
  }

  test("says what it shows to those who cannot see it", async () => {
    const { bring, answers } = await begin();
    await bring("n", { ...picture(), altText: "x".repeat(1_500) });
    expect(answers()[0]?.content.files[0]?.altText).toBe("x".repeat(1_000));
  });

  test("is not tried the other way again in that workspace", async () => {
    const { bring, shown, slack, calls } = await begin();
    await bring("one");
    const before = calls("files.completeUploadExternal");
    await bring("two", picture([4, 5]), OTHER);
    expect(shown()).toEqual([...BOTH, ...OTHERS]);
    expect(calls("files.completeUploadExternal")).toBe(before + 1);
    expect(slack.requests.filter(({ error }) => error === "invalid_blocks")).toHaveLength(SOON.length);
  });

  test("needs no second message without words", async () => {
    const { bring, shown, answers } = await begin();
    const { id } = await bring("n", picture(), whole(""));
    expect(shown()).toEqual([[1, "", 0]]);
    expect(id.endsWith(String(answers()[0]?.ts))).toBe(true);
  });

  test("comes once for the same nonce, also in another run and drawn with another size", async () => {
    const { bring, shown, restart, address } = await begin();
    const { id, attachments } = await bring();
    expect((await bring()).id).toBe(id);
    const again = await restart()
      .sink(address)
      .upload([picture([7, 8, 9, 10])], CAPTION, "n", signal);
    expect(again.id).toBe(id);
    expect(again.attachments?.map((one) => one.id)).toEqual(attachments?.map((one) => one.id));
    expect(shown()).toEqual(BOTH);
  });

  test("is another one when it is asked for again in the same words", async () => {
    const { bring, shown, restart, address } = await begin();
    await bring("one");
    await restart().sink(address).upload([picture()], OTHER, "two", signal);
    expect(shown()).toEqual([...BOTH, ...OTHERS]);
  });

  test.each([
    ["files.completeUploadExternal", { isDone: true, status: 504 }],
    ["chat.postMessage", { status: 503 }],
    ["chat.postMessage", { isDone: true, cutsConnection: true }],
    ["chat.postMessage", { retryAfterS: 1 }],
    ["files.info", { status: 500 }],
    ["files.info", { retryAfterS: 1 }],
  ])("stands there once when %s goes wrong on the way: %j", async (method, fault) => {
    const { bring, shown, slack, calls } = await begin();
    await bring("first", picture([9]), OTHER);
    const before = [shown().length, calls("files.getUploadURLExternal")];
    slack.failNext(method, fault);
    await expect(bring()).rejects.toThrow();
    await slack.until(() => slack.workspace.files.values().every(({ shares }) => shares.length > 0), "the sharing");
    slack.advance(2_000);
    await bring();
    expect([shown().slice(before[0]), calls("files.getUploadURLExternal")]).toEqual([BOTH, Number(before[1]) + 1]);
  });

  test("gets its words in another run, where the one before died between the two messages", async () => {
    const { bring, shown, slack, restart, address } = await begin();
    await bring("first", picture([9]), OTHER);
    slack.failNext("chat.postMessage", { status: 503 });
    await expect(bring()).rejects.toThrow();
    const posted = await restart()
      .sink(address)
      .upload([picture([7, 8])], CAPTION, "n", signal);
    expect(shown()).toEqual([...OTHERS, ...BOTH]);
    expect(posted.attachments).toHaveLength(1);
  });

  test("is not shared again while Slack takes its time to show it", async () => {
    const { bring, shown, slack, count } = await begin("blocks", 2_000);
    await expect(bring()).rejects.toMatchObject({ kind: "unavailable" });
    await expect(bring()).rejects.toMatchObject({ kind: "unavailable" });
    expect(count()).toBe(1);
    slack.advance(2_000);
    await bring();
    expect(shown()).toEqual(BOTH);
  });

  test("is shown the other way where a refusal says nothing about pictures", async () => {
    const { slack, sink, shown } = await begin();
    slack.setUnknown();
    slack.failNext("chat.postMessage", { error: "restricted_action" });
    await expect(sink.upload([picture()], CAPTION, "n", signal)).rejects.toMatchObject({ kind: "forbidden" });
    await sink.upload([picture()], CAPTION, "n", signal);
    expect(shown()).toEqual([[0, "A fox", 1]]);
  });

  for (const isRestarted of [false, true]) {
    test(`is taken back with the message behind it, by another run: ${isRestarted}`, async () => {
      const { bring, shown, count, restart, outbound, address } = await begin();
      const { id } = await bring();
      await (isRestarted ? restart() : outbound).sink(address).remove(id, signal);
      expect([shown(), count()]).toEqual([[], 0]);
    });
  }

  test("for one person alone comes in their direct conversation, and goes from there", async () => {
    const { slack, ada, general, address, outbound } = await begin();
    const sink = outbound.sink({ ...address, visibleTo: ada.id });
    const { id } = await sink.upload([picture()], CAPTION, "n", signal);
    const direct = () => slack.messages(ada.direct()).filter(isOfApp);
    expect([slack.answers(general).length, direct().length]).toEqual([0, 3]);
    await sink.remove(id, signal);
    expect(direct()).toHaveLength(1);
  });
});
