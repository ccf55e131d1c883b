import { setTimeout as sleep } from "node:timers/promises";
import { CHUNKS, CHUNKS_BEFORE, MEASURED_CHUNKS, STREAMS } from "./sse-load.ts";
import { READERS, type ReadStream } from "./sse-readers.ts";

/** The measurements of one client in one process. */
export interface SseResult {
  cpuMicrosPerChunk: number;
  rssKibPerStream: number;
}

/** Seldom enough to cost nothing beside a stream. */
const MEMORY_MS = 100;
/** Streams are opened in groups, as a flood of connections is not what is measured. */
const GROUP_STREAMS = 100;
const GROUP_MS = 20;

interface Sample {
  cpuMicros: number;
  chunks: number;
}

/** Reads all streams of the server at `url` with the client of that name and sends the result to the parent. */
async function measure(name: string, url: string): Promise<SseResult> {
  const create = READERS.get(name);
  if (create === undefined) throw new Error(`There is no client "${name}".`);
  const read = await create(url);
  const rssBytes = process.memoryUsage.rss();

  let chunks = 0;
  let peakBytes = rssBytes;
  let from: Sample | undefined;
  let to: Sample | undefined;
  const weighing = setInterval(() => {
    peakBytes = Math.max(peakBytes, process.memoryUsage.rss());
  }, MEMORY_MS);
  await readAll(read, (count) => {
    chunks += count;
    // By count and not by a timer, which a machine that is busy with other work lets fire when all is over.
    if (from === undefined) {
      if (chunks >= STREAMS * CHUNKS_BEFORE) from = takeSample(chunks);
    } else if (to === undefined && chunks >= STREAMS * (CHUNKS_BEFORE + MEASURED_CHUNKS)) {
      to = takeSample(chunks);
    }
  });
  clearInterval(weighing);
  if (from === undefined || to === undefined || chunks < STREAMS * CHUNKS) {
    throw new Error(`${name} has read ${Math.floor(chunks)} chunks of ${STREAMS * CHUNKS}.`);
  }
  return {
    cpuMicrosPerChunk: (to.cpuMicros - from.cpuMicros) / (to.chunks - from.chunks),
    rssKibPerStream: (peakBytes - rssBytes) / 1_024 / STREAMS,
  };
}

async function readAll(read: ReadStream, onChunks: (count: number) => void): Promise<void> {
  const streams: Array<Promise<void>> = [];
  while (streams.length < STREAMS) {
    for (let opened = 0; opened < GROUP_STREAMS; opened++) streams.push(read(onChunks));
    await sleep(GROUP_MS);
  }
  await Promise.all(streams);
}

function takeSample(chunks: number): Sample {
  const { user, system } = process.cpuUsage();
  return { cpuMicros: user + system, chunks };
}

process.once("disconnect", () => process.exit());
process.send?.(await measure(process.argv[2] ?? "", process.argv[3] ?? ""), () => process.exit());
