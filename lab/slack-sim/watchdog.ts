import { openTitles } from "./chunks.ts";
import { pingsOf } from "./pings.ts";
import type { Violations } from "./violations.ts";
import { type Channel, type Content, isOfApp, type Message, threadOf, type Workspace } from "./world.ts";

/** Stands for the top level of a channel, where replies to commands appear. */
export const TOP_LEVEL = "top";

/** A mention by the app that notifies people or could notify them. */
export interface Ping {
  channelId: string;
  ts: string | undefined;
  /** The mention as written: `<!channel>`, `<@U…>`. */
  written: string;
}

/** Checks everything that the app writes and records violations. */
export interface Watchdog {
  readonly pings: readonly Ping[];
  /** Must be called after each change of an app's message. */
  looked(message: Message, options: { linksNames: boolean }): void;
  looked(ephemeral: { channel: Channel; content: Content }, options: { linksNames: boolean }): void;
  /** Must be called before an app's message is added. */
  posting(channel: Channel, content: Content): void;
  /** Must be called after a person's action that permits one more answer in the thread. */
  triggered(channel: Channel, threadTs: string): void;
  /** Must be called at the end; checks what the app left unfinished. */
  ended(workspaces: Iterable<Workspace>): void;
}

export function createWatchdog(violations: Violations): Watchdog {
  const pings: Ping[] = [];
  const triggers = new Map<string, number>();
  const doubled = new Set<string>();

  function noticePings(channel: Channel, ts: string | undefined, content: Content, linksNames: boolean): void {
    for (const written of pingsOf(content, { linksNames })) {
      if (pings.some((ping) => ping.channelId === channel.id && ping.ts === ts && ping.written === written)) continue;
      pings.push({ channelId: channel.id, ts, written });
      violations.record("ping", `A message of the app in #${channel.name} says ${written}, which notifies people.`);
    }
  }

  function noticeBackwards({ channel, ts, states, comparableFrom }: Message): void {
    const [before, after] = states.slice(Math.max(comparableFrom, states.length - 2));
    if (before === undefined || after === undefined || !isCutOf(after.shown, before.shown)) return;
    const [was, is] = [before, after].map(({ shown }) => JSON.stringify(shown.slice(-40)));
    violations.record("backwards", `Message ${ts} in #${channel.name} ended with ${was} and shows less: ${is}.`);
  }

  function noticeTwins(message: Message): void {
    const { channel } = message;
    const said = saidBy(message);
    const place = placeOf(message);
    const twins = [...channel.messages.values()].filter(
      (other) => isOfApp(other) && placeOf(other) === place && saidBy(other) === said,
    );
    const key = `${channel.id} ${place}`;
    const twinKey = `${key} ${twins.length} ${said}`;
    if (said === "" || twins.length <= Math.max(1, triggers.get(key) ?? 0) || doubled.has(twinKey)) return;
    doubled.add(twinKey);
    const text = JSON.stringify(said.slice(0, 60));
    violations.record("double-post", `${twins.length} messages in one thread of #${channel.name} say ${text}.`);
  }

  function noticeLeftTasks({ ts, stream }: Message): void {
    if (stream === undefined || stream.state === "in_progress" || openTitles(stream.tasks).length === 0) return;
    if (violations.all.some(({ kind, sentence }) => kind === "open-task" && sentence.includes(ts))) return;
    violations.record("open-task", `The stream ${ts} was left with open tasks when it had ended.`);
  }

  return {
    pings,
    looked(written: Message | { channel: Channel; content: Content }, { linksNames }: { linksNames: boolean }) {
      const ts = "ts" in written ? written.ts : undefined;
      noticePings(written.channel, ts, written.content, linksNames);
      if (!("ts" in written)) return;
      noticeBackwards(written);
      noticeTwins(written);
    },
    posting(channel, { metadata }) {
      if (metadata === undefined) return;
      const id = JSON.stringify(metadata);
      const other = [...channel.messages.values()].find(
        (message) => isOfApp(message) && JSON.stringify(message.content.metadata) === id,
      );
      if (other === undefined) return;
      violations.record("double-post", `A second message in #${channel.name} has the metadata of ${other.ts}: ${id}.`);
    },
    triggered(channel, threadTs) {
      const key = `${channel.id} ${threadTs}`;
      triggers.set(key, (triggers.get(key) ?? 0) + 1);
      for (const message of channel.messages.values()) {
        if (isOfApp(message) && threadOf(message) === threadTs) message.comparableFrom = message.states.length;
      }
    },
    ended(workspaces) {
      const channels = [...workspaces].flatMap((workspace) => [...workspace.channels.values()]);
      for (const message of channels.flatMap((channel) => [...channel.messages.values()])) noticeLeftTasks(message);
    },
  };
}

/** Returns the place in which the app must not repeat itself. The top level of a channel is one such place. */
function placeOf(message: Message): string {
  return message.threadTs ?? TOP_LEVEL;
}

function saidBy({ states, content }: Message): string {
  const files = content.files.map(({ name, bytes }) => `${name} of ${bytes.length} bytes`);
  return [states.at(-1)?.shown.trim() ?? "", ...files].filter((part) => part !== "").join(" with ");
}

/** Comparisons ignore everything after the last word, because a draft can end with a cursor or a closing fence. */
const UNSPOKEN = /[^\p{L}\p{N}]+$/u;

/** True if a text is an earlier text without its end. */
function isCutOf(text: string, earlier: string): boolean {
  const [left, whole] = [text, earlier].map((part) => part.trim().replace(UNSPOKEN, ""));
  return left !== undefined && whole !== undefined && left.length < whole.length && whole.startsWith(left);
}
