import {
  type APIApplication,
  type APIApplicationCommand,
  type APIUser,
  ApplicationFlags,
  type RESTGetAPIGatewayBotResult,
  Routes,
} from "discord.js";
import type { Finding } from "../../src/port/finding.ts";
import { type Api, createApi } from "./api/client.ts";
import { ApiError, isRefused } from "./api/error.ts";
import { checkGateway } from "./check/gateway.ts";
import { checkGuilds } from "./check/guilds.ts";
import { ASK } from "./interactions/commands.ts";
import { inviteLink } from "./invite.ts";
import { CONTENT_IS_OFF, SWITCH_ON_CONTENT } from "./listen/closes.ts";
import { toSinkError } from "./write/failures.ts";

export interface CheckOptions {
  token: string;
  /** REST base without the version; Discord's own when absent. */
  apiUrl?: string;
  /** The only server to look at; the bot's servers when absent. */
  guildId?: string;
}

const TOKEN_FIX = "Copy the bot's token from the Discord Developer Portal, under Bot, and set DISCORD_TOKEN to it.";
const CONTENT_FLAGS = ApplicationFlags.GatewayMessageContent | ApplicationFlags.GatewayMessageContentLimited;

/**
 * Looks at everything that Discord must grant for the bot to work, by asking Discord. Writes nothing and begins no
 * session. Never rejects but with `signal.reason`: what cannot be asked is a finding too.
 */
export async function checkDiscord(options: CheckOptions, signal: AbortSignal): Promise<Finding[]> {
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
    return checkGateway(await read<RESTGetAPIGatewayBotResult>(api, Routes.gatewayBot(), signal), signal);
  });
  const reader = <T>(route: `/${string}`, query?: URLSearchParams) => read<T>(api, route, signal, query);
  await look("The servers", () => checkGuilds({ read: reader, botId, invite, guildId }));
  await look("The commands", () => checkCommands(api, guildId, signal));
  return [...findings, { ok: true, what: `Whoever manages a server lets the bot in at ${invite}` }];
}

async function read<T>(api: Api, route: `/${string}`, signal: AbortSignal, query?: URLSearchParams): Promise<T> {
  return (await api.call({ method: "GET", route, ...(query && { query }) }, signal)).data as T;
}

async function checkIntents(api: Api, signal: AbortSignal): Promise<Finding[]> {
  const { flags } = await read<APIApplication>(api, Routes.currentApplication(), signal);
  if ((flags & CONTENT_FLAGS) !== 0) return [{ ok: true, what: "The Message Content intent is switched on." }];
  return [{ ok: false, what: CONTENT_IS_OFF, fix: SWITCH_ON_CONTENT }];
}

async function checkCommands(api: Api, guildId: string | undefined, signal: AbortSignal): Promise<Finding[]> {
  const { id } = await read<APIApplication>(api, Routes.currentApplication(), signal);
  const route = guildId === undefined ? Routes.applicationCommands(id) : Routes.applicationGuildCommands(id, guildId);
  // That the bot is not in the server has been said.
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
