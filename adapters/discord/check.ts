import {
  type APIApplication,
  type APIApplicationCommand,
  type APIChannel,
  type APIGatewayBotInfo,
  type APIGuildMember,
  type APIOverwrite,
  type APIRole,
  type APIUser,
  ApplicationFlags,
  ChannelType,
  PermissionFlagsBits,
  type RESTAPIPartialCurrentUserGuild,
  Routes,
} from "discord.js";
import type { Finding } from "../../src/port/finding.ts";
import { type Api, createApi, read } from "./api/client.ts";
import { ApiError, isRefused } from "./api/error.ts";
import {
  channelPermissions,
  guildPermissions,
  inviteLink,
  type Member,
  PERMISSION_BITS,
  PERMISSIONS,
} from "./api/permissions.ts";
import { toWholeInfo } from "./hear/identify.ts";
import { CONTENT_IS_OFF, SWITCH_ON_CONTENT } from "./hear/transport.ts";
import { ASK } from "./install/slash-commands.ts";
import type { DiscordAdapterOptions } from "./options.ts";
import { toSinkError } from "./write/failures.ts";

const TOKEN_FIX =
  "Press Reset Token in the Discord Developer Portal, under Bot, and copy the new one into DISCORD_TOKEN.";
const PUBLIC_BOT = "Public Bot is switched on: strangers can add the bot to their servers";
/** Discord does not allow making an application private while it has an install link. */
const MAKE_PRIVATE =
  "In the Discord Developer Portal, set Install Link to None under Installation, switch Public Bot off under Bot, and save each page. Or write rules that say who can use the bot: docs/policy.md.";
const CONTENT_FLAGS = ApplicationFlags.GatewayMessageContent | ApplicationFlags.GatewayMessageContentLimited;

export type DiscordCheckOptions = Pick<DiscordAdapterOptions, "token" | "apiUrl" | "guildId"> & {
  /** The operator's policy already says who can use the bot and where. */
  hasRules?: boolean;
};

/**
 * Checks everything that the bot needs from Discord. Writes nothing and starts no session. Rejects only with
 * `signal.reason`: a failed check is a finding.
 */
export async function checkDiscord(options: DiscordCheckOptions, signal: AbortSignal): Promise<Finding[]> {
  const { token, apiUrl, guildId, hasRules = false } = options;
  const api = createApi({ token, ...(apiUrl !== undefined && { apiUrl }), onUnauthorized() {}, now: Date.now });
  const findings: Finding[] = [];

  /** Runs a check. If it fails, the failure becomes a finding, and the next check still runs. */
  async function look(what: string, check: () => Promise<Finding[]>): Promise<boolean> {
    try {
      findings.push(...(await check()));
      return true;
    } catch (error) {
      signal.throwIfAborted();
      findings.push(toFailure(what, error, signal));
      return false;
    }
  }

  let bot: APIUser | undefined;
  const isKnown = await look("the bot's account", async () => {
    bot = await read<APIUser>(api, Routes.user(), signal);
    return [{ ok: true, what: `Discord accepts the token: the bot is ${bot.username}.` }];
  });
  if (!isKnown || bot === undefined) return findings;
  const botId = bot.id;
  const invite = inviteLink(botId);
  await look("the application's settings", () => checkApplication(api, hasRules, signal));
  await look("the gateway", async () => {
    return checkGateway(toWholeInfo(await read<unknown>(api, Routes.gatewayBot(), signal)), signal);
  });
  await look("the servers", () => checkGuilds({ api, botId, invite, guildId }, signal));
  await look("the commands", () => checkCommands(api, guildId, signal));
  if (findings.some(({ link }) => link !== undefined)) return findings;
  return [...findings, { ok: true, what: "You can add the bot to other servers too.", link: toAddLink(invite) }];
}

function toAddLink(url: string): NonNullable<Finding["link"]> {
  return { label: "Add to a server", url };
}

async function checkApplication(api: Api, hasRules: boolean, signal: AbortSignal): Promise<Finding[]> {
  const { flags, bot_public: isPublic } = await read<APIApplication>(api, Routes.currentApplication(), signal);
  const content: Finding =
    (flags & CONTENT_FLAGS) === 0
      ? { ok: false, what: CONTENT_IS_OFF, fix: SWITCH_ON_CONTENT }
      : { ok: true, what: "The Message Content intent is switched on." };
  if (!isPublic) return [content, { ok: true, what: "Public Bot is switched off: strangers cannot add the bot." }];
  if (hasRules) return [content, { ok: true, what: `${PUBLIC_BOT}. Your rules say what they can do there.` }];
  const open: Finding = { ok: false, what: `${PUBLIC_BOT}, and you pay for its answers there.`, fix: MAKE_PRIVATE };
  return [content, open];
}

