/** Searches the messages of a workspace. */
import type { Adapter } from "../../../src/port/adapter.ts";
import { SearchProblem } from "../../../src/port/errors.ts";
import type { SearchHit } from "../../../src/port/events.ts";
import { readExtra } from "../address.ts";
import type { SlackApi } from "../api/client.ts";
import { ApiError } from "../api/error.ts";
import { type Body, readText, toBodies, toBody } from "../api/wire.ts";
import type { Workspace, Workspaces } from "../api/workspaces.ts";
import { PLATFORM, timeOf, toMessageId } from "../ids.ts";
import type { People } from "./people.ts";
import { readWords } from "./wording.ts";

/** Slack's most for one page. */
const PAGE = 20;

const NO_TOKEN =
  "Slack lets me search only when you send me a message: mention me, or write to me directly, for example `!search release date`.";
const EXPIRED = "Slack lets me search only for a short time after your message. Ask again in a new message.";
const NO_SCOPE =
  "Slack doesn't let me search: the app needs the scope search:read.public. Someone who manages the app can add it and install the app again.";
const NOT_HERE =
  "Slack doesn't let me search for you here. Its search is only for full members, and isn't available in every workspace.";
const FAILED = "Slack's search isn't responding right now. Try again in a minute.";

/** The sentences for people, by Slack's error code. */
const PROBLEMS: Readonly<Record<string, string>> = {
  missing_scope: NO_SCOPE,
  invalid_action_token: EXPIRED,
  feature_not_enabled: NOT_HERE,
  access_denied: NOT_HERE,
  no_permission: NOT_HERE,
  not_allowed_token_type: NOT_HERE,
  query_too_long: "That's too many words for Slack's search. Use fewer.",
};

export interface SearchDeps {
  api: Pick<SlackApi, "call">;
  workspaces: Workspaces;
  people: Pick<People, "person" | "channelName">;
}

/**
 * Searches public channels by the Real-time Search API. Slack lets an app search others only with the person's own
 * token, which the bot does not ask for. https://docs.slack.dev/reference/methods/assistant.search.context
 */
export function createSearch({ api, workspaces, people }: SearchDeps): NonNullable<Adapter["search"]> {
  return async ({ words, cursor }, { reply }, signal) => {
    const { team, actionToken } = readExtra(reply);
    if (actionToken === undefined) throw new SearchProblem(NO_TOKEN);
    const workspace = await workspaces.find(team, signal);
    if (workspace === undefined) throw new SearchProblem(FAILED);
    const args = {
      query: withoutMarkup(words),
      action_token: actionToken,
      // Slack ignores a list in another form, and then uses its own defaults.
      channel_types: "public_channel",
      content_types: "messages",
      limit: PAGE,
      ...(cursor !== undefined && { cursor }),
    };
    const answer = await api.call(team, "assistant.search.context", args, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      throw toProblem(error);
    });
    const found = toBodies(toBody(answer["results"])["messages"]);
    const hits = (await Promise.all(found.map((raw) => toHit(raw, workspace, people)))).flat();
    const next = readText(toBody(answer["response_metadata"])["next_cursor"]);
    return { hits, ...(next !== undefined && { next }) };
  };
}

async function toHit(raw: Body, workspace: Workspace, people: SearchDeps["people"]): Promise<SearchHit[]> {
  const [channelId, ts, content] = [raw["channel_id"], raw["message_ts"], raw["content"]].map(readText);
  const link = readText(raw["permalink"]);
  if (channelId === undefined || ts === undefined || content === undefined || !isLink(link)) return [];
  const { teamId } = workspace;
  return [
    {
      messageId: toMessageId({ teamId, channelId, ts }),
      placeId: `${PLATFORM}:${teamId}:${channelId}`,
      placeName: `#${readText(raw["channel_name"]) ?? channelId}`,
      authorName: readText(raw["author_name"]) ?? "someone",
      text: await readWords(content, workspace, people),
      at: Math.floor(timeOf(ts)),
      link,
    },
  ];
}

function isLink(link: string | undefined): link is string {
  return link !== undefined && /^https?:\/\/[^\s<>|"]+$/.test(link);
}

/** Slack recommends to remove formatting from the words. */
function withoutMarkup(words: string): string {
  return words.replaceAll(/[*_~`>]+/g, " ").trim();
}

function toProblem(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  if (error.retryAfterMs !== undefined) {
    const waitS = Math.max(1, Math.ceil(error.retryAfterMs / 1_000));
    return new SearchProblem(`I've reached Slack's search limit. Try again in ${waitS} s.`);
  }
  return new SearchProblem(PROBLEMS[error.code] ?? FAILED);
}
