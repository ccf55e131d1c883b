import type { Arguments } from "./arguments.ts";
import type { Core } from "./core.ts";
import type { Messages } from "./messages.ts";
import { SlackRefusal } from "./refusal.ts";
import type { Channel, Json, Message, Workspace } from "./world.ts";

/** One method of the Web API. */
export interface Method {
  /** Any one of these scopes of the bot token is enough; none are needed when it is empty. */
  scopes: readonly string[];
  token: "bot" | "app" | "none";
  run(args: Arguments, call: Call): Json | Promise<Json>;
}

export type Methods = Readonly<Record<string, Method>>;

export interface Call {
  workspace: Workspace;
}

export interface MethodDeps {
  core: Core;
  messages: Messages;
}

export function needScope({ scopes }: Workspace, ...anyOf: string[]): void {
  if (anyOf.length === 0 || anyOf.some((scope) => scopes.has(scope))) return;
  throw new SlackRefusal("missing_scope", { needed: anyOf.join(","), provided: [...scopes].join(",") });
}

/** The channel a call names, by id or `#name`, as far as the app may know of it. */
export function findChannel({ channels, bot }: Workspace, name: string): Channel {
  const channel =
    channels.get(name) ?? [...channels.values()].find((one) => name === `#${one.name}` && one.kind === "public");
  const isVisible = channel !== undefined && (channel.kind === "public" || channel.members.has(bot.id));
  if (!isVisible) throw new SlackRefusal("channel_not_found");
  return channel;
}

/** A channel that the app may write to. */
export function findWritableChannel(workspace: Workspace, name: string): Channel {
  const channel = findChannel(workspace, name);
  checkWritable(workspace, channel);
  return channel;
}

/** Refuses what Slack refuses to an app in a channel that is archived, or that the app is not in. */
export function checkWritable(workspace: Workspace, channel: Channel): void {
  if (channel.isArchived) throw new SlackRefusal("is_archived");
  const isPublicWriter = channel.kind === "public" && workspace.scopes.has("chat:write.public");
  if (!channel.members.has(workspace.bot.id) && !isPublicWriter) throw new SlackRefusal("not_in_channel");
}

/** The root of the thread a call names; undefined when it names none. */
export function findThread(channel: Channel, args: Arguments): string | undefined {
  const ts = args.text("thread_ts");
  if (ts === undefined) return undefined;
  if (!/^\d{10}\.\d{6}$/.test(ts)) throw new SlackRefusal("invalid_thread_ts");
  const root = channel.messages.get(ts);
  // The thread outlives its root when that is deleted.
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
