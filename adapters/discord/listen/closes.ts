import { DiscordjsErrorCodes, GatewayCloseCodes } from "discord.js";

/** The only intent that Discord may refuse was refused. */
export const CONTENT_REFUSED: number = GatewayCloseCodes.DisallowedIntents;

export const CONTENT_IS_OFF =
  "The Message Content intent is switched off for this bot, so it is told only what mentions it, what is sent to it directly, and commands.";
export const SWITCH_ON_CONTENT =
  "For answers to replies and in threads without a mention, switch it on in the Discord Developer Portal, under Bot, Privileged Gateway Intents, and start again.";

/** Closes after which trying again changes nothing. */
const FATAL: ReadonlyMap<number, string> = new Map<number, string>([
  [
    GatewayCloseCodes.AuthenticationFailed,
    "Discord does not accept the token. Copy the bot's token from the Discord Developer Portal, under Bot.",
  ],
  [GatewayCloseCodes.InvalidShard, "Discord does not accept the shards that this process was told to run."],
  [GatewayCloseCodes.ShardingRequired, "The bot is in so many servers that it needs more shards than it runs."],
  [
    GatewayCloseCodes.InvalidAPIVersion,
    "Discord no longer offers the version of its gateway that this program speaks.",
  ],
  [GatewayCloseCodes.InvalidIntents, "Discord does not know an intent that this program asks for."],
  [GatewayCloseCodes.DisallowedIntents, "Discord does not allow this bot an intent that it needs."],
]);

/** Discord closed the connection and will not take it up again. */
export class CloseError extends Error {
  override readonly name = "CloseError";
  readonly code: number;

  constructor(code: number) {
    super(describeClose(code) ?? `Discord closed the connection with ${code}.`);
    this.code = code;
  }
}

/** In plain words why the connection ended for good; undefined when it did not. */
export function describeClose(code: number): string | undefined {
  return FATAL.get(code);
}

/** The code of a close; a refused token is found out before anything is connected. */
export function closeCodeOf(error: unknown): number | undefined {
  if (error instanceof CloseError) return error.code;
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === DiscordjsErrorCodes.TokenInvalid ? GatewayCloseCodes.AuthenticationFailed : undefined;
}
