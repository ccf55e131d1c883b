import { waitAtMost } from "../../../src/concurrency/deadlines.ts";
import { createLookupCache } from "../../../src/concurrency/lookup-cache.ts";
import type { Author } from "../../../src/port/events.ts";
import type { SlackApi } from "../api/client.ts";
import { SlackApiError } from "../api/error.ts";
import { createThrottle } from "../api/rate-limits.ts";
import { type Body, readText, toBody } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM, toPersonId } from "../ids.ts";
import type { SlackAdapterOptions } from "../options.ts";

/** Longest wait for a name: Slack gives three seconds for the event to be stored, with the name or without. */
const WAIT_MS = 1_000;
const FRESH_MS = 60 * 60_000;
const MAX_CACHED = 10_000;
const CALL_MS = 10_000;
/** Below what Slack allows: in a large workspace every thread brings people whom nobody here knows yet. */
const MAX_A_MINUTE = { "users.info": 80, "conversations.info": 40, "usergroups.users.list": 15 };

/** Members of a group change more often than names do, and their permissions depend on it. */
const GROUP_FRESH_MS = 5 * 60_000;
const SLACK_GROUP = /^S[A-Z0-9]+$/;
/** Most groups that are looked up for one author. */
const MAX_GROUPS = 20;
const UNKNOWN_GROUP =
  "Slack does not tell who is in a user group that the policy names, so rules about it match nobody: the app may lack the scope usergroups:read, and npm run doctor says more.";

/** Somebody as a workspace knows them. */
export interface Person {
  /** As shown to people. */
  name: string;
  /** Runs the workspace, or owns it. */
  isAdmin: boolean;
  /** Let into some channels only, or of another organisation. */
  isGuest: boolean;
  /** Absent for a full member. `external`: of another organisation. */
  kind?: "guest" | "external" | "bot";
}

interface ChannelInfo {
  name: string | undefined;
  creator: string | undefined;
  /** A direct conversation of several people. */
  isGroup: boolean;
}

/** Names behind Slack's ids. A name that takes longer than a second is undefined, and is known the next time. */
export interface People {
  person(workspace: Workspace, userId: string): Promise<Person | undefined>;
  channelName(workspace: Workspace, channelId: string): Promise<string | undefined>;
  /**
   * Somebody as the author of an event. A workspace's administrators may act for others (`isModerator`). They, and
   * whoever made a channel, may change its settings (`mayConfigure`), as in Slack itself. A direct conversation leaves
   * that open: nobody else is there to ask.
   */
  toAuthor(workspace: Workspace, userId: string, given?: GivenAuthor): Promise<Author>;
}

export interface GivenAuthor {
  /** Their name as the event has it, for when nothing better is known. */
  name?: string | undefined;
  channelId?: string | undefined;
  isDirect?: boolean;
  /** The workspace they are of, where Slack says it. */
  team?: string | undefined;
}

export function createPeople(deps: PeopleDeps): People {
  const query = createPeopleQuery(deps);
  const cache = createLookupCache({ freshMs: FRESH_MS, maxEntries: MAX_CACHED, now: deps.now });
  const groupCache = createLookupCache({ freshMs: GROUP_FRESH_MS, maxEntries: MAX_CACHED, now: deps.now });
  /** Groups whose members cannot be read, and about which the log has been told. */
  const unknown = new Set<string>();

  function person(workspace: Workspace, userId: string): Promise<Person | undefined> {
    const find = () =>
      query(workspace, "users.info", { user: userId }, ({ user }) => toPerson(toBody(user), workspace));
    return waitAtMost(cache.get(`${workspace.teamId} ${userId}`, find), WAIT_MS);
  }

  function channel(workspace: Workspace, channelId: string): Promise<ChannelInfo | undefined> {
    const find = () =>
      query(workspace, "conversations.info", { channel: channelId }, (found) => {
        const { name, creator, is_mpim } = toBody(found["channel"]);
        return { name: readText(name), creator: readText(creator), isGroup: is_mpim === true };
      });
    return waitAtMost(cache.get(`${workspace.teamId} ${channelId}`, find), WAIT_MS);
  }

  /** The groups named in the policy that somebody is in, as far as Slack tells in time. */
  async function groupsOf(workspace: Workspace, userId: string): Promise<string[]> {
    const asked = (await deps.namedGroups?.()) ?? [];
    const ids = asked.filter((id) => SLACK_GROUP.test(id)).slice(0, MAX_GROUPS);
    const isIn = await Promise.all(ids.map(async (id) => (await membersOf(workspace, id))?.includes(userId)));
    return ids.filter((_, index) => isIn[index] === true);
  }

  function membersOf(workspace: Workspace, groupId: string): Promise<readonly string[] | undefined> {
    const find = async () => {
      const read = ({ users }: Body) => (Array.isArray(users) ? users.map(String) : []);
      const members = await query(workspace, "usergroups.users.list", { usergroup: groupId }, read);
      if (members === undefined && !unknown.has(groupId)) {
        unknown.add(groupId);
        deps.log.warn({ groupId, teamId: workspace.teamId }, UNKNOWN_GROUP);
      }
      return members;
    };
    return waitAtMost(groupCache.get(`${workspace.teamId} ${groupId}`, find), WAIT_MS);
  }

  return {
    person,
    channelName: async (workspace, channelId) => (await channel(workspace, channelId))?.name,
    async toAuthor(workspace, userId, { name, channelId, isDirect = channelId?.startsWith("D"), team } = {}) {
      const isOpen = channelId !== undefined && isDirect !== true;
      const [found, place, groups] = await Promise.all([
        person(workspace, userId),
        isOpen ? channel(workspace, channelId) : undefined,
        groupsOf(workspace, userId),
      ]);
      const isAdmin = found?.isAdmin === true;
      const isCreator = place?.creator === userId && found?.isGuest === false;
      // An organisation has many workspaces, and one id for each of its people.
      const isForeign = team !== undefined && team !== workspace.teamId && team !== workspace.enterpriseId;
      const isExternal = found?.kind === "external" || (isForeign && workspace.enterpriseId === undefined);
      const kind = isExternal ? "external" : found?.kind;
      return {
        ...toIdentity(workspace, userId, team),
        name: found?.name ?? (name || userId),
        ...(kind !== undefined && { kind }),
        ...(isExternal && isForeign && { workspaceId: team }),
        ...(groups.length > 0 && { groups }),
        ...(isAdmin && { isModerator: true }),
        ...(isOpen && place?.isGroup !== true && { mayConfigure: isAdmin || isCreator }),
      };
    },
  };
}

