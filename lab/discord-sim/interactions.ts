import { randomBytes } from "node:crypto";
import { INTERACTION_TYPES, type Interaction, type InteractionKind } from "./interaction.ts";
import { toChannel, toMember, toUser } from "./payloads.ts";
import { fileLimitIn, type Simulation } from "./simulation.ts";
import type { Channel, Message, Payload, User } from "./world.ts";

export interface NewInteraction {
  kind: InteractionKind;
  channel: Channel;
  user: User;
  data: Payload;
  source?: Message;
  /** The type of the message with which the bot replies. */
  replyType: number;
}

export interface Interactions {
  begin(options: NewInteraction): Interaction;
  find(token: string): Interaction | undefined;
}

export function createInteractions(simulation: Simulation): Interactions {
  const { clock, world, payloads, deliver } = simulation;
  const byToken = new Map<string, Interaction>();

  function asker(channel: Channel, user: User): Payload {
    const member = world.guilds.get(channel.guildId ?? "")?.members.get(user.id);
    if (member === undefined) return { user: toUser(user) };
    const permissions = world.permissionsIn(channel, user.id).toString();
    return { member: { ...toMember(member), user: toUser(user), permissions } };
  }

  function place(channel: Channel): Payload {
    const { guildId } = channel;
    const where = {
      channel_id: channel.id,
      channel: { ...toChannel(channel, world), permissions: "0" },
      context: guildId === undefined ? 1 : 0,
      authorizing_integration_owners: { "0": guildId ?? "0" },
    };
    if (guildId === undefined) return where;
    return {
      ...where,
      guild_id: guildId,
      guild_locale: "en-US",
      guild: { id: guildId, locale: "en-US", features: [] },
    };
  }

  return {
    begin({ kind, channel, user, data, source, replyType }) {
      const id = world.nextId();
      const token = randomBytes(90).toString("base64url");
      const payload = {
        id,
        token,
        application_id: world.bot.id,
        type: INTERACTION_TYPES[kind],
        version: 1,
        data,
        locale: "en-US",
        app_permissions: world.permissionsIn(channel, world.bot.id).toString(),
        attachment_size_limit: fileLimitIn(simulation, channel, user),
        entitlements: [],
        ...place(channel),
        ...asker(channel, user),
        ...(source === undefined ? {} : { message: payloads.toMessage(source, true) }),
      };
      const interaction: Interaction = {
        id,
        token,
        kind,
        channelId: channel.id,
        guildId: channel.guildId,
        user,
        createdAtMs: clock.now(),
        payload,
        replyType,
        messages: [],
        ...(source === undefined ? {} : { source }),
      };
      byToken.set(token, interaction);
      deliver({ type: "INTERACTION_CREATE", guildId: channel.guildId, intent: 0, payload: () => payload });
      return interaction;
    },
    find: (token) => byToken.get(token),
  };
}
