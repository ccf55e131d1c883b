import { createLookupCache } from "../../../src/concurrency/lookup-cache.ts";
import type { Adapter } from "../../../src/port/adapter.ts";
import type { ReplyAddress } from "../../../src/port/events.ts";
import { readExtra } from "../address.ts";
import type { SlackApi } from "../api/client.ts";
import { SlackApiError } from "../api/error.ts";
import { type Body, readText, toBody } from "../api/wire.ts";
import type { Workspace, Workspaces } from "../api/workspaces.ts";
import { readUserId } from "../ids.ts";
import type { People } from "./people.ts";

/** Slack waits three seconds for the acknowledgement of what needs the answer. */
const LOOK_MS = 1_000;
/** Members told at once. */
const PAGE = 1_000;

/** An answer of `mayShow` is reused for this long. */
const KNOWN_MS = 30_000;
const MAX_KNOWN = 1_000;

export interface AccessDeps {
  api: Pick<SlackApi, "call">;
  people: Pick<People, "person">;
}

export interface Presence {
  isThere: boolean;
  /** The scope that the bot lacks to find out. */
  missing?: string;
}

/** Finds out whether a person is in a channel or may join it. No answer in time counts as no. Never rejects. */
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
    // Everybody but guests may join it.
    if (is_private === false && person?.isGuest === false) return { isThere: true };
    for (let cursor = ""; ; ) {
      const page = { channel: channelId, limit: PAGE, ...(cursor !== "" && { cursor }) };
      const { members, response_metadata } = await api.call(teamId, "conversations.members", page, signal);
      if (Array.isArray(members) && members.includes(userId)) return { isThere: true };
      cursor = readText(toBody(response_metadata)["next_cursor"]) ?? "";
      if (cursor === "") return { isThere: false };
    }
  } catch (error) {
    return { isThere: false, ...(error instanceof SlackApiError && error.needed && { missing: error.needed }) };
  }
}

/**
 * Makes `mayShow` of the adapter: in a channel, only the messages of that channel itself or of a public one may be
 * shown. Where people of another organisation read along, not even those of a public one: it is not public to them.
 */
export function createMayShow({ workspaces, ...deps }: AccessDeps & { workspaces: Workspaces }) {
  /** Cached, because the threads of one channel are asked about one after the other. */
  const answers = createLookupCache({ freshMs: KNOWN_MS, maxEntries: MAX_KNOWN, now: () => performance.now() });

  const mayShow: Adapter["mayShow"] = async (id, { author, reply }, signal) => {
    const [, team, channelId] = /^slack:(\w+):(\w+)(?::|$)/.exec(id) ?? [];
    if (team === undefined || channelId === undefined || team !== readExtra(reply).team) return false;
    if (channelId === reply.channelId) return true;
    const workspace = await workspaces.find(team, signal);
    if (workspace === undefined) return false;
    const isAlone = isReadAlone(reply);
    const question = [team, channelId, author.id, isAlone || reply.channelId].join(" ");
    const maySee = await answers.get(question, async () => {
      if (!isAlone) {
        const [source, place] = await Promise.all([look(team, channelId, deps), look(team, reply.channelId, deps)]);
        if (!isOpen(source) || !isOfOneOrganisation(place)) return false;
      }
      return (await findPresence(workspace, channelId, readUserId(author.id), deps)).isThere;
    });
    return maySee === true;
  };
  return mayShow;
}

function isReadAlone({ channelId, visibleTo }: ReplyAddress): boolean {
  return channelId.startsWith("D") || visibleTo !== undefined;
}

/** Undefined when it cannot be told in time. */
async function look(team: string, channelId: string, { api }: AccessDeps): Promise<Body | undefined> {
  try {
    const signal = AbortSignal.timeout(LOOK_MS);
    return toBody((await api.call(team, "conversations.info", { channel: channelId }, signal))["channel"]);
  } catch {
    return undefined;
  }
}

function isOpen(channel: Body | undefined): boolean {
  const { is_im, is_mpim, is_private } = channel ?? {};
  return is_private === false && is_im !== true && is_mpim !== true;
}

function isOfOneOrganisation(channel: Body | undefined): boolean {
  return channel !== undefined && channel["is_ext_shared"] !== true && channel["is_pending_ext_shared"] !== true;
}
