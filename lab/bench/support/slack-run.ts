import { setTimeout as sleep } from "node:timers/promises";
import { createSlackApi } from "../../../adapters/slack/api/client.ts";
import { createOutbound } from "../../../adapters/slack/write/outbound.ts";
import { createScheduler, type Scheduler } from "../../../src/pacing/scheduler.ts";
import { NO_RIGHT } from "../../../src/port/right.ts";
import { type ProduceText, writeReply } from "../../../src/reply/reply.ts";
import { type Figures, type Outcome, toFigures } from "../../pacing/measure.ts";
import { createRandom, toRoundTrip } from "../../pacing/random.ts";
import { type Arrivals, steady, TOKEN_UNITS } from "../../pacing/scenarios.ts";
import { SLACK_TRIP_MS } from "../../pacing/trials.ts";
import { openSlack, type Slack } from "../../slack-sim/control.ts";
import type { Person } from "../../slack-sim/people.ts";
import type { Message } from "../../slack-sim/world.ts";
import { lookFor } from "../../support/look-for.ts";
import { findTakenBack } from "../../support/taken-back.ts";
import { startSlowProxy } from "./slow-proxy.ts";

export interface SlackRun {
  figures: Figures;
  /** Number of replies whose text on the platform differs from the text that was sent. */
  wrong: number;
  /** Texts that people could read and that later disappeared. */
  takenBack: string[];
  violations: string[];
}

export interface SlackRunOptions {
  replies: readonly Arrivals[];
  isNative: boolean;
  seed: number;
  /** Time since an earlier question with a short answer; absent for the first question in a minute. */
  agoMs?: number | undefined;
  /** How long the replies stay empty. The workspace has no sessions, so the bot edits a message with a Stop button. */
  silentMs?: number | undefined;
}

const REFUSAL_MS = 10_000;
const BUTTON = { action: "retry", turnId: "turn", label: "Retry" } as const;

/** Writes replies in channels of a simulated workspace, in real time and through the service's Slack client. */
export async function runOnSlack({ replies, isNative, seed, agoMs, silentMs }: SlackRunOptions): Promise<SlackRun> {
  const slack = await openSlack({ streaming: isNative ? "on" : "unknown_method" });
  const random = createRandom(seed);
  const proxy = await startSlowProxy(slack.apiUrl, () => toRoundTrip(random, SLACK_TRIP_MS));
  const apiUrl = `${proxy.origin}/api/`;
  const api = createSlackApi({ apiUrl, tokenOf: async () => slack.botToken, now: slack.now });
  const { id: teamId, bot, botToken: token } = slack.workspace;
  const workspaces = { find: async () => ({ teamId, botUserId: bot.id, botId: bot.botId ?? "", token }) };
  const outbound = createOutbound({
    api,
    workspaces,
    markKey: "key",
    apiUrl,
    now: slack.now,
  });
  const scheduler = createScheduler({ now: () => performance.now() });
  const ada = slack.user({ name: "Ada" });
  try {
    await warmUp(slack, outbound, ada);
    if (silentMs !== undefined) await refuseSessions(slack, outbound, ada);
    if (agoMs !== undefined) {
      const askedMs = performance.now();
      const channel = slack.channel({ name: "earlier", members: [ada] });
      await writeOne(slack, scheduler, outbound, ada.mention(channel, "question"), steady(40, 60));
      await sleep(Math.max(0, askedMs + agoMs - performance.now()));
    }
    const outcomes = await Promise.all(
      replies.map((arrivals, index) => {
        const channel = slack.channel({ name: `channel-${index}`, members: [ada] });
        return writeOne(slack, scheduler, outbound, ada.mention(channel, "question"), arrivals);
      }),
    );
    return {
      figures: toFigures(outcomes.map(({ outcome }) => outcome)),
      wrong: outcomes.filter(({ isRight }) => !isRight).length,
      takenBack: outcomes.flatMap(({ takenBack }) => takenBack),
      violations: slack.violations.map(({ sentence }) => sentence),
    };
  } finally {
    scheduler.close();
    await proxy.close();
    await slack.close();
  }
}

