import { createLookupCache } from "../../../src/concurrency/lookup-cache.ts";
import { createSharedLookups } from "../../../src/concurrency/shared-lookups.ts";
import type { Adapter } from "../../../src/port/adapter.ts";
import { readExtra } from "../address.ts";
import type { SlackApi } from "../api/client.ts";
import { ApiError, codeOf } from "../api/error.ts";
import { type Body, readText, toBody } from "../api/wire.ts";
import type { Workspace, Workspaces } from "../api/workspaces.ts";
import { readUserId } from "../ids.ts";
import { type People, toPerson } from "./people.ts";

/** Timeout for a look-up. The acknowledgement needs its result, and Slack waits only three seconds. */
const LOOK_MS = 1_000;
const PAGE = 1_000;

/** Timeout for one call of `mayShow`. No acknowledgement waits for it. */
const CALL_MS = 10_000;
/** How long to cache the full members of a workspace, because the list can be long. */
const MEMBERS_FRESH_MS = 5 * 60_000;
const MAX_KNOWN = 100;
/** A time before Slack existed, so that Slack returns no messages. */
const LONG_AGO = "1.000000";
const ABSENT = new Set(["not_in_channel", "channel_not_found"]);

export interface AccessDeps {
  api: Pick<SlackApi, "call">;
  people: Pick<People, "person">;
}

export interface Presence {
  isThere: boolean;
  missing?: string;
}

/** Finds out whether a person is in a channel or can join it: no, if Slack does not respond in time. Never rejects. */
export async function findPresence(
  workspace: Workspace,
  channelId: string,
  userId: string,
  { api, people }: AccessDeps,
): Promise<Presence> {
  const { teamId } = workspace;
  const signal = AbortSignal.timeout(LOOK_MS);
  try {
    const [found, person] = await Promise.all([
      api.call(teamId, "conversations.info", { channel: channelId }, signal),
      people.person(workspace, userId),
    ]);
    const { is_im, user, is_private } = toBody(found["channel"]);
    if (is_im === true) return { isThere: user === userId };
    // Everyone except guests can join a public channel.
    if (is_private === false && person?.isGuest === false) return { isThere: true };
    const members = await readList(api, teamId, "conversations.members", { channel: channelId }, signal);
    return { isThere: members.includes(userId) };
  } catch (error) {
    return { isThere: false, ...(error instanceof ApiError && error.needed && { missing: error.needed }) };
  }
}

/** Reads all pages of a list. Rejects in the same cases as `SlackApi.call`. */
async function readList(
  api: AccessDeps["api"],
  teamId: string,
  method: "conversations.members" | "users.list",
  args: Body,
  signal: AbortSignal,
): Promise<unknown[]> {
  const all: unknown[] = [];
  for (let cursor = ""; ; ) {
    const page = { ...args, limit: PAGE, ...(cursor !== "" && { cursor }) };
    const { members, response_metadata } = await api.call(teamId, method, page, signal);
    if (Array.isArray(members)) all.push(...members);
    cursor = readText(toBody(response_metadata)["next_cursor"]) ?? "";
    if (cursor === "") return all;
  }
}

/** Implements `Adapter.isThere`: true if the person shares the channel, or the direct conversation, with the bot. */
export function createIsThere({
  api,
  workspaces,
}: Pick<AccessDeps, "api"> & { workspaces: Workspaces }): NonNullable<Adapter["isThere"]> {
  async function isDirect(teamId: string, channel: string, user: string, signal: AbortSignal): Promise<boolean> {
    const [place, person] = await Promise.all([
      api.call(teamId, "conversations.info", { channel }, signal),
      api.call(teamId, "users.info", { user }, signal),
    ]);
    return toBody(place["channel"])["user"] === user && toBody(person["user"])["deleted"] !== true;
  }

  return async (authorId, { workspaceId = "", channelId }, signal) => {
    const workspace = await workspaces.find(workspaceId, signal);
    if (workspace === undefined) return false;
    const { teamId, botUserId } = workspace;
    const userId = readUserId(authorId);
    try {
      if (channelId.startsWith("D")) return await isDirect(teamId, channelId, userId, signal);
      // Needs no check for deactivated people, because Slack removes them from all channels.
      const members = await readList(api, teamId, "conversations.members", { channel: channelId }, signal);
      return members.includes(userId) && members.includes(botUserId);
    } catch (error) {
      if (isAbsence(error) || codeOf(error) === "user_not_found") return false;
      throw error;
    }
  };
}

/**
 * Implements `Adapter.mayShow`. A channel shows its own messages, and those of public channels. A channel that other
 * workspaces share shows only its own, because public channels are not public to everyone there. A channel with guests
 * shows only public channels that all these guests are in.
 */
