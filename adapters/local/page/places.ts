import { createNonce, describeProblem, postJson } from "./requests.ts";
import { type Place, placeKey, type State, type Store } from "./state.ts";

/** Changes people, channels and chats. A promise resolves to what went wrong, or to "". */
export interface PlaceActions {
  go: (place: Place) => void;
  newChat: () => void;
  speakAs: (personId: string) => void;
  addPerson: (name: string) => Promise<string>;
  addChannel: (name: string) => Promise<string>;
  renameChat: (id: string, title: string) => Promise<string>;
}

export function createPlaceActions({ state, change }: Store): PlaceActions {
  async function request(path: string, body: object, done: (answer: { id: string }) => void): Promise<string> {
    try {
      done((await postJson(path, body)) as { id: string });
      return "";
    } catch (error) {
      return describeProblem(error);
    }
  }

  function speakAs(personId: string): void {
    localStorage.setItem("palaver.speaker", personId);
    change(() => void (state.speakerId = personId));
  }

  return {
    go,
    newChat: () => go(findUnsentChat(state) ?? toNewChat()),
    speakAs,
    addPerson: (name) => request("/local/people", { name }, ({ id }) => speakAs(id)),
    addChannel: (name) => request("/local/channels", { name }, ({ id }) => go({ channelId: id, threadId: null })),
    renameChat: (id, title) => request(`/local/chats/${id}/rename`, { title }, () => {}),
  };
}

/** A chat that begins with its first message. */
export function toNewChat(): Place {
  return { channelId: `chat-${createNonce()}`, threadId: null };
}

/** A chat that was begun and not sent is gone on with. */
function findUnsentChat({ writing, channels, view }: State): Place | undefined {
  const begun = [...writing].findLast(
    ([key, { text, uploads }]) =>
      readPlace(`#${key}`)?.threadId === null &&
      key.startsWith("chat-") &&
      !channels.has(key) &&
      (text.trim() !== "" || uploads.length > 0),
  );
  return begun === undefined || begun[0] === view.channelId ? undefined : { channelId: begun[0], threadId: null };
}

/** The address holds the place, so that going back and reloading work. */
export function go(place: Place): void {
  location.hash = placeKey(place);
}

export function readPlace(hash: string): Place | undefined {
  const [, channelId, threadId] = /^#([a-z0-9-]+)(?:\/(\d+))?$/.exec(hash) ?? [];
  if (channelId === undefined) return undefined;
  return { channelId, threadId: threadId === undefined ? null : Number(threadId) };
}

/** True for a place that somebody deleted. */
export function isGone({ channels, leaving }: State, { channelId }: Place): boolean {
  if (leaving.has(channelId)) return true;
  return channels.get(channelId)?.isDeleted ?? !channelId.startsWith("chat-");
}
