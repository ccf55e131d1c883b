import { describe, expect, test } from "vitest";
import { readCommand } from "../../../../adapters/local/listen/commands.ts";

describe("readCommand", () => {
  const known = [
    { name: "help", description: "" },
    { name: "imagine", description: "" },
  ];

  test.for([
    ["/help", "help", ""],
    ["/HELP", "help", ""],
    ["/imagine a fox\nin snow --ratio 16:9 ", "imagine", "a fox\nin snow --ratio 16:9"],
    ["/imagine\nキツネ", "imagine", "キツネ"],
  ])("takes %j for a command", ([typed = "", name, text]) => {
    expect(readCommand(typed, known)).toEqual({ kind: "command", name, text });
  });

  test.for(["hello", "", "/", "//", "/usr/bin/node", "/2", " /help", "a /help", "/こんにちは"])(
    "takes %j for text",
    (typed) => expect(readCommand(typed, known)).toEqual({ kind: "text" }),
  );

  test.for(["/hlep", "/hel", "/helpp", "/hepl", "/halp"])("points from %s to the command that was meant", (typed) => {
    expect(readCommand(typed, known)).toEqual({
      kind: "unknown",
      message: expect.stringContaining("Did you mean /help?"),
    });
  });

  test("says what to do about a command nobody knows", () => {
    expect(readCommand("/frobnicate it", known)).toEqual({
      kind: "unknown",
      message:
        "There is no command /frobnicate. Type / to see the commands there are. With a space in front it is sent as text.",
    });
  });

  test("lets every command through where none are known", () => {
    expect(readCommand("/anything goes", [])).toEqual({ kind: "command", name: "anything", text: "goes" });
  });
});
