import { describe, expect, test } from "vitest";
import { toMetadata } from "../../../adapters/slack/blocks.ts";
import { createLookup, type ReplyPlace } from "../../../adapters/slack/lookup.ts";
import { type Desk, startDesk } from "./writing.ts";

const signal = new AbortController().signal;

function placeOf({ slack, general, question }: Desk): ReplyPlace {
  return { teamId: slack.workspace.id, channelId: general.id, threadTs: question.ts, questionTs: question.ts };
}

/** A message of the bot's that was posted with a nonce. */
async function say({ api, slack, general }: Desk, nonce: string, threadTs?: string): Promise<string> {
  const args = { channel: general.id, text: `for ${nonce}`, metadata: toMetadata(nonce) };
  const thread = threadTs === undefined ? {} : { thread_ts: threadTs };
  const { ts } = await api.call(slack.workspace.id, "chat.postMessage", { ...args, ...thread }, signal);
  return String(ts);
}

describe("looking for a message of an earlier run", () => {
  test("finds it by its nonce, in the thread and at the top level", async () => {
    const desk = await startDesk({ limits: { postBurst: 100 } });
    const lookup = createLookup({ api: desk.api, now: Date.now });
    const inThread = await say(desk, "a", desk.question.ts);
    const outside = await say(desk, "b");
    expect(await lookup.findPost(placeOf(desk), "a", signal)).toMatchObject({ ts: inThread, isUnfinished: false });
    const top = { ...placeOf(desk), threadTs: undefined };
    expect(await lookup.findPost(top, "b", signal)).toMatchObject({ ts: outside });
    expect(await lookup.findPost(placeOf(desk), "b", signal)).toBeUndefined();
  });

  test("asks for no more at once than every app gets, and goes on behind it", async () => {
    const desk = await startDesk({ limits: { postBurst: 100 } });
    for (let index = 0; index < 20; index++) desk.ada.say(desk.general, `${index}`, { thread: desk.question });
    const ts = await say(desk, "a", desk.question.ts);
    expect(await createLookup({ api: desk.api, now: Date.now }).findPost(placeOf(desk), "a", signal)).toMatchObject({
      ts,
    });
    const asked = desk.slack.requests.filter(({ method }) => method === "conversations.replies");
    expect(asked.map(({ args }) => args["limit"])).toEqual(["15", "15"]);
  });

  test("takes a stream that nobody finished for it, and one that carries a nonce for nothing but its own", async () => {
    const desk = await startDesk();
    const { api, slack, general, question, ada } = desk;
    const team = slack.workspace.id;
    const recipient = { recipient_user_id: ada.id, recipient_team_id: team };
    const args = { channel: general.id, thread_ts: question.ts, markdown_text: "One", ...recipient };
    const { ts } = await api.call(team, "chat.startStream", args, signal);
    const lookup = createLookup({ api, now: Date.now });
    expect(await lookup.findPost(placeOf(desk), "a", signal)).toMatchObject({ ts, isUnfinished: true });
    expect(await lookup.findPost(placeOf(desk), "a", signal, { isFinished: true })).toBeUndefined();
    await api.call(team, "chat.stopStream", { channel: general.id, ts, metadata: toMetadata("b") }, signal);
    expect(await lookup.findPost(placeOf(desk), "a", signal)).toBeUndefined();
  });
});
