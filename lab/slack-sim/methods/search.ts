import type { Arguments } from "../arguments.ts";
import type { Core } from "../core.ts";
import { type Call, type MethodDeps, type Methods, needScope } from "../method.ts";
import { SlackRefusal } from "../refusal.ts";
import { shownText } from "../shown-text.ts";
import { type Channel, isOfApp, type Json, type Message, type User } from "../world.ts";

const MAX_PAGE = 20;
const MAX_QUERY_CHARS = 1_000;
const CHANNEL_TYPES = new Set(["public_channel", "private_channel", "mpim", "im"]);
const CONTENT_TYPES = new Set(["messages", "files", "channels", "users"]);

/** `behind`: the index does not know yet who lost which permissions, so it finds messages of all channels. */
export type SearchIndex = "current" | "behind";

/** Slack's index, and the events' tokens that permit the app to search. */
export interface Search {
  /** Returns a token for the author of a message. */
  issue(message: Message): string;
  setIndex(index: SearchIndex): void;
  find(token: string | undefined): { user: User; channel: Channel } | undefined;
  index(): SearchIndex;
}

/** https://docs.slack.dev/apis/web-api/real-time-search-api#action-token */
export function createSearch({ clock, limits, newId }: Core): Search {
  const tokens = new Map<string, { user: User; channel: Channel; atMs: number }>();
  let index: SearchIndex = "current";
  return {
    issue({ author, channel }) {
      const token = `${newId("")}.${newId("")}.simulator`;
      tokens.set(token, { user: author, channel, atMs: clock.now() });
      return token;
    },
    find(token = "") {
      const found = tokens.get(token);
      return found !== undefined && clock.now() - found.atMs <= limits.actionTokenMs ? found : undefined;
    },
    setIndex: (next) => void (index = next),
    index: () => index,
  };
}

/** Methods with a bot token: https://docs.slack.dev/reference/methods/assistant.search.context */
export function createSearchMethods({ core, search }: MethodDeps & { search: Search }): Methods {
  function run(args: Arguments, { workspace }: Call): Json {
    const query = args.text("query");
    if (query === undefined) throw new SlackRefusal("missing_query");
    if (query.length > MAX_QUERY_CHARS) throw new SlackRefusal("query_too_long");
    const channelTypes = readNames(args, "channel_types", CHANNEL_TYPES, "public_channel");
    const contentTypes = readNames(args, "content_types", CONTENT_TYPES, "messages");
    // "The requested channel types are not allowed by the provided scopes": bots get the scope of public channels only.
    if (channelTypes.some((type) => type !== "public_channel")) {
      throw new SlackRefusal("missing_scope", {
        needed: "search:read.private",
        provided: [...workspace.scopes].join(),
      });
    }
    for (const type of contentTypes) {
      if (type === "files" || type === "users") needScope(workspace, `search:read.${type}`);
    }
    const limit = args.count("limit") ?? MAX_PAGE;
    if (!(limit >= 1 && limit <= MAX_PAGE)) throw new SlackRefusal("invalid_arguments");
    const grant = search.find(args.text("action_token"));
    if (grant === undefined || grant.channel.workspace !== workspace) throw new SlackRefusal("invalid_action_token");
    const { user, channel } = grant;
    const isKnown = search.index() === "current" && (user.isGuest || user.isDeactivated);
    if (isKnown) throw new SlackRefusal("access_denied");
    const from = readCursor(args);
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [...workspace.channels.values()]
      .filter((one) => search.index() === "behind" || isSearched(one, channel))
      .flatMap(({ messages }) => [...messages.values()])
      .filter((message) => isMatch(message, words) && (args.text("include_bots") !== "false" || !isOfApp(message)))
      .toSorted((a, b) => (a.ts < b.ts ? 1 : -1));
    const messages = contentTypes.includes("messages") ? found.slice(from, from + limit).map(toResult) : [];
    const hasMore = from + limit < found.length;
    const next = hasMore ? Buffer.from(`CURRENT_PAGE:${from + limit}`).toString("base64") : "";
    return { results: { messages, files: [], channels: [] }, response_metadata: { next_cursor: next } };
  }

  function toResult({ channel, author, content, ts, threadTs }: Message): Json {
    const query = threadTs === undefined ? "" : `?thread_ts=${threadTs}&cid=${channel.id}`;
    return {
      author_name: author.name,
      author_user_id: author.id,
      team_id: channel.workspace.id,
      channel_id: channel.id,
      channel_name: channel.name,
      message_ts: ts,
      content: shownText(content),
      is_author_bot: author.botId !== undefined,
      permalink: `${core.origin()}/archives/${channel.id}/p${ts.replace(".", "")}${query}`,
    };
  }

  return { "assistant.search.context": { scopes: ["search:read.public"], token: "bot", run } };
}

/**
 * In a Slack Connect channel, a search finds messages of that channel only (Slack's docs: "It will return results from
 * only the channel where it was invoked").
 */
function isSearched(one: Channel, asked: Channel): boolean {
  if (asked.isShared) return one === asked;
  return one.kind === "public" || (one === asked && one.kind !== "im");
}

function isMatch({ content }: Message, words: readonly string[]): boolean {
  const text = shownText(content).toLowerCase();
  return words.every((word) => text.includes(word));
}

function readNames(args: Arguments, name: string, known: ReadonlySet<string>, usual: string): string[] {
  const given = (args.text(name) ?? usual).split(",").map((one) => one.trim());
  // Slack accepts names separated by commas, but no JSON list.
  if (given.some((one) => !known.has(one))) throw new SlackRefusal("invalid_arguments");
  return given;
}

function readCursor(args: Arguments): number {
  const cursor = args.text("cursor");
  if (cursor === undefined) return 0;
  const [, from] = /^CURRENT_PAGE:(\d+)$/.exec(Buffer.from(cursor, "base64").toString()) ?? [];
  if (from === undefined) throw new SlackRefusal("invalid_cursor");
  return Number(from);
}
