import type { ReadAbout } from "../port/catalogue.ts";
import type { Services } from "../services/services.ts";
import { describeOptions } from "../settings/answer-options.ts";
import { describeAmounts } from "../usage/usage.ts";

export function createReadAbout({ history, settings, usage, model }: Services): ReadAbout {
  return async ({ author, ...channel }) => {
    const { platform } = channel;
    const [kept, set, used] = await Promise.all([
      history.countAuthor(platform, author.id),
      settings.read(channel),
      usage.readMonth({ platform, authorId: author.id }),
    ]);
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
