import { describe, expect, test } from "vitest";
import { createSlackHosts, toAttachments } from "../../../../adapters/slack/api/files.ts";
import type { AttachmentRef } from "../../../../src/port/events.ts";
import { ACME } from "../workspace.ts";
import { type Desk, startDesk } from "../writing.ts";

const signal = new AbortController().signal;

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
  test("the adapter opens a file on Slack with the workspace's token any number of times, and looks it up once", async () => {
    const desk = await startDesk();
    const ref = attach(desk, "notes.txt");
    for (const _ of [1, 2]) expect(await read(await desk.outbound.openAttachment(ref, signal))).toBe("secret");
    expect(desk.calls("files.info")).toBe(1);
  });

  test("a file on Slack can itself be a web page", async () => {
    const desk = await startDesk();
    const ref = attach(desk, "notes.txt");
    const stored = desk.slack.workspace.files.values().next().value;
    if (stored !== undefined) stored.mimeType = "text/html";
    expect(await read(await desk.outbound.openAttachment(ref, signal))).toBe("secret");
  });

  for (const isRedirected of [false, true]) {
    test(`the adapter does not mistake Slack's login page for the file${isRedirected ? ", even after a redirect" : ""}`, async () => {
      const desk = await startDesk();
      const ref = attach(desk, "notes.txt");
      for await (const _ of await desk.outbound.openAttachment(ref, signal));
      desk.slack.redirectToLogin(isRedirected);
      desk.slack.workspace.scopes.delete("files:read");
      const message = expect.stringMatching(/"notes.txt".*files:read/);
      await expect(desk.outbound.openAttachment(ref, signal)).rejects.toMatchObject({ message });
    });
  }

  test("opening a file names the missing scope", async () => {
    const desk = await startDesk();
    const ref = attach(desk, "notes.txt");
    desk.slack.workspace.scopes.delete("files:read");
    await expect(desk.outbound.openAttachment(ref, signal)).rejects.toThrow(/scope files:read is missing/);
  });

  test("opening a file says that the file is gone", async () => {
    const desk = await startDesk();
    const ref = attach(desk, "notes.txt");
    desk.slack.workspace.files.clear();
    await expect(desk.outbound.openAttachment(ref, signal)).rejects.toThrow(/"notes.txt".*no longer exists/);
    await expect(desk.outbound.openAttachment({ ...ref, id: "elsewhere" }, signal)).rejects.toThrow(/not a Slack file/);
  });

  test("opening a file ends when the signal aborts", async () => {
    const desk = await startDesk();
    const reason = new Error("enough");
    const opening = desk.outbound.openAttachment(attach(desk, "notes.txt"), AbortSignal.abort(reason));
    await expect(opening).rejects.toBe(reason);
  });
});

describe("the files of a message", () => {
  test("files of other organisations have no name, and deleted files are left out", () => {
    const files = [
      { id: "F1", mode: "file_access", file_access: "check_file_info" },
      { id: "F2", mode: "tombstone" },
      { id: "F3", mode: "hidden_by_limit" },
      { name: "no id" },
    ];
    expect(toAttachments(ACME, files)).toEqual([{ platform: "slack", id: "T1:F1", name: "file", sizeBytes: 0 }]);
  });
});

describe("Slack's hosts", () => {
  test("Slack's hosts are its own by default", () => {
    const { isHook, isUpload, origins } = createSlackHosts(undefined);
    expect(origins).toEqual([]);
    expect(isHook("https://hooks.slack.com/commands/T1/2/x")).toBe(true);
    expect(isUpload("https://files.slack.com/upload/v1/x")).toBe(true);
    expect(isUpload("https://slack-files.com.example/x")).toBe(false);
    for (const address of [
      "https://hooks.slack-gov.com/x",
      "http://hooks.slack.com/x",
      "https://evil.example",
      "no address",
    ]) {
      expect(isHook(address)).toBe(false);
    }
    for (const address of [
      "http://files.slack.com/x",
      "https://evilslack.com/x",
      "https://files.slack-gov.com/x",
      "no address",
    ]) {
      expect(isUpload(address)).toBe(false);
    }
  });

  test.each(["https://slack-gov.com/api/", "https://www.slack-gov.com/api/"])(
    "Slack's hosts include those of GovSlack for %s",
    (apiUrl) => {
      const { isHook, isUpload, files } = createSlackHosts(apiUrl);
      expect(isHook("https://hooks.slack-gov.com/commands/T1/2/x")).toBe(true);
      expect(isUpload("https://files.slack-gov.com/upload/v1/x")).toBe(true);
      expect(files).toContain("*.slack-gov.com");
      expect(isHook("https://hooks.slack-gov.com.example/x")).toBe(false);
    },
  );

  test("Slack's hosts are the origin of a stand-in at another address", () => {
    const { isHook, isUpload, files, origins } = createSlackHosts("http://127.0.0.1:8080/api/");
    expect(origins).toEqual(["http://127.0.0.1:8080"]);
    expect(isHook("http://127.0.0.1:8080/response/x")).toBe(true);
    expect(isUpload("http://127.0.0.1:8080/upload/x")).toBe(true);
    expect(isHook("http://127.0.0.1:9090/response/x")).toBe(false);
    expect(files.join()).not.toContain("127");
  });
});
