import { describe, expect, test } from "vitest";
import type { OutboundFile } from "../../../../src/port/sink.ts";
import { isOfApp } from "../../../simulators/slack/world.ts";
import { RETRY, startDesk, whole } from "../writing.ts";

const signal = new AbortController().signal;
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

describe("files brought to Slack", () => {
  test("are shared in the thread, and found when Slack is ready", async () => {
    const { slack, general, question, address, outbound } = await startDesk({ limits: { sharingMs: 400 } });
    const posted = await outbound.sink(address).upload([text()], undefined, "n", signal);
    const [message] = slack.answers(general, question);
    expect(posted.id).toBe(`slack:${slack.workspace.id}:${general.id}:${message?.ts}`);
    expect(message?.content.files.map(({ title }) => title)).toEqual(["answer.md"]);
    const [ref] = posted.attachments ?? [];
    if (ref === undefined) throw new Error("No attachment was named.");
    expect(String(await read(await outbound.openAttachment(ref, signal)))).toBe("# Long");
  });

  test("stand inside their message where they are pictures, with words, buttons and what they show", async () => {
    const { slack, general, question, address, outbound } = await startDesk();
    const files = [picture("fox.png"), picture("owl.png", { altText: "An owl" })];
    const posted = await outbound.sink(address).upload(files, whole("Two <!here>", [RETRY]), "n", signal);
    const [message] = slack.answers(general, question);
    expect(message?.content.blocks).toMatchObject([
      { type: "image", alt_text: "A fox in the snow", slack_file: { id: expect.stringMatching(/^F/) } },
      { type: "image", alt_text: "An owl" },
      { type: "markdown", text: "Two <\u200B!here>" },
      { type: "actions" },
    ]);
    expect(posted.attachments).toHaveLength(2);
  });

  test("need no words", async () => {
    const { slack, general, question, address, outbound } = await startDesk();
    await outbound.sink(address).upload([picture()], undefined, "n", signal);
    expect(slack.answers(general, question)[0]?.content.blocks).toMatchObject([{ type: "image" }]);
  });

  test.each([
    ["a picture", picture(), picture("owl.png")],
    ["a text", text(), text("rest.md")],
  ])("come also where Slack tells nobody of its files: %s", async (_, file, next) => {
    const { slack, general, question, address, outbound, calls } = await startDesk();
    slack.failNext("files.info", { error: "missing_scope" });
    const { id } = await outbound.sink(address).upload([file], whole("One"), "n", signal);
    await slack.until(() => slack.answers(general, question).length > 0, "the message");
    expect(calls("files.info")).toBe(1);
    slack.failNext("files.info", { error: "missing_scope" });
    const other = await outbound.sink(address).upload([next], whole("Two"), "m", signal);
    expect(other.id, "people are taken to conversations by it").not.toBe(id);
    await outbound.sink(address).remove(id, signal);
  });

  test("wait until Slack can show them", async () => {
    const { slack, general, question, address, outbound, calls } = await startDesk();
    slack.failNext("chat.postMessage", { error: "invalid_blocks" }, 2);
    await outbound.sink(address).upload([picture()], undefined, "n", signal);
    expect(calls("chat.postMessage")).toBe(3);
    expect(slack.answers(general, question)).toHaveLength(1);
  });

  for (const [kind, file] of [
    ["a picture", picture()],
    ["a text", text()],
  ] as const) {
    test(`come once for the same nonce, also in another run: ${kind}`, async () => {
      const { slack, general, question, address, outbound, restart } = await startDesk();
      const sink = outbound.sink(address);
      const { id } = await sink.upload([file], undefined, "n", signal);
      expect((await sink.upload([file], undefined, "n", signal)).id).toBe(id);
      expect((await restart().sink(address).upload([file], undefined, "n", signal)).id).toBe(id);
      expect(slack.answers(general, question)).toHaveLength(1);
    });
  }

  test("are not brought again when the answer to the last step was lost", async () => {
    const { slack, general, question, address, outbound } = await startDesk();
    const sink = outbound.sink(address);
    slack.failNext("files.completeUploadExternal", { isDone: true, status: 504 });
    await expect(sink.upload([text()], undefined, "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    await slack.until(() => slack.answers(general, question)[0], "the file to be shared");
    await sink.upload([text()], undefined, "n", signal);
    expect(slack.answers(general, question)).toHaveLength(1);
  });

  test("carry the token to no place but the API", async () => {
    const { slack, address, outbound } = await startDesk();
    await outbound.sink(address).upload([text()], undefined, "n", signal);
    const shown = JSON.stringify(slack.requests);
    expect(shown).not.toContain(slack.botToken);
  });

  test("are refused in plain words when they are empty, too many, or not allowed", async () => {
    const { slack, address, outbound } = await startDesk();
    const sink = outbound.sink(address);
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

  test("for one person alone come in their direct conversation", async () => {
    const { slack, ada, general, address, outbound } = await startDesk();
    const sink = outbound.sink({ ...address, visibleTo: ada.id });
    await sink.upload([text("export.json", "{}")], undefined, "n", signal);
    expect(slack.answers(general)).toEqual([]);
    const direct = slack.messages(ada.direct()).filter(isOfApp);
    expect(direct.flatMap(({ content }) => content.files.map(({ title }) => title))).toEqual(["export.json"]);
    const [told] = direct;
    expect(told?.states.map(({ shown }) => shown)).toEqual([
      "I am bringing what you asked for.",
      "Here is what you asked for, only for you.",
    ]);
    const isThereBefore = (told?.states[1]?.atMs ?? 0) >= Number(direct[1]?.ts) * 1_000;
    expect(isThereBefore).toBe(true);
  });

  test("for one person alone that are refused leave no word that they are there", async () => {
    const { slack, ada, address, outbound } = await startDesk();
    slack.workspace.scopes.delete("files:write");
    const sink = outbound.sink({ ...address, visibleTo: ada.id });
    const uploading = sink.upload([text("export.json", "{}")], undefined, "n", signal);
    await expect(uploading).rejects.toMatchObject({ kind: "forbidden", missing: "files:write" });
    expect(slack.texts(ada.direct())).toEqual([]);
  });
});
