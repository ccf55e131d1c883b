import type { Now } from "./page/wire.ts";

const LOOK_MS = 1_000;
/** Maximum number of open dashboard tabs per process. */
const MAX_VIEWERS = 50;
/** The server closes a stream that has more unsent events than this. */
const MAX_WAITING_EVENTS = 8;

/**
 * Streams the current work of all processes to the dashboard's tabs. All tabs share one read of the store per second.
 */
export interface Live {
  /**
   * Returns a stream of server-sent events, or undefined if too many tabs are open. Checks `isSignedIn` before each
   * event.
   */
  open(isSignedIn: () => Promise<boolean>): ReadableStream<Uint8Array> | undefined;
  close(): void;
}

interface Viewer {
  controller: ReadableStreamDefaultController<Uint8Array>;
  isSignedIn(): Promise<boolean>;
}

export function createLive(processes: { read(): Promise<Now["processes"]> }, now: () => number): Live {
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
        problem: "The store is unavailable, so the processes can't be shown.",
      };
    }
  }

  function drop(viewer: Viewer): void {
    if (!viewers.delete(viewer)) return;
    if (viewers.size === 0) clearInterval(timer);
    try {
      viewer.controller.close();
    } catch {}
  }

  async function show(viewer: Viewer, now: Now, event: Uint8Array): Promise<void> {
    const isBehind = (viewer.controller.desiredSize ?? 0) <= -MAX_WAITING_EVENTS;
    // If the check fails, the viewer may be signed out, so send only that the store is unavailable.
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
