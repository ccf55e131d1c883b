/** The bot's slash commands and shortcuts as Slack stores them. */
import type { CommandHelp } from "../../../src/port/catalogue.ts";

/** A command that only the Slack adapter has, in addition to the core's commands. */
const ASK: CommandHelp = { name: "ask", description: "Ask me a question.", usage: "your question" };

/** The shortcut "Ask about this" in the menu of a message. */
export const ASK_ABOUT = "ask_about";
/** The shortcut "Use as reference" in the menu of a message. */
export const USE_AS_REFERENCE = "imagine_from_message";
/** The shortcut "Create an image", which belongs to no message. */
export const DRAW = "imagine_global";

/** The `callback_id` of a command in one of Slack's two menus. */
export function toShortcutId(name: string, type: "message" | "global"): string {
  return `command_${type}_${name}`;
}

/** The shortcuts as `manifest.json` lists them. */
export function toShortcuts(commands: readonly CommandHelp[]) {
  return [
    {
      type: "message",
      name: "Ask about this",
      callback_id: ASK_ABOUT,
      description: "Ask the bot about this message",
    },
    {
      type: "message",
      name: "Use as reference",
      callback_id: USE_AS_REFERENCE,
      description: "Create an image that starts from the images of this message",
    },
    {
      type: "global",
      name: "Create an image",
      callback_id: DRAW,
      description: "Say what the image should show, and add images to start from",
    },
    ...commands.flatMap(({ name, description, shortcut }) =>
      shortcut === undefined
        ? []
        : (["message", "global"] as const).map((type) => {
            return { type, name: shortcut.title, callback_id: toShortcutId(name, type), description };
          }),
    ),
  ];
}

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
