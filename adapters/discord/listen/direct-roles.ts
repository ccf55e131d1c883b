import { createLookupCache } from "../../../src/concurrency/lookup-cache.ts";
import type { Accept } from "../../../src/port/events.ts";
import type { DiscordAdapterOptions } from "../options.ts";
import type { FindMember } from "./find-author.ts";

/** Look-ups that are remembered. A role that was taken away still counts while its look-up is fresh. */
const MAX_CACHED = 1_000;
const FRESH_MS = 5 * 60_000;
/** Most roles that are looked up of a person. */
const MAX_ROLES = 20;

/** Resolves to the roles named in the policy that somebody has, in any server. Never rejects. */
export type DirectRoles = (userId: string) => Promise<readonly string[]>;

export interface DirectRolesDeps extends Pick<DiscordAdapterOptions, "namedGroups" | "now"> {
  /** The server of a role; undefined for one that nobody here knows. */
  guildOfRole(roleId: string): string | undefined;
  findMember: FindMember;
}

/** Looks roles up, because Discord sends none with direct messages. */
export function createDirectRoles({ namedGroups, guildOfRole, findMember, now }: DirectRolesDeps): DirectRoles {
  const cache = createLookupCache({ freshMs: FRESH_MS, maxEntries: MAX_CACHED, now });

  async function rolesIn(guildId: string, userId: string): Promise<readonly string[]> {
    const find = async () => (await findMember(guildId, userId))?.roles;
    return (await cache.get(`${guildId} ${userId}`, find)) ?? [];
  }

  return async (userId) => {
    const named = ((await namedGroups?.()) ?? []).slice(0, MAX_ROLES);
    const guilds = [...new Set(named.flatMap((id) => guildOfRole(id) ?? []))];
    const own = new Set((await Promise.all(guilds.map((id) => rolesIn(id, userId)))).flat());
    return named.filter((id) => own.has(id));
  };
}

/** Adds the author's roles to events of direct conversations. */
export function withDirectRoles(accept: Accept, rolesOf: DirectRoles): Accept {
  return async (event) => {
    if (event.reply.isDirect !== true) return accept(event);
    const groups = await rolesOf(event.author.id);
    return accept(groups.length === 0 ? event : { ...event, author: { ...event.author, groups } });
  };
}
