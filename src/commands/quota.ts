import type { QuotaScope } from "../config/policy/quotas.ts";
import type { CommandEvent } from "../port/events.ts";
import type { Standing } from "../quota/limits.ts";
import { describeStanding } from "../quota/wording.ts";
import { isStoreOutage } from "../store/outage.ts";
import { quoteName } from "../text/quote-name.ts";
import { type Command, NOT_KNOWN, ONLY_ADMINS, postNotice, readPerson } from "./command.ts";

const HOW =
  "Write `/quota`; admins: `/quota @someone`, `/quota everyone`, and `/quota lift` with `me`, a mention, `channel`, `workspace` or `all`, which lifts the limits for a day.";
const NONE = "There are no limits here.";
/** A list of this many people fits into one message on every platform. */
const MAX_PEOPLE = 15;

/**
 * `/quota` shows how much of their limits the asker has used. For admins, it also shows everyone's usage and lifts a
 * limit for a day.
 */
export const QUOTA: Command = {
  name: "quota",
  description: "Show how much of your limits you've used; admins: everyone, @someone, lift.",
  usage: "nothing; admins: @someone, everyone, or lift",
  namesPeople: true,
  create({ quota, usage, access, audit, now }) {
    const describe = (standings: readonly Standing[], owner?: string) =>
      standings.map((one) => `- ${describeStanding(one, quota.currency(), now(), owner)}`).join("\n");

    async function describeOwn(event: CommandEvent): Promise<string> {
      const isAdmin = access.isAdmin(event);
      const shown = (await quota.read(event)).filter(
        ({ scope }) => isAdmin || scope === "person" || scope === "channel",
      );
      return shown.length === 0 ? NONE : describe(shown);
    }

    async function describeOther({ reply }: CommandEvent, id: string, owner: string): Promise<string> {
      const all = await quota.read({ author: { id }, reply });
      return describe(
        all.filter(({ scope }) => scope === "person"),
        owner,
      );
    }

    async function describeEveryone({ reply }: CommandEvent): Promise<string> {
      const { platform, workspaceId, channelId } = reply;
      const rows = await usage.readTable(
        workspaceId === undefined ? { platform, channelId } : { platform, workspaceId },
      );
      const ids = [...new Set(rows.map(({ authorId }) => authorId))].filter((id) => !id.startsWith("@"));
      const people = await Promise.all(
        ids.map(async (id) => {
          const all = await quota.read({ author: { id }, reply });
          return { id, own: all.filter(({ scope }) => scope === "person") };
        }),
      );
      const share = (own: readonly Standing[]) => Math.max(0, ...own.map(({ used, most }) => used / Math.max(1, most)));
      const sorted = people
        .filter(({ own }) => own.length > 0)
        .toSorted((one, other) => share(other.own) - share(one.own));
      const lines = sorted.slice(0, MAX_PEOPLE).map(({ id, own }) => describe(own, `The limit of ${quoteName(id)}`));
      const rest = sorted.length - lines.length;
      return [...lines, ...(rest > 0 ? [`and ${rest} more.`] : [])].join("\n") || NONE;
    }

    async function lift(event: CommandEvent, whom: string): Promise<string> {
      const id = whom.toLowerCase() === "me" ? event.author.id : readPerson(whom, event)?.id;
      const scope: QuotaScope | undefined = id === undefined ? SCOPE_WORDS[whom.toLowerCase()] : "person";
      if (scope === undefined) return HOW;
      const author = { id: id ?? event.author.id };
      if (!(await quota.lift(scope, { author, reply: event.reply }))) return NONE;
      const of = scope === "person" ? `person:${author.id}` : scope;
      await audit.note({ event, what: "quota", after: `lifted for a day: ${of}` });
      return "I've lifted those limits for a day. I'm still counting usage.";
    }

    async function answer(event: CommandEvent): Promise<string> {
      const [first = "", whom = ""] = event.text.trim().split(/\s+/);
      if (first === "") return describeOwn(event);
      const id = readPerson(first, event)?.id;
      const isKnown = id !== undefined || ["lift", "everyone"].includes(first.toLowerCase());
      if (!isKnown) return HOW;
      if (!access.isAdmin(event)) return ONLY_ADMINS;
      if (id !== undefined) return (await describeOther(event, id, "Their limit")) || NONE;
      return first.toLowerCase() === "lift" ? lift(event, whom) : describeEveryone(event);
    }

    return async (event, sink, signal) => {
      const text = await answer(event).catch((error: unknown) => {
        if (!isStoreOutage(error)) throw error;
        return NOT_KNOWN;
      });
      await postNotice(sink, event, text, signal);
    };
  },
};

const SCOPE_WORDS: Readonly<Record<string, QuotaScope>> = {
  channel: "channel",
  workspace: "workspace",
  server: "workspace",
  all: "all",
};
