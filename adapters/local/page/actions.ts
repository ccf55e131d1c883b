import { createNonce, describeProblem, postJson } from "./requests.ts";
import type { Sending } from "./sending.ts";
import {
  isUploading,
  type Place,
  placeKey,
  type State,
  type Store,
  stoppableAt,
  type Writing,
  writingAt,
} from "./state.ts";
import type { ButtonRow, FileRow, MessageRow } from "./wire.ts";

const NOTICE_MS = 7000;

/** Everything a person can do at the page. The views call these and hold no state of their own. */
export interface Actions {
  change: Store["change"];
  go: (place: Place) => void;
  newChat: () => void;
  write: (place: Place, writing: Partial<Writing>) => void;
  send: (place: Place) => void;
  sendText: (place: Place, text: string) => void;
  again: Sending["again"];
  discard: Sending["discard"];
  /** Takes a message that was not sent back into the composer. */
  rewrite: (nonce: string) => void;
  press: (message: MessageRow, button: ButtonRow) => void;
  /** False when nothing is being written there. */
  stopAt: (place: Place) => boolean;
  /** Resolves to whether the text was taken. */
  edit: (message: MessageRow, text: string) => Promise<boolean>;
  cancelEdit: () => Promise<boolean>;
  erase: (message: MessageRow) => void;
  speakAs: (personId: string) => void;
  /** Resolves to what went wrong, or to "". */
  addPerson: (name: string) => Promise<string>;
  addChannel: (name: string) => Promise<string>;
  notice: (text: string) => void;
}

export function createActions(store: Store, sending: Sending): Actions {
  const { state, change } = store;
  const notice = createNotice(store);
  const requests = createRequests(store, notice);

  return {
    change,
    notice,
    go,
    ...requests,
    newChat: () => go({ channelId: `chat-${createNonce()}`, threadId: null }),
    write: (place, writing) =>
      change(() => void state.writing.set(placeKey(place), { ...writingAt(state, place), ...writing })),
    send(place) {
      const { text, uploads } = writingAt(state, place);
      const files = uploads.flatMap(({ file }) => (file === undefined ? [] : [file]));
      if (uploads.some(isUploading)) {
        return change(() => void state.writing.set(placeKey(place), { text, uploads, isWaiting: true }));
      }
      if (text.trim() === "" && files.length === 0) return;
      // A blank in front keeps a slash from being read as a command.
      sending.send(place, text.trimEnd(), files);
      change(() => void state.writing.delete(placeKey(place)));
    },
    sendText: (place, text) => sending.send(place, text, []),
    again: sending.again,
    discard: sending.discard,
    rewrite: (nonce) => rewrite(nonce, store, sending),
    stopAt(place) {
      const message = stoppableAt(state, place);
      const button = message?.buttons.find(({ action }) => action === "stop");
      if (message === undefined || button === undefined) return false;
      requests.press(message, button);
      return true;
    },
    speakAs(personId) {
      localStorage.setItem("palaver.speaker", personId);
      change(() => void (state.speakerId = personId));
    },
    ...createAdding(store),
  };
}

/** Shows a sentence for a few seconds. */
function createNotice({ state, change }: Store): Actions["notice"] {
  let timer = 0;
  return (text) => {
    clearTimeout(timer);
    change(() => void (state.notice = text));
    timer = setTimeout(() => change(() => void (state.notice = "")), NOTICE_MS);
  };
}

function createRequests(
  { state, change }: Store,
  notice: Actions["notice"],
): Pick<Actions, "press" | "edit" | "cancelEdit" | "erase"> {
  /** Resolves to whether it worked; if not, the person has been told. */
  async function request(path: string, body: object): Promise<boolean> {
    try {
      await postJson(path, { nonce: createNonce(), authorId: state.speakerId, ...body });
      return true;
    } catch (error) {
      notice(describeProblem(error));
      return false;
    }
  }

  async function edit(message: MessageRow, text: string): Promise<boolean> {
    const isDone = text === message.text || (await request(`/local/messages/${message.id}/edit`, { text }));
    if (isDone) change(() => void (state.editingId = undefined));
    return isDone;
  }

  return {
    press: ({ id }, { action, turnId }) => void request(`/local/messages/${id}/action`, { action, turnId }),
    edit: (message, text) => edit(message, text.trim()),
    async cancelEdit() {
      change(() => void (state.editingId = undefined));
      return true;
    },
    erase: ({ id }) => void request(`/local/messages/${id}/delete`, {}),
  };
}

function createAdding({ change }: Store): Pick<Actions, "addPerson" | "addChannel"> {
  async function add(path: string, name: string, added: (id: string, state: State) => void): Promise<string> {
    try {
      const { id } = (await postJson(path, { name })) as { id: string };
      change((state) => added(id, state));
      return "";
    } catch (error) {
      return describeProblem(error);
    }
  }

  return {
    addPerson: (name) =>
      add("/local/people", name, (id, state) => {
        localStorage.setItem("palaver.speaker", id);
        state.speakerId = id;
      }),
    addChannel: (name) => add("/local/channels", name, (id) => go({ channelId: id, threadId: null })),
  };
}

function rewrite(nonce: string, { state, change }: Store, sending: Sending): void {
  const pending = state.pending.find((each) => each.nonce === nonce);
  if (pending === undefined) return;
  const uploads = pending.files.map((file) => toUpload(file));
  const text = [pending.text, writingAt(state, pending).text].filter((each) => each !== "").join("\n\n");
  change((state) => void state.writing.set(placeKey(pending), { text, uploads, isWaiting: false }));
  sending.discard(nonce);
}

function toUpload(file: FileRow): Writing["uploads"][number] {
  const previewUrl = file.isImage ? `/local/files/${file.id}` : "";
  return { key: file.id, name: file.name, previewUrl, progress: 1, file, problem: "" };
}

/** The address holds the place, so that going back and reloading work. */
function go(place: Place): void {
  location.hash = placeKey(place);
}

export function readPlace(hash: string): Place | undefined {
  const [, channelId, threadId] = /^#([a-z0-9-]+)(?:\/(\d+))?$/.exec(hash) ?? [];
  if (channelId === undefined) return undefined;
  return { channelId, threadId: threadId === undefined ? null : Number(threadId) };
}
