import type { Life } from "./cluster.ts";
import type { Finding } from "./judge.ts";
import type { Record } from "./record.ts";

/** Around what is told. */
const MARGIN_MS = 3_000;
const MAX_WORDS = 90;
const MAX_LOGGED = 600;

/** Everything that has to do with a finding, in the order of time. */
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
      const { toldAtMs, acknowledgedAtMs } = record.told(question);
      return [
        { atMs: question.saidAtMs, what: `${question.name} is said in place ${question.place}: ${question.id}` },
        ...(toldAtMs === undefined ? [] : [{ atMs: toldAtMs, what: `${question.name} is told` }]),
        ...(acknowledgedAtMs === undefined
          ? []
          : [{ atMs: acknowledgedAtMs, what: `${question.name} is acknowledged` }]),
        ...record.asked(question.name).map(({ atMs, way, host, said, names }) => ({
          atMs,
          what: `${nameOf(host)} asks the upstream about ${names.join(" ")}: ${way}, ${said.length} characters`,
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

/** The lines of a process's log that name one of these. Its own clock may be ahead. */
function logLines({ name, lines }: Life, aheadMs: number, about: readonly string[]): Line[] {
  return lines
    .filter((line) => about.some((id) => line.includes(id)))
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