async function checkCommands(api: Api, guildId: string | undefined, signal: AbortSignal): Promise<Finding[]> {
  const { id } = await read<APIApplication>(api, Routes.currentApplication(), signal);
  const route = guildId === undefined ? Routes.applicationCommands(id) : Routes.applicationGuildCommands(id, guildId);
  // Returns no finding here, because another one already says that the bot is not on the server.
  const commands = await read<APIApplicationCommand[]>(api, route, signal).catch((error: unknown) => {
    if (guildId !== undefined && isRefused(error)) return undefined;
    throw error;
  });
  if (commands === undefined) return [];
  const names = commands.map(({ name }) => name);
  if (names.includes(ASK)) return [{ ok: true, what: `Commands are registered: ${names.join(", ")}.` }];
  return [{ ok: true, what: "No commands are registered yet. Palaver registers them when it starts." }];
}

function toFailure(what: string, error: unknown, signal: AbortSignal): Finding {
  if (error instanceof ApiError && error.status === 401) {
    return { ok: false, what: "Discord does not accept the token.", fix: TOKEN_FIX };
  }
  const { message } = toSinkError(error, signal) as Error;
  const fix =
    error instanceof ApiError && error.status !== 0
      ? "Try again in a minute. https://discordstatus.com shows if Discord has an outage."
      : "Check that this machine can reach Discord: a proxy or a firewall may block it.";
  return { ok: false, what: `Could not check ${what}. ${message}`, fix };
}

const HELLO_MS = 10_000;
const HELLO = 10;
/** The check warns if fewer session starts are left. A bot that has none left gets its token reset by Discord. */
const FEW_SESSIONS = 50;

/** Checks that the gateway is reachable and how many session starts are left. Starts no session. */
async function checkGateway(
  { url, shards, session_start_limit: limit }: APIGatewayBotInfo,
  signal: AbortSignal,
): Promise<Finding[]> {
  const hasHello = await waitForHello(`${url}?v=10&encoding=json`, signal);
  signal.throwIfAborted();
  const reach: Finding = hasHello
    ? { ok: true, what: `The gateway answers; Discord recommends ${shards} shard${shards === 1 ? "" : "s"}.` }
    : {
        ok: false,
        what: `The gateway ${new URL(url).host} cannot be reached.`,
        fix: "Allow this machine to open WebSockets to it: a proxy or a firewall may block them.",
      };
  const minutes = Math.ceil(limit.reset_after / 60_000);
  const left = `${limit.remaining} of ${limit.total} session starts are left for the next ${minutes} minutes.`;
  if (limit.remaining > FEW_SESSIONS) return [reach, { ok: true, what: left }];
  return [reach, { ok: limit.remaining > shards, what: left, fix: "Find out why the bot restarts so often." }];
}

function waitForHello(url: string, signal: AbortSignal): Promise<boolean> {
  const late = AbortSignal.any([signal, AbortSignal.timeout(HELLO_MS)]);
  const socket = new WebSocket(url);
  return new Promise<boolean>((resolve) => {
    late.addEventListener("abort", () => resolve(false), { once: true });
    socket.addEventListener("error", () => resolve(false));
    socket.addEventListener("close", () => resolve(false));
    socket.addEventListener("message", ({ data }) => resolve(isHello(data)));
  }).finally(() => socket.close());
}

function isHello(data: unknown): boolean {
  try {
    return (JSON.parse(String(data)) as { op?: unknown }).op === HELLO;
  } catch {
    return false;
  }
}

const PAGE = 200;
/** The most servers to check, one after another. A bot on more servers is already set up. */
const MAX_GUILDS = 20;
const MAX_NAMED = 10;
const CHECKED_TYPES = new Set([ChannelType.GuildText, ChannelType.GuildAnnouncement, ChannelType.GuildForum]);

export interface GuildsCheck {
  api: Api;
  botId: string;
  invite: string;
  guildId: string | undefined;
}

type Guild = Pick<RESTAPIPartialCurrentUserGuild, "id" | "name">;
type CheckedChannel = Extract<APIChannel, { permission_overwrites?: APIOverwrite[] }>;

