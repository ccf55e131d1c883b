import type { CommandEvent } from "../port/events.ts";
import { quoteName } from "../text/quote-name.ts";
import { truncate } from "../text/truncate.ts";
import { type Command, NOT_KEPT, NOT_KNOWN, postNotice, type ToolServer } from "./command.ts";

/** A list of this length fits into one message on every platform. */
const MAX_LIST_CHARS = 1_500;
const HINT =
  "To switch a server off in this channel, write `/tools off` and its name; `/tools on` switches it on again.";

/**
 * `/tools` lists the channel's tools and marks those that need approval. `/tools off tracker` switches a server off in
 * the channel.
 */
export const TOOLS: Command = {
  name: "tools",
  description: "List the tools I can use here, or switch a tool server: on or off, and its name.",
  usage: "on or off, and a server's name",
  create({ toolNames: own, serversOf, settings, access, audit }) {
    async function list(event: CommandEvent): Promise<string> {
      const { reply } = event;
      const { serversOff: off = [], isKnown } = await settings.read(reply);
      if (!isKnown) return NOT_KNOWN;
      const judge = await access.judge();
      const may = (name: string) => judge(event, `tool:${name}`).isAllowed;
      const servers = serversOf(reply).flatMap((server) => {
        const tools = server.tools.filter(({ name }) => may(name));
        // A policy rule names the prompt `!server:prompt` as the tool `server__prompt`.
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
      return [...overview, ...fitLines(usable.map(describeServer), room), HINT].join("\n");
    }

    async function change(event: CommandEvent, isOn: boolean, given: string): Promise<string> {
      const refusal = await access.findRefusal(event, "settings");
      if (refusal !== undefined) return refusal;
      const { reply } = event;
      const names = serversOf(reply).map(({ name }) => name);
      const name = names.find((one) => one.toLowerCase() === given.toLowerCase());
      if (name === undefined) {
        if (names.length === 0) return "There are no tool servers here.";
        return `There's no tool server ${quoteName(given)} here, only ${names.map(quoteName).join(", ")}.`;
      }
      const wasOn = (await settings.read(reply)).serversOff?.includes(name) !== true;
      const isKept = await settings.change(reply, "serversOff", (before = []) => {
        const others = before.filter((one) => one !== name);
        const off = isOn ? others : [...others, name];
        return off.length === 0 ? undefined : off;
      });
      if (!isKept) return NOT_KEPT;
      const toWords = (on: boolean) => `${name} ${on ? "on" : "off"}`;
      await audit.note({ event, what: "tools", before: toWords(wasOn), after: toWords(isOn) });
      const back = isOn ? "" : `; \`/tools on ${name}\` undoes this`;
      return `From the next message on, I ${isOn ? "can" : "won't"} use ${quoteName(name)} in this channel${back}.`;
    }

    return async (event, sink, signal) => {
      const [, wanted, name = ""] = /^(on|off)\s+[`"']?([\w-]+)[`"']?$/i.exec(event.text.trim()) ?? [];
      const answer = wanted === undefined ? list(event) : change(event, wanted.toLowerCase() === "on", name);
      await postNotice(sink, event, await answer, signal);
    };
  },
};

function describeState({ name, state, tools }: ToolServer, off: readonly string[]): string {
  if (off.includes(name)) return "off here";
  if (state === "ready") return String(tools.length);
  return state === "connecting" ? "starting" : "unavailable";
}

function describeServer({ name, tools, prompts }: ToolServer): string {
  const names = tools.map(
    (tool) => quoteName(tool.name.slice(name.length + 2)) + (tool.approval ? " (asks first)" : ""),
  );
  const suffix = prompts.length === 0 ? "" : ` Prompts you can send me: ${prompts.map(quoteName).join(", ")}.`;
  return `${quoteName(name)}: ${names.join(", ") || "nothing"}.${suffix}`;
}

/** Returns as many lines as fit into `room` characters. The last line can be truncated. */
function fitLines(lines: readonly string[], room: number): string[] {
  const text = truncate(lines.join("\n"), Math.max(0, room));
  return text === "" ? [] : [text];
}
