import { createSlackApi, type SlackApi } from "../../../adapters/slack/api.ts";
import { createOutbound, type Outbound } from "../../../adapters/slack/outbound.ts";
import { createRunning, type Running } from "../../../adapters/slack/running.ts";
import type { Button, Draft, ReplyAddress } from "../../../src/adapter.ts";
import type { Person } from "../../simulators/slack/people.ts";
import type { SimulatorOptions } from "../../simulators/slack/simulator.ts";
import { type Slack, startSlack } from "../../simulators/slack/slack.ts";
import type { Channel, Message } from "../../simulators/slack/world.ts";
import { silent } from "../../support/log.ts";

export const STOP: Button = { action: "stop", turnId: "turn-1", label: "Stop" };
export const RETRY: Button = { action: "retry", turnId: "turn-1", label: "Retry" };

/** A draft of a text that grows, as the core makes it. */
export function growing(source: string, more: Partial<Draft> = {}): Draft {
  return { markdown: source, source, buttons: [STOP], streaming: true, ...more };
}

export function whole(markdown: string, buttons: Button[] = []): Draft {
  return { markdown, buttons, streaming: false };
}

export interface Desk {
  slack: Slack;
  ada: Person;
  general: Channel;
  question: Message;
  address: ReplyAddress;
  api: SlackApi;
  running: Running;
  outbound: Outbound;
  /** A process of its own: it remembers nothing of the others. */
  restart(): Outbound;
  /** How often a method was called. */
  calls(method: string): number;
}

/** A question in a thread, and the half of the adapter that answers it. */
export async function startDesk(options: SimulatorOptions = {}): Promise<Desk> {
  const slack = await startSlack(options);
  const ada = slack.user({ name: "Ada" });
  const general = slack.channel({ name: "general", members: [ada] });
  const question = ada.mention(general, "question");
  const { apiUrl } = slack;
  const api = createSlackApi({ apiUrl, tokenOf: async () => slack.botToken, log: silent });
  const running = createRunning();
  const restart = () => createOutbound({ api, apiUrl, running, now: slack.now });
  return {
    slack,
    ada,
    general,
    question,
    address: addressOf(slack, general, question, ada),
    api,
    running,
    outbound: restart(),
    restart,
    calls: (method) => slack.requests.filter((request) => request.method === method).length,
  };
}

/** The address of an answer in the thread of a message. */
export function addressOf(slack: Slack, channel: Channel, question: Message, asker: Person): ReplyAddress {
  const team = slack.workspace.id;
  return {
    platform: "slack",
    channelId: channel.id,
    threadId: question.threadTs ?? question.ts,
    replyToId: `slack:${team}:${channel.id}:${question.ts}`,
    extra: { team, user: asker.id, recipientTeam: team },
  };
}
