import { setTimeout as sleep } from "node:timers/promises";
import type { InboundEvent } from "../../../src/port/events.ts";
import { toTurnId } from "../../../src/port/ids.ts";
import { createRandom, type Random } from "../pacing/random.ts";
import { toName } from "./answers.ts";
import type { PlannedQuestion, Round } from "./plan.ts";
import { type Service, startService } from "./service.ts";
import { type Shop, visitShop } from "./shop.ts";
import type { Upstream } from "./upstream.ts";
import { type Complaint, judge } from "./verdict.ts";
import { ANY_TURN, lookFor, type Question, type Shown, type World } from "./world.ts";

/** Longest that a round may take to come to rest after the last thing that happened in it. */
const REST_MS = 60_000;
/** Longest that somebody waits for a message on which to press. */
const LOOK_MS = 4_000;
/** A person asks again so often at most. */
const PRESSES = 3;

/** The findings of a round. */
export interface Finding {
  seed: number;
  /** Questions that something may happen to, and all that were asked. */
  turns: number;
  asked: number;
  kills: number;
  complaints: Complaint[];
}

/** What all rounds share. */
export interface Outside {
  upstream: Upstream;
  shop: Shop;
}

interface Stage {
  round: Round;
  world: World;
  random: Random;
  service: Service;
  questions: Question[];
  removed: Set<string>;
  takenAway: Set<string>;
  begunAnew: Set<string>;
  accepted: InboundEvent[];
  isDisturbed: boolean;
  hadSlowCalls: boolean;
}

/** Lets a round happen, waits until it rests, and judges what it left. Never rejects for what the bot does. */
export async function runRound(round: Round, world: World, { upstream, shop }: Outside): Promise<Finding> {
  const random = createRandom(round.seed + 1);
  const accepted: InboundEvent[] = [];
  const start = async (disk: Uint8Array | undefined) =>
    startService({
      world,
      upstream,
      visit: await visitShop(shop),
      disk,
      onAccepted: (event) => void accepted.push(event),
      isDoubled: () => random.next() < round.doubled,
    });
  const stage: Stage = {
    round,
    world,
    random,
    service: await start(undefined),
    questions: [],
    removed: new Set(),
    takenAway: new Set(),
    begunAnew: new Set(),
    accepted,
    isDisturbed: false,
    hadSlowCalls: false,
  };
  try {
    for (const { name, script } of round.questions) upstream.script(name, script);
    await begin(stage);
    await Promise.all([
      ...round.questions.map((question) => ask(stage, question)),
      ...round.troubles.map((trouble) => suffer(stage, trouble)),
      live(stage, start),
    ]);
    const unrest = await settle(stage);
    const turns = await stage.service.readTurns();
    const complaints = judge({
      questions: stage.questions,
      removed: stage.removed,
      heard: new Set(accepted.flatMap((event) => (event.kind === "message" ? [event.messageId] : []))),
      takenAway: stage.takenAway,
      begunAnew: stage.begunAnew,
      turns,
      shown: world.shown(),
      isDisturbed: stage.isDisturbed,
      hadSlowCalls: stage.hadSlowCalls,
      wasKilled: round.killsAtMs.length > 0,
      breaks: world.breaks(),
      acts: shop.marks,
      asked: upstream.asked,
    });
    return {
      seed: round.seed,
      turns: round.questions.length,
      asked: stage.questions.length,
      kills: round.killsAtMs.length,
      complaints: [...unrest, ...complaints],
    };
  } finally {
    await stage.service.close();
    await world.close();
  }
}

/** Has each conversation begun before anything goes wrong: nobody is told of a direct one that was never heard of. */
async function begin({ world, round, questions, accepted, service }: Stage): Promise<void> {
  const names = [70, 71].map((index) => toName(round.seed, index));
  const first = [world.ask(names[0] ?? "", 0), world.askAside(names[1] ?? "")];
  questions.push(...first);
  await lookFor(() => first.every(({ id }) => isHeard(accepted, id)) && service.isIdle(), REST_MS);
}

function isHeard(accepted: readonly InboundEvent[], id: string): boolean {
  return accepted.some((event) => event.kind === "message" && event.messageId === id);
}

