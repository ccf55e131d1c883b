import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { command, deleted, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { toDocx, toParagraph } from "../../lab/support/office.ts";
import { textOf } from "../../src/gateway/chunks.ts";

const letter = { platform: "test", id: "letter", name: "letter.docx", sizeBytes: 1_000 };

/** Starts the bot on a platform that counts how often the letter is downloaded. */
function start(scripts: string[][]) {
  const platform = fakePlatform();
  let opened = 0;
  platform.adapter.openAttachment = async () => {
    opened++;
    return Readable.from([toDocx(toParagraph("The meeting is on Monday."))]);
  };
  const engine = startEngine({ platform, scripts });
  const asked = (index: number) => engine.requests[index]?.messages.map(textOf).join("\n") ?? "";
  return { ...engine, asked, opened: () => opened };
}

describe("a document in a conversation", () => {
  test("the bot reads a document once for the following turns, and again after its author erased all their data", async () => {
    const { handle, asked, opened } = start([["On Monday."], ["Yes."], ["Again."]]);
    await handle(message("When?", { attachments: [letter] }));
    await handle(message("Sure?"));
    expect([asked(0), asked(1)]).toEqual([expect.stringContaining("on Monday"), expect.stringContaining("on Monday")]);
    expect(opened()).toBe(1);
    await handle(command("forget", "me for good"));
    await handle(message("And this?", { attachments: [letter] }));
    expect(opened()).toBe(2);
  });

  test("the bot erases a document with its message", async () => {
    const { handle, asked } = start([["On Monday."], ["I do not know."]]);
    const question = await handle(message("When?", { attachments: [letter] }));
    await handle(deleted(question));
    await handle(message("When was it?"));
    expect(asked(1)).not.toMatch(/meeting|letter/);
  });
});
