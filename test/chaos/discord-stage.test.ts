import { expect, onTestFinished, test } from "vitest";
import { openDiscordStage } from "../../chaos/discord-stage.ts";
import { identify } from "../simulators/discord/raw-gateway.ts";
import { INTENTS } from "../simulators/discord/sessions.ts";
import { createRandom } from "../support/pacing/random.ts";

const INTENT = INTENTS.guilds | INTENTS.directMessages | INTENTS.guildMessages;

test("what is said after Discord has ended the last session counts as given up only where nobody knew the conversation", async () => {
  const stage = await openDiscordStage(["direct", "direct", "channel"]);
  onTestFinished(stage.close);
  const [unknown, known, channel] = stage.places;
  const listener = { apiUrl: `${stage.origin}/api`, token: stage.secrets[0] ?? "" };
  const ask = (place = unknown, name = "") => stage.told(place!.ask(name, 0)).isGivenUp;
  await identify(listener, { intents: INTENT });
  expect(ask(known, "q1n1")).toBe(false);
  known?.inflict("invalid", createRandom(1));
  expect([ask(unknown, "q1n2"), ask(known, "q1n3"), ask(channel, "q1n4")]).toEqual([true, false, false]);
});
