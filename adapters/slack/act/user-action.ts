import type { Actor, Looking } from "../../../src/port/catalogue.ts";
import type { AttachmentRef, Author, EventBase, ReplyAddress } from "../../../src/port/events.ts";
import type { SlackExtra } from "../address.ts";
import type { SlackApi } from "../api/client.ts";
import type { Body } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import type { People } from "../hear/people.ts";
import { PLATFORM, toFingerprint, toPersonId } from "../ids.ts";
import type { SlackAdapterOptions } from "../options.ts";
import type { TellPerson } from "../write/notice.ts";
import type { PayloadUser } from "./payloads.ts";

export interface UserAction {
  workspace: Workspace;
  person: Pick<PayloadUser, "id" | "name" | "username" | "team_id">;
  channelId: string;
  threadTs?: string | undefined;
  /** The thread, if it already has replies. */
  activeThread?: string | undefined;
  responseUrl?: string | undefined;
  /** True for an action on an ephemeral message. */
  isOnEphemeral?: boolean | undefined;
  /** Set for an action on the home tab. */
  isFromHome?: true;
  author?: Author;
  /** The part of the event's key that is unique within the workspace. */
  name: string;
}

export type UserContext = Pick<UserAction, "workspace" | "person"> &
  Partial<Pick<UserAction, "channelId" | "threadTs">>;

/**
 * Names an action after its payload, which is the same in a repeated delivery. A trigger is no good name: a server that
 * imitates Slack may repeat it or send none.
 */
export function toName(kind: "command" | "home" | "press" | "shortcut", payload: unknown): string {
  return `${kind}:${toFingerprint(JSON.stringify(payload))}`;
}

/** An action at the top level of a channel belongs to the channel's conversation. */
export async function toEventBase(
  userAction: UserAction,
  { isPrivate }: { isPrivate: boolean },
  { people, now }: Pick<HandlerDeps, "people" | "now">,
): Promise<EventBase> {
  const { workspace, channelId, threadTs, name } = userAction;
  const at = now();
  const author = userAction.author ?? (await authorOf(userAction, people));
  const conversation = [PLATFORM, workspace.teamId, channelId, ...(threadTs === undefined ? [] : [threadTs])];
  return {
    key: `${PLATFORM}:${workspace.teamId}:${name}`,
    conversationId: conversation.join(":"),
    author,
    reply: {
      ...toReply(userAction, at),
      // `mayConfigure` is undefined only in a direct conversation.
      ...(author.mayConfigure === undefined && { isDirect: true }),
      ...(isPrivate && { visibleTo: author.id }),
    },
    at,
  };
}

/** Describes the person and the channel without calling Slack. Unknown fields are absent. */
export function toActor({ workspace, person, channelId, threadTs }: UserContext): Actor {
  const reply: ReplyAddress = {
    platform: PLATFORM,
    channelId: channelId ?? "",
    workspaceId: workspace.teamId,
    ...(threadTs !== undefined && { threadId: threadTs }),
  };
  return { author: { id: toPersonId(workspace, person.id, person.team_id), name: person.id }, reply };
}

/** Takes at most a second, and omits fields that Slack does not return by then. Never rejects. */
export function authorOf({ workspace, person, channelId }: UserAction, people: HandlerDeps["people"]): Promise<Author> {
  const name = person.name ?? person.username;
  return people.toAuthor(workspace, person.id, { name, channelId, team: person.team_id });
}

function toReply(userAction: UserAction, at: number): ReplyAddress {
  const { workspace, person, channelId, threadTs, activeThread, responseUrl, isOnEphemeral, isFromHome } = userAction;
  const extra: SlackExtra = {
    team: workspace.teamId,
    user: person.id,
    recipientTeam: person.team_id ?? workspace.teamId,
    ...(responseUrl !== undefined && { responseUrl }),
    ...(isOnEphemeral && { isOnEphemeral: "true" }),
    ...(activeThread !== undefined && { activeThread }),
    ...(isFromHome && { isFromHome: "true" }),
  };
  return {
    platform: PLATFORM,
    channelId,
    workspaceId: workspace.teamId,
    ...(threadTs !== undefined && { threadId: threadTs }),
    since: at,
    extra: { ...extra },
  };
}

export interface HandlerDeps
  extends Pick<
    SlackAdapterOptions,
    "commands" | "listModels" | "imagine" | "findTurn" | "readPersona" | "scheduleForm" | "log" | "now"
  > {
  api: Pick<SlackApi, "call">;
  people: People;
  tellPerson: TellPerson;
  toAttachments(workspace: Workspace, files: readonly Body[]): AttachmentRef[];
  looking?: Pick<Looking, "note"> | undefined;
}
