import { describe, expect, test } from "vitest";
import { withHome } from "../../../../adapters/slack/interactions/home-sink.ts";
import { SinkError } from "../../../../src/port/errors.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";
import { draft, signal } from "../stage.ts";

const EXTRA = { team: "T1", user: "U1", isFromHome: "true" };

function open(extra: Record<string, string>) {
  const drawn: object[] = [];
  const address = { platform: "slack", channelId: "D1", extra };
  const platform = fakePlatform();
  const sink = withHome(platform.adapter.sink(address), address, async (home) => void drawn.push(home));
  return { ...platform, sink, drawn };
}

describe("an answer to what was asked on the home", () => {
  test("has the home drawn again, once it stands", async () => {
    const { sink, drawn, channel } = open(EXTRA);
    await sink.post(draft("Done."), "n", signal);
    expect(channel).toHaveLength(1);
    expect(drawn).toEqual([{ teamId: "T1", userId: "U1", channelId: "D1" }]);
  });

  test("that was not taken changes nothing there", async () => {
    const { sink, drawn, setTrouble } = open(EXTRA);
    setTrouble(() => ({ kind: "gone" }));
    await expect(sink.post(draft("Done."), "n", signal)).rejects.toThrow(SinkError);
    expect(drawn).toEqual([]);
  });

  test("is told from what was asked elsewhere", async () => {
    const { sink, drawn } = open({ team: "T1", user: "U1" });
    await sink.post(draft("Done."), "n", signal);
    expect(drawn).toEqual([]);
  });
});
