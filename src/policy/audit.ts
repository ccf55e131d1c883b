import type { Logger } from "pino";
import { z } from "zod";
import { persist } from "../concurrency/retry.ts";
import type { InboundEvent } from "../port/events.ts";
import type { Entries, Stores } from "../store/keyv.ts";
import { truncate } from "../text/truncate.ts";

const NAMESPACE = "audit";
const HEAD = "head";
/** Settings whose values are texts that people write. */
const WRITTEN: ReadonlySet<string> = new Set(["persona", "prompts", "schedule"]);
/** Entries are kept as long as usage is. A setting can outlive the messages that it affected. */
const TTL_MS = 396 * 86_400_000;
/** Maximum number of entries. A new entry then overwrites the oldest. */
const MAX_ENTRIES = 5_000;
const MAX_VALUE_CHARS = 2_000;
/** Number of events that are remembered, so that a repeated event after a crash adds no second entry. */
const MAX_KEYS = 50;
const PAGE_ENTRIES = 200;

const entry = z.object({
  v: z.literal(1),
  /** Each entry gets the next number. Numbers never restart. */
  number: z.int(),
  /** Unix milliseconds. */
  at: z.number(),
  platform: z.string(),
  /** The person's id, or a pseudonym after their data was erased. */
  authorId: z.string(),
  name: z.string(),
  workspaceId: z.string().exactOptional(),
  channelId: z.string().exactOptional(),
  /** The changed setting: `persona`, `model`, `listen`, `access`, `quota` and so on. */
  what: z.string(),
  /** The value in words; absent if it was empty or came from the configuration. */
  before: z.string().exactOptional(),
  after: z.string().exactOptional(),
});
const head = z.object({ v: z.literal(1), next: z.int(), keys: z.array(z.string()) });

export type AuditEntry = Omit<z.infer<typeof entry>, "v">;

export interface SettingsChange {
  event: Pick<InboundEvent, "key" | "author" | "reply">;
  what: string;
  before?: string | undefined;
  after?: string | undefined;
}

export interface Audit {
  /**
   * Records a change, once per event and kind of change. Resolves to false if the store does not accept it. Never
   * rejects.
   */
  note(change: SettingsChange): Promise<boolean>;
  /** Resolves to the latest entries, newest first. Rejects if the store is unavailable. */
  read(maxEntries: number): Promise<AuditEntry[]>;
  /** Resolves to a person's changes, newest first. Rejects if the store is unavailable. */
  exportAuthor(platform: string, authorId: string): Promise<AuditEntry[]>;
  /**
   * Replaces the person with a pseudonym and erases the personas and other texts that they wrote. Rejects if the store
   * is unavailable.
   */
  forgetAuthor(platform: string, authorId: string): Promise<void>;
}

export interface AuditOptions extends Pick<Stores, "open" | "inTurn"> {
  pseudonym(platform: string, authorId: string): string;
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
}

export function createAudit({ open, pseudonym, log, now, ...stores }: AuditOptions): Audit {
  const keyv = open(NAMESPACE);
  const inTurn = <T>(task: (keyv: Entries) => Promise<T>) => stores.inTurn(NAMESPACE, (open) => task(open(NAMESPACE)));

  async function readHead(): Promise<z.infer<typeof head>> {
    return head.safeParse(await keyv.get<unknown>(HEAD)).data ?? { v: 1, next: 0, keys: [] };
  }

  async function* walkNewest(maxEntries: number): AsyncGenerator<z.infer<typeof entry>> {
    const { next } = await readHead();
    const oldest = Math.max(0, next - Math.min(maxEntries, MAX_ENTRIES));
    for (let end = next; end > oldest; end -= PAGE_ENTRIES) {
      const numbers = Array.from({ length: Math.min(PAGE_ENTRIES, end - oldest) }, (_, index) => end - 1 - index);
      const values = await keyv.getMany<unknown>(numbers.map(toKey));
      for (const [index, value] of values.entries()) {
        const { data } = entry.safeParse(value);
        // Skip slots that still contain an entry from the previous round.
        if (data !== undefined && data.number === numbers[index]) yield data;
      }
    }
  }

  async function append(keyv: Entries, { event, what, before, after }: SettingsChange): Promise<void> {
    const { next, keys } = await readHead();
    const key = `${what} ${event.key}`;
    if (keys.includes(key)) return;
    const { author, reply } = event;
    const { platform, workspaceId, channelId } = reply;
    const noted: z.infer<typeof entry> = {
      v: 1,
      number: next,
      at: now(),
      platform,
      authorId: author.id,
      name: author.name,
      ...(workspaceId !== undefined && { workspaceId }),
      channelId,
      what,
      ...(before !== undefined && { before: truncate(before, MAX_VALUE_CHARS) }),
      ...(after !== undefined && { after: truncate(after, MAX_VALUE_CHARS) }),
    };
    await keyv.setMany([
      { key: toKey(next), value: noted, ttl: TTL_MS },
      { key: HEAD, value: { v: 1, next: next + 1, keys: [key, ...keys].slice(0, MAX_KEYS) } },
    ]);
  }

  async function collect(maxEntries: number, isWanted: (one: AuditEntry) => boolean): Promise<AuditEntry[]> {
    const found: AuditEntry[] = [];
    for await (const { v: _, ...one } of walkNewest(maxEntries)) if (isWanted(one)) found.push(one);
    return found;
  }

  return {
    async note(change) {
      if (change.before === change.after) return true;
      const onFailure = (err: unknown) =>
        log.error({ err, what: change.what }, "a change of settings could not be added to the audit log");
      return persist(() => inTurn((keyv) => append(keyv, change)), onFailure);
    },
    read: (maxEntries) => collect(maxEntries, () => true),
    exportAuthor: (platform, authorId) =>
      collect(MAX_ENTRIES, (one) => one.platform === platform && one.authorId === authorId),
    forgetAuthor: (platform, authorId) =>
      inTurn(async (keyv) => {
        const all = await Array.fromAsync(walkNewest(MAX_ENTRIES));
        const isTheirs = (one: AuditEntry) => one.platform === platform && one.authorId === authorId;
        const own = all.filter((one) => isTheirs(one) && WRITTEN.has(one.what));
        const written = new Set(own.map(({ after }) => after).filter((text) => text !== undefined));
        const alias = pseudonym(platform, authorId);
        const redact = (text: string) => (written.has(text) ? ERASED : withoutPerson(text, authorId, alias));
        const changed = all.flatMap((one) => {
          const { before, after } = one;
          const next = {
            ...one,
            ...(isTheirs(one) && { authorId: alias, name: "" }),
            ...(before !== undefined && { before: redact(before) }),
            ...(after !== undefined && { after: redact(after) }),
          };
          return JSON.stringify(next) === JSON.stringify(one) ? [] : [next];
        });
        for (let from = 0; from < changed.length; from += PAGE_ENTRIES) {
          const page = changed.slice(from, from + PAGE_ENTRIES);
          await keyv.setMany(
            page.map((value) => ({ key: toKey(value.number), value, ttl: Math.max(1, value.at + TTL_MS - now()) })),
          );
        }
      }),
  };
}

const ERASED = "(erased)";

/** Removes the person's id from a text, because a rule can name the person. */
function withoutPerson(text: string, authorId: string, alias: string): string {
  const names = [authorId, authorId.slice(authorId.lastIndexOf("/") + 1)];
  return names.reduce((found, name) => found.replaceAll(`person:${name}`, `person:${alias}`), text);
}

function toKey(number: number): string {
  return String(number % MAX_ENTRIES);
}
