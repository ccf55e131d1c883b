import { describe, expect, test } from "vitest";
import { TRANSPORTS } from "../adapters/slack/stage.ts";
import { open, start } from "./slack-service.ts";

const WORDS = "one two three four five six seven eight nine ten eleven twelve";

describe("the service on Slack, where a message takes no more changes", () => {
  for (const transport of TRANSPORTS) {
    for (const when of ["before", "after"] as const) {
      test(`killed ${when} the first refusal, shows every word once, over ${transport}`, async () => {
        const { slack, ada, general, service, dataDir } = await start(transport);
        slack.setStreaming("unknown_method");
        const asked = ada.mention(general, `At 10 tokens per second, say: ${WORDS}`);
        const looks = () => slack.answers(general, asked)[0]?.states.length ?? 0;
        await slack.until(() => looks() > 1, "a change", 20_000);
        // A call under way would leave open what the message shows.
        const updates = () => slack.requests.filter(({ method }) => method === "chat.update");
        await slack.until(() => updates().every(({ status }) => status !== 0), "the end of it", 20_000);
        slack.setSealed("edit_window_closed");
        const isRefused = () => updates().some(({ error }) => error !== undefined);
        if (when === "after") await slack.until(isRefused, "a refusal", 20_000);
        await service.end("SIGKILL");
        const cut = slack.texts(general, asked)[0];
        await open(slack, transport, dataDir);
        const isOver = () => slack.texts(general, asked).length > 1 && slack.status(general, asked) === "";
        await slack.until(isOver, "the rest", 20_000);
        const [first, ...rest] = slack.texts(general, asked);
        expect(first).toBe(cut);
        expect([first, ...rest].join(" ").replace(/ _.*_$/, "")).toBe(WORDS);
      });
    }
  }
});
