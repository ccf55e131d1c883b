/**
 * Longest that what is told waits for what was missed before it. Where it waits longer, such as while Discord refuses to be
 * read, people are answered out of their order rather than late.
 */
const LONGEST_MS = 5_000;

/**
 * Keeps what people do in the order of each channel where a session begins without those before it: what was said
 * meanwhile is read, and what is told waits for that.
 */
export interface Holding {
  /** A session begins. Until it is known what is read, everything waits. */
  begin(): void;
  /** Which channels of servers, or which direct ones, are read: nothing waits in the others. */
  expect(isDirect: boolean, channelIds: readonly string[]): void;
  /** What was missed in a channel was handed over, or cannot be read now. */
  release(channelId: string): void;
  /** Does it at once, or when its channel is released: after what waits there already. */
  take(channel: { id: string; isDirect: boolean }, task: () => void): void;
}

interface Waiting {
  isDirect: boolean;
  tasks: Array<() => void>;
}

export function createHolding(longestMs = LONGEST_MS): Holding {
  const waiting = new Map<string, Waiting>();
  const released = new Set<string>();
  /** By whether they are direct; undefined where nothing waits, and one of them while it is not known what is read. */
  let expected: Map<boolean, ReadonlySet<string>> | undefined;
  let timer: NodeJS.Timeout | undefined;

  function isHeld(id: string, isDirect: boolean): boolean {
    if (expected === undefined || released.has(id)) return false;
    return expected.get(isDirect)?.has(id) ?? true;
  }

  function letGo(): void {
    for (const [id, { isDirect, tasks }] of waiting) {
      if (isHeld(id, isDirect)) continue;
      waiting.delete(id);
      for (const task of tasks) task();
    }
  }

  function end(): void {
    expected = undefined;
    letGo();
  }

  return {
    begin() {
      clearTimeout(timer);
      timer = setTimeout(end, longestMs).unref();
      released.clear();
      expected = new Map();
    },
    expect(isDirect, channelIds) {
      expected?.set(isDirect, new Set(channelIds));
      letGo();
    },
    release(channelId) {
      released.add(channelId);
      letGo();
    },
    take({ id, isDirect }, task) {
      if (!isHeld(id, isDirect)) return task();
      const held = waiting.get(id) ?? { isDirect, tasks: [] };
      held.tasks.push(task);
      waiting.set(id, held);
    },
  };
}
