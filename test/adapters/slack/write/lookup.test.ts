import { describe, expect, test } from "vitest";
import { createToMark, toFingerprint } from "../../../../adapters/slack/ids.ts";
import { toMetadata } from "../../../../adapters/slack/write/draft.ts";
import { toMarkedNames } from "../../../../adapters/slack/write/files.ts";
import { createLookup, type Lookup, type ReplyPlace } from "../../../../adapters/slack/write/lookup.ts";
import type { Message } from "../../../../lab/slack-sim/world.ts";
import { type Desk, MARK_KEY, signal, startDesk } from "../writing.ts";

const toMark = createToMark(MARK_KEY);

function createLookupAt({ api, workspaces }: Desk): Lookup {
  return createLookup({ api, workspaces, toMark, now: Date.now });
}

function placeOf({ slack, general, question }: Desk): ReplyPlace {
  return { teamId: slack.workspace.id, channelId: general.id, threadTs: question.ts, questionTs: question.ts };
}

async function say(desk: Desk, nonce: string, threadTs?: string, mark = toMark(nonce)): Promise<string> {
  const { api, slack, general } = desk;
  const args = { channel: general.id, text: `for ${nonce}`, metadata: toMetadata(mark) };
  const thread = threadTs === undefined ? {} : { thread_ts: threadTs };
  const { ts } = await api.call(slack.workspace.id, "chat.postMessage", { ...args, ...thread }, signal);
  return String(ts);
}

describe("looking up a message of an earlier attempt", () => {
  test("after thirty lookups in a minute, the next fails as unavailable, not as a rate limit on writes", async () => {
    const desk = await startDesk();
    const lookup = createLookupAt(desk);
    for (let count = 0; count < 30; count++) await lookup.findPost(placeOf(desk), "a", signal);
    await expect(lookup.findPost(placeOf(desk), "a", signal)).rejects.toMatchObject({ kind: "unavailable" });
    expect(desk.calls("conversations.replies")).toBe(30);
  });

  test("the lookup reads pages of the size that every app gets, and continues with the next", async () => {
    const desk = await startDesk({ limits: { postBurst: 100 } });
    for (let index = 0; index < 20; index++) desk.ada.say(desk.general, `${index}`, { thread: desk.question });
    const ts = await say(desk, "a", desk.question.ts);
    expect(await createLookupAt(desk).findPost(placeOf(desk), "a", signal)).toMatchObject({
      ts,
    });
    const asked = desk.slack.requests.filter(({ method }) => method === "conversations.replies");
    expect(asked.map(({ args }) => args["limit"])).toEqual(["15", "15"]);
  });

  test("the lookup finds an unfinished stream for any nonce, but a finished stream only for its own nonce", async () => {
    const desk = await startDesk();
    const { api, slack, general } = desk;
    const team = slack.workspace.id;
    const ts = await startStream(desk);
    const lookup = createLookupAt(desk);
    expect(await lookup.findPost(placeOf(desk), "a", signal)).toMatchObject({ ts, isUnfinished: true });
    expect(await lookup.findPost(placeOf(desk), "a", signal, { isFinished: true })).toBeUndefined();
    await api.call(team, "chat.stopStream", { channel: general.id, ts, metadata: toMetadata(toMark("b")) }, signal);
    expect(await lookup.findPost(placeOf(desk), "a", signal)).toBeUndefined();
  });

  test("the lookup finds a stream in the thread of a deleted question", async () => {
    const desk = await startDesk();
    const ts = await startStream(desk);
    desk.ada.delete(desk.question);
    expect(await createLookupAt(desk).findPost(placeOf(desk), "a", signal)).toMatchObject({ ts, isUnfinished: true });
  });

  test("the lookup ignores another app's message, even with the right mark", async () => {
    const desk = await startDesk({ limits: { postBurst: 100 } });
    const { slack, general, question } = desk;
    const other = slack.user({ name: "Other", isBot: true });
    const ts = await say(desk, "a", question.ts);
    const lookup = createLookupAt(desk);
    Object.assign(messageAt(desk, ts), { author: other.user });
    expect(await lookup.findPost(placeOf(desk), "a", signal)).toBeUndefined();

    const stream = other.say(general, "One", { thread: question });
    Object.assign(stream, { stream: messageAt(desk, await startStream(desk)).stream });
    for (const message of general.messages.values()) if (message.author !== other.user) message.stream = undefined;
    expect(await lookup.findPost(placeOf(desk), "a", signal)).toBeUndefined();

    const files = [{ name: "answer.md", contentType: "text/markdown", bytes: Buffer.from("# Long") }];
    const names = toMarkedNames(files, toMark("a"));
    other.upload(general, [{ name: names[0] ?? "", bytes: Buffer.from("# Long") }], "", { thread: question });
    expect(await lookup.findFiles(placeOf(desk), names, signal)).toBeUndefined();
  });

  test("the lookup does not recognize a mark made without the key", async () => {
    const desk = await startDesk();
    await say(desk, "a", desk.question.ts, toFingerprint("a"));
    await say(desk, "b", desk.question.ts, createToMark("the key of another installation")("b"));
    const lookup = createLookupAt(desk);
    expect(await lookup.findPost(placeOf(desk), "a", signal)).toBeUndefined();
    expect(await lookup.findPost(placeOf(desk), "b", signal)).toBeUndefined();
  });

  test("the lookup is unavailable while Slack does not say who the bot is", async () => {
    const desk = await startDesk();
    await say(desk, "a", desk.question.ts);
    desk.slack.failNext("auth.test", { retryAfterS: 1 });
    const looking = createLookupAt(desk).findPost(placeOf(desk), "a", signal);
    await expect(looking).rejects.toMatchObject({ kind: "unavailable" });
  });
});

async function startStream({ api, slack, general, question, ada }: Desk): Promise<string> {
  const team = slack.workspace.id;
  const recipient = { recipient_user_id: ada.id, recipient_team_id: team };
  const args = { channel: general.id, thread_ts: question.ts, markdown_text: "One", ...recipient };
  return String((await api.call(team, "chat.startStream", args, signal))["ts"]);
}

function messageAt({ general }: Desk, ts: string): Message {
  const message = general.messages.get(ts);
  if (message === undefined) throw new Error(`There is no message at ${ts}.`);
  return message;
}
