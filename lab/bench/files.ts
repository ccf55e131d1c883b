import { readFileSync } from "node:fs";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { toContentParts } from "../../src/media/content-parts.ts";
import { createFiles } from "../../src/media/files.ts";
import { type CorpusFile, GOOD_FILES, HOSTILE_FILES, LONG_FILES, SLOW_FILES } from "../support/file-corpus.ts";
import { describeMachine, runBench } from "./support/lifecycle.ts";
import { formatNumber } from "./support/statistics.ts";
import { formatTable } from "./support/table.ts";

const MIB = 1024 * 1024;
const AT_ONCE = 20;
const MAX_TOKENS = 12_000;
const SAMPLE_MS = 20;
const LIMIT_MS = 280_000;
const HEAD = ["file", "kB", "ms", "loop blocked, ms", "memory here, MiB", "memory of the reader, MiB"];

const never = new AbortController().signal;

interface Measured {
  ms: number;
  /**
   * The longest time that the event loop was blocked, measured as processor time of its thread, so that other programs
   * do not count.
   */
  heldMs: number;
  /** Peak memory above the start, of this process and of the process that reads documents. */
  ownBytes: number;
  readerBytes: number;
}

await runBench(async () => {
  const rows = [["nothing for a second, as a baseline", "", ...toCells(await measure(() => sleep(1_000)))]];
  for (const file of [GOOD_FILES, LONG_FILES, HOSTILE_FILES, SLOW_FILES].flat()) {
    const bytes = file.make();
    const measured = await measure(() => show(file, bytes));
    rows.push([file.name, formatNumber(bytes.byteLength / 1_000, 0), ...toCells(measured)]);
  }
  const many = HOSTILE_FILES.slice(0, AT_ONCE).map((file) => ({ file, bytes: file.make() }));
  const measured = await measure(() => Promise.all(many.map(({ file, bytes }) => show(file, bytes))));
  rows.push([`the first ${AT_ONCE} hostile ones at once`, "", ...toCells(measured)]);
  return `files: ${describeMachine()}\n\n${formatTable(HEAD, rows)}`;
}, LIMIT_MS);

/** Reads a file for the model like a turn does. */
async function show({ name }: CorpusFile, bytes: Uint8Array): Promise<void> {
  const files = createFiles(async () => toSource(bytes));
  const ref = { platform: "bench", id: name, name, sizeBytes: bytes.byteLength };
  await toContentParts(await files.load([ref], name, never), MAX_TOKENS);
}

async function* toSource(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  const size = 64 * 1024;
  for (let at = 0; at < bytes.byteLength; at += size) {
    // Let the event loop run between two chunks, as on a network.
    await setImmediate();
    yield bytes.subarray(at, at + size);
  }
}

async function measure(work: () => Promise<unknown>): Promise<Measured> {
  const before = process.memoryUsage.rss();
  const measured = { ms: 0, heldMs: 0, ownBytes: 0, readerBytes: 0 };
  const startMs = performance.now();
  let usedMs = threadMs();
  let sampledMs = 0;
  let isOver = false;
  const tick = () => {
    const nowMs = threadMs();
    measured.heldMs = Math.max(measured.heldMs, nowMs - usedMs);
    if (performance.now() - sampledMs > SAMPLE_MS) {
      sampledMs = performance.now();
      measured.ownBytes = Math.max(measured.ownBytes, process.memoryUsage.rss() - before);
      measured.readerBytes = Math.max(measured.readerBytes, readChildBytes());
    }
    usedMs = threadMs();
    if (!isOver) globalThis.setImmediate(tick);
  };
  tick();
  await work();
  isOver = true;
  tick();
  return { ...measured, ms: performance.now() - startMs };
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** Returns the memory of this process's children; 0 if the system does not report it. */
function readChildBytes(): number {
  try {
    const children = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim().split(" ");
    const pages = children.map((pid) => Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]));
    return pages.reduce((sum, count) => sum + count * 4_096, 0);
  } catch {
    return 0;
  }
}

function toCells({ ms, heldMs, ownBytes, readerBytes }: Measured): string[] {
  return [
    formatNumber(ms, 0),
    formatNumber(heldMs, 1),
    formatNumber(ownBytes / MIB, 0),
    formatNumber(readerBytes / MIB, 0),
  ];
}