/** Makes the workspace report that it has no sessions, and therefore no Stop button of Slack's own. */
async function refuseSessions(slack: Slack, outbound: ReturnType<typeof createOutbound>, ada: Person): Promise<void> {
  slack.failNext("agents.sessions.setStatus", { error: "not_agent_app" });
  const sink = outbound.sink(
    toAddress(slack, ada.mention(slack.channel({ name: "sessions", members: [ada] }), "")),
    NO_RIGHT,
  );
  await sink.progress("thinking", AbortSignal.timeout(REFUSAL_MS));
  if ((await lookFor(() => sink.traits?.waits === "soon", REFUSAL_MS)) === undefined)
    throw new Error("The workspace did not refuse sessions.");
}

/**
 * Lets the client find out whether the workspace supports streams, then waits for the end of the rate limit's minute.
 */
async function warmUp(slack: Slack, outbound: ReturnType<typeof createOutbound>, ada: Person): Promise<void> {
  const scheduler = createScheduler({ now: () => performance.now() });
  const channel = slack.channel({ name: "warm-up", members: [ada] });
  await writeOne(slack, scheduler, outbound, ada.mention(channel, "question"), steady(30, 60));
  scheduler.close();
  slack.advance(61_000);
}

async function writeOne(
  slack: Slack,
  scheduler: Scheduler,
  outbound: ReturnType<typeof createOutbound>,
  question: Message,
  arrivals: Arrivals,
): Promise<{ outcome: Outcome; isRight: boolean; takenBack: string[] }> {
  const { channel, ts } = question;
  const sink = outbound.sink(toAddress(slack, question), NO_RIGHT);
  const startMs = slack.now();
  const counts = { calls: 0, refused: 0 };
  const text = await writeReply(runModel(slack, arrivals, startMs), {
    sink,
    right: NO_RIGHT,
    scheduler,
    record: { id: `turn ${channel.id}`, posted: [], removed: 0, isPosting: false, seen: 0 },
    isResumed: false,
    refusal: () => ({ note: "", buttons: [] }),
    onRecord: async () => {},
    onSeen: async () => {},
    onCall(_, error) {
      counts.calls += 1;
      if (error?.kind === "rate-limited") counts.refused += 1;
    },
    onRefused: () => {},
    onVisible: () => {},
    describeWait: () => "",
    onWait: () => {},
    onEnd: () => ({ note: "", buttons: [BUTTON] }),
  });
  const answers = slack.answers(channel, ts);
  const [answer] = answers;
  const showings = (answer?.states ?? [])
    .map(({ atMs, shown }) => ({ at: atMs - startMs, tokens: Math.ceil(shown.length / TOKEN_UNITS) }))
    // Earlier texts only say that the bot is preparing the answer.
    .filter(({ at }) => at >= (arrivals[0] ?? 0));
  const isRight = answers.length === 1 && slack.texts(channel, ts)[0] === text.trimEnd();
  const takenBack = answers.flatMap(({ states }) => findTakenBack(states.map(({ shown }) => shown)));
  return { outcome: { arrivals, showings, ...counts }, isRight, takenBack };
}

function toAddress(slack: Slack, { channel, ts, author }: Message) {
  const team = slack.workspace.id;
  return {
    platform: "slack" as const,
    channelId: channel.id,
    threadId: ts,
    replyToId: `slack:${team}:${channel.id}:${ts}`,
    extra: { team, user: author.id, recipientTeam: team },
  };
}

/** A model that sends its tokens at planned times. Each token is a separate word. */
function runModel(slack: Slack, arrivals: Arrivals, startMs: number): ProduceText {
  return async (onText) => {
    for (const [index, at] of arrivals.entries()) {
      const waitMs = startMs + at - slack.now();
      if (waitMs > 0) await sleep(waitMs);
      onText(`${index.toString(36).padStart(TOKEN_UNITS - 1, "0")} `);
    }
    return "stop";
  };
}
