import type { Life } from "./cluster.ts";
import type { Finding } from "./judge.ts";
import type { Record } from "./record.ts";

/** A finding's story includes events up to this long before and after it. */
const MARGIN_MS = 3_000;
/** An image's story includes the warnings of all processes for this long after its request. */
const PICTURE_MS = 60_000;
const MAX_WORDS = 90;
const MAX_LOGGED = 600;

/** Lists everything about a finding in chronological order. */
export function tellStory({ names, messageIds }: Finding, record: Record): string {
  const own = record.questions.filter(({ name }) => names.some((one) => one === name || one === `${name}e`));
  const turns = record.turns.filter(
    (turn) => own.some(({ id }) => turn.messageIds.includes(id)) || turn.posted.some((id) => messageIds.includes(id)),
  );
  const ids = new Set([...messageIds, ...turns.flatMap(({ posted }) => posted)]);
  const nameOf = (host: string) => record.lives.find(({ hosts }) => hosts.includes(host))?.name ?? host;
  const questions = record.questions.filter(
    (question) => own.includes(question) || turns.some(({ messageIds }) => messageIds.includes(question.id)),
  );
  const lines = [
    ...questions.flatMap((question) => {
      const { deliveredAtMs, acknowledgedAtMs } = record.deliveryOf(question);
      return [
        { atMs: question.askedAtMs, what: `${question.name} is asked in place ${question.place}: ${question.id}` },
        ...(deliveredAtMs === undefined ? [] : [{ atMs: deliveredAtMs, what: `${question.name} is delivered` }]),
        ...(acknowledgedAtMs === undefined
          ? []
          : [{ atMs: acknowledgedAtMs, what: `${question.name} is acknowledged` }]),
        ...record.requestsFor(question.name).map(({ atMs, way, host, sent, names }) => ({
          atMs,
          what: `${nameOf(host)} asks the upstream about ${names.join(" ")}: ${way}, ${sent.length} characters`,
        })),
      ];
    }),
    ...record.calls
      .filter(({ messageId }) => messageId !== undefined && ids.has(messageId))
      .map(({ atMs, endedAtMs, host, method, status, words }) => ({
        atMs,
        what: `${nameOf(host)} calls ${method}: ${status} after ${Math.round((endedAtMs ?? atMs) - atMs)} ms, ${shorten(words)}`,
      })),
    ...record.shown
      .filter(({ id }) => ids.has(id))
      .flatMap(({ id, states, statesAtMs }) =>
        states.map((text, index) => ({ atMs: statesAtMs[index] ?? 0, what: `${id} shows ${shorten(text)}` })),
      ),
  ];
  for (const name of names) lines.push(...pictureLines(record, name, nameOf));
  for (const { conversationId } of turns) lines.push(...historyLines(record, conversationId));
  const about = turns.flatMap(({ id, conversationId }) => [id, conversationId]);
  for (const life of record.lives) lines.push(...logLines(life, record.plan.aheadMs[life.slot] ?? 0, about));
  const fromMs = Math.min(...lines.map(({ atMs }) => atMs)) - MARGIN_MS;
  const toMs = Math.max(...lines.map(({ atMs }) => atMs)) + MARGIN_MS;
  const questionNames = new Set(record.questions.map(({ name }) => name));
  const isAboutOthers = (what: string) => {
    const [name] = what.match(/\bq\d+n\d+\b/) ?? [];
    return name !== undefined && questionNames.has(name) && !questions.some((question) => question.name === name);
  };
  const around = record.notes.filter(({ atMs, what }) => atMs >= fromMs && atMs <= toMs && !isAboutOthers(what));
  const startMs = record.notes[0]?.atMs ?? 0;
  return [...lines, ...around]
    .toSorted((a, b) => a.atMs - b.atMs)
    .map(({ atMs, what }) => `    ${((atMs - startMs) / 1_000).toFixed(3).padStart(8)}  ${what}`)
    .join("\n");
}

type Line = { atMs: number; what: string };

function historyLines({ histories, notes }: Record, conversationId: string): Line[] {
  const atMs = notes.at(-1)?.atMs ?? 0;
  const entries = histories.get(conversationId) ?? [];
  return entries.map(({ id, author, messages }) => ({
    atMs,
    what: `the history of ${conversationId} has ${id} by ${author?.id ?? "the bot"}: ${shorten(JSON.stringify(messages))}`,
  }));
}

/** Lists the calls that name a requested image, and the warnings within a minute after the request. */
function pictureLines({ calls, lives, notes, plan }: Record, name: string, nameOf: (host: string) => string): Line[] {
  const asked = notes.find(({ what }) => what.endsWith(` an image of ${name}`));
  if (asked === undefined) return [];
  const own = calls
    .filter(({ words }) => words.includes(name))
    .map(({ atMs, host, method, status, words }) => ({
      atMs,
      what: `${nameOf(host)} calls ${method}: ${status}, ${shorten(words)}`,
    }));
  const warnings = lives
    .flatMap((life) => logLines(life, plan.aheadMs[life.slot] ?? 0, ['"level":"warn"', '"level":"error"']))
    .filter(({ atMs }) => atMs >= asked.atMs && atMs <= asked.atMs + PICTURE_MS);
  return [asked, ...own, ...warnings];
}

/**
 * Returns the lines in a process's log that contain one of these texts. Corrects their times if the process's clock is
 * ahead.
 */
function logLines({ name, lines }: Life, aheadMs: number, about: readonly string[]): Line[] {
  return lines
    .filter((line) => about.some((text) => line.includes(text)))
    .flatMap((line) => {
      const time = /"time":"([^"]+)"/.exec(line)?.[1];
      return time === undefined
        ? []
        : [{ atMs: Date.parse(time) - aheadMs, what: `${name} logs ${line.slice(0, MAX_LOGGED)}` }];
    });
}

function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length <= MAX_WORDS ? line : `${line.slice(0, 30)} … ${line.slice(-(MAX_WORDS - 33))}`;
}
