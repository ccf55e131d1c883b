import { setTimeout as sleep } from "node:timers/promises";
import { abortWith } from "../concurrency/abort.ts";
import { waitAtMost } from "../concurrency/deadlines.ts";
import type { InboundEvent } from "../port/events.ts";
import { chooseNext, FIRST_ROUND, type Work } from "./admission.ts";
import { SUSPECT_DEATHS } from "./attempts.ts";
import { isDrawing, isErasedWith, laneOf, toErased, toWork } from "./event-lane.ts";
import type { Journal, JournalReader } from "./journal.ts";
import { abandon, createLaneWork, createRun, cutWork, type LaneWork, type Run } from "./lane-work.ts";
import { createLanes, type Lane, type Lanes, type Source } from "./lanes.ts";
import { CUT_MS, type Queue, type QueueOptions, RETRY_MS, type Worker } from "./queue.ts";

/** Timeout for each step of `close` that needs a journal, because the journal can be unavailable. */
const HAND_OVER_MS = 500;
/** The longest time that `close` waits for abandoned work to finish its last calls. */
const LATE_MS = 750;

export interface EventQueueOptions extends QueueOptions {
  /**
   * Events for which `isOwn` is true go to `own`, because only this process can answer them. All others go to `shared`.
   */
  journals: { own: Journal; shared?: Journal | undefined; isOwn?(event: InboundEvent): boolean };
  /** Called when another process took a lane over from this one. */
  onTakenOver?(): void;
}

interface Desk {
  readonly lanes: Lanes;
  readonly running: Set<Run>;
  worker: Worker | undefined;
  isClosing: boolean;
  dispatch(): void;
}

/** A queue that keeps the order of the work in memory, and each event in a journal until its work is done. */
export function createEventQueue(options: EventQueueOptions): Queue {
  const { journals, log, retryMs = RETRY_MS, cutMs = CUT_MS } = options;
  const { shared = journals.own, isOwn } = journals;
  const all = [...new Set([journals.own, shared])];
  const pick = (event: InboundEvent) => (isOwn?.(event) === true ? journals.own : shared);
  const { lanes, running }: Pick<Desk, "lanes" | "running"> = { lanes: createLanes(), running: new Set() };
  const desk: Desk = { lanes, running, worker: undefined, isClosing: false, dispatch: () => dispatch() };
  const laneWork = createLaneWork({ lanes, log, retryMs, onReady: desk.dispatch });
  const dispatch = createDispatch(desk, laneWork, () => shared.places(options.maxActive));
  for (const journal of all) journal.open(createReader({ journal, partitions: new Map() }, desk, laneWork, options));

  return {
    async accept(event) {
      if (desk.isClosing) throw new Error("This process is shutting down and accepts no more events.");
      return pick(event).accept(event);
    },
    // Always uses the shared journal, which reaches every process, because another process can show the affected
    // answer.
    tell: (event) => shared.tell(event),
    start(worker) {
      desk.worker = worker;
      for (const journal of all) {
        journal
          .start(worker !== undefined)
          .catch((err: unknown) => log.error({ err }, "the queue could not be opened"));
      }
      dispatch();
    },
    async conversationOf(messageId) {
      for (const journal of all) {
        const found = await journal.conversationOf(messageId);
        if (found !== undefined) return found;
      }
      return undefined;
    },
    progressed(workId) {
      const isOf = ({ lane }: Run) => lane.taken.some(({ event }) => laneOf(event).workId === workId);
      const run = running.values().find(isOf);
      // If no process died during this work, there are no deaths to forget. Progress after a later death deletes the
      // count.
      if (run === undefined || run.lane.taken.every(({ deaths }) => deaths === 0)) return;
      for (const entry of run.lane.taken) entry.deaths = 0;
      const notNoted = (err: unknown) => log.warn({ err, laneId: run.lane.id }, "progress could not be stored");
      run.right?.countAnew().catch(notNoted);
    },
    processes: () => shared.processes(),
    depth: () => ({ waiting: lanes.waiting(), active: running.size }),
    async forget(platform, authorId, exceptKey) {
      await Promise.all(all.map((journal) => journal.forget({ platform, authorId, exceptKey })));
    },
    async forgetDrawings(isMeant) {
      const isErased = (event: InboundEvent) => isDrawing(event) && isMeant(event);
      const erased = (await Promise.all(all.map((journal) => journal.erase(isErased)))).flat();
      const keys = new Set(erased.map(({ key }) => key));
      lanes.drop(({ event }) => keys.has(event.key));
      return erased;
    },
    async close(graceMs) {
      desk.isClosing = true;
      const cutAt = performance.now() + graceMs;
      // Bounded, because an outage of a journal must not delay the end of running work.
      await within(Promise.all(all.map((journal) => journal.handOver())));
      const lateMs = Math.min(cutMs / 2, LATE_MS);
      if (!(await untilEnded(running, Math.max(0, cutAt - performance.now()), cutMs - lateMs))) {
        log.warn({ active: running.size }, "work did not finish in time; the next start resumes it");
        const late = Promise.allSettled([...running].map(({ working }) => working));
        for (const run of running) abandon(run);
        await within(endOf(running));
        // Lets abandoned work remove a message that a late call posted, because no other process knows that message.
        await waitAtMost(late, lateMs);
      }
      await within(Promise.all(all.map((journal) => journal.close())));
    },
  };
}

