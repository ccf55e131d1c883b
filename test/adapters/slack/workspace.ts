import type { Workspace } from "../../../adapters/slack/api/workspaces.ts";
import type { Person } from "../../../adapters/slack/hear/people.ts";
import type { Slack } from "../../support/slack.ts";

export const ACME: Workspace = { teamId: "T1", botUserId: "UBOT", botId: "B1", token: "xoxb-1" };

export function personOf({ workspace }: Pick<Slack, "workspace">, { id }: { id: string }): string {
  return `${workspace.id}/${id}`;
}

/** Knows only the given people and channels. */
export function fakeNames(names: Readonly<Record<string, string>>) {
  return {
    async person(_: Workspace, id: string): Promise<Person | undefined> {
      const name = names[id];
      return name === undefined ? undefined : { name, isAdmin: false, isGuest: false };
    },
    channelName: async (_: Workspace, id: string) => names[id],
    toAuthor: async (_: Workspace, id: string) => ({ id, name: names[id] ?? id }),
  };
}
