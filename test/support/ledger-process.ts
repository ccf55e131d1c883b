/**
 * A bot with one tool server. Its process kills itself when a tool call reaches a given state in the ledger. Its
 * arguments are the database, the server, the events, and the state at which it dies.
 */

import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { startEngine } from "../../lab/support/engine.ts";
import { fakeGateway } from "../../lab/support/fake-gateway.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { silent } from "../../lab/support/log.ts";
import { address, toMcpConfig } from "../../lab/support/mcp-world.ts";
import type { Gateway } from "../../src/gateway/client.ts";
import { createMcpServers } from "../../src/mcp/servers.ts";
import type { InboundEvent } from "../../src/port/events.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import type { Draft } from "../../src/port/sink.ts";
import type { Entries } from "../../src/store/keyv.ts";
import { createStores } from "../../src/store/keyv.ts";
import type { LedgerRound } from "../../src/tools/ledger.ts";

export interface LedgerProcessOptions {
  path: string;
  serverUrl: string;
  events: InboundEvent[];
  /** The process dies when a call reaches this state, either before or after the state is written. */
  death?: { state: string; isBefore?: boolean };
  /** True to share the history, the ledger and the queue with other processes. */
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

/** An earlier process's messages exist, as on any platform. */
const edit: typeof sink.edit = async (id, draft, signal) => {
  if (!platform.channel.some((shown) => shown.id === id)) platform.channel.push({ id, nonce: id, draft, files: [] });
  return sink.edit(id, draft, signal);
};

/** A model that buys when it is asked to, and answers when it gets the result. */
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
    const stores = redisUrl === undefined ? own : createStores({ redisUrl, database, log: silent }, NO_RIGHT);
    return { ...stores, open: (namespace) => toDeadly(stores.open(namespace)) };
  },
});

function toDeadly(keyv: Entries): Entries {
  const { put } = keyv;
  keyv.put = async (entry) => {
    const isThere = (entry.value as LedgerRound).calls?.some(({ state }) => state === death?.state) ?? false;
    if (isThere && death?.isBefore) die();
    const result = await put(entry);
    if (isThere) die();
    return result;
  };
  return keyv;
}

/** True when the turn has ended, which can be later than the model's last word. */
function isOver({ streaming, buttons }: Draft): boolean {
  return !streaming && buttons.every(({ action }) => action !== "stop");
}

for (const event of events) await engine.accept(event);
// Waits, because this process cannot take over another one's work immediately.
if (redisUrl !== undefined) while (!platform.channel.some(({ draft }) => isOver(draft))) await sleep(20);
await engine.idle();
process.stdout.write(JSON.stringify(platform.channel.map(({ draft }) => draft)));
process.exit(0);
