import { describe, expect, test } from "vitest";
import { COMMANDS } from "../../../../src/commands/commands.ts";
import { startInteractions } from "../interaction-stage.ts";
import { personOf } from "../workspace.ts";

const PNG = { name: "cat.png", bytes: Buffer.from("a picture") };
const TEXT = { name: "notes.txt", bytes: Buffer.from("words") };

describe('the shortcut "Ask about this"', () => {
  test("Ask about this asks in the thread of the message, with its files", async () => {
    const { slack, ada, bob, general, events, workspace } = await startInteractions();
    const root = bob.say(general, "hello");
    const message = bob.upload(general, [TEXT], "look\nat this", { thread: root });
    await ada.shortcut("ask_about", message);
    expect(events).toMatchObject([
      {
        kind: "message",
        addressed: "bot",
        author: { id: personOf(slack, ada) },
        text: "Explain or answer this message from Bob:\n> look\n> at this",
        attachments: [{ name: "notes.txt" }],
        conversationId: `slack:${workspace.teamId}:${general.id}:${root.ts}`,
        reply: { threadId: root.ts },
      },
    ]);
    const [event] = events;
    const asked = event?.kind === "message" ? event.messageId : "";
    expect(asked.startsWith(`slack:${workspace.teamId}:${general.id}:`)).toBe(true);
    expect(asked.endsWith(message.ts)).toBe(false);
  });

  test("Ask about this explains how to invite the bot to a channel that it is not in", async () => {
    const { slack, ada, elsewhere, events } = await startInteractions();
    await ada.shortcut("ask_about", ada.say(elsewhere, "hello"));
    const told = await slack.until(() => slack.ephemerals(elsewhere, ada.id)[0], "the answer");
    expect(told.shown).toMatch(/\/invite/);
    expect(events).toEqual([]);
  });
});

describe('the shortcut "Use as reference"', () => {
  test("Use as reference opens the form with the images of the message, for its thread", async () => {
    const { slack, ada, bob, general, events } = await startInteractions();
    const message = bob.upload(general, [PNG, TEXT], "my cat");
    await ada.shortcut("imagine_from_message", message);
    const view = await slack.until(() => slack.view(ada), "the form");
    expect(JSON.stringify(view.body)).toContain("I'll start from cat.png.");
    expect(JSON.stringify(view.body)).toContain('"max_files":2');
    const files = ada.attach([{ ...PNG, name: "dog.png" }]);
    await ada.submitView(view, { prompt: { value: { value: "both" } }, references: { value: { files } } });
    expect(events).toMatchObject([
      { attachments: [{ name: "cat.png" }, { name: "dog.png" }], reply: { threadId: message.ts } },
    ]);
  });

  test("Use as reference finds the images that the bot created itself", async () => {
    const { slack, ada, general, call, events } = await startInteractions();
    const [file] = ada.attach([PNG]);
    const blocks = [{ type: "image", slack_file: { id: file?.["id"] }, alt_text: "a cat" }];
    await call("chat.postMessage", { channel: general.id, text: "a cat", blocks });
    const [picture] = slack.answers(general);
    if (picture === undefined) throw new Error("There is no picture.");
    await ada.shortcut("imagine_from_message", picture);
    const view = await slack.until(() => slack.view(ada), "the form");
    await ada.submitView(view, { prompt: { value: { value: "at night" } } });
    expect(events).toMatchObject([
      { attachments: [{ platform: "slack", id: expect.stringContaining(String(file?.["id"])) }] },
    ]);
  });

  test("Use as reference explains that a message has no images", async () => {
    const { slack, ada, general } = await startInteractions();
    await ada.shortcut("imagine_from_message", ada.upload(general, [TEXT]));
    const told = await slack.until(() => slack.ephemerals(general, ada.id)[0], "the answer");
    expect(told.shown).toMatch(/found no image in that message/);
  });
});

test("Create an image and Use as reference say that images are off", async () => {
  const { slack, ada, general } = await startInteractions({ imagine: undefined });
  await ada.shortcut("imagine_global");
  const view = await slack.until(() => slack.view(ada), "the answer");
  expect(JSON.stringify(view.body)).toContain("switched off");
  await ada.shortcut("imagine_from_message", ada.upload(general, [PNG]));
  const told = await slack.until(() => slack.ephemerals(general, ada.id)[0], "the answer");
  expect(told.shown).toMatch(/switched off/);
});

describe("What did I miss?", () => {
  test("What did I miss? gives the command in the message's channel and thread, for the asker alone", async () => {
    const { slack, ada, bob, general, events } = await startInteractions({ commands: COMMANDS });
    const root = bob.say(general, "hello");
    await ada.shortcut("command_message_catchup", bob.say(general, "look", { thread: root }));
    const { id: channelId } = general;
    expect(events).toMatchObject([
      {
        kind: "command",
        name: "catchup",
        text: "",
        reply: { channelId, threadId: root.ts, visibleTo: personOf(slack, ada) },
      },
    ]);
  });

  test("What did I miss? without a message covers all channels, in a thread of the direct conversation", async () => {
    const { slack, ada, events } = await startInteractions({ commands: COMMANDS });
    await ada.shortcut("command_global_catchup");
    const [opening] = slack.answers(ada.direct());
    expect(opening?.states.at(-1)?.shown).toContain("What did I miss?");
    const { id: channelId } = ada.direct();
    expect(events).toMatchObject([
      { kind: "command", name: "catchup", text: "all", reply: { channelId, threadId: opening?.ts, isDirect: true } },
    ]);
  });
});

test("an unknown shortcut is acknowledged and does nothing", async () => {
  const { ada, general, events } = await startInteractions();
  const pressed = await ada.shortcut("foreign", ada.say(general, "hello"));
  expect([pressed.isAcknowledged, events]).toEqual([true, []]);
});
