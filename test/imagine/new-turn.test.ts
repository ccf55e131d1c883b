import { describe, expect, test } from "vitest";
import { action, ben, command } from "../../lab/support/events.ts";
import { pictureTurn } from "../../lab/support/picture-turn.ts";
import { readCommand, toNextTurn } from "../../src/imagine/new-turn.ts";
import type { ActionEvent, CommandEvent } from "../../src/port/events.ts";
import { toTurnId } from "../../src/port/ids.ts";
import type { PictureTurn } from "../../src/turn/record.ts";

const { signal } = new AbortController();
const file = (id: string) => ({ platform: "test", id, name: `${id}.png`, sizeBytes: 1 });
const source = pictureTurn({
  id: "source",
  references: [file("old")],
  parts: [{ state: "done", messageId: "test:1", attachment: file("shown"), text: "" }, { state: "deleted" }],
});
const deps = {
  findSettled: async (id: string) => (id === "source" ? source : undefined),
  listModels: async () => ["painter", "Other-Painter"],
  model: "painter",
  maxReferences: 2,
};
const imagine = (text: string, more: Partial<CommandEvent> = {}) => ({ ...command("imagine", text), ...more });

describe("a command that creates an image", () => {
  test("a command becomes a turn with everything that it needs later", async () => {
    const event = imagine("a fox --n 2 --model other-painter", { attachments: [file("mine")] });
    expect(await readCommand(deps, event, signal)).toMatchObject({
      turn: {
        id: toTurnId(event.key),
        conversationId: "test:a",
        author: event.author,
        reply: event.reply,
        prompt: "a fox",
        model: "Other-Painter",
        references: [file("mine")],
        parts: [{ state: "pending" }, { state: "pending" }],
      },
    });
  });

  test("a command that changes an image starts from the image, before the attachments", async () => {
    const order = await readCommand(
      deps,
      imagine("x", { options: { basis: "source.1" }, attachments: [file("mine")] }),
      signal,
    );
    expect(order).toMatchObject({ turn: { references: [file("shown"), file("mine")], after: "source" } });
  });

  test("a command that only its author sees belongs to its own conversation", async () => {
    const reply = { platform: "test", channelId: "general", visibleTo: "ada" };
    const event = imagine("x", { reply });
    const conversationId = `test:a~${toTurnId(event.key)}`;
    expect(await readCommand(deps, event, signal)).toMatchObject({ turn: { conversationId } });
  });

  test("a command cannot change an image of another conversation", async () => {
    const reply = { platform: "test", channelId: "elsewhere" };
    const forged = imagine("x", { author: ben, reply, options: { basis: "source.1" } });
    expect(await readCommand(deps, forged, signal)).toEqual({
      refusal: expect.stringContaining("belongs to another conversation"),
    });
  });

  test("a command that changes a private image is for its viewer, in the image's conversation", async () => {
    const reply = { platform: "test", channelId: "general", visibleTo: "ada" };
    const secret = { ...source, conversationId: "test:a~secret", reply };
    const findSettled = async () => secret;
    const wanted = { options: { basis: "source.1" } };
    const order = await readCommand({ ...deps, findSettled }, imagine("x", wanted), signal);
    expect(order).toMatchObject({ turn: { conversationId: "test:a~secret", reply: { visibleTo: "ada" } } });
    const byOther = await readCommand({ ...deps, findSettled }, imagine("x", { ...wanted, author: ben }), signal);
    expect(byOther).toEqual({ refusal: expect.stringContaining("belongs to another conversation") });
  });

  test.each([
    [imagine("x", { options: { basis: "source.2" } }), "the image to start from is no longer stored"],
    [imagine("x", { options: { basis: "nothing" } }), "the image to start from is no longer stored"],
    [
      imagine("x", { attachments: ["a", "b", "c"].map(file) }),
      "3 images are attached, and an image can start from at most 2",
    ],
    [imagine("x --model paint"), "the AI service has no image model `paint`, but `painter`"],
  ])("the bot refuses a command with a list of its problems", async (event, words) => {
    expect(await readCommand(deps, event, signal)).toEqual({ refusal: expect.stringContaining(words) });
  });

  test("a command can use only the default model if the gateway does not list its models", async () => {
    const away = { ...deps, listModels: () => Promise.reject(new Error("away")) };
    expect(await readCommand(away, imagine("x --model painter"), signal)).toMatchObject({ turn: { model: "painter" } });
    const refused = await readCommand(away, imagine("x --model other"), signal);
    expect(refused).toEqual({ refusal: expect.stringContaining("doesn't list its models") });
  });
});

describe("a button that creates an image", () => {
  const press = (name: ActionEvent["action"], from = source, number = 1) => {
    const event = action(name, `${from.id}.${number}`, { author: ben });
    return { event, order: toNextTurn(event, from, number, 2) };
  };

  test("Again repeats the request for the person who pressed", () => {
    const { event, order } = press("again");
    expect(order).toMatchObject({
      turn: {
        id: toTurnId(event.key),
        after: "source",
        author: ben,
        prompt: "a fox",
        references: [file("old")],
        parts: [{ state: "pending" }, { state: "pending" }],
        phase: "received",
      },
    });
  });

  test("Vary starts from the image and its references, as many as allowed", () => {
    const many: PictureTurn = { ...source, references: ["a", "b"].map(file) };
    const turn = { change: "vary", references: [file("shown"), file("a")], parts: [{ state: "pending" }] };
    expect(press("vary", many).order).toMatchObject({ turn });
  });

  test("Upscale asks for the next size from the image alone, up to the largest size", () => {
    expect(press("upscale").order).toMatchObject({
      turn: { change: "upscale", size: "2K", references: [file("shown")] },
    });
    expect(press("upscale", { ...source, size: "4K" }).order).toEqual({
      refusal: expect.stringContaining("is already at the largest size"),
    });
  });

  test("a button says that its image was deleted or cannot be opened", () => {
    const closed = pictureTurn({ parts: [{ state: "done", messageId: "test:1", text: "" }] });
    expect(press("vary", closed).order).toEqual({ refusal: expect.stringContaining("can't open this image again") });
    expect(press("vary", source, 2).order).toEqual({ refusal: expect.stringContaining("too old") });
    expect(press("vary", pictureTurn()).order).toEqual({ refusal: expect.stringContaining("isn't finished yet") });
  });

  test("a button under a private image shows the next image to its viewer alone", () => {
    const mine = {
      ...source,
      author: ben,
      conversationId: "test:a~secret",
      reply: { ...source.reply, visibleTo: "ben" },
    };
    expect(press("again", mine).order).toMatchObject({
      turn: { conversationId: "test:a~secret", reply: { visibleTo: "ben" } },
    });
  });

  test("a button under another person's private image, or in another channel, does nothing", () => {
    const theirs = { ...source, reply: { ...source.reply, visibleTo: "ada" } };
    const elsewhere = { ...source, reply: { ...source.reply, channelId: "elsewhere" } };
    for (const action of ["again", "vary", "upscale"] as const) {
      for (const turn of [theirs, elsewhere]) {
        expect(press(action, turn).order).toEqual({ refusal: expect.stringContaining("another conversation") });
      }
    }
  });
});
