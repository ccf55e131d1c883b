import { describe, expect, test } from "vitest";
import type { Channel, Message } from "../../../../lab/slack-sim/world.ts";
import type { EarlierMessage, MessageEvent } from "../../../../src/port/events.ts";
import { signal, startStage } from "../stage.ts";

const linkTo = (channel: Channel, { ts }: Message, query = "") =>
  `https://acme.slack.com/archives/${channel.id}/p${ts.replace(".", "")}${query}`;
const texts = (found: EarlierMessage[] | undefined) => found?.map(({ text }) => text);

/**
 * Three channels: a public one of other people, a private one of Ada's, and a private one of Bob's. Ada asks in a
 * channel and directly.
 */
async function start() {
  const stage = await startStage();
  const { slack, general, ada, bob, adapter, message } = stage;
  const open = slack.channel({ name: "open", members: [bob] });
  const hers = slack.channel({ name: "hers", kind: "private", members: [ada] });
  const his = slack.channel({ name: "his", kind: "private", members: [bob] });
  const [inOpen, inHers, inHis] = [bob.say(open, "open word"), ada.say(hers, "her word"), bob.say(his, "his word")];
  bob.say(open, "a reply", { thread: inOpen });
  const find = async (ts: string): Promise<MessageEvent> => {
    for (let index = 0; ; index++) {
      const found = await message(index);
      if (found.messageId.endsWith(ts)) return found;
    }
  };
  const inChannel = await find(ada.mention(general, "look").ts);
  const directly = await find(ada.dm("look").ts);
  const read = (link: string, to: MessageEvent) => adapter.readLinked?.(link, 100, to, signal);
  return { ...stage, open, hers, his, inOpen, inHers, inHis, inChannel, directly, find, read };
}

describe("reading a linked message", () => {
  test("the bot reads a linked message in a public channel with its thread", async () => {
    const { open, inOpen, inChannel, read, adapter } = await start();
    expect(texts(await read(linkTo(open, inOpen), inChannel))).toEqual(["open word", "a reply"]);
    const toReply = linkTo(open, inOpen, `?thread_ts=${inOpen.ts}&cid=${open.id}`);
    expect(texts(await read(toReply, inChannel))).toEqual(["open word", "a reply"]);
    expect(await adapter.mayShow?.(`slack:${inChannel.reply.workspaceId}:${open.id}:1.1`, inChannel, signal)).toBe(
      true,
    );
  });

  test("the bot reads a linked message in a private channel only for its members, and only if no one else sees the answer", async () => {
    const { hers, his, inHers, inHis, inChannel, directly, read } = await start();
    expect(await read(linkTo(hers, inHers), inChannel)).toBeUndefined();
    expect(texts(await read(linkTo(hers, inHers), directly))).toEqual(["her word"]);
    expect(await read(linkTo(his, inHis), inChannel)).toBeUndefined();
    expect(await read(linkTo(his, inHis), directly)).toBeUndefined();
  });

  test("in a channel shared with another organisation, the bot reads only links into that channel", async () => {
    const { slack, ada, bob, open, inOpen, find, read } = await start();
    const shared = slack.channel({ name: "partners", members: [ada, bob], isShared: true });
    const asked = await find(ada.mention(shared, "look").ts);
    expect(await read(linkTo(open, inOpen), asked)).toBeUndefined();
    expect(texts(await read(linkTo(shared, bob.say(shared, "here")), asked))).toEqual(["here"]);
  });

  test("the bot reads a linked message in the channel of the question", async () => {
    const { general, bob, inChannel, read } = await start();
    expect(texts(await read(linkTo(general, bob.say(general, "here")), inChannel))).toEqual(["here"]);
  });

  test("the bot does not read a link that leads elsewhere, or to other people's direct conversation", async () => {
    const { bob, inChannel, directly, read } = await start();
    const other = bob.dm("a secret");
    for (const link of [
      "https://example.com/",
      "https://acme.slack.com/archives/C0NONE/p1700000000000000",
      `https://acme.slack.com/archives/${other.channel.id}/p${other.ts.replace(".", "")}`,
    ]) {
      expect(await read(link, inChannel)).toBeUndefined();
      expect(await read(link, directly)).toBeUndefined();
    }
  });
});
