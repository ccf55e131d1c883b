import { ACCESS } from "./access.ts";
import { CATCHUP } from "./catchup.ts";
import type { Command, CommandDeps, RunCommand } from "./command.ts";
import { EXPORT } from "./export.ts";
import { FORGET } from "./forget.ts";
import { HELP } from "./help.ts";
import { IMAGINE } from "./imagine.ts";
import { MODEL } from "./model.ts";
import { PERSONA } from "./persona.ts";
import { QUIET } from "./quiet.ts";
import { QUOTA } from "./quota.ts";
import { SCHEDULE } from "./schedule.ts";
import { SEARCH } from "./search.ts";
import { SETTING_COMMANDS } from "./setting-command.ts";
import { STOP } from "./stop.ts";
import { TOOLS } from "./tools.ts";
import { USAGE } from "./usage.ts";

/** All commands in the order of `/help`, the platforms' command lists and `manifest.json`. */
export const COMMANDS: readonly Command[] = [
  HELP,
  STOP,
  QUIET,
  ...SETTING_COMMANDS,
  MODEL,
  PERSONA,
  IMAGINE,
  SCHEDULE,
  SEARCH,
  CATCHUP,
  ACCESS,
  TOOLS,
  USAGE,
  QUOTA,
  EXPORT,
  FORGET,
];
export const COMMAND_NAMES: readonly string[] = COMMANDS.map(({ name }) => name);

export function findCommand(name: string): Command | undefined {
  return COMMANDS.find((command) => command.name === name);
}

/** Returns the commands that do not start a turn, by name. */
export function createCommands(deps: Omit<CommandDeps, "commands">): ReadonlyMap<string, RunCommand> {
  return new Map(
    COMMANDS.flatMap(({ name, create }) => (create ? [[name, create({ ...deps, commands: COMMANDS })] as const] : [])),
  );
}
