import { describe, expect, test } from "vitest";
import { message } from "../../lab/support/events.ts";
import { toSpokenCommand } from "../../src/commands/spoken.ts";

const NAMES = ["help", "stop", "model", "forget", "imagine"];
const file = { platform: "test", id: "f", name: "cat.png", sizeBytes: 3 };

const spoken = (text: string, options: Parameters<typeof message>[1] = {}) => {
  const command = toSpokenCommand(message(text, options), NAMES);
  return command && [command.name, command.text];
};

describe("a spoken command", () => {
  test.each([
    ["!help", ["help", ""]],
    ["!Help", ["help", ""]],
    ["  !model  sandbox-text ", ["model", "sandbox-text"]],
    ["!imagine a fox\nin snow", ["imagine", "a fox\nin snow"]],
    ["/imagine a fox", ["imagine", "a fox"]],
    ["/imagine", ["imagine", ""]],
    ["Imagine a fox", ["imagine", "a fox"]],
    ...[
      "stop",
      "Stop.",
      "stop!",
      "STOP!!!",
      "stop it…",
      "stop！",
      "stop。",
      "¡stop!",
      "stop、",
      "stop ،",
      "stop 🛑",
      "“stop”",
    ].map((text): [string, [string, string]] => [text, ["stop", ""]]),
    ["imagine two people where the river bends", ["imagine", "two people where the river bends"]],
  ])("the words %j are a spoken command", (text, expected) => {
    expect(spoken(text)).toEqual(expected);
  });

  test.each([
    "!important: read this",
    "!dance",
    "! help",
    "!helpful words",
    "please !help",
    "/model x",
    "stop?",
    "stop？",
    "stop the pump",
    "non-stop",
    "imagine",
    "imaginary friends",
    "/imaginex",
    "I imagine a fox",
    "imagine a world where nobody sleeps",
    "Imagine you’re a pirate and tell me of the sea",
    "imagine that I won",
    "imagine a fox: what would it say?",
  ])("the bot takes the words %j for no spoken command", (text) => {
    expect(spoken(text)).toBeUndefined();
  });

  test("a spoken command keeps the key, channel, author and files of its message", () => {
    const said = message("!imagine a fox", { attachments: [file] });
    const { key, conversationId, author, reply, at } = said;
    expect(toSpokenCommand(said, NAMES)).toEqual({
      kind: "command",
      name: "imagine",
      text: "a fox",
      attachments: [file],
      key,
      conversationId,
      author,
      reply,
      at,
      isSpoken: true,
    });
  });

  test("a spoken command without a prefix must be addressed to the bot", () => {
    expect(spoken("imagine a fox", { addressed: "open" })).toBeUndefined();
    expect(spoken("!imagine a fox", { addressed: "open" })).toEqual(["imagine", "a fox"]);
    expect(spoken("imagine you were here", { attachments: [file] })).toEqual(["imagine", "you were here"]);
  });

  test("a spoken command with an unknown name stays a message", () => {
    expect(toSpokenCommand(message("imagine a fox"), ["help"])).toBeUndefined();
  });
});
