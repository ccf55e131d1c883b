import { describe, expect, test } from "vitest";
import { toAttachments } from "../../../../adapters/slack/api/attachments.ts";
import type { AttachmentRef } from "../../../../src/port/events.ts";
import { type Desk, startDesk } from "../writing.ts";

const signal = new AbortController().signal;

/** A file that somebody attached. */
function attach(
  { slack, ada, general }: Desk,
  name: string,
  bytes = new TextEncoder().encode("secret"),
): AttachmentRef {
  const message = ada.upload(general, [{ name, bytes }]);
  const files = message.content.files.map(({ id, name, bytes }) => ({ id, name, size: bytes.length }));
  const [ref] = toAttachments({ teamId: slack.workspace.id }, files);
  if (ref === undefined) throw new Error("Nothing was attached.");
  return ref;
}

async function read(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts).toString();
}

describe("a file on Slack", () => {
  test("is opened with the workspace's own token, as often as asked, and looked up once", async () => {
    const desk = await startDesk();
    const ref = attach(desk, "notes.txt");
    for (const _ of [1, 2]) expect(await read(await desk.outbound.openAttachment(ref, signal))).toBe("secret");
    expect(desk.calls("files.info")).toBe(1);
  });

  test("may be a web page itself", async () => {
    const desk = await startDesk();
    const ref = attach(desk, "notes.txt");
    const stored = desk.slack.workspace.files.values().next().value;
    if (stored !== undefined) stored.mimeType = "text/html";
    expect(await read(await desk.outbound.openAttachment(ref, signal))).toBe("secret");
  });

  for (const isRedirected of [false, true]) {
    test(`is not the page at which one logs in${isRedirected ? ", behind a redirect" : ""}`, async () => {
      const desk = await startDesk();
      const ref = attach(desk, "notes.txt");
      for await (const _ of await desk.outbound.openAttachment(ref, signal));
      desk.slack.redirectToLogin(isRedirected);
      desk.slack.workspace.scopes.delete("files:read");
      const message = expect.stringMatching(/"notes.txt".*files:read/);
      await expect(desk.outbound.openAttachment(ref, signal)).rejects.toMatchObject({ message });
    });
  }

  test("names the scope that is missing", async () => {
    const desk = await startDesk();
    const ref = attach(desk, "notes.txt");
    desk.slack.workspace.scopes.delete("files:read");
    await expect(desk.outbound.openAttachment(ref, signal)).rejects.toThrow(/scope files:read is missing/);
  });

  test("says so when it is gone", async () => {
    const desk = await startDesk();
    const ref = attach(desk, "notes.txt");
    desk.slack.workspace.files.clear();
    await expect(desk.outbound.openAttachment(ref, signal)).rejects.toThrow(/"notes.txt".*not there any more/);
    await expect(desk.outbound.openAttachment({ ...ref, id: "elsewhere" }, signal)).rejects.toThrow(/not a file/);
  });

  test("is given up when the signal aborts", async () => {
    const desk = await startDesk();
    const reason = new Error("enough");
    const opening = desk.outbound.openAttachment(attach(desk, "notes.txt"), AbortSignal.abort(reason));
    await expect(opening).rejects.toBe(reason);
  });
});
