export interface Workspace {
  teamId: string;
  /** The workspace's organisation, if it has one. A person has the same id in all of its workspaces. */
  enterpriseId?: string | undefined;
  /** `U…`. People mention the bot by this id, and the bot's messages have it as their author. */
  botUserId: string;
  /** `B…` */
  botId: string;
  token: string;
}

export interface Workspaces {
  /**
   * Undefined if the bot is not installed. Rejects if that is unknown. If a whole organisation installed the bot, the
   * first look-up of a workspace needs `enterpriseId`; later ones do not.
   */
  find(teamId: string, signal: AbortSignal, enterpriseId?: string): Promise<Workspace | undefined>;
  /** The only workspace. Absent if several workspaces can install the bot. */
  sole?(): Workspace | undefined;
}