async function checkGuilds(check: GuildsCheck, signal: AbortSignal): Promise<Finding[]> {
  const { invite, guildId } = check;
  const guilds = await readGuilds(check, signal);
  if (guilds.length === 0) {
    const what =
      guildId === undefined ? "The bot isn't in any server yet." : `The bot is not in the server ${guildId}.`;
    return [{ ok: false, what, link: toAddLink(invite) }];
  }
  const findings: Finding[] = [];
  for (const guild of guilds.slice(0, MAX_GUILDS)) findings.push(...(await checkGuild(guild, check, signal)));
  if (guilds.length > MAX_GUILDS) {
    findings.push({ ok: true, what: `${guilds.length - MAX_GUILDS} more servers were not checked.` });
  }
  return findings;
}

/** At most one page of the bot's servers, or only `guildId` if it is set. */
async function readGuilds({ api, guildId }: GuildsCheck, signal: AbortSignal): Promise<Guild[]> {
  const listed = await read<Guild[]>(api, Routes.userGuilds(), signal, { limit: String(PAGE) });
  if (guildId === undefined) return listed;
  const found = listed.filter(({ id }) => id === guildId);
  if (found.length > 0 || listed.length < PAGE) return found;
  try {
    return [await read<Guild>(api, Routes.guild(guildId), signal)];
  } catch (error) {
    if (isRefused(error)) return [];
    throw error;
  }
}

async function checkGuild(
  { id, name }: Guild,
  { api, botId, invite }: GuildsCheck,
  signal: AbortSignal,
): Promise<Finding[]> {
  const [{ owner_id: ownerId }, roles, { roles: ownRoles }, channels] = await Promise.all([
    read<{ owner_id: string }>(api, Routes.guild(id), signal),
    read<APIRole[]>(api, Routes.guildRoles(id), signal),
    read<APIGuildMember>(api, Routes.guildMember(id, botId), signal),
    read<APIChannel[]>(api, Routes.guildChannels(id), signal),
  ]);
  const bot: Member = { id: botId, guildId: id, ownerId, roleIds: ownRoles };
  const granted = guildPermissions(bot, roles);
  const places = channels.filter((channel): channel is CheckedChannel => CHECKED_TYPES.has(channel.type));
  const own: Finding =
    missingOf(granted) === ""
      ? { ok: true, what: `In ${name} the bot has what it needs.` }
      : {
          ok: false,
          what: `In ${name} the bot lacks: ${missingOf(granted)}.`,
          fix: "Add the bot to the server again.",
          link: toAddLink(invite),
        };
  const judged = places.map((place) => {
    const bits = channelPermissions(granted, bot, place.permission_overwrites ?? []);
    return { name: `#${place.name}`, bits };
  });
  return [own, ...checkPlaces(name, judged, granted)];
}

function checkPlaces(guild: string, judged: readonly { name: string; bits: bigint }[], granted: bigint): Finding[] {
  const hidden = judged.filter(({ bits }) => (bits & PermissionFlagsBits.ViewChannel) === 0n);
  const seen = judged.filter(({ bits }) => (bits & PermissionFlagsBits.ViewChannel) !== 0n);
  // A permission that is missing in the whole server is reported only once.
  const lacking = seen.filter(({ bits }) => (PERMISSION_BITS & granted & ~bits) !== 0n);
  const findings = lacking.slice(0, MAX_NAMED).map(({ name, bits }) => ({
    ok: false,
    what: `In ${name} of ${guild} the bot lacks: ${missingOf(bits | ~granted)}.`,
    fix: `Grant it to the bot's role in the settings of ${name}, under Permissions.`,
  }));
  const names = hidden.slice(0, MAX_NAMED).map(({ name }) => name);
  const more = hidden.length > MAX_NAMED ? ` and ${hidden.length - MAX_NAMED} more` : "";
  return [
    ...findings,
    ...(lacking.length > MAX_NAMED
      ? [{ ok: false, what: `${lacking.length - MAX_NAMED} more channels of ${guild} lack a permission.` }]
      : []),
    ...(hidden.length > 0 && (granted & PermissionFlagsBits.ViewChannel) !== 0n
      ? [{ ok: true, what: `The bot does not see ${names.join(", ")}${more} of ${guild}, so it cannot answer there.` }]
      : []),
  ];
}

function missingOf(bits: bigint): string {
  return PERMISSIONS.filter(({ name }) => (bits & PermissionFlagsBits[name]) === 0n)
    .map(({ title, why }) => `${title} (${why})`)
    .join(", ");
}
