import type { Actor, Looking } from "../../../src/port/catalogue.ts";
import type { AttachmentRef, Author, EventBase, ReplyAddress } from "../../../src/port/events.ts";
import type { SlackExtra } from "../address.ts";
import type { SlackApi } from "../api/client.ts";
import type { Body } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM, toFingerprint } from "../ids.ts";
import type { SlackAdapterOptions } from "../options.ts";
import { type People, toIdentity } from "../people/people.ts";
import { createEphemeralWriter, type EphemeralWriterDeps } from "../write/ephemeral.ts";
import type { PayloadUser } from "./payloads.ts";

const TELL_MS = 5_000;

/** Somebody who did something, and where. */
export interface UserAction {
  workspace: Workspace;
  person: Pick<PayloadUser, "id" | "name" | "username" | "team_id">;
  channelId: string;
  threadTs?: string | undefined;
  /** The thread, where it has replies already. */
  activeThread?: string | undefined;
  responseUrl?: string | undefined;
  /** On their home. */
  isFromHome?: true;
  /** Present when it was looked up already. */
  author?: Author;
  /** Part of the event's key; unique in the workspace. */
  name: string;
}

/** Somebody who did something, with the channel where there is one. */
export type UserContext = Pick<UserAction, "workspace" | "person"> &
  Partial<Pick<UserAction, "channelId" | "threadTs">>;

/**
 * Names an action, with the same name each time that Slack delivers it, which it does until it is acknowledged. Slack's
 * own name for it is the trigger, but a stand-in for Slack may send always the same one, or none.
 */
export function toName(kind: "command" | "home" | "press" | "shortcut", payload: unknown): string {
  return `${kind}:${toFingerprint(JSON.stringify(payload))}`;
}

/** An action at the top level of a channel belongs to the conversation of the channel. */
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
      // `mayConfigure` is left open only in a direct conversation.
      ...(author.mayConfigure === undefined && { isDirect: true }),
      ...(isPrivate && { visibleTo: author.id }),
    },
    at,
  };
}

/** The person and the place, as far as they are known at once. */
export function toActor({ workspace, person, channelId, threadTs }: UserContext): Actor {
  const reply: ReplyAddress = {
    platform: PLATFORM,
    channelId: channelId ?? "",
    workspaceId: workspace.teamId,
    ...(threadTs !== undefined && { threadId: threadTs }),
  };
  return { author: { ...toIdentity(workspace, person.id, person.team_id), name: person.id }, reply };
}

/** Never rejects, and takes a second at most: fields that Slack does not tell in time are left out. */
export function authorOf({ workspace, person, channelId }: UserAction, people: HandlerDeps["people"]): Promise<Author> {
  const name = person.name ?? person.username;
  return people.toAuthor(workspace, person.id, { name, channelId, team: person.team_id });
}

function toReply(userAction: UserAction, at: number): ReplyAddress {
  const { workspace, person, channelId, threadTs, activeThread, responseUrl, isFromHome } = userAction;
  const extra: SlackExtra = {
    team: workspace.teamId,
    user: person.id,
    recipientTeam: person.team_id ?? workspace.teamId,
    ...(responseUrl !== undefined && { responseUrl }),
    ...(activeThread !== undefined && { activeThread }),
    cameAt: String(at),
    ...(isFromHome && { isFromHome: "true" }),
  };
  return {
    platform: PLATFORM,
    channelId,
    workspaceId: workspace.teamId,
    ...(threadTs !== undefined && { threadId: threadTs }),
    extra: { ...extra },
  };
}

/**
 * Tells something to this person alone: by the response URL, for which the bot need not be in the channel, and else by
 * `chat.postEphemeral`. Rejects when neither works.
 */
export type TellPerson = (by: UserContext & Pick<UserAction, "responseUrl">, words: string) => Promise<void>;

export function createTellPerson(deps: Pick<EphemeralWriterDeps, "api" | "apiUrl">): TellPerson {
  return async ({ workspace: { teamId }, person, channelId, threadTs, responseUrl }, words) => {
    if (channelId === undefined) return;
    const writer = createEphemeralWriter({ ...deps, teamId, channelId, threadTs, userId: person.id, responseUrl });
    await writer.post({ markdown: words, buttons: [], streaming: false }, "told", AbortSignal.timeout(TELL_MS));
  };
}

/** Dependencies of all handlers of interactions. */
export interface HandlerDeps
  extends Pick<
    SlackAdapterOptions,
    "commands" | "listModels" | "imagine" | "findTurn" | "readPersona" | "log" | "now"
  > {
  api: Pick<SlackApi, "call">;
  people: People;
  tellPerson: TellPerson;
  toAttachments(workspace: Workspace, files: readonly Body[]): AttachmentRef[];
  looking?: Pick<Looking, "note"> | undefined;
}
