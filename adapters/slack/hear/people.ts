import { waitAtMost } from "../../../src/concurrency/deadlines.ts";
import { createLookupCache } from "../../../src/concurrency/lookup-cache.ts";
import type { PlaceNames } from "../../../src/port/adapter.ts";
import type { Author } from "../../../src/port/events.ts";
import type { SlackApi } from "../api/client.ts";
import { ApiError, isUncertain } from "../api/error.ts";
import { createThrottle } from "../api/optional-calls.ts";
import { type Body, readText, toBody } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { toPersonId } from "../ids.ts";
import type { SlackAdapterOptions } from "../options.ts";

/** Longest wait for a name. The bot must store the event within Slack's three seconds, even without the name. */
const WAIT_MS = 1_000;
const FRESH_MS = 60 * 60_000;
const MAX_CACHED = 10_000;
const CALL_MS = 10_000;
/** Below Slack's limits. In a large workspace, every thread has people that the bot has not looked up yet. */
const MAX_A_MINUTE = { "users.info": 80, "conversations.info": 40, "usergroups.users.list": 15, "auth.test": 15 };

/** Shorter than for names, because groups decide about permissions and change more often. */
const GROUP_FRESH_MS = 5 * 60_000;
const SLACK_GROUP = /^S[A-Z0-9]+$/;
const MAX_GROUPS = 20;
const UNKNOWN_GROUP =
  "Slack does not list the members of a user group that the policy names, so rules about it match no one. The app may lack the scope usergroups:read; npm run doctor shows more.";

export interface Person {
  name: string;
  isAdmin: boolean;
  /** The person has access to some channels only, is from another organisation, or has a deactivated account. */
  isGuest: boolean;
  /** Absent for a full member. `external`: from another organisation. */
  kind?: "guest" | "external" | "bot";
  /** The IANA time zone of the person's profile. */
  timeZone?: string;
}

interface ChannelInfo {
  name: string | undefined;
  creator: string | undefined;
  isGroup: boolean;
}

/** Looks up names. A name that takes longer than a second is undefined now and known the next time. */
export interface People {
  person(workspace: Workspace, userId: string): Promise<Person | undefined>;
  channelName(workspace: Workspace, channelId: string): Promise<string | undefined>;
  namePlace(workspace: Workspace, channelId: string): Promise<PlaceNames>;
  /**
   * Describes a person as the author of an event. The workspace's admins are moderators. As in Slack itself, admins and
   * a channel's creator can change the channel's settings.
   */
  toAuthor(workspace: Workspace, userId: string, given?: GivenAuthor): Promise<Author>;
  /** Like `toAuthor`, but bypasses the cache, waits as long as the signal permits, and rejects if Slack fails. */
  readAuthor(workspace: Workspace, userId: string, channelId: string, signal: AbortSignal): Promise<Author>;
}

/** The look-ups behind an author's name and rights. Each resolves to undefined if Slack does not know the value. */
interface Lookups {
  person(workspace: Workspace, userId: string): Promise<Person | undefined>;
  channel(workspace: Workspace, channelId: string): Promise<ChannelInfo | undefined>;
  membersOf(workspace: Workspace, groupId: string): Promise<readonly string[] | undefined>;
}

export interface GivenAuthor {
  /** The person's name from the event, used if no better name is known. */
  name?: string | undefined;
  channelId?: string | undefined;
  isDirect?: boolean;
  team?: string | undefined;
}

