import { describe, expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { action, ben, command, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { toTurnId } from "../../src/port/ids.ts";

describe("/export", () => {
  test("/export contains a person's messages, answers and ratings, and /forget erases all of them", async () => {
    const { accept, handle, channel, records, looking } = startEngine();
    await looking.note({ platform: "test", authorId: "ada" }, "C1");
    const [mine, theirs] = [message("mine"), message("theirs", { author: ben })];
    for (const event of [mine, theirs]) await handle(event);
    await accept(action("good", toTurnId(theirs.key)));
    await handle(command("export"));
    const file = channel.at(-1)?.files[0];
    const kept = JSON.parse(new TextDecoder().decode(file?.bytes)) as Record<string, unknown>;
    expect(file?.name).toBe("export.json");
    expect(kept).toMatchObject({
      authorId: "ada",
      conversations: [{ entries: [{ id: mine.messageId }, { id: toTurnId(mine.key) }] }],
      feedback: [{ turnId: toTurnId(theirs.key), feedback: "good" }],
      lookedAt: [{ channelId: "C1" }],
    });
    await handle(command("forget", "me for good"));
    expect((await records.load(toTurnId(theirs.key)))?.feedback).toEqual({});
    expect(await records.readFeedback("test", "ada")).toEqual([]);
    expect(await looking.read({ platform: "test", authorId: "ada" })).toBeUndefined();
  });

  test.each([
    ["files:write", /^I couldn't send you the file .*lacks the permission `files:write`.*Then ask again\.$/],
    [undefined, /^I couldn't send you the file .*This channel doesn't accept files\. Ask me somewhere else\.$/],
  ])("/export says that the platform refused the file; missing permission: %s", async (missing, words) => {
    const platform = fakePlatform();
    const { handle } = startEngine({ platform });
    const refusal = { kind: "forbidden", ...(missing !== undefined && { missing }) } as const;
    platform.setTrouble((call) => (call === "upload" ? refusal : undefined));
    await handle(command("export"));
    expect(platform.channel.map(({ draft }) => draft.markdown)).toEqual([expect.stringMatching(words)]);
  });
});
