import { expect, onTestFinished, test } from "vitest";
import { openDiscordStage } from "../../../lab/chaos/discord-stage.ts";
import { planRun } from "../../../lab/chaos/plan.ts";
import { INTENTS } from "../../../lab/discord-sim/sessions.ts";
import { createRandom } from "../../../lab/pacing/random.ts";
import { identify } from "../../support/discord-gateway.ts";

const INTENT = INTENTS.guilds | INTENTS.directMessages | INTENTS.guildMessages;

test("the chaos run counts a message as given up only if no Discord session was left to receive it or knew its conversation", async () => {
  const stage = await openDiscordStage({
    ...planRun({ seed: 1, turns: 1, platform: "discord", processes: 1 }),
    places: ["direct", "direct", "channel"],
  });
  onTestFinished(stage.close);
  const [unknown, known, channel] = stage.places;
  const listener = { apiUrl: `${stage.origin}/api`, token: stage.secrets[0] ?? "" };
  const ask = (place = unknown, name = "") => stage.deliveryOf(place!.ask(name, 0)).isGivenUp;
  await identify(listener, { intents: INTENT });
  expect(ask(known, "q1n1")).toBe(false);
  known?.inflict("invalid", createRandom(1));
  expect([ask(unknown, "q1n2"), ask(known, "q1n3"), ask(channel, "q1n4")]).toEqual([true, false, false]);
});
