import { describe, expect, test } from "vitest";
import { toTurnId } from "../../src/port/ids.ts";
import { startEngine } from "../support/engine.ts";
import { action, ben, command, message } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";

describe("/export", () => {
  test("/export holds what a person said, was answered, and thinks of answers; /forget takes all of it back", async () => {
    const { accept, idle, channel, records, looking } = startEngine();
    await looking.note({ platform: "test", authorId: "ada" }, "C1");
    const [mine, theirs] = [message("mine"), message("theirs", { author: ben })];
    for (const event of [mine, theirs]) {
      await accept(event);
      await idle();
    }
    await accept(action("good", toTurnId(theirs.key)));
    await accept(command("export"));
    await idle();
    const file = channel.at(-1)?.files[0];
    const kept = JSON.parse(new TextDecoder().decode(file?.bytes)) as Record<string, unknown>;
    expect(file?.name).toBe("export.json");
    expect(kept).toMatchObject({
      authorId: "ada",
      conversations: [{ entries: [{ id: mine.messageId }, { id: toTurnId(mine.key) }] }],
      feedback: [{ turnId: toTurnId(theirs.key), feedback: "good" }],
      lookedAt: [{ channelId: "C1" }],
    });
    await accept(command("forget", "me for good"));
    await idle();
    expect((await records.load(toTurnId(theirs.key)))?.feedback).toEqual({});
    expect(await records.readFeedback("test", "ada")).toEqual([]);
    expect(await looking.read({ platform: "test", authorId: "ada" })).toBeUndefined();
  });

  test.each([
    ["files:write", /^I could not give you the file .*lacks the permission `files:write`.*Then ask for it again\.$/],
    [undefined, /^I could not give you the file .*No file is taken here\. Ask for it in another place\.$/],
  ])("/export reports a refused file; missing permission: %s", async (missing, words) => {
    const platform = fakePlatform();
    const { accept, idle } = startEngine({ platform });
    const refusal = { kind: "forbidden", ...(missing !== undefined && { missing }) } as const;
    platform.setTrouble((call) => (call === "upload" ? refusal : undefined));
    await accept(command("export"));
    await idle();
    expect(platform.channel.map(({ draft }) => draft.markdown)).toEqual([expect.stringMatching(words)]);
  });
});
