import {
  type APIChannel,
  type APIGuildMember,
  type APIOverwrite,
  type APIRole,
  ChannelType,
  PermissionFlagsBits,
  type RESTAPIPartialCurrentUserGuild,
  Routes,
} from "discord.js";
import type { Finding } from "../../../src/port/finding.ts";
import { isRefused } from "../api/error.ts";
import { PERMISSION_BITS, PERMISSIONS } from "../invite.ts";

const PAGE = 200;
/** Looked at one after the other; a bot in more servers than this is not being set up any more. */
const MAX_GUILDS = 20;
const MAX_NAMED = 10;
const PLACES = new Set([ChannelType.GuildText, ChannelType.GuildAnnouncement, ChannelType.GuildForum]);
const ALL = ~0n;

export interface GuildsCheck {
  read<T>(route: `/${string}`, query?: URLSearchParams): Promise<T>;
  botId: string;
  invite: string;
  guildId: string | undefined;
}

type Guild = Pick<RESTAPIPartialCurrentUserGuild, "id" | "name">;
type Place = Extract<APIChannel, { permission_overwrites?: APIOverwrite[] }>;

/** What the bot may do in its servers, and in the channels that say otherwise. */
export async function checkGuilds(check: GuildsCheck): Promise<Finding[]> {
  const { invite, guildId } = check;
  const guilds = await readGuilds(check);
  if (guilds.length === 0) {
    const what = guildId === undefined ? "The bot is in no server yet." : `The bot is not in the server ${guildId}.`;
    return [{ ok: false, what, fix: `Invite it: ${invite}` }];
  }
  const findings: Finding[] = [];
  for (const guild of guilds.slice(0, MAX_GUILDS)) findings.push(...(await checkGuild(guild, check)));
  if (guilds.length > MAX_GUILDS) {
    findings.push({ ok: true, what: `${guilds.length - MAX_GUILDS} further servers were not looked at.` });
  }
  return findings;
}

/** The bot's servers, as far as one page lists them, or the one that is wanted where the bot is in it. */
async function readGuilds({ read, guildId }: GuildsCheck): Promise<Guild[]> {
  const listed = await read<Guild[]>(Routes.userGuilds(), new URLSearchParams({ limit: String(PAGE) }));
  if (guildId === undefined) return listed;
  const found = listed.filter(({ id }) => id === guildId);
  if (found.length > 0 || listed.length < PAGE) return found;
  try {
    return [await read<Guild>(Routes.guild(guildId))];
  } catch (error) {
    if (isRefused(error)) return [];
    throw error;
  }
}

async function checkGuild({ id, name }: Guild, { read, botId, invite }: GuildsCheck): Promise<Finding[]> {
  const [{ owner_id: ownerId }, roles, { roles: ownRoles }, channels] = await Promise.all([
    read<{ owner_id: string }>(Routes.guild(id)),
    read<APIRole[]>(Routes.guildRoles(id)),
    read<APIGuildMember>(Routes.guildMember(id, botId)),
    read<APIChannel[]>(Routes.guildChannels(id)),
  ]);
  const roleIds = new Set([id, ...ownRoles]);
  const given = roles
    .filter((role) => roleIds.has(role.id))
    .reduce((bits, role) => bits | BigInt(role.permissions), 0n);
  const isAll = ownerId === botId || (given & PermissionFlagsBits.Administrator) !== 0n;
  const base = isAll ? ALL : given;
  const places = channels.filter((channel): channel is Place => PLACES.has(channel.type));
  const own: Finding =
    missingOf(base) === ""
      ? { ok: true, what: `In ${name} the bot has what it needs.` }
      : {
          ok: false,
          what: `In ${name} the bot lacks: ${missingOf(base)}.`,
          fix: `Open the invitation again and choose the server: ${invite}`,
        };
  return [own, ...(isAll ? [] : checkPlaces(name, places, { base, guildId: id, botId, roleIds }))];
}

interface Standing {
  base: bigint;
  guildId: string;
  botId: string;
  roleIds: ReadonlySet<string>;
}

function checkPlaces(guild: string, places: readonly Place[], standing: Standing): Finding[] {
  const judged = places.map((place) => ({ name: `#${place.name}`, bits: permissionsIn(place, standing) }));
  const hidden = judged.filter(({ bits }) => (bits & PermissionFlagsBits.ViewChannel) === 0n);
  const seen = judged.filter(({ bits }) => (bits & PermissionFlagsBits.ViewChannel) !== 0n);
  // What the server does not give at all is said once.
  const lacking = seen.filter(({ bits }) => (PERMISSION_BITS & standing.base & ~bits) !== 0n);
  const findings = lacking.slice(0, MAX_NAMED).map(({ name, bits }) => ({
    ok: false,
    what: `In ${name} of ${guild} the bot lacks: ${missingOf(bits | ~standing.base)}.`,
    fix: `Allow it to the bot's role in the settings of ${name}, under Permissions.`,
  }));
  const names = hidden.slice(0, MAX_NAMED).map(({ name }) => name);
  const more = hidden.length > MAX_NAMED ? ` and ${hidden.length - MAX_NAMED} more` : "";
  return [
    ...findings,
    ...(lacking.length > MAX_NAMED
      ? [{ ok: false, what: `${lacking.length - MAX_NAMED} more channels of ${guild} lack something.` }]
      : []),
    ...(hidden.length > 0 && (standing.base & PermissionFlagsBits.ViewChannel) !== 0n
      ? [{ ok: true, what: `The bot does not see ${names.join(", ")}${more} of ${guild}, and is not spoken to there.` }]
      : []),
  ];
}

/** As Discord computes it: everyone, then all roles together, then the member. */
function permissionsIn({ permission_overwrites: overwrites = [] }: Place, standing: Standing): bigint {
  const { base, guildId, botId, roleIds } = standing;
  const merge = (wanted: (id: string) => boolean) =>
    overwrites
      .filter(({ id }) => wanted(id))
      .reduce((sum, { allow, deny }) => ({ allow: sum.allow | BigInt(allow), deny: sum.deny | BigInt(deny) }), {
        allow: 0n,
        deny: 0n,
      });
  const steps = [
    (id: string) => id === guildId,
    (id: string) => id !== guildId && roleIds.has(id),
    (id: string) => id === botId,
  ];
  return steps.map(merge).reduce((bits, { allow, deny }) => (bits & ~deny) | allow, base);
}

/** By the names that Discord's settings have for them. */
function missingOf(bits: bigint): string {
  return PERMISSIONS.filter(({ name }) => (bits & PermissionFlagsBits[name]) === 0n)
    .map(({ title, why }) => `${title} (${why})`)
    .join(", ");
}
