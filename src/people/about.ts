import type { History } from "../history/history.ts";
import type { ReadAbout } from "../port/catalogue.ts";
import { idsOf } from "../port/identity.ts";
import { describeOptions } from "../settings/answer-options.ts";
import type { Settings } from "../settings/settings.ts";
import { describeAmounts, type Usage } from "../usage/usage.ts";

export interface AboutDeps {
  history: Pick<History, "countAuthor">;
  settings: Pick<Settings, "read">;
  usage: Pick<Usage, "readOwnMonth">;
  /** The configured one. */
  model: string;
}

export function createReadAbout({ history, settings, usage, model }: AboutDeps): ReadAbout {
  return async ({ author, ...channel }) => {
    const { platform } = channel;
    const [counts, set, used] = await Promise.all([
      Promise.all(idsOf(author).map(({ id, within }) => history.countAuthor(platform, id, within))),
      settings.read(channel),
      usage.readOwnMonth(platform, author),
    ]);
    const sum = (name: "entries" | "conversations") => counts.reduce((all, count) => all + count[name], 0);
    const kept = { entries: sum("entries"), conversations: sum("conversations") };
    const { persona } = set;
    const answerOptions = describeOptions(set.options);
    return {
      model: set.model ?? model,
      ...(persona !== undefined && { persona }),
      ...(answerOptions !== "" && { answerOptions }),
      kept,
      used: describeAmounts(used),
    };
  };
}
