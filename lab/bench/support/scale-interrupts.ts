import { createDiscord, type Discord } from "../../discord-sim/simulator.ts";
import { type Channel, type Message, shown, type User } from "../../discord-sim/world.ts";
import { steady } from "../../pacing/scenarios.ts";
import { lookFor } from "../../support/look-for.ts";
import { startRedis } from "../../support/redis.ts";
import { makeDataDir, startService } from "../../support/service.ts";
import { describeMachine } from "./lifecycle.ts";
import { type PacedUpstream, startPacedUpstream } from "./paced-upstream.ts";
import { formatNumber, summarize } from "./statistics.ts";
import { formatTable } from "./table.ts";

const ROUNDS = 6;
const WAIT_MS = 30_000;
/** Slow enough that no answer ends during the measurement. */
const ANSWER = steady(600, 20);
/** Roles of the processes; empty: one process without Redis. */
const SETUPS = new Map<string, readonly string[]>([
  ["one", []],
  ["one on Redis", ["all"]],
  ["ingress, two workers", ["ingress", "worker", "worker"]],
]);

interface Scene {
  discord: Discord;
  channel: Channel;
  ada: User;
  question: Message;
  answer: Message;
}

/** What people do with a growing answer, and when the answer's last state appeared. */
const WAYS: Readonly<Record<string, { act(scene: Scene): void; lastMs(scene: Scene): number | undefined }>> = {
  stop: {
    act: ({ discord, ada, answer }) => void discord.people.press(answer, ada, "Stop"),
    lastMs: ({ answer }) => (/stopped/i.test(shown(answer).content) ? answer.states.at(-1)?.atMs : undefined),
  },
  edit: {
    act: ({ discord, question }) => discord.people.edit(question, `<@${discord.bot.id}> again ${question.id}`),
    // The answer restarts, so it has no last state.
    lastMs: () => undefined,
  },
  delete: {
    act: ({ discord, question }) => discord.people.delete(question),
    lastMs: ({ answer }) => answer.deletedAtMs,
  },
  forget: {
    act: ({ discord, channel, ada }) => void discord.people.command(channel, ada, "forget", { what: "me for good" }),
    lastMs: ({ answer }) => (hasButton(answer) ? undefined : (answer.deletedAtMs ?? answer.states.at(-1)?.atMs)),
  },
};

function hasButton(answer: Message): boolean {
  return answer.deletedAtMs === undefined && JSON.stringify(shown(answer)).includes('"Stop"');
}

/** Measures on Discord how long it takes from a person's action until the answering process ends the answer. */
export async function benchInterrupts(resources: AsyncDisposableStack): Promise<string> {
  const rows = await Promise.all(
    [...SETUPS].map(async ([name, roles]) => {
      const cells: string[] = [];
      const world = await open(resources, roles);
      for (const way of Object.keys(WAYS)) cells.push(await measure(world, way));
      return [name, ...cells];
    }),
  );
  return [
    `scale: interrupts on Discord, answers of 20 tokens a second; ${describeMachine()}, all rows at the same time.`,
    `From the event to the end of the stream from the model, and to the last change of the message, in ms: median (worst) of ${ROUNDS}.`,
    "",
    formatTable(["processes", ...Object.keys(WAYS)], rows),
  ].join("\n");
}

interface World {
  discord: Discord;
  upstream: PacedUpstream;
}

async function open(resources: AsyncDisposableStack, roles: readonly string[]): Promise<World> {
  const discord = await createDiscord();
  resources.defer(discord.close);
  const redis = await startRedis();
  resources.defer(redis.stop);
  const upstream = await startPacedUpstream(() => ANSWER);
  resources.defer(upstream.close);
  await Promise.all(
    (roles.length === 0 ? [undefined] : roles).map(async (role) => {
      const { path, remove } = await makeDataDir();
      resources.defer(remove);
      const service = await startService(path, {
        GATEWAY_BASE_URL: upstream.url,
        GATEWAY_API_KEY: "none",
        CHAT_MODEL: "paced",
        DISCORD_TOKEN: discord.token,
        DISCORD_API_URL: discord.apiUrl,
        DISCORD_THREADS: "off",
        ...(role !== undefined && { REDIS_URL: redis.url, ROLE: role }),
      });
      resources.defer(async () => void (await service.end("SIGKILL")));
    }),
  );
  return { discord, upstream };
}

async function measure({ discord, upstream }: World, name: string): Promise<string> {
  const way = WAYS[name];
  const [abortMs, lastMs]: [number[], number[]] = [[], []];
  if (way === undefined) return "";
  for (let round = 0; round < ROUNDS; round++) {
    const guild = discord.addGuild();
    const channel = discord.addChannel(guild, `${name}-${round}`);
    const ada = discord.addUser(`${name} ${round}`, guild);
    const text = `${name} ${round}`;
    const question = discord.people.say(channel, ada, text, { mentionBot: true });
    const findAnswer = () =>
      discord.messages(channel).find(({ author, states }) => author === discord.bot && states.length >= 2);
    const answer = await lookFor(findAnswer, WAIT_MS);
    if (answer === undefined) throw new Error(`No answer to: ${text}`);
    const scene = { discord, channel, ada, question, answer };
    const at = Date.now();
    way.act(scene);
    await lookFor(() => upstream.endOf(text) > 0, WAIT_MS);
    abortMs.push(upstream.endOf(text) - at);
    if (name === "edit") continue;
    const last = await lookFor(() => way.lastMs(scene), WAIT_MS);
    lastMs.push((last ?? Number.NaN) - at);
  }
  return [abortMs, lastMs].map(format).filter(Boolean).join(", ");
}

function format(values: readonly number[]): string {
  if (values.length === 0) return "";
  return `${formatNumber(summarize(values).median, 0)} (${formatNumber(Math.max(...values), 0)})`;
}