export function createMayShow({ workspaces, api }: Pick<AccessDeps, "api"> & { workspaces: Workspaces }) {
  const shared = createSharedLookups();
  const members = createLookupCache({ freshMs: MEMBERS_FRESH_MS, maxEntries: MAX_KNOWN, now: () => performance.now() });

  function look(team: string, method: string, args: Body, signal: AbortSignal): Promise<Body> {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]);
    return shared(signal, `${method} ${JSON.stringify(args)}`, () => api.call(team, method, args, bounded));
  }

  const infoOf = async (team: string, channelId: string, signal: AbortSignal) =>
    toBody((await look(team, "conversations.info", { channel: channelId }, signal))["channel"]);

  function membersOf(team: string, channelId: string, signal: AbortSignal): Promise<unknown[]> {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]);
    const read = () => readList(api, team, "conversations.members", { channel: channelId }, bounded);
    return shared(signal, `members ${channelId}`, read);
  }

  /** Ids of a workspace's apps and of its members except guests; undefined if Slack does not list them in time. */
  function fullMembersOf(workspace: Workspace): Promise<ReadonlySet<unknown> | undefined> {
    const read = async () => {
      const all = await readList(api, workspace.teamId, "users.list", {}, AbortSignal.timeout(CALL_MS));
      const full = all.map(toBody).filter((user) => toPerson(user, workspace)?.isGuest === false);
      return new Set<unknown>(full.map(({ id }) => id));
    };
    return members.get(workspace.teamId, () => read().catch(() => undefined));
  }

  async function maySee(workspace: Workspace, channel: Body, userId: string, signal: AbortSignal): Promise<boolean> {
    const { teamId } = workspace;
    if (channel["is_im"] === true) return channel["user"] === userId;
    if (isOpen(channel)) {
      const { user } = await look(teamId, "users.info", { user: userId }, signal);
      if (toPerson(toBody(user), workspace)?.isGuest === false) return true;
    }
    return (await membersOf(teamId, String(channel["id"]), signal)).includes(userId);
  }

  /** True if everyone in this place is in the public channel or can join it. */
  async function mayAllSee(
    workspace: Workspace,
    { channelId, placeId }: { channelId: string; placeId: string },
    signal: AbortSignal,
  ): Promise<boolean> {
    const { teamId } = workspace;
    const [place, there, full] = await Promise.all([
      infoOf(teamId, placeId, signal),
      membersOf(teamId, placeId, signal),
      fullMembersOf(workspace),
    ]);
    if (full === undefined || !isOfOneWorkspace(place)) return false;
    // Includes people who joined the workspace after the list was read.
    const guests = there.filter((id) => !full.has(id));
    if (guests.length === 0) return true;
    const source = await membersOf(teamId, channelId, signal);
    return guests.every((id) => source.includes(id));
  }

  const mayShow: Adapter["mayShow"] = async (id, { author, reply }, signal) => {
    const [, team, channelId] = /^slack:(\w+):(\w+)(?::|$)/.exec(id) ?? [];
    if (team === undefined || channelId === undefined || team !== readExtra(reply).team) return false;
    const { channelId: placeId, visibleTo } = reply;
    const isAlone = placeId.startsWith("D") || visibleTo !== undefined;
    if (channelId === placeId && (!isAlone || placeId.startsWith("D"))) return true;
    const workspace = await workspaces.find(team, signal);
    if (workspace === undefined) return false;
    try {
      const channel = await infoOf(team, channelId, signal);
      if (!isAlone && !(isOpen(channel) && (await mayAllSee(workspace, { channelId, placeId }, signal)))) return false;
      return await maySee(workspace, channel, readUserId(author.id), signal);
    } catch {
      signal.throwIfAborted();
      return false;
    }
  };
  return mayShow;
}

function isOpen({ is_im, is_mpim, is_private }: Body): boolean {
  return is_private === false && is_im !== true && is_mpim !== true;
}

function isOfOneWorkspace(channel: Body): boolean {
  return ["is_shared", "is_ext_shared", "is_org_shared", "is_pending_ext_shared"].every((key) => channel[key] !== true);
}

export const NOT_HERE =
  "I'm not in this channel, so I can't write here. Add me with `/invite` and my name, or write to me directly.";

/** Returns why a form posts no image to a conversation in which the bot does not find the person. */
export function describeAbsence({ missing }: Presence): string {
  const why =
    missing === undefined
      ? "I couldn't check whether you're in this conversation."
      : `I need the permission ${missing} to see who is in this conversation. An admin can grant it.`;
  return `${why} Use /imagine there instead.`;
}

export function isAbsence(error: unknown): boolean {
  return ABSENT.has(codeOf(error));
}

/** True if the bot can write in a channel, or if Slack is slow. Tests this by reading, which needs no other scope. */
export async function isMember(
  { teamId }: Workspace,
  channelId: string,
  { api }: { api: Pick<SlackApi, "call"> },
): Promise<boolean> {
  const nothing = { channel: channelId, latest: LONG_AGO, limit: 1 };
  try {
    await api.call(teamId, "conversations.history", nothing, AbortSignal.timeout(LOOK_MS));
    return true;
  } catch (error) {
    return !isAbsence(error);
  }
}