function createDispatch(desk: Desk, { perform }: LaneWork, places: () => number): () => void {
  const { lanes, running } = desk;
  /** Caches the result of `toWork`, because each choice looks at the work in all waiting lanes. */
  const works = new WeakMap<InboundEvent, Work>();
  let rounds = FIRST_ROUND;

  function toLaneWork({ id, taken, waiting }: Lane): Work {
    const entry = taken[0] ?? waiting[0];
    if (entry === undefined) throw new Error(`Nothing waits in the lane ${id}.`);
    const { event, deaths } = entry;
    const work = works.get(event) ?? toWork(event);
    works.set(event, work);
    return deaths >= SUSPECT_DEATHS ? { ...work, isSuspect: true } : work;
  }

  function choose(ready: readonly Lane[]): Lane | undefined {
    // If this process gets a lost lane back, the lane starts again only after its earlier work here has ended.
    const busy = new Set([...running].map(({ lane }) => lane.id));
    const mayStart = ({ id, source, partition }: Lane) => source.partitions.get(partition) === "open" && !busy.has(id);
    const able = ready.filter(mayStart);
    // A lane without entries has finished its work and is about to free its slot, so it does not count as running.
    const under = [...running].filter(({ lane }) => lane.waiting.length > 0).map(({ lane }) => toLaneWork(lane));
    const choice = chooseNext(rounds, able.map(toLaneWork), under, places());
    rounds = choice?.rounds ?? rounds;
    return choice && able[choice.index];
  }

  return function dispatch() {
    const { worker } = desk;
    if (worker === undefined || desk.isClosing) return;
    for (let lane = lanes.next(choose); lane !== undefined; lane = lanes.next(choose)) {
      const run = createRun(lane);
      running.add(run);
      run.ended = perform(run, worker).finally(() => {
        running.delete(run);
        dispatch();
      });
    }
  };
}

