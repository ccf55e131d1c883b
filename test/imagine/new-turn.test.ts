import { describe, expect, test } from "vitest";
import { type NewJobDeps, readCommand, toNextJob } from "../../src/imagine/new-job.ts";
import type { PictureJob } from "../../src/imagine/picture-job.ts";
import type { ActionEvent, CommandEvent } from "../../src/port/events.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { action, ben, command } from "../support/events.ts";
import { pictureJob } from "../support/picture-job.ts";

const { signal } = new AbortController();
const file = (id: string) => ({ platform: "test", id, name: `${id}.png`, sizeBytes: 1 });
const source = pictureJob({
  id: "source",
  references: [file("old")],
  parts: [{ state: "done", messageId: "test:1", attachment: file("shown"), text: "" }, { state: "deleted" }],
});
const deps: NewJobDeps = {
  running: { findSettled: async (id) => (id === "source" ? source : undefined) },
  listModels: async () => ["painter", "Other-Painter"],
  model: "painter",
  maxReferences: 2,
};
const imagine = (text: string, more: Partial<CommandEvent> = {}) => ({ ...command("imagine", text), ...more });

describe("a command", () => {
  test("becomes a job of its own, with everything it needs to be done later", async () => {
    const event = imagine("a fox --n 2 --model other-painter", { attachments: [file("mine")] });
    expect(await readCommand(deps, event, signal)).toMatchObject({
      job: {
        id: toTurnId(event.key),
        conversationId: "test:a",
        isRemembered: true,
        author: event.author,
        reply: event.reply,
        prompt: "a fox",
        model: "Other-Painter",
        references: [file("mine")],
        parts: [{ state: "pending" }, { state: "pending" }],
      },
    });
  });

  test("that changes a picture starts from it, before what is attached", async () => {
    const order = await readCommand(
      deps,
      imagine("x", { options: { basis: "source.1" }, attachments: [file("mine")] }),
      signal,
    );
    expect(order).toMatchObject({ job: { references: [file("shown"), file("mine")], after: "source" } });
  });

  test("that only its author sees belongs to a conversation of its own", async () => {
    const reply = { platform: "test", channelId: "general", visibleTo: "ada" };
    const event = imagine("x", { reply });
    const conversationId = `test:a~${toTurnId(event.key)}`;
    expect(await readCommand(deps, event, signal)).toMatchObject({ job: { conversationId } });
  });

  test("that changes a picture of another conversation is refused", async () => {
    const reply = { platform: "test", channelId: "elsewhere" };
    const forged = imagine("x", { author: ben, reply, options: { basis: "source.1" } });
    expect(await readCommand(deps, forged, signal)).toEqual({
      refusal: expect.stringContaining("of another conversation"),
    });
  });

  test("that changes a picture which one person saw is for that person, in the conversation of the picture", async () => {
    const reply = { platform: "test", channelId: "general", visibleTo: "ada" };
    const secret = { ...source, conversationId: "test:a~secret", reply };
    const running = { findSettled: async () => secret };
    const wanted = { options: { basis: "source.1" } };
    const order = await readCommand({ ...deps, running }, imagine("x", wanted), signal);
    expect(order).toMatchObject({ job: { conversationId: "test:a~secret", reply: { visibleTo: "ada" } } });
    const byOther = await readCommand({ ...deps, running }, imagine("x", { ...wanted, author: ben }), signal);
    expect(byOther).toEqual({ refusal: expect.stringContaining("of another conversation") });
  });

  test.each([
    [imagine("x", { options: { basis: "source.2" } }), "the picture it is to start from is not kept any more"],
    [imagine("x", { options: { basis: "nothing" } }), "the picture it is to start from is not kept any more"],
    [
      imagine("x", { attachments: ["a", "b", "c"].map(file) }),
      "3 pictures are attached, and a picture may start from 2",
    ],
    [imagine("x --model paint"), "the AI service has no model `paint` for pictures, but `painter`"],
  ])("is refused with what is wrong", async (event, words) => {
    expect(await readCommand(deps, event, signal)).toEqual({ refusal: expect.stringContaining(words) });
  });

  test("can use the usual model when the gateway does not tell its models, and only that one", async () => {
    const away = { ...deps, listModels: () => Promise.reject(new Error("away")) };
    expect(await readCommand(away, imagine("x --model painter"), signal)).toMatchObject({ job: { model: "painter" } });
    const refused = await readCommand(away, imagine("x --model other"), signal);
    expect(refused).toEqual({ refusal: expect.stringContaining("doesn't list its models") });
  });
});

describe("a button", () => {
  const press = (name: ActionEvent["action"], from = source, number = 1) => {
    const event = action(name, `${from.id}.${number}`, { author: ben });
    return { event, order: toNextJob(event, from, number, 2) };
  };

  test("asks for the same once more, for the one who pressed it", () => {
    const { event, order } = press("again");
    expect(order).toMatchObject({
      job: {
        id: toTurnId(event.key),
        after: "source",
        author: ben,
        prompt: "a fox",
        references: [file("old")],
        parts: [{ state: "pending" }, { state: "pending" }],
        isOver: false,
      },
    });
  });

  test("asks for a variation from the picture and what it was drawn from, as many as may be", () => {
    const many: PictureJob = { ...source, references: ["a", "b"].map(file) };
    const job = { change: "vary", references: [file("shown"), file("a")], parts: [{ state: "pending" }] };
    expect(press("vary", many).order).toMatchObject({ job });
  });

  test("asks for the next size from the picture alone, as long as there is one", () => {
    expect(press("upscale").order).toMatchObject({
      job: { change: "upscale", size: "2K", references: [file("shown")] },
    });
    expect(press("upscale", { ...source, size: "4K" }).order).toEqual({
      refusal: expect.stringContaining("has the largest size"),
    });
  });

  test("of a picture that cannot be opened, or was taken away, says so", () => {
    const closed = pictureJob({ parts: [{ state: "done", messageId: "test:1", text: "" }] });
    expect(press("vary", closed).order).toEqual({ refusal: expect.stringContaining("cannot be opened again") });
    expect(press("vary", source, 2).order).toEqual({ refusal: expect.stringContaining("too old") });
    expect(press("vary", pictureJob()).order).toEqual({ refusal: expect.stringContaining("not finished yet") });
  });

  test("under a picture that only one person sees shows the next one to that person alone", () => {
    const mine = {
      ...source,
      author: ben,
      conversationId: "test:a~secret",
      reply: { ...source.reply, visibleTo: "ben" },
    };
    expect(press("again", mine).order).toMatchObject({
      job: { conversationId: "test:a~secret", reply: { visibleTo: "ben" } },
    });
  });

  test("under a picture that only somebody else sees, or that stands elsewhere, does nothing", () => {
    const theirs = { ...source, reply: { ...source.reply, visibleTo: "ada" } };
    const elsewhere = { ...source, reply: { ...source.reply, channelId: "elsewhere" } };
    for (const action of ["again", "vary", "upscale"] as const) {
      for (const job of [theirs, elsewhere]) {
        expect(press(action, job).order).toEqual({ refusal: expect.stringContaining("another conversation") });
      }
    }
  });
});
