import { createInteractions, type InteractionsDeps } from "../../../adapters/slack/act/dispatch.ts";
import { createSlackApi } from "../../../adapters/slack/api/client.ts";
import { toAttachments } from "../../../adapters/slack/api/files.ts";
import type { Body } from "../../../adapters/slack/api/wire.ts";
import type { Workspace } from "../../../adapters/slack/api/workspaces.ts";
import { createPeople } from "../../../adapters/slack/hear/people.ts";
import { createTellPerson } from "../../../adapters/slack/write/notice.ts";
import { silent } from "../../../lab/support/log.ts";
import type { ImagineMenu } from "../../../src/port/catalogue.ts";
import type { InboundEvent } from "../../../src/port/events.ts";
import { startBolt } from "../../support/bolt-app.ts";
import { type Slack, startSlack } from "../../support/slack.ts";

export const COMMANDS = [
  { name: "help", description: "Show what I can do." },
  { name: "model", description: "Chooses the model." },
  { name: "forget", description: "Forgets." },
];

export const MENU: ImagineMenu = {
  ratios: ["1:1", "16:9"],
  sizes: ["1K", "2K"],
  maxCount: 4,
  maxReferences: 3,
  listModels: async () => ["sandbox-image"],
  describe: async () => undefined,
};

export interface InteractionStageOptions extends Partial<InteractionsDeps> {
  slack?: Slack;
}

/** Slack with an unmodified Bolt and the interaction handlers. Records all accepted events. */
export async function startInteractions({ slack: given, ...deps }: InteractionStageOptions = {}) {
  const slack = given ?? (await startSlack());
  const ada = slack.user({ name: "Ada" });
  const bob = slack.user({ name: "Bob", isAdmin: true });
  const general = slack.channel({ name: "general", members: [ada, bob] });
  const elsewhere = slack.channel({ name: "elsewhere", members: [ada], hasApp: false });
  const { id, bot, botToken } = slack.workspace;
  const workspace: Workspace = { teamId: id, botUserId: bot.id, botId: bot.botId ?? "", token: botToken };
  const events: InboundEvent[] = [];
  const turnsByMessage = new Map<string, string>();
  const api = createSlackApi({
    apiUrl: slack.apiUrl,
    tokenOf: async () => slack.workspace.botToken,
    now: slack.now,
  });
  const interactions = createInteractions({
    api,
    people: createPeople({ api, log: silent, now: slack.now }),
    tellPerson: createTellPerson({ api, apiUrl: slack.apiUrl }),
    toAttachments,
    commands: COMMANDS,
    listModels: async () => ["sandbox-chat", "sandbox-text"],
    imagine: MENU,
    findTurn: async (messageId) => turnsByMessage.get(messageId),
    log: silent,
    now: slack.now,
    ...deps,
  });

  await startBolt(slack, (app) => {
    app.processEvent = async ({ body, ack }) => {
      const isEvent = "event" in body;
      const { response, afterwards, ...handled } = isEvent
        ? await interactions.onEvent(body["event"] as Body, body, workspace)
        : await interactions.onInteraction(body, workspace);
      events.push(...handled.events);
      await ack(response);
      await afterwards?.();
    };
  });
  const call = (method: string, args: Body) => api.call(id, method, args, AbortSignal.timeout(5_000));
  return { slack, api, ada, bob, general, elsewhere, workspace, events, turnsByMessage, interactions, call };
}

export function blocksOf(body: Readonly<Record<string, unknown>> | undefined): Record<string, unknown>[] {
  return (body?.["blocks"] ?? []) as Record<string, unknown>[];
}
