import { describe, expect, test } from "vitest";
import { startHeldGateway } from "../support/held-gateway.ts";
import { open, start } from "./slack-service.ts";

const BEGINNING = "one two three";
const CHANGED = `${BEGINNING} four five six`;
const WORDS = `${CHANGED} seven eight nine ten eleven twelve`;

describe.concurrent("the service on a Slack that refuses edits", () => {
  test.for([
    ["before", "Socket Mode"],
    ["after", "HTTP"],
  ] as const)(
    "a service killed %s Slack refused an edit shows every word once, over %s",
    async ([when, transport], { onTestFinished }) => {
      // The model pauses at each step, so that the answer has not ended when the process is killed.
      const gateway = await startHeldGateway(WORDS, onTestFinished);
      const { slack, ada, general, service, dataDir } = await start(transport, gateway.env, onTestFinished);
      slack.setStreaming("unknown_method");
      const asked = ada.mention(general, "Count to twelve");
      const shows = (text: string) => () => slack.texts(general, asked)[0] === text;
      await gateway.say(BEGINNING);
      await slack.until(shows(BEGINNING), "the beginning");
      await gateway.say(CHANGED.slice(BEGINNING.length));
      await slack.until(shows(CHANGED), "a change");
      // While a call is in flight, the test cannot know the text of the message.
      const updates = () => slack.requests.filter(({ method }) => method === "chat.update");
      await slack.until(() => updates().every(({ status }) => status !== 0), "the end of it");
      slack.setSealed("edit_window_closed");
      if (when === "after") {
        await gateway.say(" seven");
        await slack.until(() => updates().some(({ error }) => error !== undefined), "a refusal");
      }
      await service.end("SIGKILL");
      await open(slack, transport, dataDir, gateway.env, onTestFinished);
      const isOver = () => slack.texts(general, asked).length > 1 && slack.status(general, asked) === "";
      await slack.until(isOver, "the rest");
      const [first, ...rest] = slack.texts(general, asked);
      expect(first).toBe(CHANGED);
      expect([first, ...rest].join(" ").replace(/ _.*_$/, "")).toBe(WORDS);
    },
  );
});
