import { countRounds, describeMachine, runBench } from "./support/lifecycle.ts";
import type { SseResult } from "./support/sse-client.ts";
import { CHUNK_EVENT, CHUNKS_PER_SECOND, MEASURED_CHUNKS, STREAMS } from "./support/sse-load.ts";
import { READERS } from "./support/sse-readers.ts";
import { describeSummary, summarize, toRatios } from "./support/statistics.ts";
import { formatTable } from "./support/table.ts";
import { canPin, startWorker } from "./support/worker.ts";

const MAX_ROUNDS = 7;
const CLIENT_CORE = 0;
const SERVER_CORE = 1;
const HEAD = ["client", "CPU µs per chunk", "× bare", "streams a core", "of bare", "KiB per stream", "× bare"];

type Results = Map<string, SseResult[]>;

await runBench(async (resources) => {
  const server = startWorker(import.meta.resolve("./support/sse-server.ts"), [], SERVER_CORE);
  resources.defer(server.end);
  const url = await server.receive<string>();
  const results: Results = new Map([...READERS.keys()].map((name) => [name, []]));
  let rounds = 0;
  for (const _ of countRounds(MAX_ROUNDS)) {
    // Measure all clients in each round, so that a busy moment of the machine affects all of them.
    for (const [name, found] of results) found.push(await measure(resources, name, url));
    rounds += 1;
  }
  return `${describeRun(rounds)}\n\n${formatTable(HEAD, toRows(results))}`;
});

async function measure(resources: AsyncDisposableStack, name: string, url: string): Promise<SseResult> {
  const client = startWorker(import.meta.resolve("./support/sse-client.ts"), [name, url], CLIENT_CORE);
  // Stop the client before the server, because the client reports missing chunks.
  resources.defer(client.end);
  const result = await client.receive<SseResult>();
  await client.end();
  return result;
}

function toRows(results: Results): string[][] {
  const [bare = []] = results.values();
  return [...results].map(([name, found]) => [
    name,
    ...toCells(found.map(cpuOf), bare.map(cpuOf), 1),
    ...toCells(found.map(streamsOf), bare.map(streamsOf), 0),
    ...toCells(found.map(rssOf), bare.map(rssOf), 0),
  ]);
}

function toCells(values: readonly number[], bases: readonly number[], digits: number): string[] {
  return [describeSummary(summarize(values), digits), describeSummary(summarize(toRatios(values, bases)), 2)];
}

function cpuOf({ cpuMicrosPerChunk }: SseResult): number {
  return cpuMicrosPerChunk;
}

/** Returns the number of streams that would keep one core busy. */
function streamsOf({ cpuMicrosPerChunk }: SseResult): number {
  return 1e6 / (cpuMicrosPerChunk * CHUNKS_PER_SECOND);
}

function rssOf({ rssKibPerStream }: SseResult): number {
  return rssKibPerStream;
}

function describeRun(rounds: number): string {
  return [
    `sse: ${describeMachine()}; ${rounds} rounds; median (min–max); × is the median of each round's own ratio.`,
    `${STREAMS} streams at once, ${CHUNKS_PER_SECOND} chunks of ${CHUNK_EVENT.length} bytes a second each; CPU of the client's process over ${MEASURED_CHUNKS} chunks a stream,`,
    `after a warm-up; memory is the peak RSS minus the RSS before the first stream; server ${canPin ? "on the other core" : "not pinned to a core"}.`,
  ].join("\n");
}
