import type { Arguments } from "./arguments.ts";
import type { Core } from "./core.ts";
import type { Messages } from "./messages.ts";
import { SlackRefusal } from "./refusal.ts";
import type { Channel, Json, Message, Workspace } from "./world.ts";

export interface Method {
  /** The bot token needs one of these scopes; [] if none is needed. */
  scopes: readonly string[];
  token: "bot" | "app" | "none";
  run(args: Arguments, call: Call): Json | Promise<Json>;
}

export type Methods = Readonly<Record<string, Method>>;

export interface Call {
  workspace: Workspace;
  isOrgWide: boolean;
}

export interface MethodDeps {
  core: Core;
  messages: Messages;
}

export function needScope({ scopes }: Workspace, ...anyOf: string[]): void {
  if (anyOf.length === 0 || anyOf.some((scope) => scopes.has(scope))) return;
  throw new SlackRefusal("missing_scope", { needed: anyOf.join(","), provided: [...scopes].join(",") });
}

/** Finds a channel by its id or as `#name`. Throws if the app cannot know the channel. */
export function findChannel({ channels, bot }: Workspace, name: string): Channel {
  const channel =
    channels.get(name) ?? [...channels.values()].find((one) => name === `#${one.name}` && one.kind === "public");
  const isVisible = channel !== undefined && (channel.kind === "public" || channel.members.has(bot.id));
  if (!isVisible) throw new SlackRefusal("channel_not_found");
  return channel;
}

/** Like `findChannel`. Also throws if the app cannot write there. */
export function findWritableChannel(workspace: Workspace, name: string): Channel {
  const channel = findChannel(workspace, name);
  checkWritable(workspace, channel);
  return channel;
}

/** Throws Slack's error if the channel is archived or the app is not a member. */
export function checkWritable(workspace: Workspace, channel: Channel): void {
  if (channel.isArchived) throw new SlackRefusal("is_archived");
  const isPublicWriter = channel.kind === "public" && workspace.scopes.has("chat:write.public");
  if (!channel.members.has(workspace.bot.id) && !isPublicWriter) throw new SlackRefusal("not_in_channel");
}

/** Returns the root of the thread that a call names; undefined if it names none. */
export function findThread(channel: Channel, args: Arguments): string | undefined {
  const ts = args.text("thread_ts");
  if (ts === undefined) return undefined;
  if (!/^\d{10}\.\d{6}$/.test(ts)) throw new SlackRefusal("invalid_thread_ts");
  const root = channel.messages.get(ts);
  // A thread with replies still exists after its root was deleted.
  const hasReplies = [...channel.messages.values()].some(({ threadTs }) => threadTs === ts);
  if (root === undefined && !hasReplies) throw new SlackRefusal("thread_not_found");
  if (root?.threadTs !== undefined) throw new SlackRefusal("cannot_reply_to_message");
  return ts;
}

export function findMessage(channel: Channel, ts: string): Message {
  const message = channel.messages.get(ts);
  if (message === undefined) throw new SlackRefusal("message_not_found");
  return message;
}
