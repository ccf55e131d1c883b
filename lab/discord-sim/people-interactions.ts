import { type CommandForms, createCommandForms, type OptionValues } from "./command-data.ts";
import type { Commands } from "./commands.ts";
import { flatten } from "./component-rules.ts";
import { ACKNOWLEDGE_MS, type Interaction } from "./interaction.ts";
import type { Interactions } from "./interactions.ts";
import { fieldsOf } from "./modal-rules.ts";
import { toUser } from "./payloads.ts";
import type { FileToUpload } from "./people.ts";
import type { Simulation } from "./simulation.ts";
import { type Channel, type Message, type Payload, shown, type User } from "./world.ts";

const CHAT_INPUT = 1;
const ON_MESSAGE = 3;
const COMMAND_REPLY = 20;
const CONTEXT_REPLY = 23;
const PLAIN_REPLY = 19;
const FILE_UPLOAD = 19;
const STRING_SELECT = 3;

/**
 * What people do with commands, buttons and forms. Methods throw if Discord would not offer the action to the person.
 */
export interface PeopleInteractions {
  /** `name` can include a subcommand: `"persona set"`. */
  command(channel: Channel, user: User, name: string, options?: OptionValues): Interaction;
  /** Uses a command from a message's menu. */
  contextMenu(message: Message, user: User, name: string): Interaction;
  /** Resolves to the bot's suggestions for the option `focused`. Rejects after three seconds without any. */
  autocomplete(
    channel: Channel,
    user: User,
    name: string,
    focused: string,
    options: OptionValues,
  ): Promise<readonly Payload[]>;
  /** Presses a button, selected by its label or its custom id. */
  press(message: Message, user: User, button: string): Interaction;
  /** Submits the form with which the bot responded to `shownBy`. */
  submitModal(shownBy: Interaction, fields: Readonly<Record<string, string | readonly FileToUpload[]>>): Interaction;
}

export interface PeopleInteractionsDeps {
  simulation: Simulation;
  interactions: Interactions;
  commands: Commands;
}

export function createPeopleInteractions(deps: PeopleInteractionsDeps): PeopleInteractions {
  const { simulation, interactions, commands } = deps;
  const { world, files, payloads, changes } = simulation;
  const forms: CommandForms = createCommandForms(simulation);

  function channelOf(id: string): Channel {
    const channel = world.channels.get(id);
    if (channel === undefined) throw new Error(`There is no channel ${id}.`);
    return channel;
  }

  function prepare(channel: Channel, user: User, line: string, values: OptionValues, focused?: string): Payload {
    const [name = "", ...path] = line.split(" ");
    const command = commands.find(channel.guildId, name, CHAT_INPUT);
    if (command === undefined) throw new Error(`The bot has registered no command /${name}.`);
    if (!world.can(user.id, channel, "UseApplicationCommands")) throw new Error(`${user.name} may not use commands.`);
    forms.requireOffered(command, channel, user);
    return forms.fill(command, path, values, channel, focused);
  }

  function upload(given: readonly FileToUpload[], resolved: Record<string, Payload>): string[] {
    return given.map((file) => {
      const attachment = files.store({ ...file, id: world.nextId(), channelId: world.bot.id, isEphemeral: true });
      resolved[attachment.id] = payloads.toAttachment(attachment);
      return attachment.id;
    });
  }

  return {
    command(channel, user, name, options = {}) {
      const data = prepare(channel, user, name, options);
      return interactions.begin({ kind: "command", channel, user, data, replyType: COMMAND_REPLY });
    },
    contextMenu(message, user, name) {
      const channel = channelOf(message.channelId);
      const command = commands.find(channel.guildId, name, ON_MESSAGE);
      if (command === undefined) throw new Error(`The bot has registered no message command "${name}".`);
      forms.requireOffered(command, channel, user);
      const resolved = {
        messages: { [message.id]: payloads.toMessage(message, true) },
        users: { [message.author.id]: toUser(message.author) },
      };
      const data = { id: command.id, name, type: ON_MESSAGE, target_id: message.id, resolved };
      return interactions.begin({ kind: "command", channel, user, data, replyType: CONTEXT_REPLY });
    },
    async autocomplete(channel, user, name, focused, options) {
      const data = prepare(channel, user, name, options, focused);
      const asked = interactions.begin({ kind: "autocomplete", channel, user, data, replyType: COMMAND_REPLY });
      return await changes.until(() => asked.choices, `proposals for "${focused}" of /${name}`, ACKNOWLEDGE_MS);
    },
    press(message, user, button) {
      if (message.ephemeralFor !== undefined && message.ephemeralFor !== user.id) {
        throw new Error(`${user.name} cannot see the message.`);
      }
      const found = flatten(shown(message).components).find(
        ({ component }) => component["label"] === button || component["custom_id"] === button,
      )?.component;
      if (found === undefined) throw new Error(`The message has no button "${button}".`);
      if (found["disabled"] === true) throw new Error(`The button "${button}" is disabled.`);
      const data = { custom_id: found["custom_id"], component_type: found["type"], id: 1 };
      const channel = channelOf(message.channelId);
      return interactions.begin({ kind: "component", channel, user, data, source: message, replyType: PLAIN_REPLY });
    },
    submitModal({ modal, channelId, user, source, replyType }, fields) {
      if (modal === undefined) throw new Error("The bot has shown no form.");
      const known = fieldsOf(modal);
      const strange = Object.keys(fields).find((id) => !known.has(id));
      if (strange !== undefined) throw new Error(`The form has no field "${strange}".`);
      const attachments: Record<string, Payload> = {};
      const components = [...known].map(([id, field]) => {
        // The form also submits a prefilled value that the person did not change.
        const value = fields[id] ?? filledIn(field);
        if (value === undefined && field["required"] !== false) throw new Error(`The form needs "${id}".`);
        const content =
          typeof value === "string" || value === undefined
            ? toSubmitted(field, value)
            : { values: upload(value, attachments) };
        return { type: 18, id: 1, component: { type: field["type"], id: 2, custom_id: id, ...content } };
      });
      const data = { custom_id: modal["custom_id"], components, resolved: { attachments } };
      const channel = channelOf(channelId);
      return interactions.begin({ kind: "modal", channel, user, data, replyType, ...(source ? { source } : {}) });
    },
  };
}

function filledIn({ type, value, options }: Payload): string | undefined {
  if (type !== STRING_SELECT) return typeof value === "string" ? value : undefined;
  const chosen = (options as Payload[]).find((option) => option["default"] === true)?.["value"];
  return typeof chosen === "string" ? chosen : undefined;
}

/** Formats a text or select field as Discord submits it. */
function toSubmitted({ type, options, custom_id: id }: Payload, value: string | undefined): Payload {
  if (type === FILE_UPLOAD) return { values: [] };
  if (type !== STRING_SELECT) return { value: value ?? "" };
  const isOffered = value === undefined || (options as Payload[]).some((option) => option["value"] === value);
  if (!isOffered) throw new Error(`The form does not offer "${value}" for "${String(id)}".`);
  return { values: value === undefined ? [] : [value] };
}
