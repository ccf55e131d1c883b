import type { Random } from "./random.ts";

/** Characters per token. */
export const TOKEN_UNITS = 4;

/** Arrival times of a reply's tokens in milliseconds, ascending. The reply ends with the last token. */
export type Arrivals = number[];

/** Creates the replies of one run, with different start times. */
export type Scenario = (random: Random) => Arrivals[];

/** `tokens` tokens at `rate` per second. */
export function steady(tokens: number, rate: number, startMs = 0): Arrivals {
  return Array.from({ length: tokens }, (_, index) => startMs + (index * 1_000) / rate);
}

/** Replies that grow evenly. Each one starts `apartMs` after the previous one. */
export function several(count: number, tokens: number, rate: number, apartMs: number): Scenario {
  return () => Array.from({ length: count }, (_, index) => steady(tokens, rate, index * apartMs));
}

/** Puts a short answer in the same workspace `agoMs` before the scenario. It is the first of the replies. */
export function afterQuestion(agoMs: number, scenario: Scenario): Scenario {
  return (random) => [steady(40, 60), ...scenario(random).map((arrivals) => shifted(arrivals, agoMs))];
}

/** 400 tokens at 60 per second. After the first hundred, a tool works for four seconds. */
export function withPause(): Arrivals[] {
  return [[...steady(100, 60), ...steady(300, 60, 100_000 / 60 + 4_000)]];
}

/** 600 tokens in quick bursts of 23 to 67, with pauses of 1.3 s on average between them. */
export function bursty(random: Random): Arrivals {
  const arrivals: Arrivals = [];
  let at = 0;
  while (arrivals.length < 600) {
    for (let left = Math.round(random.between(22.5, 67.5)); left > 0 && arrivals.length < 600; left--) {
      arrivals.push(at);
      at += 4;
    }
    at += random.between(200, 2_400);
  }
  return arrivals;
}

/** Replies of 200 to 800 tokens at 60 per second, one every 6 s on average. */
export function workday(count: number): Scenario {
  return (random) => {
    let at = 0;
    return Array.from({ length: count }, () => {
      at += random.wait(6_000);
      return steady(Math.round(random.between(200, 800)), 60, at);
    });
  };
}

/** A reply of log-normal length (median 250 tokens, sigma 0.9, at most 4,000) at 30 to 100 tokens per second. */
function ofAnyLength(random: Random, startMs: number): Arrivals {
  const tokens = Math.min(4000, Math.max(1, Math.round(250 * Math.exp(0.9 * random.normal()))));
  return steady(tokens, random.between(30, 100), startMs);
}

/** Replies of any length that start within one second. */
export function severalOfAnyLength(count: number): Scenario {
  return (random) => Array.from({ length: count }, () => ofAnyLength(random, random.between(0, 1_000)));
}

/** Ten minutes of a workspace: Poisson arrivals, replies of any length, one in ten with a pause of 8 s. */
export function mix(perMinute: number): Scenario {
  return (random) => {
    const replies: Arrivals[] = [];
    for (let at = random.wait(60_000 / perMinute); at < 600_000; at += random.wait(60_000 / perMinute)) {
      const arrivals = ofAnyLength(random, at);
      if (random.next() < 0.1) {
        const from = Math.floor(random.next() * arrivals.length);
        for (let index = from; index < arrivals.length; index++) arrivals[index] = (arrivals[index] ?? 0) + 8_000;
      }
      replies.push(arrivals);
    }
    return replies;
  };
}

/** One to five replies of a random kind with random start times. */
export function anything(random: Random): Arrivals[] {
  const count = 1 + Math.floor(random.next() * 5);
  return Array.from({ length: count }, () => {
    const start = random.pick([0, random.between(0, 1_000), random.between(0, 10_000)]);
    const rate = random.between(8, 100);
    const kind = random.next();
    if (kind < 0.2) return shifted(bursty(random), start);
    const arrivals = steady(Math.ceil(random.between(1, random.pick([40, 400, 1000]))), rate, start);
    if (kind > 0.4) return arrivals;
    const from = Math.floor(random.next() * arrivals.length);
    const pause = random.between(300, 12_000);
    return arrivals.map((at, index) => (index < from ? at : at + pause));
  });
}

function shifted(arrivals: Arrivals, byMs: number): Arrivals {
  return arrivals.map((at) => at + byMs);
}
