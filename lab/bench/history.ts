import { MESSAGE_CHARS, SHAPES, type StoredConversation } from "./support/history-shapes.ts";
import { type MeasuredStore, startStores } from "./support/history-stores.ts";
import { countRounds, describeMachine, runBench } from "./support/lifecycle.ts";
import { describeSummary, formatNumber, summarize, toRatios } from "./support/statistics.ts";
import { formatTable } from "./support/table.ts";

const MAX_ROUNDS = 9;
/** Appends per round. The result is their median, because a busy disk delays only one append. */
const APPENDS = 5;
const LENGTHS = [10, 1_000, 10_000];

interface Measured {
  conversation: StoredConversation;
  bytes: number[];
  ms: number[];
}

/** A row of the table: conversations of the same length, one for each way to store them. */
interface Row {
  store: MeasuredStore;
  messages: number;
  byShape: Map<string, Measured>;
}

await runBench(async (resources) => {
  const stores = await startStores(resources);
  const rows = (await Promise.all(stores.map(createRows))).flat();
  let rounds = 0;
  for (const _ of countRounds(MAX_ROUNDS)) {
    for (const { store, byShape } of rows) for (const measured of byShape.values()) await measure(store, measured);
    rounds += 1;
  }
  const table = formatTable(toHead([...SHAPES.keys()]), rows.map(toCells));
  return `${describeRun(rounds)}\n\n${table}${stores.length > 1 ? "" : "\n\nWithout redis-server, Redis was not measured."}`;
});

async function createRows(store: MeasuredStore): Promise<Row[]> {
  const rows: Row[] = [];
  for (const messages of LENGTHS) {
    const byShape = new Map<string, Measured>();
    for (const [shape, create] of SHAPES) {
      byShape.set(shape, { conversation: await create(store, messages), bytes: [], ms: [] });
    }
    rows.push({ store, messages, byShape });
  }
  return rows;
}

async function measure(store: MeasuredStore, { conversation, bytes, ms }: Measured): Promise<void> {
  const samples: Array<{ bytes: number; ms: number }> = [];
  for (let index = 0; index < APPENDS; index++) {
    let tookMs = 0;
    const moved = await store.countBytes(async () => {
      const startMs = performance.now();
      await conversation.append();
      tookMs = performance.now() - startMs;
    });
    samples.push({ bytes: moved, ms: tookMs });
    await conversation.undo();
  }
  bytes.push(summarize(samples.map((sample) => sample.bytes)).median);
  ms.push(summarize(samples.map((sample) => sample.ms)).median);
}

function toHead(shapes: readonly string[]): string[] {
  const [first = "", ...others] = shapes;
  return [
    "store",
    "messages",
    `${first}: bytes`,
    "ms",
    ...others.flatMap((shape) => [`${shape}: bytes`, "× bytes", "ms", "× ms"]),
  ];
}

function toCells({ store, messages, byShape }: Row): string[] {
  const [first, ...others] = byShape.values();
  const cells = (values: readonly number[], digits: number) => describeSummary(summarize(values), digits);
  const times = (values: readonly number[], bases: readonly number[] = []) =>
    formatNumber(summarize(toRatios(values, bases)).median, 1);
  return [
    store.name,
    formatNumber(messages, 0),
    cells(first?.bytes ?? [], 0),
    cells(first?.ms ?? [], 2),
    ...others.flatMap(({ bytes, ms }) => [
      cells(bytes, 0),
      times(bytes, first?.bytes),
      cells(ms, 2),
      times(ms, first?.ms),
    ]),
  ];
}

function describeRun(rounds: number): string {
  return [
    `history: ${describeMachine()}; ${rounds} rounds, each the median of ${APPENDS} appends; median (min–max) of the rounds.`,
    `Cost of appending one message of ${MESSAGE_CHARS} characters to a conversation that already has the given number. Bytes are those that SQLite`,
    "writes to its log, or those to and from Redis; × compares with a key per message, round by round.",
  ].join("\n");
}
