import type { Access } from "../policy/access.ts";
import type { CommandEvent, ReplyAddress } from "../port/events.ts";
import type { Settings } from "../settings/settings.ts";
import { quoteName } from "../text/quote-name.ts";
import { truncate } from "../text/truncate.ts";
import { type Command, NOT_KEPT, NOT_KNOWN, postNotice, type SettingsRights } from "./command.ts";

/** A server whose tools are offered in a place. */
export interface ToolServer {
  name: string;
  /** The reason why one failed is not for everyone in a channel: doctor, log and dashboard show it. */
  state: "connecting" | "ready" | "failed";
  tools: ReadonlyArray<{ name: string; approval?: unknown }>;
  /** Its prompts, as people write them. */
  prompts: readonly string[];
}

export interface ToolsCommandDeps extends SettingsRights {
  access: Pick<Access, "judge" | "findRefusal">;
  own: readonly string[];
  serversOf(place: ReplyAddress): readonly ToolServer[];
  settings: Pick<Settings, "read" | "switchServer">;
}

/** Longest list of names, so that platforms take it as one message. */
const MAX_LIST_CHARS = 1_500;
const HINT = "`/tools off` and a server's name switches it off in this channel, `/tools on` and the name on again.";

/** `/tools`: lists the channel's tools and which ask first; `/tools off tracker` switches a server off there. */
export function createToolsCommand({ own, serversOf, settings, access, audit }: ToolsCommandDeps): Command {
  async function list(event: CommandEvent): Promise<string> {
    const { reply } = event;
    const { serversOff: off = [], isKnown } = await settings.read(reply);
    if (!isKnown) return NOT_KNOWN;
    const judge = await access.judge();
    const may = (name: string) => judge(event, `tool:${name}`).isAllowed;
    const servers = serversOf(reply).flatMap((server) => {
      const tools = server.tools.filter(({ name }) => may(name));
      // They begin as `!server:prompt`, and count as tools.
      const prompts = server.prompts.filter((one) => may((/^!(\S+)/.exec(one)?.[1] ?? "").replace(":", "__")));
      const hasAny = server.tools.length + server.prompts.length > 0;
      return hasAny && tools.length + prompts.length === 0 ? [] : [{ ...server, tools, prompts }];
    });
    const mine = `My own: ${own.filter(may).map(quoteName).join(", ") || "nothing"}.`;
    if (servers.length === 0) return mine;
    const counts = servers.map((server) => `${quoteName(server.name)} (${describeState(server, off)})`);
    const overview = [mine, `Servers, with the number of their tools: ${counts.join(", ")}.`];
    const usable = servers.filter(({ name, state }) => state === "ready" && !off.includes(name));
    const room = MAX_LIST_CHARS - overview.join("\n").length;
    return [...overview, ...cut(usable.map(describeServer), room), HINT].join("\n");
  }

  async function change(event: CommandEvent, isOn: boolean, given: string): Promise<string> {
    const refusal = await access.findRefusal(event, "settings");
    if (refusal !== undefined) return refusal;
    const { reply } = event;
    const names = serversOf(reply).map(({ name }) => name);
    const name = names.find((one) => one.toLowerCase() === given.toLowerCase());
    if (name === undefined) {
      if (names.length === 0) return "There is no server here that could be switched on or off.";
      return `There is no server ${quoteName(given)} here, only ${names.map(quoteName).join(", ")}.`;
    }
    const wasOn = (await settings.read(reply)).serversOff?.includes(name) !== true;
    if (!(await settings.switchServer(reply, name, isOn))) return NOT_KEPT;
    const toWords = (on: boolean) => `${name} ${on ? "on" : "off"}`;
    await audit.note({ event, what: "tools", before: toWords(wasOn), after: toWords(isOn) });
    const back = isOn ? "" : `; \`/tools on ${name}\` takes that back`;
    return `From the next message on I ${isOn ? "may" : "do not"} use ${quoteName(name)} in this channel${back}.`;
  }

  return {
    name: "tools",
    description: "Lists the tools I can use here, or switches a server of them: on or off, and its name.",
    async run(event, sink, signal) {
      const [, wanted, name = ""] = /^(on|off)\s+[`"']?([\w-]+)[`"']?$/i.exec(event.text.trim()) ?? [];
      const answer = wanted === undefined ? list(event) : change(event, wanted.toLowerCase() === "on", name);
      await postNotice(sink, event, await answer, signal);
    },
  };
}

function describeState({ name, state, tools }: ToolServer, off: readonly string[]): string {
  if (off.includes(name)) return "off here";
  if (state === "ready") return String(tools.length);
  return state === "connecting" ? "starting" : "away";
}

function describeServer({ name, tools, prompts }: ToolServer): string {
  const names = tools.map(
    (tool) => quoteName(tool.name.slice(name.length + 2)) + (tool.approval ? " (asks first)" : ""),
  );
  const asked = prompts.length === 0 ? "" : ` Prompts to send me as a message: ${prompts.map(quoteName).join(", ")}.`;
  return `${quoteName(name)}: ${names.join(", ") || "nothing"}.${asked}`;
}

/** The lines that there is room for, the last of them cut. */
function cut(lines: readonly string[], room: number): string[] {
  const text = truncate(lines.join("\n"), Math.max(0, room));
  return text === "" ? [] : [text];
}
