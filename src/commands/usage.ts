import { mayConfigure } from "../policy/access.ts";
import { SinkError } from "../port/errors.ts";
import type { CommandEvent } from "../port/events.ts";
import type { ReplySink } from "../port/sink.ts";
import { isRefusal } from "../reply/platform-call.ts";
import { describeLack } from "../text/quote-name.ts";
import { describeAmounts, toUsageCsv, type UsageSubject } from "../usage/usage.ts";
import { type Command, NOT_KNOWN, postNotice } from "./command.ts";

const HOW = "Write `/usage`, or add `channel`, `workspace` or `everyone`, and `csv` for a file with every day.";
const ONLY_ADMINS = "Only admins can see that; the policy file names them.";
const NO_WORKSPACE = "This chat doesn't belong to a workspace.";

/**
 * `/usage` shows the asker's usage this month. The channel's managers also see the channel's usage. `/usage channel`,
 * `workspace` and `everyone` are for admins. `csv` adds a file with all stored days, which contains people's names.
 */
export const USAGE: Command = {
  name: "usage",
  description: "Show what you've used this month; admins: channel, workspace, everyone, csv.",
  usage: "nothing; admins: channel, workspace, everyone, and csv",
  create({ usage, access }) {
    async function describe({ author, reply }: CommandEvent): Promise<string> {
      const { platform, channelId, workspaceId } = reply;
      const workspace = workspaceId === undefined ? undefined : { workspaceId };
      const own = usage.readMonth({ platform, authorId: author.id });
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
      return [`This month you've used ${describeAmounts(mine)}.`, ...lines].join("\n\n");
    }

    async function give(event: CommandEvent, sink: ReplySink, csv: string, signal: AbortSignal): Promise<void> {
      const bytes = new TextEncoder().encode(csv);
      if (bytes.length > sink.limits.maxFileBytes) {
        const text = `The file is too large to send here (${bytes.length} bytes). Ask for less.`;
        return postNotice(sink, event, text, signal);
      }
      try {
        await sink.upload([{ name: "usage.csv", contentType: "text/csv", bytes }], undefined, event.key, signal);
      } catch (error) {
        // The queue retries after any other error.
        if (!isRefusal(error)) throw error;
        const missing = error instanceof SinkError ? error.missing : undefined;
        const why = missing === undefined ? "This channel doesn't accept files." : describeLack(missing);
        await postNotice(sink, event, `I couldn't send you the file. ${why}`, signal);
      }
    }

    return async (event, sink, signal) => {
      const say = (text: string) => postNotice(sink, event, text, signal);
      const words = event.text.trim().toLowerCase().split(/\s+/).filter(Boolean);
      const [scope, form] = words;
      if (scope === undefined) return say(await describe(event).catch(() => NOT_KNOWN));
      const subject = toSubject(scope, event);
      if (subject === undefined || words.length > 2 || (form !== undefined && form !== "csv")) return say(HOW);
      if (subject === "none") return say(NO_WORKSPACE);
      if (!access.isAdmin(event)) return say(ONLY_ADMINS);
      const found = form === "csv" ? usage.readTable(subject).then(toUsageCsv) : usage.readMonth(subject);
      const known = await found.catch(() => undefined);
      if (known === undefined) return say(NOT_KNOWN);
      if (typeof known === "string") return give(event, sink, known, signal);
      await say(`${NAMES[scope] ?? scope}, this month: ${describeAmounts(known)}.`);
    };
  },
};

const NAMES: Readonly<Record<string, string>> = {
  channel: "This channel",
  workspace: "This workspace",
  server: "This server",
  everyone: "Everyone",
};

function toSubject(scope: string, { reply }: CommandEvent): UsageSubject | "none" | undefined {
  const { platform, channelId, workspaceId } = reply;
  const workspace = workspaceId === undefined ? undefined : { workspaceId };
  switch (scope) {
    case "everyone":
      return "everyone";
    case "channel":
      return { platform, channelId, ...workspace };
    case "workspace":
    case "server":
      return workspace === undefined ? "none" : { platform, ...workspace };
    default:
      return undefined;
  }
}
