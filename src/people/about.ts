import type { History } from "../history/history.ts";
import type { Author } from "../port/adapter.ts";
import type { Settings } from "../settings/settings.ts";
import { describeAmounts, type Usage } from "../usage/usage.ts";
import { idsOf } from "./identity.ts";

/** What the bot is set to where a person talks to it alone, and how much it keeps of that person. */
export interface About {
  /** The model that answers there. */
  model: string;
  persona?: string;
  kept: {
    /** Their messages and the answers to them, wherever they were said. */
    entries: number;
    conversations: number;
  };
  /** What they used this month, in words that end a sentence. */
  used: string;
}

export interface AboutDeps {
  history: Pick<History, "countAuthor">;
  settings: Pick<Settings, "read">;
  usage: Pick<Usage, "readOwnMonth">;
  /** The configured one. */
  model: string;
}

/** Rejects when the store does not answer. `channelId` is the person's direct conversation with the bot. */
export type ReadAbout = (who: {
  platform: string;
  author: Pick<Author, "id" | "former">;
  channelId: string;
}) => Promise<About>;

export function createReadAbout({ history, settings, usage, model }: AboutDeps): ReadAbout {
  return async ({ platform, author, channelId }) => {
    const [counts, channel, used] = await Promise.all([
      Promise.all(idsOf(author).map(({ id, within }) => history.countAuthor(platform, id, within))),
      settings.read({ platform, channelId }),
      usage.readOwnMonth(platform, author),
    ]);
    const sum = (name: "entries" | "conversations") => counts.reduce((all, count) => all + count[name], 0);
    const kept = { entries: sum("entries"), conversations: sum("conversations") };
    const { persona } = channel;
    return {
      model: channel.model ?? model,
      ...(persona !== undefined && { persona }),
      kept,
      used: describeAmounts(used),
    };
  };
}
