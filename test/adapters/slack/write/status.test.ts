import { describe, expect, test } from "vitest";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import { finalDraft, growing, signal, startDesk, startWriting } from "../writing.ts";

describe("the status under a thread on Slack", () => {
  test("the status shows the progress and is removed", async () => {
    const { slack, general, question, sink } = await startWriting();
    await sink.progress("thinking", signal);
    expect(slack.status(general, question)).toBe("is thinking…");
    await sink.progress("", signal);
    expect(slack.status(general, question)).toBe("");
  });

  test("the status disappears with the first text, and needs no further call", async () => {
    const { slack, general, question, calls, sink } = await startWriting();
    await sink.progress("thinking", signal);
    const { id } = await sink.post(growing("One"), "n", signal);
    await sink.progress("", signal);
    expect(slack.status(general, question)).toBe("");
    expect(calls("assistant.threads.setStatus")).toBe(1);
    await sink.edit(id, finalDraft("One."), signal);
  });

  test("the adapter removes the status after a status call that was in flight during the first text", async () => {
    const { slack, general, question, sink } = await startWriting();
    slack.failNext("assistant.threads.setStatus", { delayMs: 200 });
    const showing = sink.progress("thinking", signal);
    await slack.until(() => slack.requests.some(({ method }) => method.endsWith("setStatus")), "the status");
    await sink.post(finalDraft("One."), "n", signal);
    await showing;
    expect(slack.status(general, question)).toBe("is thinking…");
    await sink.progress("", signal);
    expect(slack.status(general, question)).toBe("");
  });

  test("an answer outside threads has no status", async () => {
    const { address, outbound, calls } = await startDesk();
    const { threadId: _, ...outside } = address;
    await outbound.sink(outside, NO_RIGHT).progress("thinking", signal);
    expect(calls("assistant.threads.setStatus")).toBe(0);
  });
});
