/**
 * A bot with one tool server, in a process that kills itself when a call of a tool comes so far in the ledger. What it
 * is told stands in its arguments: the database, the server, the events it hears, and where it dies.
 */
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { Keyv } from "keyv";
import type { Gateway } from "../../src/gateway/client.ts";
import { createMcpServers } from "../../src/mcp/servers.ts";
import type { InboundEvent } from "../../src/port/events.ts";
import type { Draft } from "../../src/port/sink.ts";
import { createStores } from "../../src/store/keyv.ts";
import type { LedgerRound } from "../../src/tools/ledger.ts";
import { startEngine } from "./engine.ts";
import { fakeGateway } from "./fake-gateway.ts";
import { fakePlatform } from "./fake-platform.ts";
import { silent } from "./log.ts";
import { address, toMcpConfig } from "./mcp-world.ts";

export interface LedgerProcessOptions {
  path: string;
  serverUrl: string;
  events: InboundEvent[];
  /** The process dies when a call comes to this state: before that is written, or when it is. */
  death?: { state: string; isBefore?: boolean };
  /** The history, the ledger and the queue are shared with other processes. */
  redisUrl?: string;
}

const { path, serverUrl, events, death, redisUrl } = JSON.parse(process.argv[2] ?? "") as LedgerProcessOptions;
const servers = createMcpServers([toMcpConfig("shop", address(serverUrl))], silent);
await servers.tried();
const platform = fakePlatform();
const { sink } = platform;
const attached = { from: "fake", fields: { signature: "of the call" } };
const asked = { name: "shop__buy", arguments: '{"note":"tea"}' };
const BUY = { tool_calls: [{ index: 0, id: "c", type: "function" as const, function: asked, attached }] };

/** Messages that an earlier process wrote are there, as on any platform. */
const edit: typeof sink.edit = async (id, draft, signal) => {
  if (!platform.channel.some((shown) => shown.id === id)) platform.channel.push({ id, nonce: id, draft, files: [] });
  return sink.edit(id, draft, signal);
};

/** A model that buys when it is asked to, and answers when it is shown what came of that. */
const { gateway: scripted } = fakeGateway([]);
const gateway: Gateway = {
  ...scripted,
  streamChat(request, signal, options) {
    const last = request.messages.at(-1);
    const call = request.messages.flatMap((one) => (one.role === "assistant" ? (one.tool_calls ?? []) : [])).at(-1);
    const isSigned = JSON.stringify(call?.attached) === JSON.stringify(attached);
    const answer = last?.content === "buy tea" ? BUY : `I see: ${last?.role}, ${isSigned ? "signed" : "not signed"}`;
    return fakeGateway([answer]).gateway.streamChat(request, signal, options);
  },
};

function die(): void {
  process.kill(process.pid, "SIGKILL");
}

const database = new DatabaseSync(path);
const engine = startEngine({
  database,
  platform: { ...platform, adapter: { ...platform.adapter, sink: () => ({ ...sink, edit }) } },
  outsideTools: servers.toolsOf,
  gateway,
  wrapStores: (own) => {
    const stores = redisUrl === undefined ? own : createStores({ redisUrl, database, log: silent });
    return { ...stores, open: (namespace) => toDeadly(stores.open(namespace)) };
  },
});

function toDeadly(keyv: Keyv): Keyv {
  const set = keyv.set.bind(keyv);
  keyv.set = async (key: string, value: unknown, ttl?: number) => {
    const isThere = (value as LedgerRound).calls?.some(({ state }) => state === death?.state) ?? false;
    if (isThere && death?.isBefore) die();
    const result = await set(key, value, ttl);
    if (isThere) die();
    return result;
  };
  return keyv;
}

/** Ended, and not only waiting for the model. */
function isOver({ streaming, buttons }: Draft): boolean {
  return !streaming && buttons.every(({ action }) => action !== "stop");
}

for (const event of events) await engine.accept(event);
// What another process left is not there to be taken at once.
if (redisUrl !== undefined) while (!platform.channel.some(({ draft }) => isOver(draft))) await sleep(20);
await engine.idle();
process.stdout.write(JSON.stringify(platform.channel.map(({ draft }) => draft)));
process.exit(0);
