/**
 * Longest that new events wait for the missed ones before them. When reading takes longer, such as during a rate limit,
 * people are answered out of order rather than late.
 */
const LONGEST_MS = 5_000;

/**
 * Keeps each channel's events in order when a session begins without resuming: the messages missed meanwhile are read
 * first, and new events wait for that.
 */
export interface CatchUpGate {
  /** A session begins. Everything waits until `expect` has named the channels that are read. */
  begin(): void;
  /** Names the server channels, or the direct ones, that are being read: events of the others no longer wait. */
  expect(isDirect: boolean, channelIds: readonly string[]): void;
  /** The missed messages of a channel were handed over, or cannot be read now. */
  release(channelId: string): void;
  /** Runs the task at once, or when its channel is released, in order. */
  take(channel: { id: string; isDirect: boolean }, task: () => void): void;
}

interface Waiting {
  isDirect: boolean;
  tasks: Array<() => void>;
}

export function createCatchUpGate(longestMs = LONGEST_MS): CatchUpGate {
  const waiting = new Map<string, Waiting>();
  const released = new Set<string>();
  /** The channels that are read, by `isDirect`: a missing entry is not known yet. Undefined when nothing waits. */
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
