import type { Command, CommandOption } from "./commands.ts";
import { channelType, toChannel, toMember, toRole, toUser } from "./payloads.ts";
import type { FileToUpload } from "./people.ts";
import { hasPermission } from "./permissions.ts";
import type { Simulation } from "./simulation.ts";
import type { Channel, Payload, Role, User } from "./world.ts";

const SUB_COMMAND = 1;
const SUB_COMMAND_GROUP = 2;
const ATTACHMENT = 11;
const PICTURE = /\.(png|jpe?g|gif|webp|avif|heic)$/i;

/** A person's value for an option: people upload files, and select users and channels. */
export type OptionValue = string | number | boolean | FileToUpload | User | Channel | Role;
export type OptionValues = Readonly<Record<string, OptionValue>>;

/** Fills in commands like Discord's clients. Throws for values that these clients would not send. */
export interface CommandForms {
  /** Throws if Discord would not offer the command to this person here. */
  requireOffered(command: Command, channel: Channel, user: User): void;
  /** `path` names the subcommand, if any. `focused` is the option that the person is typing. */
  fill(command: Command, path: readonly string[], values: OptionValues, channel: Channel, focused?: string): Payload;
}

export function createCommandForms({ world, files, payloads }: Simulation): CommandForms {
  function resolve(value: OptionValue, channel: Channel, resolved: Record<string, Payload>): unknown {
    if (typeof value !== "object") return value;
    const put = (kind: string, id: string, payload: Payload) => {
      resolved[kind] = { ...resolved[kind], [id]: payload };
      return id;
    };
    if ("bytes" in value) {
      const attachment = files.store({ ...value, id: world.nextId(), channelId: world.bot.id, isEphemeral: true });
      return put("attachments", attachment.id, payloads.toAttachment(attachment));
    }
    const guild = world.guilds.get(channel.guildId ?? "");
    if ("isBot" in value) {
      const member = guild?.members.get(value.id);
      if (member !== undefined) put("members", value.id, { ...toMember(member), permissions: "0" });
      return put("users", value.id, toUser(value));
    }
    if ("kind" in value) {
      const payload = { ...toChannel(value, world), type: channelType(value), permissions: "0" };
      return put("channels", value.id, payload);
    }
    return put("roles", value.id, guild === undefined ? {} : toRole(value, guild));
  }

  return {
    requireOffered({ name, contexts, default_member_permissions: needed }, channel, user) {
      const context = channel.kind === "dm" ? 1 : 0;
      if (contexts && !contexts.includes(context)) throw new Error(`/${name} is not offered here.`);
      if (context === 1 || needed === undefined || needed === null) return;
      const bits = world.permissionsIn(channel, user.id);
      const isAdministrator = hasPermission(bits, "Administrator");
      const isEnough = needed !== "0" && (bits & BigInt(needed)) === BigInt(needed);
      if (!isAdministrator && !isEnough) throw new Error(`/${name} is not offered to ${user.name}.`);
    },
    fill(command, path, values, channel, focused) {
      const resolved: Record<string, Payload> = {};
      const definitions = path.reduce<readonly CommandOption[]>((options, name) => {
        const next = options.find((option) => option.name === name && option.type <= SUB_COMMAND_GROUP);
        if (next === undefined) throw new Error(`/${command.name} has no sub-command "${name}".`);
        return next.options ?? [];
      }, command.options ?? []);
      const unknown = Object.keys(values).find((name) => definitions.every((option) => option.name !== name));
      if (unknown !== undefined) throw new Error(`/${command.name} has no option "${unknown}".`);
      const given = definitions.flatMap((option) => {
        const value = values[option.name];
        if (value === undefined) {
          if (option.required === true && focused === undefined) throw missing(command, option);
          return [];
        }
        const isFocused = focused === option.name;
        if (!isFocused) checkValue(command, option, value);
        const sent = { name: option.name, type: option.type, value: resolve(value, channel, resolved) };
        return [isFocused ? { ...sent, focused: true } : sent];
      });
      const options = path.toReversed().reduce<Payload[]>((inner, name, index) => {
        return [{ name, type: index === 0 ? SUB_COMMAND : SUB_COMMAND_GROUP, options: inner }];
      }, given);
      return { id: command.id, name: command.name, type: command.type, options, resolved };
    },
  };
}

function missing({ name }: Command, option: CommandOption): Error {
  return new Error(`/${name} cannot be sent without "${option.name}".`);
}

function checkValue({ name }: Command, option: CommandOption, value: OptionValue): void {
  const fail = (why: string) => new Error(`/${name} does not take this "${option.name}": ${why}.`);
  if (typeof value === "string") {
    if (value.length < (option.min_length ?? 0)) throw fail("too short");
    if (value.length > (option.max_length ?? 6000)) throw fail("too long");
  }
  if (typeof value === "number") {
    if (value < (option.min_value ?? -Infinity) || value > (option.max_value ?? Infinity)) throw fail("out of range");
  }
  const { choices = [], file_types: types } = option;
  if (choices.length > 0 && choices.every((choice) => choice.value !== value)) throw fail("not one of the choices");
  if (option.type !== ATTACHMENT || !types || typeof value !== "object") return;
  const isAllowed = types.some((type) => (type === "image" ? PICTURE.test(value.name) : value.name.endsWith(type)));
  if (!isAllowed) throw fail(`${value.name} is none of ${types.join(", ")}`);
}
