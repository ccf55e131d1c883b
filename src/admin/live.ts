import type { Processes } from "../insight/processes.ts";
import type { Now } from "./page/wire.ts";

const LOOK_MS = 1_000;
/** Tabs that may look at once, at one process. */
const MAX_VIEWERS = 50;
/** A stream that nobody reads any more is ended. */
const MAX_WAITING_EVENTS = 8;

/** Shows what all processes do, to everybody who looks, with one look at the store each second for all of them. */
export interface Live {
  /** A stream of server-sent events; undefined: too many look already. `isSignedIn` is asked before each event. */
  open(isSignedIn: () => Promise<boolean>): ReadableStream<Uint8Array> | undefined;
  close(): void;
}

interface Viewer {
  controller: ReadableStreamDefaultController<Uint8Array>;
  isSignedIn(): Promise<boolean>;
}

export function createLive(processes: Pick<Processes, "read">, now: () => number): Live {
  const viewers = new Set<Viewer>();
  const encoder = new TextEncoder();
  let timer: NodeJS.Timeout | undefined;
  let isLooking = false;

  async function read(): Promise<Now> {
    try {
      return { at: now(), processes: await processes.read(), problem: null };
    } catch {
      return {
        at: now(),
        processes: [],
        problem: "The store does not answer, so nothing can be seen of the processes.",
      };
    }
  }

  function drop(viewer: Viewer): void {
    if (!viewers.delete(viewer)) return;
    if (viewers.size === 0) clearInterval(timer);
    try {
      viewer.controller.close();
    } catch {
      // The reader has left already.
    }
  }

  async function show(viewer: Viewer, now: Now, event: Uint8Array): Promise<void> {
    const isBehind = (viewer.controller.desiredSize ?? 0) <= -MAX_WAITING_EVENTS;
    // While nobody can tell who is still signed in, viewers learn only that the store is away.
    const mayLook = !isBehind && (await viewer.isSignedIn().catch(() => (now.problem === null ? undefined : true)));
    if (mayLook === false) drop(viewer);
    else if (mayLook && viewers.has(viewer)) viewer.controller.enqueue(event);
  }

  async function look(among: Iterable<Viewer> = viewers): Promise<void> {
    const now = await read();
    const event = encoder.encode(`event: now\ndata: ${JSON.stringify(now)}\n\n`);
    await Promise.all([...among].map((viewer) => show(viewer, now, event)));
  }

  function begin(viewer: Viewer): void {
    viewers.add(viewer);
    void look([viewer]);
    if (viewers.size > 1) return;
    timer = setInterval(() => {
      if (isLooking) return;
      isLooking = true;
      void look().finally(() => void (isLooking = false));
    }, LOOK_MS).unref();
  }

  return {
    open(isSignedIn) {
      if (viewers.size >= MAX_VIEWERS) return undefined;
      let viewer: Viewer | undefined;
      return new ReadableStream<Uint8Array>({
        start(controller) {
          viewer = { controller, isSignedIn };
          begin(viewer);
        },
        cancel() {
          if (viewer !== undefined) drop(viewer);
        },
      });
    },
    close() {
      for (const viewer of viewers) drop(viewer);
    },
  };
}
