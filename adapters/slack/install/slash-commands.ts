import type { CommandHelp } from "../../../src/port/catalogue.ts";

/** A command that only the Slack adapter has, in addition to the core's commands. */
const ASK: CommandHelp = { name: "ask", description: "Ask me a question.", usage: "your question" };

/** The commands as `manifest.json` lists them (https://docs.slack.dev/reference/app-manifest). */
export function toSlashCommands(commands: readonly CommandHelp[]) {
  return [ASK, ...commands].map(({ name, description, usage, namesPeople }) => ({
    command: `/${name}`,
    description,
    ...(usage !== undefined && { usage_hint: usage }),
    // With escaping, Slack sends a mention as the person's id.
    should_escape: namesPeople === true,
  }));
}