export function createPeople(deps: PeopleDeps): People {
  const query = createPeopleQuery(deps);
  const cache = createLookupCache({ freshMs: FRESH_MS, maxEntries: MAX_CACHED, now: deps.now });
  const groupCache = createLookupCache({ freshMs: GROUP_FRESH_MS, maxEntries: MAX_CACHED, now: deps.now });
  /** Groups whose members cannot be read. The log has already named them. */
  const unknown = new Set<string>();

  function person(workspace: Workspace, userId: string): Promise<Person | undefined> {
    const find = () => query(workspace, "users.info", { user: userId }, (found) => readPerson(found, workspace));
    return waitAtMost(cache.get(`${workspace.teamId} ${userId}`, find), WAIT_MS);
  }

  function channel(workspace: Workspace, channelId: string): Promise<ChannelInfo | undefined> {
    const find = () => query(workspace, "conversations.info", { channel: channelId }, readChannel);
    return waitAtMost(cache.get(`${workspace.teamId} ${channelId}`, find), WAIT_MS);
  }

  function workspaceName(workspace: Workspace): Promise<string | undefined> {
    const find = () => query(workspace, "auth.test", {}, ({ team }) => readText(team));
    return waitAtMost(cache.get(workspace.teamId, find), WAIT_MS);
  }

  /** The groups that the policy names and the person is in. Leaves out groups that Slack does not return in time. */
  async function groupsOf(workspace: Workspace, userId: string, { membersOf }: Lookups): Promise<string[]> {
    const asked = (await deps.namedGroups?.()) ?? [];
    const ids = asked.filter((id) => SLACK_GROUP.test(id)).slice(0, MAX_GROUPS);
    const isIn = await Promise.all(ids.map(async (id) => (await membersOf(workspace, id))?.includes(userId)));
    return ids.filter((_, index) => isIn[index] === true);
  }

  function membersOf(workspace: Workspace, groupId: string): Promise<readonly string[] | undefined> {
    const find = async () => {
      const members = await query(workspace, "usergroups.users.list", { usergroup: groupId }, readMembers);
      if (members === undefined && !unknown.has(groupId)) {
        unknown.add(groupId);
        deps.log.warn({ groupId, teamId: workspace.teamId }, UNKNOWN_GROUP);
      }
      return members;
    };
    return waitAtMost(groupCache.get(`${workspace.teamId} ${groupId}`, find), WAIT_MS);
  }

  async function toAuthor(
    workspace: Workspace,
    userId: string,
    { name, channelId, isDirect = channelId?.startsWith("D"), team }: GivenAuthor,
    lookups: Lookups,
  ): Promise<Author> {
    const isOpen = channelId !== undefined && isDirect !== true;
    const [found, place, groups] = await Promise.all([
      lookups.person(workspace, userId),
      isOpen ? lookups.channel(workspace, channelId) : undefined,
      groupsOf(workspace, userId, lookups),
    ]);
    const isAdmin = found?.isAdmin === true;
    const isCreator = place?.creator === userId && found?.isGuest === false;
    // An organisation has several workspaces, but only one id for each person.
    const isForeign = team !== undefined && team !== workspace.teamId && team !== workspace.enterpriseId;
    const isExternal = found?.kind === "external" || (isForeign && workspace.enterpriseId === undefined);
    const kind = isExternal ? "external" : found?.kind;
    return {
      id: toPersonId(workspace, userId, team),
      name: found?.name ?? (name || userId),
      ...(kind !== undefined && { kind }),
      ...(found?.timeZone !== undefined && { timeZone: found.timeZone }),
      ...(isExternal && isForeign && { workspaceId: team }),
      ...(groups.length > 0 && { groups }),
      ...(isAdmin && { isModerator: true }),
      ...(isOpen && place?.isGroup !== true && { mayConfigure: isAdmin || isCreator }),
    };
  }

  return {
    person,
    channelName: async (workspace, channelId) => (await channel(workspace, channelId))?.name,
    async namePlace(workspace, channelId) {
      const isDirect = channelId.startsWith("D");
      const [named, found] = await Promise.all([
        workspaceName(workspace),
        isDirect ? undefined : channel(workspace, channelId),
      ]);
      // Slack names a conversation with several people after its members, so the name is not shown.
      const name = found?.isGroup === true ? "group message" : found?.name && `#${found.name}`;
      return { workspace: named, channel: isDirect ? "direct message" : name, isDirect };
    },
    toAuthor: (workspace, userId, given = {}) => toAuthor(workspace, userId, given, { person, channel, membersOf }),
    readAuthor: (workspace, userId, channelId, signal) =>
      toAuthor(workspace, userId, { channelId }, createExactLookups(deps.api, signal)),
  };
}

function createExactLookups(api: PeopleDeps["api"], signal: AbortSignal): Lookups {
  const call = ({ teamId }: Workspace, method: string, args: Body) => api.call(teamId, method, args, signal);
  return {
    person: async (workspace, user) => readPerson(await call(workspace, "users.info", { user }), workspace),
    channel: async (workspace, channel) => readChannel(await call(workspace, "conversations.info", { channel })),
    async membersOf(workspace, usergroup) {
      try {
        return readMembers(await call(workspace, "usergroups.users.list", { usergroup }));
      } catch (error) {
        // Without the scope, or for a group of another workspace, rules about the group match no one.
        if (error instanceof ApiError && !isUncertain(error) && error.retryAfterMs === undefined) return undefined;
        throw error;
      }
    },
  };
}

function readPerson({ user }: Body, workspace: Workspace): Person | undefined {
  return toPerson(toBody(user), workspace);
}

function readChannel(found: Body): ChannelInfo {
  const { name, creator, is_mpim } = toBody(found["channel"]);
  return { name: readText(name), creator: readText(creator), isGroup: is_mpim === true };
}

function readMembers({ users }: Body): string[] {
  return Array.isArray(users) ? users.map(String) : [];
}

/** Undefined for a user without a name. */
export function toPerson(user: Body, { teamId, enterpriseId }: Workspace): Person | undefined {
  const profile = toBody(user["profile"]);
  const names = [profile["display_name"], profile["real_name"], user["real_name"], user["name"]];
  const name = names.map(readText).find((one) => one !== undefined);
  if (name === undefined) return undefined;
  // A person from another workspace of the same organisation is not external.
  const organisation =
    user["enterprise_user"] && (readText(toBody(user["enterprise_user"])["enterprise_id"]) ?? enterpriseId);
  const isOfOurs = organisation !== undefined && organisation === enterpriseId;
  const isForeign = ![teamId, undefined].includes(readText(user["team_id"])) && !isOfOurs;
  const flags = (...keys: string[]) => keys.some((key) => user[key] === true);
  const timeZone = readText(user["tz"]);
  return {
    name,
    ...(timeZone !== undefined && { timeZone }),
    isAdmin: !isForeign && flags("is_admin", "is_owner", "is_primary_owner"),
    isGuest: isForeign || flags("is_restricted", "is_ultra_restricted", "is_stranger", "deleted"),
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

/** Calls a method of Slack. Undefined if Slack does not respond or the rate limit is used up. Never rejects. */
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
      const pauseMs = error instanceof ApiError ? error.retryAfterMs : undefined;
      if (pauseMs !== undefined) throttle.pause(budget, pauseMs);
      log.debug({ err: error, method }, "Could not look up a person, a group or a channel.");
      return undefined;
    }
  };
}
