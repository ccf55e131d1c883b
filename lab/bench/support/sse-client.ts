import { setTimeout as sleep } from "node:timers/promises";
import { CHUNKS, CHUNKS_BEFORE, MEASURED_CHUNKS, STREAMS } from "./sse-load.ts";
import { READERS, type ReadStream } from "./sse-readers.ts";

export interface SseResult {
  cpuMicrosPerChunk: number;
  rssKibPerStream: number;
}

/** Long enough that the checks cost nothing compared with a stream. */
const MEMORY_MS = 100;
/** Streams open in groups, because the bench does not measure a flood of connections. */
const GROUP_STREAMS = 100;
const GROUP_MS = 20;

interface Sample {
  cpuMicros: number;
  chunks: number;
}

/** Reads all streams of the server at `url` with the named client, and sends the result to the parent process. */
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
    // Count chunks instead of using a timer, because a timer can fire late on a busy machine.
    if (from === undefined) {
      if (chunks >= STREAMS * CHUNKS_BEFORE) from = takeSample(chunks);
    } else if (to === undefined && chunks >= STREAMS * (CHUNKS_BEFORE + MEASURED_CHUNKS)) {
      to = takeSample(chunks);
    }
  });
  clearInterval(weighing);
  if (from === undefined || to === undefined || chunks < STREAMS * CHUNKS) {
    throw new Error(`${name} read only ${Math.floor(chunks)} of ${STREAMS * CHUNKS} chunks.`);
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
