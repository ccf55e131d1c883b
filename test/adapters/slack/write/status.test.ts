import { describe, expect, test } from "vitest";
import { finalDraft, growing, startDesk } from "../writing.ts";

const signal = new AbortController().signal;

describe("the status under a thread on Slack", () => {
  test("shows the progress, and is taken away", async () => {
    const { slack, general, question, address, outbound } = await startDesk();
    const sink = outbound.sink(address);
    await sink.progress("thinking", signal);
    expect(slack.status(general, question)).toBe("is thinking…");
    await sink.progress("", signal);
    expect(slack.status(general, question)).toBe("");
  });

  test("goes with the first text, and costs no further call then", async () => {
    const { slack, general, question, address, outbound, calls } = await startDesk();
    const sink = outbound.sink(address);
    await sink.progress("thinking", signal);
    const { id } = await sink.post(growing("One"), "n", signal);
    await sink.progress("", signal);
    expect(slack.status(general, question)).toBe("");
    expect(calls("assistant.threads.setStatus")).toBe(1);
    await sink.edit(id, finalDraft("One."), signal);
  });

  test("is taken away when it was under way while the text came, since it may come later", async () => {
    const { slack, general, question, address, outbound } = await startDesk();
    const sink = outbound.sink(address);
    slack.failNext("assistant.threads.setStatus", { delayMs: 200 });
    const showing = sink.progress("thinking", signal);
    await slack.until(() => slack.requests.some(({ method }) => method.endsWith("setStatus")), "the status");
    await sink.post(finalDraft("One."), "n", signal);
    await showing;
    expect(slack.status(general, question)).toBe("is thinking…");
    await sink.progress("", signal);
    expect(slack.status(general, question)).toBe("");
  });

  test("is left alone where there is no thread", async () => {
    const { address, outbound, calls } = await startDesk();
    const { threadId: _, ...outside } = address;
    await outbound.sink(outside).progress("thinking", signal);
    expect(calls("assistant.threads.setStatus")).toBe(0);
  });
});
