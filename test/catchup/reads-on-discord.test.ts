import { expect, test } from "vitest";
import { alone } from "../search/rights.ts";
import { ask, startWorld } from "../support/rights-on-discord.ts";

const signal = new AbortController().signal;

/** Two threads of #general, each with one message. `read` reads the channel for Ada. */
async function start() {
  const world = await startWorld();
  world.thread("general", "first");
  world.thread("general", "second");
  const asked = await ask(world, { asks: "general" });
  async function read() {
    const range = { since: asked.at - 86_400_000, until: asked.at + 60_000, fromOwn: false, maxMessages: 100 };
    const recent = await world.adapter.readRecent?.(
      `discord:${world.channel("general").id}`,
      range,
      alone(asked),
      signal,
    );
    const texts = recent?.messages.map(({ text }) => text) ?? [];
    return { threads: texts.filter((text) => /first|second/.test(text)).toSorted(), gaps: recent?.gaps };
  }
  return { ...world, read };
}

test("a channel on Discord is read with its threads, without a gap", async () => {
  const { read } = await start();
  expect(await read()).toEqual({ threads: ["rocket first", "rocket second"], gaps: [] });
});

test("threads that Discord does not list are said to be missing", async () => {
  const { discord, read } = await start();
  discord.faults.failNext("GET /channels/:channel/threads/archived/public", { status: 403, times: 9 });
  expect(await read()).toMatchObject({ gaps: ["Discord didn't list all threads, so some are missing."] });
});

test("a thread that Discord does not show costs only its own messages", async () => {
  const { discord, read } = await start();
  // The first call reads the channel itself.
  discord.faults.failNext("GET /channels/:channel/messages", { status: 403, skip: 1 });
  const { threads, gaps } = await read();
  expect(threads).toHaveLength(1);
  expect(gaps).toEqual(["I couldn't read one of the threads."]);
});
