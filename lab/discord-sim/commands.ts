import { z } from "zod";
import { readForm } from "./message-body.ts";
import { refuse, refuseForm, refuseForNow } from "./refusals.ts";
import type { Payload, World } from "./world.ts";

const DAY_MS = 86_400_000;
const CREATES_PER_DAY = 200;
/** Maximum number of commands per type. */
const MOST: Readonly<Record<number, number>> = { 1: 100, 2: 15, 3: 15 };

const DESCRIPTION = z.string().min(1).max(100);
const NAME = z.string().min(1).max(32);
const CHOICE = z.looseObject({ name: z.string().min(1).max(100), value: z.union([z.string().max(100), z.number()]) });
const OPTION = z.looseObject({
  type: z.number().int().min(1).max(11),
  name: NAME.regex(/^[-_'\p{Ll}\p{Lo}\p{N}]+$/u),
  description: DESCRIPTION,
  required: z.boolean().optional(),
  choices: z.array(CHOICE).max(25).optional(),
  autocomplete: z.boolean().optional(),
  min_length: z.number().min(0).max(6000).nullish(),
  max_length: z.number().min(1).max(6000).nullish(),
  min_value: z.number().nullish(),
  max_value: z.number().nullish(),
  file_types: z.array(z.string()).max(10).nullish(),
  get options() {
    return z.array(OPTION).max(25).optional();
  },
});
const COMMAND = z.looseObject({
  name: NAME,
  type: z.number().int().min(1).max(3).default(1),
  description: z.string().max(100).default(""),
  options: z.array(OPTION).max(25).nullish(),
  default_member_permissions: z.string().nullish(),
  contexts: z.array(z.number()).nullish(),
  integration_types: z.array(z.number()).nullish(),
});

export type CommandOption = z.infer<typeof OPTION>;
export type Command = z.infer<typeof COMMAND> & { id: string; version: string };

/** The application's commands, global and of single guilds. */
export interface Commands {
  /** Replaces all commands of a scope. A command that keeps its name keeps its id. */
  replace(guildId: string | undefined, json: unknown): Command[];
  /** Adds a command, or replaces the one with the same name and type. */
  put(guildId: string | undefined, json: unknown): Command;
  change(guildId: string | undefined, id: string, json: unknown): Command;
  remove(guildId: string | undefined, id: string): void;
  list(guildId: string | undefined): readonly Command[];
  /** Finds a command by name. A guild's own command has priority over a global one. */
  find(guildId: string | undefined, name: string, type: number): Command | undefined;
  toPayload(command: Command, guildId: string | undefined): Payload;
}

export function createCommands(world: World, now: () => number): Commands {
  const scopes = new Map<string, Command[]>();
  const created: { scope: string; atMs: number }[] = [];
  const of = (guildId: string | undefined) => scopes.get(guildId ?? "global") ?? [];

  function adopt(guildId: string | undefined, command: z.infer<typeof COMMAND>): Command {
    const known = of(guildId).find(({ name, type }) => name === command.name && type === command.type);
    if (known === undefined) countCreate(guildId ?? "global");
    const { id, version, ...fields } = known ?? { id: world.nextId(), version: world.nextId() };
    const isSame = known !== undefined && JSON.stringify(fields) === JSON.stringify(command);
    return { ...command, id, version: isSame ? version : world.nextId() };
  }

  function countCreate(scope: string): void {
    const today = created.filter((one) => one.scope === scope && one.atMs > now() - DAY_MS);
    if (today.length >= CREATES_PER_DAY) {
      const waitMs = (today[0]?.atMs ?? now()) + DAY_MS - now();
      throw refuseForNow(
        30034,
        `Max number of daily application command creates has been reached (${CREATES_PER_DAY})`,
        waitMs,
      );
    }
    created.push({ scope, atMs: now() });
  }

  function store(guildId: string | undefined, commands: Command[]): void {
    for (const [type, most] of Object.entries(MOST)) {
      if (commands.filter((command) => command.type === Number(type)).length <= most) continue;
      const message = `Maximum number of application commands reached (${most})`;
      throw refuseForm({ path: [], code: "APPLICATION_COMMANDS_MAX_EXCEEDED", message });
    }
    scopes.set(guildId ?? "global", commands);
  }

  return {
    replace(guildId, json) {
      const read = readForm(z.array(COMMAND), json);
      for (const [index, command] of read.entries()) check(command, [index]);
      const names = read.map(({ name, type }) => `${type} ${name}`);
      if (new Set(names).size < names.length) {
        const message = "Application command names must be unique";
        throw refuseForm({ path: [], code: "APPLICATION_COMMANDS_DUPLICATE_NAME", message });
      }
      const commands = read.map((command) => adopt(guildId, command));
      store(guildId, commands);
      return commands;
    },
    put(guildId, json) {
      const read = readForm(COMMAND, json);
      check(read, []);
      const command = adopt(guildId, read);
      store(guildId, [...of(guildId).filter(({ id }) => id !== command.id), command]);
      return command;
    },
    change(guildId, id, json) {
      const known = of(guildId).find((command) => command.id === id);
      if (known === undefined) throw refuse("unknown-command");
      const read = readForm(COMMAND, { ...known, ...(json as object) });
      check(read, []);
      const changed = { ...read, id, version: world.nextId() };
      const rest = of(guildId).filter((command) => command.id !== id);
      store(guildId, [...rest, changed]);
      return changed;
    },
    remove(guildId, id) {
      const rest = of(guildId).filter((command) => command.id !== id);
      if (rest.length === of(guildId).length) throw refuse("unknown-command");
      scopes.set(guildId ?? "global", rest);
    },
    list: of,
    find(guildId, name, type) {
      const named = [...(guildId === undefined ? [] : of(guildId)), ...of(undefined)];
      return named.find((command) => command.name === name && command.type === type);
    },
    toPayload: (command, guildId) => ({
      ...command,
      application_id: world.bot.id,
      options: command.options ?? [],
      default_member_permissions: command.default_member_permissions ?? null,
      nsfw: false,
      ...(guildId === undefined ? {} : { guild_id: guildId }),
    }),
  };
}

/**
 * Checks what the schema cannot express: the names and descriptions that a type needs, and that required options come
 * first.
 */
function check({ type, name, description, options }: z.infer<typeof COMMAND>, path: number[]): void {
  if (type === 1 && !/^[-_'\p{Ll}\p{Lo}\p{N}]{1,32}$/u.test(name)) {
    throw refuseForm({ path: [...path, "name"], code: "APPLICATION_COMMAND_INVALID_NAME", message: "Invalid name" });
  }
  if ((type === 1) === (description === "")) {
    const message = type === 1 ? "This field is required" : "Context menu commands cannot have description";
    throw refuseForm({ path: [...path, "description"], code: "BASE_TYPE_REQUIRED", message });
  }
  checkOptions(options ?? [], [...path, "options"]);
}

function checkOptions(options: readonly CommandOption[], path: (string | number)[]): void {
  let hasOptional = false;
  for (const [index, option] of options.entries()) {
    const at = [...path, index];
    if (option.required === true && hasOptional) {
      const message = "Required options must be placed before non-required options";
      throw refuseForm({ path: at, code: "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", message });
    }
    if (option.autocomplete === true && option.choices !== undefined && option.choices.length > 0) {
      const message = "Autocomplete excludes choices";
      throw refuseForm({ path: at, code: "APPLICATION_COMMAND_AUTOCOMPLETE_CHOICES", message });
    }
    hasOptional ||= option.required !== true;
    if (option.options !== undefined) checkOptions(option.options, [...at, "options"]);
  }
}