/** `former` is the id under which earlier versions stored people: Slack's own, unique only within one workspace's conversations. */
export function toIdentity(
  workspace: Pick<Workspace, "teamId" | "enterpriseId" | "isSole">,
  userId: string,
  team?: string,
): Pick<Author, "id" | "former"> {
  const within = workspace.isSole === true ? {} : { within: `${PLATFORM}:${workspace.teamId}:` };
  return { id: toPersonId(workspace, userId, team), former: { id: userId, ...within } };
}

function toPerson(user: Body, { teamId, enterpriseId }: Workspace): Person | undefined {
  const profile = toBody(user["profile"]);
  const names = [profile["display_name"], profile["real_name"], user["real_name"], user["name"]];
  const name = names.map(readText).find((one) => one !== undefined);
  if (name === undefined) return undefined;
  // Somebody from another workspace of the same organisation is no stranger.
  const organisation =
    user["enterprise_user"] && (readText(toBody(user["enterprise_user"])["enterprise_id"]) ?? enterpriseId);
  const isOfOurs = organisation !== undefined && organisation === enterpriseId;
  const isForeign = ![teamId, undefined].includes(readText(user["team_id"])) && !isOfOurs;
  const flags = (...keys: string[]) => keys.some((key) => user[key] === true);
  return {
    name,
    isAdmin: !isForeign && flags("is_admin", "is_owner", "is_primary_owner"),
    isGuest: isForeign || flags("is_restricted", "is_ultra_restricted", "is_stranger"),
    ...toKind(isForeign || flags("is_stranger"), flags("is_restricted", "is_ultra_restricted"), flags("is_bot")),
  };
}

function toKind(isExternal: boolean, isGuest: boolean, isBot: boolean): Pick<Person, "kind"> {
  if (isBot) return { kind: "bot" };
  if (isExternal) return { kind: "external" };
  return isGuest ? { kind: "guest" } : {};
}

export interface PeopleDeps extends Pick<SlackAdapterOptions, "namedGroups" | "log" | "now"> {
  api: Pick<SlackApi, "call">;
}

/** Looks something up. Resolves to undefined where Slack does not tell, or the rate limit is used up. Never rejects. */
export type PeopleQuery = <T>(
  workspace: Workspace,
  method: keyof typeof MAX_A_MINUTE,
  args: Body,
  read: (found: Body) => T,
) => Promise<T | undefined>;

export function createPeopleQuery({ api, log, now }: PeopleDeps): PeopleQuery {
  const throttle = createThrottle(now);

  return async ({ teamId }, method, args, read) => {
    const budget = `${teamId} ${method}`;
    if (!throttle.take(budget, MAX_A_MINUTE[method])) return undefined;
    try {
      return read(await api.call(teamId, method, args, AbortSignal.timeout(CALL_MS)));
    } catch (error) {
      const pauseMs = error instanceof SlackApiError ? error.retryAfterMs : undefined;
      if (pauseMs !== undefined) throttle.pause(budget, pauseMs);
      log.debug({ err: error, method }, "Something about people could not be looked up.");
      return undefined;
    }
  };
}
