import { createSlackApi, type SlackApi } from "../../../adapters/slack/api/client.ts";
import { createSingleWorkspace, type SingleWorkspace } from "../../../adapters/slack/install/single-workspace.ts";
import { createOutbound, type Outbound } from "../../../adapters/slack/write/outbound.ts";
import type { Person } from "../../../lab/slack-sim/people.ts";
import type { SimulatorOptions } from "../../../lab/slack-sim/simulator.ts";
import type { Channel, Message } from "../../../lab/slack-sim/world.ts";
import { silent } from "../../../lab/support/log.ts";
import { SinkError } from "../../../src/port/errors.ts";
import type { ReplyAddress } from "../../../src/port/events.ts";
import { NO_RIGHT } from "../../../src/port/right.ts";
import type { Button, Draft, ReplySink, Step } from "../../../src/port/sink.ts";
import { type Slack, startSlack } from "../../support/slack.ts";

export const MARK_KEY = "key";

const STOP: Button = { action: "stop", turnId: "turn-1", label: "Stop" };
export const RETRY: Button = { action: "retry", turnId: "turn-1", label: "Retry" };
export const GOOD: Button = { action: "good", turnId: "turn-1", label: "Good answer" };
export const BAD: Button = { action: "bad", turnId: "turn-1", label: "Bad answer" };

/** A draft of a growing text, as the core makes it. */
export function growing(source: string, more: Partial<Draft> = {}): Draft {
  return { markdown: source, source, buttons: [STOP], streaming: true, ...more };
}

export function finalDraft(markdown: string, buttons: Button[] = []): Draft {
  return { markdown, buttons, streaming: false };
}

export const LOOKING: Step = { id: "1.0", title: "looking up the time", state: "running" };
export const LOOKED: Step = { ...LOOKING, state: "done" };

export function withSteps(draft: Draft, ...steps: Step[]): Draft {
  return { ...draft, steps };
}

export const signal = new AbortController().signal;

/** Retries a draft until it is visible, as the core does. Resolves to the failures on the way. */
export async function settle(sink: ReplySink, id: string, draft: Draft): Promise<SinkError[]> {
  const errors: SinkError[] = [];
  for (let attempt = 0; attempt < 6; attempt++) {
    try {
      const { isPartial = false } = await sink.edit(id, draft, signal);
      if (!isPartial) return errors;
    } catch (error) {
      if (!(error instanceof SinkError) || error.kind !== "unavailable") throw error;
      errors.push(error);
    }
  }
  throw new Error("The draft was never written.");
}

export interface Desk {
  slack: Slack;
  workspaces: SingleWorkspace;
  ada: Person;
  general: Channel;
  question: Message;
  address: ReplyAddress;
  api: SlackApi;
  outbound: Outbound;
  /** A separate process that knows nothing about the others. */
  restart(): Outbound;
  calls(method: string): number;
}

/** A question in a thread, and the half of the adapter that answers the question. */
export async function startDesk(options: SimulatorOptions & { pollPausesMs?: readonly number[] } = {}): Promise<Desk> {
  const slack = await startSlack(options);
  const ada = slack.user({ name: "Ada" });
  const general = slack.channel({ name: "general", members: [ada] });
  const question = ada.mention(general, "question");
  const { apiUrl } = slack;
  const api = createSlackApi({ apiUrl, tokenOf: async () => slack.botToken, now: slack.now });
  const workspaces = createSingleWorkspace(slack.botToken, api, silent);
  const restart = () =>
    createOutbound({
      api,
      workspaces,
      markKey: MARK_KEY,
      apiUrl,
      pollPausesMs: options.pollPausesMs,
      now: slack.now,
    });
  return {
    slack,
    ada,
    general,
    question,
    address: addressOf(slack, general, question, ada),
    workspaces,
    api,
    outbound: restart(),
    restart,
    calls: (method) => slack.requests.filter((request) => request.method === method).length,
  };
}

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

export async function startWriting(options?: Parameters<typeof startDesk>[0]) {
  const desk = await startDesk(options);
  const { slack, general, question } = desk;
  return {
    ...desk,
    sink: desk.outbound.sink(desk.address, NO_RIGHT),
    texts: () => slack.texts(general, question),
    /** Title and status of each card of the first answer. */
    cards() {
      const [message] = slack.answers(general, question);
      return [...(message?.stream?.tasks.values() ?? [])].map(({ title, status }) => [title, status]);
    },
    argsOf: (method: string) => slack.requests.filter((one) => one.method === method).map(({ args }) => args),
  };
}
