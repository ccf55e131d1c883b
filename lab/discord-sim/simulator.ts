/**
 * Simulates Discord for tests and measurements. `api.ts` joins the bot's calls and people's actions; both change one
 * `Simulation`. `server.ts` and `dispatcher.ts` handle REST calls, and `gateway.ts` and `handshake.ts` handle sockets.
 * `violations.ts` records the rules that the bot broke.
 */
import { randomBytes } from "node:crypto";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Changes, createChanges } from "../support/changes.ts";
import { createApi } from "./api.ts";
import type { Builders } from "./builders.ts";
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
import { DEFAULT_RULES, type Ping, type Rules, type SearchState, type Simulation, type Typing } from "./simulation.ts";
import { createTimeline } from "./timeline.ts";
import { createViolations, type Violations } from "./violations.ts";
import { type Channel, createWorld, type Guild, type Message, type User } from "./world.ts";

export interface SimulatorOptions {
  /** Default: real time, which tests can move with `advance`. Delays and heartbeats always use real time. */
  clock?: Clock;
  limits?: Partial<LimitSettings>;
  /** The privileged intents that are on in the portal; default: all. */
  intents?: Partial<Omit<Portal, "isPublic">>;
  /** If true, strangers can add the bot to their servers. Default: false, as the setup guide recommends. */
  isPublic?: boolean;
  sessions?: Partial<SessionLimits>;
  rules?: Partial<Rules>;
  latencyMs?: number;
  heartbeatIntervalMs?: number;
  /**
   * If true, events omit all fields that Discord can omit. The response with the gateway's address omits all fields
   * that other servers omit.
   */
  isSparse?: boolean;
  /** Recommended number of shards in the response of GET /gateway/bot. */
  shards?: number;
  /** Default: any free port. */
  port?: number;
  /** Puts a proxy in front of the simulator: gets the simulator's origin and resolves to the proxy's. */
  via?(origin: string): Promise<string>;
}

export interface Discord extends Builders, Pick<Violations, "assertClean"> {
  /** For `DISCORD_API_URL` and `rest.api`, without the version. */
  readonly apiUrl: string;
  readonly token: string;
  readonly bot: User;
  readonly clock: Clock;
  readonly people: People & PeopleInteractions;
  readonly faults: Faults;
  readonly search: SearchState;
  readonly gateway: GatewayFaults;
  /** All channels, threads and direct conversations. */
  places(): readonly Channel[];
  /** Returns a channel's messages, oldest first. Includes ephemeral messages and leaves out deleted ones. */
  messages(channel: Channel): readonly Message[];
  /** Returns the commands that the bot has registered, globally or for a guild. */
  commands(guild?: Guild): readonly Command[];
  readonly pings: readonly Ping[];
  readonly typing: readonly Typing[];
  readonly requests: readonly LoggedRequest[];
  readonly violations: Violations["list"];
  readonly until: Changes["until"];
  close(): Promise<void>;
}

/** Starts Discord's REST and gateway on a loopback port. The caller must close it. */
export async function createDiscord(options: SimulatorOptions = {}): Promise<Discord> {
  const { latencyMs = 0, heartbeatIntervalMs = 41_250, isSparse = false, shards = 1, port = 0 } = options;
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
    changed: changes.changed,
    closed: closing.signal,
  });
  const shared = { clock, changes, world, violations, portal, sessionLimits, isToken };
  const sockets = createGateway(server, { ...shared, heartbeatIntervalMs, isSparse, url: gatewayUrl });
  gateway = sockets;
  host = await listen(server, port);
  if (options.via !== undefined) host = new URL(await options.via(`http://${host}`)).host;

  return {
    ...api.builders,
    apiUrl: `http://${host}/api`,
    token,
    bot: world.bot,
    clock,
    people: api.people,
    faults,
    search: simulation.search,
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
  { clock = createClock(), intents, isPublic = false, rules: ownRules }: SimulatorOptions,
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
    portal: { isPublic, messageContent: true, members: true, presences: true, ...intents },
    search: { unready: 0, isBehind: false },
    rules,
    pings: [],
    typing: [],
    deliver,
  };
}

/** Returns a token like Discord's. Its first part is the bot's id, which an invite link needs. */
function createToken(botId: string): string {
  return [Buffer.from(botId), randomBytes(4), randomBytes(28)].map((part) => part.toString("base64url")).join(".");
}

function listen(server: Server, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(`127.0.0.1:${(server.address() as AddressInfo).port}`));
  });
}
