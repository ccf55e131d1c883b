/**
 * Discord for tests and measurements. `api.ts` puts together what the bot may call and what people do; both act
 * on the one `Simulation`. `server.ts` and `dispatcher.ts` are the way of a REST call, `gateway.ts` and
 * `handshake.ts` that of a socket; what the bot does against the rules is in `violations.ts`.
 */
import { randomBytes } from "node:crypto";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createApi } from "./api.ts";
import type { Builders } from "./builders.ts";
import { type Changes, createChanges } from "./changes.ts";
import { type Clock, createClock } from "./clock.ts";
import type { Command } from "./commands.ts";
import { createFaults, type Faults } from "./faults.ts";
import { createFiles } from "./files.ts";
import { createGateway, type Gateway } from "./gateway.ts";
import { createGatewayFaults, type GatewayFaults } from "./gateway-faults.ts";
import { DEFAULT_SESSIONS, type Portal, type SessionLimits } from "./handshake.ts";
import { createLimits, DEFAULT_LIMITS, type LimitSettings } from "./limits.ts";
import { createMessagePayloads } from "./message-payload.ts";
import type { People } from "./people.ts";
import type { PeopleInteractions } from "./people-interactions.ts";
import { createRequestLog, type LoggedRequest } from "./request-log.ts";
import { createRestServer } from "./server.ts";
import { DEFAULT_RULES, type Ping, type Rules, type Simulation, type Typing } from "./simulation.ts";
import { createTimeline } from "./timeline.ts";
import { createViolations, type Violations } from "./violations.ts";
import { type Channel, createWorld, type Guild, type Message, type User } from "./world.ts";

export interface SimulatorOptions {
  /** The real time by default; tests may move it with `advance`. Delays and heartbeats always take real time. */
  clock?: Clock;
  limits?: Partial<LimitSettings>;
  /** Privileged intents switched on in the portal; all by default. */
  intents?: Partial<Portal>;
  sessions?: Partial<SessionLimits>;
  rules?: Partial<Rules>;
  /** Length of every round trip. */
  latencyMs?: number;
  heartbeatIntervalMs?: number;
  /** Events leave out whatever Discord may leave out, and the way to the gateway what others do. */
  isSparse?: boolean;
  /** What GET /gateway/bot recommends. */
  shards?: number;
  /** Puts something before it, given its origin, and resolves to the origin at which it is reached then. */
  via?(origin: string): Promise<string>;
}

export interface Discord extends Builders, Pick<Violations, "assertClean"> {
  /** For `DISCORD_API_URL` and `rest.api`: without the version. */
  readonly apiUrl: string;
  readonly token: string;
  readonly bot: User;
  readonly clock: Clock;
  readonly people: People & PeopleInteractions;
  readonly faults: Faults;
  readonly gateway: GatewayFaults;
  /** Every channel, thread and direct conversation there is. */
  places(): readonly Channel[];
  /** What was not deleted in a channel, oldest first. Ephemeral messages are among them. */
  messages(channel: Channel): readonly Message[];
  /** What the bot has registered: globally, or for a guild. */
  commands(guild?: Guild): readonly Command[];
  readonly pings: readonly Ping[];
  readonly typing: readonly Typing[];
  readonly requests: readonly LoggedRequest[];
  readonly violations: Violations["list"];
  readonly until: Changes["until"];
  close(): Promise<void>;
}

/** Discord on a loopback port, REST and gateway. Whoever starts it closes it. */
export async function createDiscord(options: SimulatorOptions = {}): Promise<Discord> {
  const { latencyMs = 0, heartbeatIntervalMs = 41_250, isSparse = false, shards = 1 } = options;
  const sessionLimits: SessionLimits = { ...DEFAULT_SESSIONS, ...options.sessions };
  const closing = new AbortController();
  let host = "";
  const gatewayUrl = () => `ws://${host}`;
  let gateway: Gateway | undefined;
  const simulation = createSimulation(options, {
    deliver: (event) => gateway?.deliver(event),
    origin: () => `http://${host}`,
  });
  const { clock, world, changes, violations, files, portal } = simulation;
  const token = createToken(world.bot.id);
  const isToken = (given: string) => given === token;
  const requests = createRequestLog(clock);
  const api = createApi({ simulation, sessionLimits, recommendedShards: shards, isSparse, gatewayUrl });
  const faults = createFaults(api.routes);
  const server = createRestServer({
    clock,
    routes: api.routes,
    limits: createLimits({ ...DEFAULT_LIMITS, ...options.limits }, clock, violations),
    faults,
    requests,
    violations,
    latencyMs,
    isToken,
    serveFile: files.serve,
    notify: changes.notify,
    closed: closing.signal,
  });
  const shared = { clock, changes, world, violations, portal, sessionLimits, isToken };
  const sockets = createGateway(server, { ...shared, heartbeatIntervalMs, isSparse, url: gatewayUrl });
  gateway = sockets;
  host = await listen(server);
  if (options.via !== undefined) host = new URL(await options.via(`http://${host}`)).host;

  return {
    ...api.builders,
    apiUrl: `http://${host}/api`,
    token,
    bot: world.bot,
    clock,
    people: api.people,
    faults,
    gateway: createGatewayFaults(sockets),
    places: () => [...world.channels.values()],
    messages: ({ messages }) => [...messages.values()].filter(({ deletedAtMs }) => deletedAtMs === undefined),
    commands: (guild) => api.commands.list(guild?.id),
    pings: simulation.pings,
    typing: simulation.typing,
    requests: requests.list,
    violations: violations.list,
    assertClean: violations.assertClean,
    until: changes.until,
    async close() {
      changes.close();
      closing.abort();
      sockets.close();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function createSimulation(
  { clock = createClock(), intents, rules: ownRules }: SimulatorOptions,
  { deliver, origin }: Pick<Simulation, "deliver"> & { origin(): string },
): Simulation {
  const world = createWorld(clock);
  const changes = createChanges();
  const files = createFiles(origin, clock);
  const rules = { ...DEFAULT_RULES, ...ownRules };
  const payloads = createMessagePayloads({ world, linkTo: files.linkTo, sendsChannelType: rules.sendsChannelType });
  return {
    clock,
    world,
    changes,
    violations: createViolations(clock.now),
    files,
    payloads,
    timeline: createTimeline({ clock, world, changes, payloads, deliver }),
    portal: { messageContent: true, members: true, presences: true, ...intents },
    rules,
    pings: [],
    typing: [],
    deliver,
  };
}

/** As Discord's own: its first part is the bot's id, from which an invite link can be made. */
function createToken(botId: string): string {
  return [Buffer.from(botId), randomBytes(4), randomBytes(28)].map((part) => part.toString("base64url")).join(".");
}

function listen(server: Server): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => resolve(`127.0.0.1:${(server.address() as AddressInfo).port}`));
  });
}
