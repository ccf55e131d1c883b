import type { CommandEvent } from "../port/events.ts";
import { describeAmounts, type Usage } from "../usage/usage.ts";
import { type Command, mayConfigure, NOT_KNOWN, postNotice } from "./command.ts";

/** `/usage`: what the person used this month, for those who may settle things there also what the channel used. */
export function createUsageCommand(usage: Pick<Usage, "readMonth" | "readOwnMonth">): Command {
  async function describe({ author, reply }: CommandEvent): Promise<string> {
    const { platform, channelId, workspaceId } = reply;
    const workspace = workspaceId === undefined ? undefined : { workspaceId };
    const own = usage.readOwnMonth(platform, author);
    const others = [
      ...(mayConfigure(author)
        ? [{ name: "This channel", used: usage.readMonth({ platform, channelId, ...workspace }) }]
        : []),
      ...(author.isModerator === true && workspace !== undefined
        ? [{ name: "All channels of this server", used: usage.readMonth({ platform, ...workspace }) }]
        : []),
    ];
    const [mine, ...sums] = await Promise.all([own, ...others.map(({ used }) => used)]);
    const lines = sums.map((used, index) => `${others[index]?.name}: ${describeAmounts(used)}.`);
    return [`You used this month: ${describeAmounts(mine)}.`, ...lines].join("\n\n");
  }

  return {
    name: "usage",
    description: "Says what you used this month: answers, tokens, pictures.",
    async run(event, sink, signal) {
      await postNotice(sink, event, await describe(event).catch(() => NOT_KNOWN), signal);
    },
  };
}