async function ask(stage: Stage, planned: PlannedQuestion): Promise<void> {
  const { world, questions } = stage;
  await sleep(planned.atMs);
  const question = world.ask(planned.name, planned.person);
  questions.push(question);
  if (planned.doing === undefined) return;
  const { what, afterMs } = planned.doing;
  await sleep(afterMs);
  switch (what) {
    case "edit":
      stage.begunAnew.add(question.id);
      return world.edit(question, `${planned.name}e`);
    case "remove":
      stage.removed.add(question.id);
      return world.remove(question);
    case "follow":
      questions.push(world.ask(`${planned.name}00`, planned.person));
      return;
    case "stop":
      return press(stage, question, "Stop");
    case "remove-answer": {
      const message = world.shown()[0];
      if (message === undefined) return;
      stage.takenAway.add(message.id);
      return world.removeShown(message.id);
    }
    case "retry-twice":
      await press(stage, question, "Retry");
      return press(stage, question, "Retry");
  }
}

/** Presses a button of the answer to a question as soon as it is there. Nobody waits for ever. */
async function press({ world, accepted, begunAnew }: Stage, question: Question, label: string): Promise<void> {
  const find = () => {
    const of = turnOf(accepted, question);
    return of === undefined ? undefined : world.shown().find((message) => hasButton(message, label, of.turnId));
  };
  const message = await lookFor(find, LOOK_MS);
  if (message === undefined) return;
  if (label === "Retry") begunAnew.add(question.id);
  world.press(message.id, label, question.person);
}

function hasButton({ buttons }: Shown, label: string, turnId: string): boolean {
  return buttons.some(
    (button) => button.label === label && [ANY_TURN, turnId].some((name) => button.payload.includes(name)),
  );
}

async function suffer(stage: Stage, { share, atMs, lastsMs }: Round["troubles"][number]): Promise<void> {
  const { world, random } = stage;
  const name = world.troubles[Math.floor(share * world.troubles.length)] ?? "";
  await sleep(atMs);
  if (world.disturbing.has(name)) stage.isDisturbed = true;
  if (name === "slow") stage.hadSlowCalls = true;
  const heal = world.inflict(name, random);
  if (heal === undefined) return;
  await sleep(lastsMs);
  heal();
}

/** Kills the service when it is time, and starts it again on what it left. */
async function live(stage: Stage, start: (disk: Uint8Array) => Promise<Service>): Promise<void> {
  let atMs = 0;
  for (const killAtMs of stage.round.killsAtMs.toSorted((a, b) => a - b)) {
    await sleep(Math.max(0, killAtMs - atMs));
    atMs = killAtMs;
    const disk = stage.service.kill();
    stage.service = await start(disk);
  }
}

/** Waits until everything was heard and worked on, and lets people ask again where that is offered. */
async function settle(stage: Stage): Promise<Complaint[]> {
  for (let press = 0; press <= PRESSES; press++) {
    if (!(await rest(stage))) {
      const open = stage.service.countOpen();
      return [{ fault: "stuck", sentence: `After ${REST_MS / 1_000} s ${open} events are not done.` }];
    }
    if (press === PRESSES || !askAgain(stage)) return [];
  }
  return [];
}

/** Whatever was said before a last word was heard when that is. Resolves to whether all of it is done. */
async function rest({ world, service, accepted, round, questions }: Stage): Promise<boolean> {
  await lookFor(world.hasListener, REST_MS);
  const last = world.askAside(toName(round.seed, 80 + questions.length));
  questions.push(last);
  const isDone = () => isHeard(accepted, last.id) && service.isIdle();
  return (await lookFor(isDone, REST_MS)) === true;
}

/** Has each person ask again for what of theirs ended early, or nobody. */
function askAgain({ world, questions, accepted, random, begunAnew }: Stage): boolean {
  if (random.next() < 0.3) return false;
  const own = questions.flatMap((question) => turnOf(accepted, question) ?? []);
  const offered = world.shown().flatMap((message) => {
    const of = own.find(({ turnId }) => hasButton(message, "Retry", turnId));
    return of === undefined ? [] : [{ id: message.id, ...of }];
  });
  for (const { id, person, questionId } of offered) {
    begunAnew.add(questionId);
    world.press(id, "Retry", person);
  }
  return offered.length > 0;
}

function turnOf(accepted: readonly InboundEvent[], { id, person }: Question) {
  const event = accepted.find((one) => one.kind === "message" && one.messageId === id);
  return event === undefined ? undefined : { turnId: toTurnId(event.key), person, questionId: id };
}
