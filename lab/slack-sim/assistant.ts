import type { Core } from "./core.ts";
import type { Channel } from "./world.ts";

export interface StatusChange {
  channelId: string;
  threadTs: string;
  /** The status text; "" after its removal. */
  status: string;
  /** `slack` if Slack removed the status: when the app posts, or after two minutes. */
  by: "app" | "slack";
  atMs: number;
}

/** The status, title, prompts and session of each thread. */
export interface Assistant {
  readonly statuses: readonly StatusChange[];
  /** The current status; "" without one. */
  status(channel: Channel, threadTs: string): string;
  title(channel: Channel, threadTs: string): string | undefined;
  session(channel: Channel, threadTs: string): string | undefined;
  prompts(channel: Channel): readonly string[];
  setStatus(channel: Channel, threadTs: string, status: string): void;
  setTitle(channel: Channel, threadTs: string, title: string): void;
  setSession(channel: Channel, threadTs: string, status: string): void;
  suggest(channel: Channel, threadTs: string | undefined, prompts: readonly string[]): void;
  /** Must be called after the app has posted into a thread. */
  posted(channel: Channel, threadTs: string): void;
}

const STATUS_MS = 120_000;

export function createAssistant({ clock, changes }: Pick<Core, "clock" | "changes">): Assistant {
  const statuses: StatusChange[] = [];
  const shown = new Map<string, string>();
  const expiries = new Map<string, () => void>();
  const titles = new Map<string, string>();
  const sessions = new Map<string, string>();
  const prompts = new Map<string, readonly string[]>();
  const keyOf = ({ id }: Channel, threadTs: string) => `${id} ${threadTs}`;

  function set(channel: Channel, threadTs: string, status: string, by: StatusChange["by"]): void {
    const key = keyOf(channel, threadTs);
    expiries.get(key)?.();
    shown.set(key, status);
    statuses.push({ channelId: channel.id, threadTs, status, by, atMs: clock.now() });
    if (status !== "") {
      expiries.set(
        key,
        clock.after(STATUS_MS, () => set(channel, threadTs, "", "slack")),
      );
    }
    changes.changed();
  }

  function keep<T>(map: Map<string, T>, key: string, value: T): void {
    map.set(key, value);
    changes.changed();
  }

  return {
    statuses,
    status: (channel, threadTs) => shown.get(keyOf(channel, threadTs)) ?? "",
    title: (channel, threadTs) => titles.get(keyOf(channel, threadTs)),
    session: (channel, threadTs) => sessions.get(keyOf(channel, threadTs)),
    prompts: ({ id }) => prompts.get(id) ?? [],
    setStatus: (channel, threadTs, status) => set(channel, threadTs, status, "app"),
    setTitle: (channel, threadTs, title) => keep(titles, keyOf(channel, threadTs), title),
    setSession: (channel, threadTs, status) => keep(sessions, keyOf(channel, threadTs), status),
    suggest: ({ id }, _threadTs, suggested) => keep(prompts, id, suggested),
    posted(channel, threadTs) {
      if ((shown.get(keyOf(channel, threadTs)) ?? "") !== "") set(channel, threadTs, "", "slack");
    },
  };
}
