import { describe, expect, test } from "vitest";
import { isOfApp } from "../../../../lab/slack-sim/world.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import type { OutboundFile } from "../../../../src/port/sink.ts";
import { finalDraft, RETRY, signal, startDesk, startWriting } from "../writing.ts";

const PNG = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]);

function picture(name = "fox.png", more: Partial<OutboundFile> = {}): OutboundFile {
  return { name, contentType: "image/png", bytes: PNG, altText: "A fox in the snow", ...more };
}

function text(name = "answer.md", body = "# Long"): OutboundFile {
  return { name, contentType: "text/markdown", bytes: new TextEncoder().encode(body) };
}

async function read(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts);
}

describe("posting files to Slack", () => {
  test("files are shared in the thread, and found when Slack is ready", async () => {
    const { slack, general, question, address, outbound } = await startDesk({ limits: { sharingMs: 400 } });
    const posted = await outbound.sink(address, NO_RIGHT).upload([text()], undefined, "n", signal);
    const [message] = slack.answers(general, question);
    expect(posted.id).toBe(`slack:${slack.workspace.id}:${general.id}:${message?.ts}`);
    expect(message?.content.files.map(({ title }) => title)).toEqual(["answer.md"]);
    const [ref] = posted.attachments ?? [];
    if (ref === undefined) throw new Error("No attachment was named.");
    expect(String(await read(await outbound.openAttachment(ref, signal)))).toBe("# Long");
  });

  test("images are shown inside their message, with text, buttons and alt texts", async () => {
    const { slack, general, question, address, outbound } = await startDesk();
    const files = [picture("fox.png"), picture("owl.png", { altText: "An owl" })];
    const posted = await outbound
      .sink(address, NO_RIGHT)
      .upload(files, finalDraft("Two <!here>", [RETRY]), "n", signal);
    const [message] = slack.answers(general, question);
    expect(message?.content.blocks).toMatchObject([
      { type: "image", alt_text: "A fox in the snow", slack_file: { id: expect.stringMatching(/^F/) } },
      { type: "image", alt_text: "An owl" },
      { type: "markdown", text: "Two <\u200B!here>" },
      { type: "actions" },
    ]);
    expect(posted.attachments).toHaveLength(2);
  });

  test.each([
    ["a picture", picture(), picture("owl.png")],
    ["a text", text(), text("rest.md")],
  ])("files are posted even if Slack refuses to describe them to the app: %s", async (_, file, next) => {
    const { slack, general, question, address, outbound, calls } = await startDesk();
    slack.failNext("files.info", { error: "missing_scope" });
    const { id } = await outbound.sink(address, NO_RIGHT).upload([file], finalDraft("One"), "n", signal);
    await slack.until(() => slack.answers(general, question).length > 0, "the message");
    expect(calls("files.info")).toBe(1);
    slack.failNext("files.info", { error: "missing_scope" });
    const other = await outbound.sink(address, NO_RIGHT).upload([next], finalDraft("Two"), "m", signal);
    expect(other.id, "people are taken to conversations by it").not.toBe(id);
    await outbound.sink(address, NO_RIGHT).remove(id, signal);
  });

  test("the message waits until Slack can show its files", async () => {
    const { slack, general, question, address, outbound, calls } = await startDesk();
    slack.failNext("chat.postMessage", { error: "invalid_blocks" }, 2);
    await outbound.sink(address, NO_RIGHT).upload([picture()], undefined, "n", signal);
    expect(calls("chat.postMessage")).toBe(3);
    expect(slack.answers(general, question)).toHaveLength(1);
  });

  for (const [kind, file] of [
    ["a picture", picture()],
    ["a text", text()],
  ] as const) {
    test(`files are posted once per nonce, even by another run: ${kind}`, async () => {
      const { slack, general, question, address, restart, sink } = await startWriting();
      const { id } = await sink.upload([file], undefined, "n", signal);
      expect((await sink.upload([file], undefined, "n", signal)).id).toBe(id);
      expect((await restart().sink(address, NO_RIGHT).upload([file], undefined, "n", signal)).id).toBe(id);
      expect(slack.answers(general, question)).toHaveLength(1);
    });
  }

  test("files are not posted again if the response to the last step was lost", async () => {
    const { slack, general, question, sink } = await startWriting();
    slack.failNext("files.completeUploadExternal", { isDone: true, status: 504 });
    await expect(sink.upload([text()], undefined, "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    await slack.until(() => slack.answers(general, question)[0], "the file to be shared");
    await sink.upload([text()], undefined, "n", signal);
    expect(slack.answers(general, question)).toHaveLength(1);
  });

  test("an upload sends the token only to the Web API", async () => {
    const { slack, address, outbound } = await startDesk();
    await outbound.sink(address, NO_RIGHT).upload([text()], undefined, "n", signal);
    const shown = JSON.stringify(slack.requests);
    expect(shown).not.toContain(slack.botToken);
  });

  test("files that are empty, too many or forbidden are rejected with a plain sentence", async () => {
    const { slack, sink } = await startWriting();
    await expect(sink.upload([text("a", "")], undefined, "n", signal)).rejects.toMatchObject({ kind: "rejected" });
    const many = Array.from({ length: 11 }, (_, index) => text(`${index}.md`));
    await expect(sink.upload(many, undefined, "n", signal)).rejects.toMatchObject({ kind: "rejected" });
    slack.workspace.scopes.delete("files:write");
    const message = expect.stringMatching(/files:write.*install the app again/);
    await expect(sink.upload([text()], undefined, "m", signal)).rejects.toMatchObject({
      kind: "forbidden",
      message,
      missing: "files:write",
    });
  });

  test("files for one person are posted in their direct conversation", async () => {
    const { slack, ada, general, address, outbound } = await startDesk();
    const sink = outbound.sink({ ...address, visibleTo: ada.id }, NO_RIGHT);
    await sink.upload([text("export.json", "{}")], undefined, "n", signal);
    expect(slack.answers(general)).toEqual([]);
    const direct = slack.messages(ada.direct()).filter(isOfApp);
    expect(direct.flatMap(({ content }) => content.files.map(({ title }) => title))).toEqual(["export.json"]);
    const [told] = direct;
    expect(told?.states.map(({ shown }) => shown)).toEqual([
      "I'm getting what you asked for.",
      "Here's what you asked for. Only you can see it.",
    ]);
    const isThereBefore = (told?.states[1]?.atMs ?? 0) >= Number(direct[1]?.ts) * 1_000;
    expect(isThereBefore).toBe(true);
  });

  test("refused files for one person leave no announcement", async () => {
    const { slack, ada, address, outbound } = await startDesk();
    slack.workspace.scopes.delete("files:write");
    const sink = outbound.sink({ ...address, visibleTo: ada.id }, NO_RIGHT);
    const uploading = sink.upload([text("export.json", "{}")], undefined, "n", signal);
    await expect(uploading).rejects.toMatchObject({ kind: "forbidden", missing: "files:write" });
    expect(slack.texts(ada.direct())).toEqual([]);
  });
});

const CAPTION = finalDraft("A fox", [RETRY]);
const OTHER = finalDraft("Another", [RETRY]);
const SOON = [1, 1, 20, 20, 40, 40];

function smallPicture(bytes: number[] = [1, 2, 3], name = "fox.png"): OutboundFile {
  return { name, contentType: "image/png", bytes: Uint8Array.from(bytes), altText: "A fox in the snow" };
}

/** `refuses` says how this workspace refuses to show an image inside a message. */
async function begin(refuses: "blocks" | "readiness" = "blocks", sharingMs = 5) {
  const readyMs = refuses === "readiness" ? Infinity : 0;
  const desk = await startDesk({ limits: { sharingMs, readyMs, postBurst: 100 }, pollPausesMs: SOON });
  if (refuses === "blocks") desk.slack.setUnknown("slack_file");
  const { slack, general, question } = desk;
  const sink = desk.outbound.sink(desk.address, NO_RIGHT);
  const answers = () => slack.answers(general, question);
  return {
    ...desk,
    sink,
    answers,
    bring: (nonce = "n", file = smallPicture(), caption = CAPTION) => sink.upload([file], caption, nonce, signal),
    /** For each message: the number of files, the text and the buttons. */
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

describe("an image on Slack if messages cannot show it", () => {
  for (const refuses of ["blocks", "readiness"] as const) {
    test(`an image is shared separately, followed by its text and buttons: no ${refuses}`, async () => {
      const { bring, shown, answers, count, outbound } = await begin(refuses);
      const posted = await bring();
      expect(shown()).toEqual(BOTH);
      const [messageFiles, words] = answers();
      expect(posted.id.endsWith(String(words?.ts))).toBe(true);
      expect(messageFiles?.content.files[0]).toMatchObject({ title: "fox.png", mimeType: "image/png" });
      // The upload that could not be shown is deleted.
      expect(count()).toBe(1);
      const [ref] = posted.attachments ?? [];
      expect(ref).toMatchObject({ name: "fox.png", sizeBytes: 3 });
      if (ref === undefined) throw new Error("No attachment was named.");
      const bytes = await Array.fromAsync(await outbound.openAttachment(ref, signal));
      expect(Buffer.concat(bytes)).toEqual(Buffer.from([1, 2, 3]));
    });
  }

  test("a shared image has its alt text", async () => {
    const { bring, answers } = await begin();
    await bring("n", { ...smallPicture(), altText: "x".repeat(1_500) });
    expect(answers()[0]?.content.files[0]?.altText).toBe(`${"x".repeat(999)}…`);
  });

  test("the adapter does not try again to show images inside messages in that workspace", async () => {
    const { bring, shown, slack, calls } = await begin();
    await bring("one");
    const before = calls("files.completeUploadExternal");
    await bring("two", smallPicture([4, 5]), OTHER);
    expect(shown()).toEqual([...BOTH, ...OTHERS]);
    expect(calls("files.completeUploadExternal")).toBe(before + 1);
    expect(slack.requests.filter(({ error }) => error === "invalid_blocks")).toHaveLength(SOON.length);
  });

  test("a shared image without text needs no second message", async () => {
    const { bring, shown, answers } = await begin();
    const { id } = await bring("n", smallPicture(), finalDraft(""));
    expect(shown()).toEqual([[1, "", 0]]);
    expect(id.endsWith(String(answers()[0]?.ts))).toBe(true);
  });

  test("a shared image is posted once per nonce, even if another run created it with another size", async () => {
    const { bring, shown, restart, address } = await begin();
    const { id, attachments } = await bring();
    expect((await bring()).id).toBe(id);
    const again = await restart()
      .sink(address, NO_RIGHT)
      .upload([smallPicture([7, 8, 9, 10])], CAPTION, "n", signal);
    expect(again.id).toBe(id);
    expect(again.attachments?.map((one) => one.id)).toEqual(attachments?.map((one) => one.id));
    expect(shown()).toEqual(BOTH);
  });

  test("asking for an image again in the same words posts another image", async () => {
    const { bring, shown, restart, address } = await begin();
    await bring("one");
    await restart().sink(address, NO_RIGHT).upload([smallPicture()], OTHER, "two", signal);
    expect(shown()).toEqual([...BOTH, ...OTHERS]);
  });

  test.each([
    ["files.completeUploadExternal", { isDone: true, status: 504 }],
    ["chat.postMessage", { status: 503 }],
    ["chat.postMessage", { isDone: true, cutsConnection: true }],
    ["chat.postMessage", { retryAfterS: 1 }],
    ["files.info", { status: 500 }],
    ["files.info", { retryAfterS: 1 }],
  ])("an image is posted once if %s fails on the way: %j", async (method, fault) => {
    const { bring, shown, slack, calls } = await begin();
    await bring("first", smallPicture([9]), OTHER);
    const before = [shown().length, calls("files.getUploadURLExternal")];
    slack.failNext(method, fault);
    await expect(bring()).rejects.toThrow();
    await slack.until(() => slack.workspace.files.values().every(({ shares }) => shares.length > 0), "the sharing");
    slack.advance(2_000);
    await bring();
    expect([shown().slice(before[0]), calls("files.getUploadURLExternal")]).toEqual([BOTH, Number(before[1]) + 1]);
  });

  test("another run adds the text if the first died between the two messages", async () => {
    const { bring, shown, slack, restart, address } = await begin();
    await bring("first", smallPicture([9]), OTHER);
    slack.failNext("chat.postMessage", { status: 503 });
    await expect(bring()).rejects.toThrow();
    const posted = await restart()
      .sink(address, NO_RIGHT)
      .upload([smallPicture([7, 8])], CAPTION, "n", signal);
    expect(shown()).toEqual([...OTHERS, ...BOTH]);
    expect(posted.attachments).toHaveLength(1);
  });

  test("an image is not shared again while Slack takes time to show it", async () => {
    const { bring, shown, slack, count } = await begin("blocks", 2_000);
    await expect(bring()).rejects.toMatchObject({ kind: "unavailable" });
    await expect(bring()).rejects.toMatchObject({ kind: "unavailable" });
    expect(count()).toBe(1);
    slack.advance(2_000);
    await bring();
    expect(shown()).toEqual(BOTH);
  });

  test("an image is shared separately if a refusal says nothing about images", async () => {
    const { slack, sink, shown } = await begin();
    slack.setUnknown();
    slack.failNext("chat.postMessage", { error: "restricted_action" });
    await expect(sink.upload([smallPicture()], CAPTION, "n", signal)).rejects.toMatchObject({ kind: "forbidden" });
    await sink.upload([smallPicture()], CAPTION, "n", signal);
    expect(shown()).toEqual([[0, "A fox", 1]]);
  });

  for (const isRestarted of [false, true]) {
    test(`a shared image is removed with the message after it, by another run: ${isRestarted}`, async () => {
      const { bring, shown, count, restart, outbound, address } = await begin();
      const { id } = await bring();
      await (isRestarted ? restart() : outbound).sink(address, NO_RIGHT).remove(id, signal);
      expect([shown(), count()]).toEqual([[], 0]);
    });
  }

  test("the adapter posts an image for one person in their direct conversation, and removes it there", async () => {
    const { slack, ada, general, address, outbound } = await begin();
    const sink = outbound.sink({ ...address, visibleTo: ada.id }, NO_RIGHT);
    const { id } = await sink.upload([smallPicture()], CAPTION, "n", signal);
    const direct = () => slack.messages(ada.direct()).filter(isOfApp);
    expect([slack.answers(general).length, direct().length]).toEqual([0, 3]);
    await sink.remove(id, signal);
    expect(direct()).toHaveLength(1);
  });
});
