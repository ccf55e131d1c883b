import type { Actor } from "../../../src/port/catalogue.ts";
import type { Author, ReplyAddress } from "../../../src/port/events.ts";
import type { SlackExtra } from "../address.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM } from "../ids.ts";
import { toIdentity } from "../people/people.ts";
import type { SurfaceDeps } from "./deps.ts";
import type { Person } from "./payloads.ts";

/** Somebody who did something, and where. */
export interface Asking {
  workspace: Workspace;
  person: Pick<Person, "id" | "name" | "username" | "team_id">;
  channelId: string;
  threadTs?: string | undefined;
  responseUrl?: string | undefined;
  /** On their home. */
  isFromHome?: true;
  /** Where it was looked up already. */
  author?: Author;
  /** What the event of it is known by; unique in the workspace. */
  name: string;
}

/** Somebody at work, in no channel in particular where none is named. */
export type Doing = Pick<Asking, "workspace" | "person"> & Partial<Pick<Asking, "channelId" | "threadTs">>;

/** The fields that all events of interactions have. */
export interface EventBase {
  key: string;
  conversationId: string;
  author: Author;
  reply: ReplyAddress;
  at: number;
}

/** What is asked at the top level of a channel is about the channel. */
export async function toEventBase(
  asking: Asking,
  { isPrivate }: { isPrivate: boolean },
  { people, now }: Pick<SurfaceDeps, "people" | "now">,
): Promise<EventBase> {
  const { workspace, channelId, threadTs, name } = asking;
  const author = asking.author ?? (await authorOf(asking, people));
  const conversation = [PLATFORM, workspace.teamId, channelId, ...(threadTs === undefined ? [] : [threadTs])];
  return {
    key: `${PLATFORM}:${workspace.teamId}:${name}`,
    conversationId: conversation.join(":"),
    author,
    reply: { ...toReply(asking), ...(isPrivate && { visibleTo: author.id }) },
    at: now(),
  };
}

/** Who does something and where, as far as it is known at once. */
export function toActor({ workspace, person, channelId, threadTs }: Doing): Actor {
  const reply: ReplyAddress = {
    platform: PLATFORM,
    channelId: channelId ?? "",
    workspaceId: workspace.teamId,
    ...(threadTs !== undefined && { threadId: threadTs }),
  };
  return { author: { ...toIdentity(workspace, person.id, person.team_id), name: person.id }, reply };
}

/** Quick, and never rejects: what Slack does not say in time is left out. */
export function authorOf({ workspace, person, channelId }: Asking, people: SurfaceDeps["people"]): Promise<Author> {
  const name = person.name ?? person.username;
  return people.toAuthor(workspace, person.id, { name, channelId, team: person.team_id });
}

function toReply(asking: Asking): ReplyAddress {
  const { workspace, person, channelId, threadTs, responseUrl, isFromHome } = asking;
  const extra: SlackExtra = {
    team: workspace.teamId,
    user: person.id,
    recipientTeam: person.team_id ?? workspace.teamId,
    ...(responseUrl !== undefined && { responseUrl }),
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
