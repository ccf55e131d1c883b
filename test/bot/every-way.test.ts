import { Readable } from "node:stream";
import fc from "fast-check";
import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { action, ada, ben, command, deleted, edited, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { access as accessSchema } from "../../src/config/policy/access.ts";
import type { Policy } from "../../src/config/policy/policy-file.ts";
import { type Delta, textOf } from "../../src/gateway/chunks.ts";
import type { Gateway, StreamOptions } from "../../src/gateway/client.ts";
import type { ChatRequest } from "../../src/gateway/request.ts";
import { ACTIONS, type InboundEvent, type MessageEvent, type PressedAction } from "../../src/port/events.ts";
import { toCallsId, toEditionId, toPictureId, toTurnId } from "../../src/port/ids.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { toTool } from "../support/tool-calls.ts";

/**
 * People can reach the bot only through five events. Adapters get no other function that asks, creates or changes
 * something (`listen`), and they cannot import one (test/architecture.test.ts). The events and their surfaces:
 * - message: mention, direct message, thread, reply, `!name`, `!server:prompt`, /palaver, Slack's suggested prompts and
 *   message shortcuts, Discord's context menus, the page's composer
 * - edited: an edit, even of a question whose answer is being written; an edit on the page
 * - command: slash commands of both platforms, `!name`, the forms of imagine and the persona, Slack's home tab, the
 *   page's panel
 * - action: each button, reaction and entry in an overflow menu; the forms for a reason and for another image
 * - deleted: a deletion
 */

const PICTURE = await sharp({ create: { width: 8, height: 8, channels: 3, background: "red" } })
  .png()
  .toBuffer();
const TOOLS = ["current_time", "fetch_url", "read_file", "read_thread", "search_history", "shop__list"] as const;

/**
 * Creates a gateway whose model calls each tool once that a message names in brackets, offered or not. The gateway also
 * creates images.
 */
function openGateway(onAsk: (what: string) => void): Gateway {
  async function streamChat({ messages }: ChatRequest, _: AbortSignal, { onChunk }: StreamOptions): Promise<void> {
    onAsk("chat");
    const asked = textOf(messages.findLast(({ role }) => role === "user") ?? { content: "" });
    const names = messages.at(-1)?.role === "tool" ? [] : (/\[(.*)\]/.exec(asked)?.[1]?.split(" ") ?? []);
    const calls = names.map((name, index) => {
      const given = name === "generate_image" ? { prompt: "a fox" } : {};
      return {
        index,
        id: `c${index}`,
        type: "function" as const,
        function: { name, arguments: JSON.stringify(given) },
      };
    });
    const give = (delta: Delta, finish: string | null) =>
      onChunk({
        id: "1",
        model: "fake",
        choices: [{ index: 0, delta, finish_reason: finish }],
      });
    give(calls.length > 0 ? { tool_calls: calls } : { content: "An answer." }, null);
    give({}, calls.length > 0 ? "tool_calls" : "stop");
  }
  return {
    streamChat,
    async generateImage() {
      onAsk("picture");
      return { bytes: PICTURE, mimeType: "image/png", text: "" };
    },
    listModels: async () => ["fake", "painter"],
    close: async () => {},
  };
}

/** Ada has an answer, an image, and a tool call that waits for approval. Later the rules change. */
async function startWorld(rules: object[]) {
  const did: string[] = [];
  const note = (what: string) => void did.push(what);
  const toNoting = (name: string, more?: Partial<Tool>) => toTool(name, async () => (note(name), "done"), more);
  let policy: Policy = {};
  const platform = fakePlatform();
  Object.assign(platform.adapter, {
    notifyPrivately: async () => {},
    openAttachment: async () => {
      did.push("file");
      return Readable.from([Buffer.from("words")]);
    },
  });
  const bot = startEngine({
    platform,
    gateway: openGateway(note),
    imageModel: "painter",
    policy: () => policy,
    tools: TOOLS.filter((name) => !name.includes("__")).map((name) => toNoting(name)),
    outside: {
      toolsOf: () => [toNoting("shop__list"), toNoting("shop__buy", { acts: true, approval: { server: "shop" } })],
      async readPrompt(_, text) {
        if (!text.startsWith("!shop:")) return undefined;
        did.push("prompt");
        return [{ role: "user", content: "An offer." }];
      },
    },
  });
  const [asked, toBuy, drawn] = [message("hello"), message("[shop__buy] buy"), command("imagine", "a fox")];
  for (const event of [asked, { ...toBuy, conversationId: "test:b" }, drawn]) await bot.handle(event);
  expect(did).toEqual(expect.arrayContaining(["chat", "picture"]));
  did.length = 0;
  policy = { access: accessSchema.parse({ admins: ["person:root"], rules }) };
  return { ...bot, did, asked, toBuy, drawn };
}

type World = Awaited<ReturnType<typeof startWorld>>;

const PRESSES = ACTIONS.filter((name): name is PressedAction => name !== "edit");
const WORDS = [
  "hello?",
  "!imagine a fox",
  "imagine a fox",
  "!persona a pirate",
  "!model small",
  "!shop:offer tea",
  `[${TOOLS.join(" ")} generate_image shop__buy]`,
] as const;
const HOW: ReadonlyArray<Partial<MessageEvent>> = [
  {},
  { addressed: "open" },
  { isListenedTo: true },
  { isAnsweredAlone: true },
  { attachments: [{ platform: "test", id: "f", name: "a.txt", sizeBytes: 5 }] },
];
const TARGETS = ["turn", "edition", "calls", "picture", "job"] as const;
const FORMS: ReadonlyArray<Record<string, string>> = [
  {},
  { ratio: "1:1", count: "2", model: "painter" },
  { spoiler: "true" },
];
const TEXTS = ["", "a fox", "on", "off", "a pirate", "small", "shop off", "set x", "clear", "deny chat to person:ben"];

/** One action of a person, as data. `World` connects it with an answer and an image. */
const way = fc.oneof(
  fc.record({
    kind: fc.constant("message" as const),
    text: fc.constantFrom(...WORDS),
    how: fc.constantFrom(...HOW),
    isReply: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant("edited" as const),
    of: fc.constantFrom("asked", "toBuy", "unseen"),
    text: fc.constantFrom(...WORDS),
    isToBot: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant("command" as const),
    index: fc.nat(),
    text: fc.constantFrom(...TEXTS),
    form: fc.constantFrom(...FORMS),
    isFromPicture: fc.boolean(),
    isSpoken: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant("action" as const),
    name: fc.constantFrom(...PRESSES),
    target: fc.constantFrom(...TARGETS),
    reason: fc.option(fc.constant("It is wrong."), { nil: undefined }),
  }),
  fc.record({ kind: fc.constant("deleted" as const) }),
);

type Way = typeof way extends fc.Arbitrary<infer T> ? T : never;
/** A new kind of event must be added here too. */
type Missing = Exclude<InboundEvent["kind"], Way["kind"]>;
const missing: Missing[] = [];

function toTarget(target: (typeof TARGETS)[number], { asked, toBuy, drawn, channel }: World): string {
  const waiting = channel.flatMap(({ draft }) => draft.buttons).find((button) => button.action === "approve");
  const [turnId, drawnId] = [toTurnId(asked.key), toTurnId(drawn.key)];
  const ids = {
    turn: turnId,
    edition: toEditionId(turnId, 1),
    calls: waiting?.turnId ?? toCallsId(toTurnId(toBuy.key), "none"),
    picture: toPictureId(drawnId, 1),
    job: toPictureId(drawnId, 0),
  };
  return ids[target];
}

function toEvent(one: Way, world: World): InboundEvent {
  switch (one.kind) {
    case "message":
      return message(one.text, { author: ada, ...one.how, ...(one.isReply && { inReplyTo: world.asked.messageId }) });
    case "edited": {
      const original = one.of === "unseen" ? message("x") : one.of === "asked" ? world.asked : world.toBuy;
      return { ...edited(original, one.text), ...(one.isToBot && { addressed: "bot" as const }) };
    }
    case "command": {
      const { name } = world.commands[one.index % world.commands.length] ?? { name: "" };
      const options = { ...one.form, ...(one.isFromPicture && { basis: toTarget("picture", world) }) };
      return { ...command(name, one.text, { author: ada }), options, ...(one.isSpoken && { isSpoken: true as const }) };
    }
    case "action": {
      const { name, target, reason } = one;
      return { ...action(name, toTarget(target, world), { author: ada }), ...(reason !== undefined && { reason }) };
    }
    case "deleted":
    default:
      return deleted(world.asked);
  }
}

describe("a forged id", () => {
  const elsewhere = { platform: "test", channelId: "elsewhere" };
  const boss = { ...ben, isModerator: true };

  test.each(PRESSES)("a forged id in the button %s does nothing for a moderator of another channel", async (name) => {
    const world = await startWorld([]);
    const shown = () => world.channel.map((one) => JSON.stringify(one));
    const remembered = () => world.history.read("test:a", { maxEntries: 10 });
    const [before, known] = [shown(), await remembered()];
    for (const target of TARGETS) {
      const press = action(name, toTarget(target, world), { author: boss });
      await world.handle({ ...press, reply: elsewhere, reason: "It is wrong." });
    }
    expect(world.did).toEqual([]);
    expect(shown().slice(0, before.length)).toEqual(before);
    expect(await world.records.readFeedback("test", ben.id)).toEqual([]);
    expect(await remembered()).toEqual(known);
  });

  test("a forged image id in a form creates no image for a person in another channel", async () => {
    const world = await startWorld([]);
    const options = { basis: toTarget("picture", world) };
    await world.handle({ ...command("imagine", "a cat", { author: boss }), reply: elsewhere, options });
    expect(world.did).toEqual([]);
  });
});

describe("actions that the policy denies", () => {
  const ways = fc.array(way, { minLength: 1, maxLength: 12 });

  test("the list of denied actions contains every kind of event", () => expect(missing).toEqual([]));

  test("actions have no effect if asking, images, files, tools and settings are denied", async () => {
    await fc.assert(
      fc.asyncProperty(ways, async (tried) => {
        // Models are not denied, because that alone would already stop every question.
        const deny = ["chat", "pictures", "files", "tools", "settings"];
        const world = await startWorld([{ deny, to: "person:ada" }]);
        const before = await world.settings.read(world.asked.reply);
        for (const one of tried) {
          await world.handle(toEvent(one, world));
          expect(world.did, JSON.stringify(one)).toEqual([]);
        }
        expect(await world.settings.read(world.asked.reply)).toEqual(before);
      }),
      { numRuns: 20 },
    );
  });

  test("actions have no effect except answers if only asking is allowed", async () => {
    const rules = [{ allow: "chat", to: "person:ada" }, { allow: "models", to: "person:ada" }, { deny: "everything" }];
    await fc.assert(
      fc.asyncProperty(ways, async (tried) => {
        const world = await startWorld(rules);
        const before = await world.settings.read(world.asked.reply);
        for (const one of tried) {
          await world.handle(toEvent(one, world));
          expect(
            world.did.filter((what) => what !== "chat"),
            JSON.stringify(one),
          ).toEqual([]);
        }
        expect(await world.settings.read(world.asked.reply)).toEqual(before);
      }),
      { numRuns: 20 },
    );
  });

  test("actions that the policy denies to one person have an effect for another", async () => {
    const world = await startWorld([{ deny: "everything", to: "person:ada" }]);
    for (const text of WORDS) for (const how of HOW) await world.handle(message(text, { author: ben, ...how }));
    expect([...new Set(world.did)]).toEqual(expect.arrayContaining(["chat", "picture", "file", "prompt", ...TOOLS]));
  });
});
