import type { Access } from "../policy/access.ts";
import { SinkError } from "../port/errors.ts";
import type { CommandEvent } from "../port/events.ts";
import type { ReplySink } from "../port/sink.ts";
import { isRefusal } from "../reply/platform-call.ts";
import { describeLack } from "../text/quote-name.ts";
import { describeAmounts, toUsageCsv, type Usage, type UsageSubject } from "../usage/usage.ts";
import { type Command, mayConfigure, NOT_KNOWN, postNotice } from "./command.ts";

const HOW = "Write `/usage`, or behind it `channel`, `workspace` or `everyone`, and `csv` for a file with every day.";
const ONLY_ADMINS = "Only admins may see that; whoever runs me names them in the policy file.";
const NO_WORKSPACE = "This place belongs to no workspace.";

export interface UsageCommandDeps {
  usage: Pick<Usage, "readMonth" | "readOwnMonth" | "readTable">;
  access: Pick<Access, "isAdmin">;
}

/**
 * `/usage`: what the person used this month, for those who may settle things there also what the channel used. `/usage
 * channel`, `workspace`, `everyone`: for admins, with `csv` as a file of all days that are kept, which names people.
 */
export function createUsageCommand({ usage, access }: UsageCommandDeps): Command {
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

  async function give(event: CommandEvent, sink: ReplySink, csv: string, signal: AbortSignal): Promise<void> {
    const bytes = new TextEncoder().encode(csv);
    if (bytes.length > sink.limits.maxFileBytes) {
      const text = `The file has ${bytes.length} bytes, more than a file may have here. Ask for less of it.`;
      return postNotice(sink, event, text, signal);
    }
    try {
      await sink.upload([{ name: "usage.csv", contentType: "text/csv", bytes }], undefined, event.key, signal);
    } catch (error) {
      // Anything but a refusal may pass: the queue tries again.
      if (!isRefusal(error)) throw error;
      const missing = error instanceof SinkError ? error.missing : undefined;
      const why = missing === undefined ? "No file is taken here." : describeLack(missing);
      await postNotice(sink, event, `I could not give you the file. ${why}`, signal);
    }
  }

  return {
    name: "usage",
    description: "Says what you used this month; admins: channel, workspace, everyone, csv.",
    async run(event, sink, signal) {
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
    },
  };
}

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
