import { describe, expect, test } from "vitest";
import { startDesk, whole } from "../writing.ts";

const signal = new AbortController().signal;
const PNG = { name: "fox.png", contentType: "image/png", bytes: Uint8Array.from([1, 2, 3]), altText: "A fox" };
const NOTE = { name: "a.md", contentType: "text/markdown", bytes: Uint8Array.from([1, 2, 3]) };

describe("taking a message back on Slack", () => {
  test.each([PNG, NOTE])("takes its file along: $name", async (file) => {
    const { slack, general, address, outbound } = await startDesk();
    const sink = outbound.sink(address);
    const { id } = await sink.upload([file], undefined, "n", signal);
    await sink.remove(id, signal);
    expect(slack.answers(general)).toEqual([]);
    expect(slack.workspace.files.size).toBe(0);
  });

  test.each([PNG, NOTE])("takes its file along also when an earlier run brought it: $name", async (file) => {
    const { slack, general, address, outbound, restart } = await startDesk();
    const { id } = await outbound.sink(address).upload([file], undefined, "n", signal);
    await restart().sink(address).remove(id, signal);
    expect(slack.answers(general)).toEqual([]);
    expect(slack.workspace.files.size).toBe(0);
  });

  test("reads nothing of a message that is known to be text, and does not mind that it is gone", async () => {
    const { address, outbound, calls } = await startDesk();
    const sink = outbound.sink(address);
    const { id } = await sink.post(whole("text"), "n", signal);
    const before = calls("conversations.replies");
    await sink.remove(id, signal);
    await sink.remove(id, signal);
    expect(calls("conversations.replies")).toBe(before);
  });
});
