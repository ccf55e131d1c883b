/** The bot in one workspace. */
export interface Workspace {
  teamId: string;
  /** The organisation it belongs to, where it belongs to one: people are the same in all its workspaces. */
  enterpriseId?: string | undefined;
  /** The only workspace that was ever installed here. */
  isSole?: true;
  /** `U…`: how people mention the bot, and the author of what it writes. */
  botUserId: string;
  /** `B…` */
  botId: string;
  token: string;
}

/** The workspaces in which the bot is installed. */
export interface Workspaces {
  /** Undefined where the bot is not installed. Rejects when that is unknown at the moment. */
  find(teamId: string, signal: AbortSignal): Promise<Workspace | undefined>;
  /** The only one there can be; absent where the bot is installed in any number of them. */
  sole?(): Workspace | undefined;
}
