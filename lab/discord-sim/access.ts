import type { PermissionName } from "./permissions.ts";
import { refuse } from "./refusals.ts";
import type { Channel, Message, World } from "./world.ts";

/** Finds the bot's channels and checks its permissions. Each method throws the error that Discord would return. */
export interface Access {
  channel(id: string | undefined): Channel;
  message(channel: Channel, id: string | undefined): Message;
  require(channel: Channel, ...permissions: PermissionName[]): void;
  /** Throws if the thread is archived or locked, so that the action is not possible. */
  requireOpen(channel: Channel): void;
  /**
   * Throws if the bot cannot post: the person accepts no direct messages, the channel has no text, or a permission is
   * missing.
   */
  requirePostable(channel: Channel): void;
}

export function createAccess(world: World): Access {
  const { bot } = world;

  function requireAll(channel: Channel, ...permissions: PermissionName[]): void {
    for (const permission of permissions) {
      if (!world.can(bot.id, channel, permission)) throw refuse("missing-permissions");
    }
  }

  return {
    channel(id = "") {
      const channel = world.channels.get(id);
      if (channel === undefined) throw refuse("unknown-channel");
      if (!world.canSee(bot.id, channel)) throw refuse("missing-access");
      return channel;
    },
    message(channel, id = "") {
      const message = world.message(channel.id, id);
      if (message === undefined || message.ephemeralFor !== undefined) throw refuse("unknown-message");
      return message;
    },
    require: requireAll,
    requireOpen({ thread }) {
      if (thread?.isArchived === true) throw refuse("archived");
    },
    requirePostable(channel) {
      if (channel.kind === "forum") throw refuse("not-text");
      if (channel.recipient?.acceptsDms === false) throw refuse("closed-dms");
      requireAll(channel, channel.thread === undefined ? "SendMessages" : "SendMessagesInThreads");
      if (channel.thread?.isLocked !== true || world.can(bot.id, channel, "ManageThreads")) return;
      throw refuse(channel.thread.isArchived ? "archived" : "locked");
    },
  };
}
