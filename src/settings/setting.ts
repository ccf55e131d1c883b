import type { z } from "zod";
import type { CommandHelp } from "../port/catalogue.ts";

/** A setting of a channel. Each setting has its own file and is listed in `list.ts`. */
export interface Setting<Value> {
  schema: z.ZodType<Value>;
  /** Returns a line for the dashboard. */
  describe(value: Value): string;
  /** Absent if a command in `commands/` sets the setting. */
  command?: SettingCommand<Value>;
}

/** A command that shows a setting to everyone. People with the permission can change it. */
export interface SettingCommand<Value> extends CommandHelp {
  /**
   * Parses the text after the command. A result without `value` resets the setting; undefined means that the text is
   * invalid.
   */
  read(words: string): { value?: Value } | undefined;
  /** Returns one word for the audit log. */
  toWord(value: Value | undefined): string;
  /** Returns a sentence that shows the asker the current value. */
  say(value: Value | undefined): string;
  /** A sentence that says how to change the setting. */
  hint: string;
}
