import { SETTING_NAMES, SETTINGS, type SettingName, type SettingValues, type Stored } from "../settings/list.ts";
import type { SettingCommand } from "../settings/setting.ts";
import { type Command, NOT_KEPT, NOT_KNOWN, postNotice } from "./command.ts";

/** The commands of the settings that define a command, such as `/listen`. */
export const SETTING_COMMANDS: readonly Command[] = SETTING_NAMES.flatMap((name) => {
  const { command } = SETTINGS[name];
  return command === undefined ? [] : [createSettingCommand(name, command)];
});

/** Creates a command that shows a setting to everyone, and lets people with the permission change it. */
function createSettingCommand<Name extends SettingName>(
  setting: Name,
  { read, toWord, say, hint, ...help }: SettingCommand<SettingValues[Name]>,
): Command {
  return {
    ...help,
    create({ settings, access, audit }) {
      return async (event, sink, signal) => {
        const answer = async () => {
          const { isKnown, ...channel } = await settings.read(event.reply);
          const before: Stored[Name] = channel[setting];
          const wanted = read(event.text.trim());
          if (wanted === undefined) return isKnown ? `${say(before)} ${hint}` : NOT_KNOWN;
          const refusal = await access.findRefusal(event, "settings");
          if (refusal !== undefined) return refusal;
          const { value } = wanted;
          if (!(await settings.set(event.reply, setting, value))) return NOT_KEPT;
          await audit.note({ event, what: help.name, before: toWord(before), after: toWord(value) });
          return say(value);
        };
        await postNotice(sink, event, await answer(), signal);
      };
    },
  };
}
