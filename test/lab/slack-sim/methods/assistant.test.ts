import { describe, expect, test } from "vitest";
import { createClock } from "../../../../lab/slack-sim/clock.ts";
import { createWebClient, errorOf, postMessage } from "../../../../lab/slack-sim/web-api.ts";
import { startSlack } from "../../../support/slack.ts";

async function startQuestion() {
  const slack = await startSlack({ clock: createClock({ isFrozen: true }) });
  const ada = slack.user({ name: "Ada" });
  const question = ada.dm("hello");
  const place = { channel_id: question.channel.id, thread_ts: question.ts };
  const client = createWebClient(slack);
  const setStatus = (status: string) => client.assistant.threads.setStatus({ ...place, status });
  const status = () => slack.status(question.channel, question);
  return { slack, question, place, client, setStatus, status };
}

describe("the simulated methods of assistant", () => {
  test("a status stays until the app removes it", async () => {
    const { setStatus, status } = await startQuestion();
    await setStatus("is thinking");
    expect(status()).toBe("is thinking");
    await setStatus("");
    expect(status()).toBe("");
  });

  test("a status disappears when the app posts into the thread", async () => {
    const { slack, question, client, setStatus, status } = await startQuestion();
    await setStatus("is thinking");
    await postMessage(client, { channel: question.channel.id, thread_ts: question.ts, text: "done" });
    expect(status()).toBe("");
    expect(slack.statuses(question.channel, question).map(({ status, by }) => [status, by])).toEqual([
      ["is thinking", "app"],
      ["", "slack"],
    ]);
  });

  test("a status disappears two minutes after its last change", async () => {
    const { slack, setStatus, status } = await startQuestion();
    await setStatus("is thinking");
    slack.advance(100_000);
    await setStatus("is still thinking");
    slack.advance(100_000);
    expect(status()).toBe("is still thinking");
    slack.advance(20_000);
    expect(status()).toBe("");
  });

  test("a status has at most ten loading messages and names a thread", async () => {
    const { slack, place } = await startQuestion();
    const set = (args: Record<string, unknown>) => errorOf(slack, "assistant.threads.setStatus", { ...place, ...args });
    expect(await set({ status: "x", loading_messages: Array.from({ length: 11 }, () => "…") })).toBe(
      "invalid_arguments",
    );
    expect(await set({ status: "x", loading_messages: ["…"] })).toBe("ok");
    expect(await set({})).toBe("invalid_arguments");
    expect(await set({ status: "x", thread_ts: "" })).toBe("invalid_arguments");
  });

  test("the simulator stores title, session and up to four prompts", async () => {
    const { slack, question, place, client } = await startQuestion();
    await client.assistant.threads.setTitle({ ...place, title: "Greeting" });
    await client.assistant.threads.setSuggestedPrompts({
      ...place,
      prompts: [{ title: "More", message: "Tell me more" }],
    });
    expect(await errorOf(slack, "agents.sessions.setStatus", { ...place, status: "processing" })).toBe("ok");
    expect(await errorOf(slack, "agents.sessions.setStatus", { ...place, status: "dancing" })).toBe(
      "invalid_arguments",
    );
    expect(slack.assistant.title(question.channel, question.ts)).toBe("Greeting");
    expect(slack.assistant.prompts(question.channel)).toEqual(["More"]);
    expect(slack.assistant.session(question.channel, question.ts)).toBe("processing");
    const prompts = Array.from({ length: 5 }, () => ({ title: "x", message: "y" }));
    expect(await errorOf(slack, "assistant.threads.setSuggestedPrompts", { ...place, prompts })).toBe(
      "invalid_arguments",
    );
  });
});