/** Receives the entries of a journal: sorts them into lanes, and aborts work that another process has taken over. */
function createReader(
  source: Source,
  desk: Desk,
  { wake }: LaneWork,
  { log, cutMs = CUT_MS, onTakenOver }: EventQueueOptions,
): JournalReader {
  const { partitions } = source;
  const { lanes, running, dispatch } = desk;
  const isOf = (partition: number) => (lane: Lane) => lane.source === source && lane.partition === partition;
  const lanesOf = (partition: number) => [...lanes.all()].filter(isOf(partition));
  const runsOf = (partition: number) => [...running].filter(({ lane }) => isOf(partition)(lane));
  const runOf = (lane: Lane) => running.values().find((run) => run.lane === lane);

  /** Aborts a run whose lane another process has taken over, or is about to. */
  function lose(run: Run): void {
    if (run.controller.signal.aborted) return;
    log.warn({ laneId: run.lane.id }, "another process has taken over a lane");
    onTakenOver?.();
    abortWith(run.controller, "lost");
    setTimeout(abandon, cutMs, run).unref();
  }

  return {
    onTaken: (partition) => void partitions.set(partition, "reading"),
    onEntries(partition, entries, isAtEnd) {
      const isOurs = partitions.has(partition);
      const fresh = entries.flatMap((entry) => {
        // After this process gave a partition away, it only needs events that can interrupt the work it still does
        // there.
        const { id } = laneOf(entry.event);
        const isRead = isOurs || running.values().some(({ lane }) => lane.id === id && lanes.has(lane));
        const lane = isRead ? lanes.add(source, entry) : undefined;
        return lane === undefined ? [] : [{ lane, event: entry.event }];
      });
      for (const { lane, event } of fresh) {
        runOf(lane)?.missed?.push(event);
        desk.worker?.onAccepted(event);
      }
      if (isAtEnd && isOurs) partitions.set(partition, "open");
      dispatch();
      if (partitions.get(partition) !== "open") return;
      // `dispatch` found no free slot for these events, so people can be shown that they wait.
      for (const { lane, event } of fresh) if (lane.state !== "active") desk.worker?.onWaiting?.(event);
    },
    onGiving(partition) {
      partitions.delete(partition);
      const kept = runsOf(partition).filter(({ lane }) => lanes.has(lane));
      for (const run of kept) run.isKept = true;
      for (const lane of lanesOf(partition)) if (runOf(lane) === undefined) lanes.remove(lane);
      return kept.map(({ lane }) => lane.id);
    },
    onLost(partition) {
      partitions.delete(partition);
      for (const run of runsOf(partition)) if (!run.isKept) lose(run);
      for (const lane of lanesOf(partition)) if (runOf(lane)?.isKept !== true) lanes.remove(lane);
    },
    onLaneLost(laneId) {
      const run = running.values().find(({ lane, isKept }) => lane.id === laneId && isKept);
      if (run !== undefined) lose(run);
    },
    onLaneFreed(laneId) {
      const lane = [...lanes.all()].find(({ id }) => id === laneId);
      if (lane !== undefined) wake(lane);
    },
    async onErase(partition, person) {
      const isTheirs = toErased(person);
      const dropped = lanes.drop(({ event }, lane) => isOf(partition)(lane) && isTheirs(event));
      // Does not abort the person's commands, because one of them can be waiting for this erasure.
      await cutWork(runsOf(partition), (event) => isErasedWith(event) && isTheirs(event));
      return dropped;
    },
    running: (partition) => (partition === undefined ? running.size : runsOf(partition).length),
    onTold: (event) => desk.worker?.onAccepted(event),
  };
}

async function endOf(running: ReadonlySet<Run>): Promise<void> {
  await Promise.all([...running].map(({ ended }) => ended));
}

/** Aborts running work after `graceMs`. Resolves to false if some work is still running `cutMs` after that. */
async function untilEnded(running: ReadonlySet<Run>, graceMs: number, cutMs: number): Promise<boolean> {
  const grace = setTimeout(() => {
    for (const { controller } of running) abortWith(controller, "shutdown");
  }, graceMs);
  const isOver = endOf(running).then(() => true);
  try {
    return await Promise.race([isOver, sleep(graceMs + cutMs, false, { ref: false })]);
  } finally {
    clearTimeout(grace);
  }
}

/** Waits for the task for at most `HAND_OVER_MS`. Ignores its failure. */
async function within(task: Promise<unknown>): Promise<void> {
  await Promise.race([task.catch(() => {}), sleep(HAND_OVER_MS, undefined, { ref: false })]);
}
