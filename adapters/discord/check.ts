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
import { ASK } from "./interactions/commands.ts";
import { CONTENT_IS_OFF, SWITCH_ON_CONTENT } from "./listen/connection.ts";
import { toWholeInfo } from "./listen/gateway-info.ts";
import type { DiscordAdapterOptions } from "./options.ts";
import { toSinkError } from "./write/failures.ts";

const TOKEN_FIX = "Copy the bot's token from the Discord Developer Portal, under Bot, and set DISCORD_TOKEN to it.";
const CONTENT_FLAGS = ApplicationFlags.GatewayMessageContent | ApplicationFlags.GatewayMessageContentLimited;

/**
 * Looks at everything that Discord must grant for the bot to work, by asking Discord. Writes nothing and begins no
 * session. Never rejects but with `signal.reason`: what cannot be asked is a finding too.
 */
export async function checkDiscord(
  options: Pick<DiscordAdapterOptions, "token" | "apiUrl" | "guildId">,
  signal: AbortSignal,
): Promise<Finding[]> {
  const { token, apiUrl, guildId } = options;
  const api = createApi({ token, ...(apiUrl !== undefined && { apiUrl }), onUnauthorized() {}, now: Date.now });
  const findings: Finding[] = [];

  /** Goes on with the next thing when one cannot be asked. */
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
  const isKnown = await look("Who the bot is", async () => {
    bot = await read<APIUser>(api, Routes.user(), signal);
    return [{ ok: true, what: `Discord accepts the token: the bot is ${bot.username}.` }];
  });
  if (!isKnown || bot === undefined) return findings;
  const botId = bot.id;
  const invite = inviteLink(botId);
  await look("What the bot is allowed to read", () => checkIntents(api, signal));
  await look("The gateway", async () => {
    return checkGateway(toWholeInfo(await read<unknown>(api, Routes.gatewayBot(), signal)), signal);
  });
  await look("The servers", () => checkGuilds({ api, botId, invite, guildId }, signal));
  await look("The commands", () => checkCommands(api, guildId, signal));
  return [...findings, { ok: true, what: `Whoever manages a server lets the bot in at ${invite}` }];
}

async function checkIntents(api: Api, signal: AbortSignal): Promise<Finding[]> {
  const { flags } = await read<APIApplication>(api, Routes.currentApplication(), signal);
  if ((flags & CONTENT_FLAGS) !== 0) return [{ ok: true, what: "The Message Content intent is switched on." }];
  return [{ ok: false, what: CONTENT_IS_OFF, fix: SWITCH_ON_CONTENT }];
}

async function checkCommands(api: Api, guildId: string | undefined, signal: AbortSignal): Promise<Finding[]> {
  const { id } = await read<APIApplication>(api, Routes.currentApplication(), signal);
  const route = guildId === undefined ? Routes.applicationCommands(id) : Routes.applicationGuildCommands(id, guildId);
  // Another finding has said that the bot is not in the server.
  const commands = await read<APIApplicationCommand[]>(api, route, signal).catch((error: unknown) => {
    if (guildId !== undefined && isRefused(error)) return undefined;
    throw error;
  });
  if (commands === undefined) return [];
  const names = commands.map(({ name }) => name);
  if (names.includes(ASK)) return [{ ok: true, what: `Commands are registered: ${names.join(", ")}.` }];
  return [{ ok: true, what: "No commands are registered yet; they will be when Palaver starts." }];
}

function toFailure(what: string, error: unknown, signal: AbortSignal): Finding {
  if (error instanceof ApiError && error.status === 401) {
    return { ok: false, what: "Discord does not accept the token.", fix: TOKEN_FIX };
  }
  const { message } = toSinkError(error, signal) as Error;
  const fix =
    error instanceof ApiError
      ? "Try again in a minute; https://discordstatus.com says whether Discord has trouble."
      : "Look whether this machine reaches Discord: a proxy or a firewall may be in the way.";
  return { ok: false, what: `${what} could not be found out. ${message}`, fix };
}

const HELLO_MS = 10_000;
const HELLO = 10;
/** A bot that is started over and over uses these up, and its token is changed by Discord when they are gone. */
const FEW_SESSIONS = 50;

/** Looks whether the gateway can be reached and how many sessions may still be begun. Begins none. */
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
        fix: "Let this machine open WebSockets to it: a proxy or a firewall may be in the way.",
      };
  const minutes = Math.ceil(limit.reset_after / 60_000);
  const left = `${limit.remaining} of ${limit.total} starts are left for the next ${minutes} minutes.`;
  if (limit.remaining > FEW_SESSIONS) return [reach, { ok: true, what: left }];
  return [reach, { ok: limit.remaining > shards, what: left, fix: "Find out why the bot is started so often." }];
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
/** Most servers that are checked, one after the other; a bot in more is not being set up any more. */
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

/** Reports which permissions the bot lacks in its servers, and in channels with overwrites. */
async function checkGuilds(check: GuildsCheck, signal: AbortSignal): Promise<Finding[]> {
  const { invite, guildId } = check;
  const guilds = await readGuilds(check, signal);
  if (guilds.length === 0) {
    const what = guildId === undefined ? "The bot is in no server yet." : `The bot is not in the server ${guildId}.`;
    return [{ ok: false, what, fix: `Invite it: ${invite}` }];
  }
  const findings: Finding[] = [];
  for (const guild of guilds.slice(0, MAX_GUILDS)) findings.push(...(await checkGuild(guild, check, signal)));
  if (guilds.length > MAX_GUILDS) {
    findings.push({ ok: true, what: `${guilds.length - MAX_GUILDS} further servers were not looked at.` });
  }
  return findings;
}

/** The bot's servers, as far as one page lists them, or the one that is wanted where the bot is in it. */
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
          fix: `Open the invitation again and choose the server: ${invite}`,
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
  // A permission that the server does not give at all is reported once.
  const lacking = seen.filter(({ bits }) => (PERMISSION_BITS & granted & ~bits) !== 0n);
  const findings = lacking.slice(0, MAX_NAMED).map(({ name, bits }) => ({
    ok: false,
    what: `In ${name} of ${guild} the bot lacks: ${missingOf(bits | ~granted)}.`,
    fix: `Allow it to the bot's role in the settings of ${name}, under Permissions.`,
  }));
  const names = hidden.slice(0, MAX_NAMED).map(({ name }) => name);
  const more = hidden.length > MAX_NAMED ? ` and ${hidden.length - MAX_NAMED} more` : "";
  return [
    ...findings,
    ...(lacking.length > MAX_NAMED
      ? [{ ok: false, what: `${lacking.length - MAX_NAMED} more channels of ${guild} lack something.` }]
      : []),
    ...(hidden.length > 0 && (granted & PermissionFlagsBits.ViewChannel) !== 0n
      ? [{ ok: true, what: `The bot does not see ${names.join(", ")}${more} of ${guild}, and is not spoken to there.` }]
      : []),
  ];
}

/** By the names that Discord's settings have for them. */
function missingOf(bits: bigint): string {
  return PERMISSIONS.filter(({ name }) => (bits & PermissionFlagsBits[name]) === 0n)
    .map(({ title, why }) => `${title} (${why})`)
    .join(", ");
}
